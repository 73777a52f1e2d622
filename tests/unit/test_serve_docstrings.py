"""The worked examples in the docstrings of ``askalike.serve``, ``askalike.forum`` and ``askalike.stages`` hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import askalike.forum
import askalike.serve

MODULES = [
    "askalike.stages",
    *(
        module.name
        for package in (askalike.serve, askalike.forum)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ),
]


@pytest.mark.parametrize("name", MODULES)
def test_the_worked_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
