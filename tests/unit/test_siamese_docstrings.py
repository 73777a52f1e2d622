"""The worked examples in the docstrings of ``askalike.siamese`` hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import askalike.siamese

pytest.importorskip("torch", reason="the siamese network is trained with torch, which is not installed")

MODULES = [module.name for module in pkgutil.iter_modules(askalike.siamese.__path__, "askalike.siamese.")]


@pytest.mark.parametrize("name", MODULES)
def test_the_worked_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
