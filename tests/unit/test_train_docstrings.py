"""The worked examples in the docstrings of ``askalike.training`` hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import askalike.training
import askalike.training.decoders
import askalike.training.objectives
import askalike.training.siamese

pytest.importorskip("torch", reason="training needs torch, which is not installed")

MODULES = [
    module.name
    for package in (
        askalike.training,
        askalike.training.decoders,
        askalike.training.objectives,
        askalike.training.siamese,
    )
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    if not module.ispkg
]


@pytest.mark.parametrize("name", MODULES)
def test_the_worked_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
