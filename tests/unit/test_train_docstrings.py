"""The worked examples in the docstrings of ``askalike.train`` hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import askalike.train
import askalike.train.decoders
import askalike.train.objectives
import askalike.train.siamese

pytest.importorskip("torch", reason="training needs torch, which is not installed")

MODULES = [
    module.name
    for package in (askalike.train, askalike.train.decoders, askalike.train.objectives, askalike.train.siamese)
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    if not module.ispkg
]


@pytest.mark.parametrize("name", MODULES)
def test_the_worked_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
