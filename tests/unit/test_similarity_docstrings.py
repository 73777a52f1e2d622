"""The worked examples in the docstrings of ``askalike.similarity`` hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import askalike.similarity

MODULES = [module.name for module in pkgutil.iter_modules(askalike.similarity.__path__, "askalike.similarity.")]


@pytest.mark.parametrize("name", MODULES)
def test_the_worked_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
