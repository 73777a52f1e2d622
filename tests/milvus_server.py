"""Milvus Lite for tests: the real engine in one file, run by a process of its own; one for a folder of tests."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest


def milvus_address(folder: Path) -> str:
    """Return the address of an engine in a folder; skip where its packages are missing."""
    pytest.importorskip("pymilvus", reason="pymilvus is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for its own version in a way that is deprecated
        pytest.importorskip("milvus_lite", reason="milvus-lite is not installed, or setuptools is too new for it")
    return f"milvus:{folder / 'engine.db'}"


def stop_milvus(address: str) -> None:
    """End the engine's process, as a restart of the machine does; whoever asks for it next starts it again."""
    from milvus_lite.server_manager import server_manager_instance

    server_manager_instance.release_server(address.removeprefix("milvus:"))
