"""The worked examples in the docstrings of ``askalike.rank`` hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import askalike.rank

MODULES = [module.name for module in pkgutil.walk_packages(askalike.rank.__path__, "askalike.rank.")]


@pytest.mark.parametrize("name", MODULES)
def test_the_worked_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
