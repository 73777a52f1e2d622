"""The worked examples in the docstrings come out as they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import askalike.evaluate

MODULES = [module.name for module in pkgutil.walk_packages(askalike.evaluate.__path__, "askalike.evaluate.")]


@pytest.mark.parametrize("name", MODULES)
def test_every_example_in_a_docstring_comes_out(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_public_name_exists_once_and_in_order() -> None:
    names = askalike.evaluate.__all__
    assert all(hasattr(askalike.evaluate, name) for name in names)
    assert len(set(names)) == len(names)
