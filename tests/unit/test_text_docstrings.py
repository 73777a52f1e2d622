"""The worked examples in the docstrings of ``askalike.text`` hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import askalike.text

MODULES = [module.name for module in pkgutil.iter_modules(askalike.text.__path__, "askalike.text.")]


@pytest.mark.parametrize("name", MODULES)
def test_the_worked_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
