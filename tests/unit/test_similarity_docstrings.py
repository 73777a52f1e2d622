"""The worked examples in the docstrings of ``askalike.models.similarity`` hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import askalike.models.similarity

MODULES = [
    module.name for module in pkgutil.iter_modules(askalike.models.similarity.__path__, "askalike.models.similarity.")
]


@pytest.mark.parametrize("name", MODULES)
def test_the_worked_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
