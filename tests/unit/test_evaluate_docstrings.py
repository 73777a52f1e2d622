"""The worked examples in the docstrings come out as they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import askalike.evaluation

MODULES = [module.name for module in pkgutil.walk_packages(askalike.evaluation.__path__, "askalike.evaluation.")]


@pytest.mark.parametrize("name", MODULES)
def test_every_example_in_a_docstring_comes_out(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_public_name_exists_once_and_in_order() -> None:
    names = askalike.evaluation.__all__
    assert all(hasattr(askalike.evaluation, name) for name in names)
    assert len(set(names)) == len(names)
