"""The worked examples in the docstrings come out as they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import askalike.forum_evaluation
import askalike.papers

MODULES = [
    module.name
    for package in (askalike.forum_evaluation, askalike.papers)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


@pytest.mark.parametrize("name", MODULES)
def test_every_example_in_a_docstring_comes_out(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
