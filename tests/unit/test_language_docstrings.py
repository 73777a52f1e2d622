"""The worked examples in the docstrings of ``askalike.models.language`` hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import askalike.models.language

MODULES = [
    module.name for module in pkgutil.walk_packages(askalike.models.language.__path__, "askalike.models.language.")
]


@pytest.mark.parametrize("name", MODULES)
def test_the_worked_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
