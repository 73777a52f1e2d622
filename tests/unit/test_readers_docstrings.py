"""The examples in the docstrings of ``askalike.readers`` are right."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from askalike import readers as read

MODULES = sorted(found.name for found in pkgutil.walk_packages(read.__path__, "askalike.readers."))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_right(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
