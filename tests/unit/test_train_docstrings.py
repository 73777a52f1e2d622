"""The worked examples in the docstrings of ``askalike.models.encoders`` and ``askalike.training`` hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import askalike.models.encoders
import askalike.training

torch = pytest.importorskip("torch", reason="training needs torch, which is not installed")

MODULES = [
    module.name
    for package in (askalike.models.encoders, askalike.training)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.ispkg
]


@pytest.mark.parametrize("name", MODULES)
def test_the_worked_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), extraglobs={"torch": torch}).failed == 0
