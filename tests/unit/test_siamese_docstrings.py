"""The worked examples in the docstrings of ``askalike.models.siamese`` hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import askalike.models.siamese

pytest.importorskip("torch", reason="the siamese network is trained with torch, which is not installed")

MODULES = [module.name for module in pkgutil.iter_modules(askalike.models.siamese.__path__, "askalike.models.siamese.")]


@pytest.mark.parametrize("name", MODULES)
def test_the_worked_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
