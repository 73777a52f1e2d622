"""The worked examples in the docstrings come out as they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import askalike.experiments

MODULES = [module.name for module in pkgutil.walk_packages(askalike.experiments.__path__, "askalike.experiments.")]


@pytest.mark.parametrize("name", MODULES)
def test_every_example_in_a_docstring_comes_out(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
