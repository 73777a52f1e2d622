"""The worked examples in the docstrings of every module hold."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import askalike

PACKAGE = Path(askalike.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if path.name != "__main__.py"  # it runs the program
)


@pytest.mark.parametrize("name", MODULES)
def test_the_worked_examples_of_a_module_hold(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("askalike"):
            raise
        pytest.skip(f"needs {error.name}, which is not installed")
    assert doctest.testmod(module).failed == 0
