"""Milvus Lite for tests: the real engine in one file, served by a process of its own; one for a folder of tests."""

from __future__ import annotations

import os
import subprocess
import warnings
from pathlib import Path

import pytest

from askalike.errors import EngineError
from askalike.index.milvus.client import Milvus

TRIES = 60


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


def served_milvus(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Start Milvus Lite as a server of its own, at "milvus://127.0.0.1:PORT"; return its process when it answers."""
    import milvus_lite

    programs = Path(milvus_lite.__file__).parent / "lib"
    command = [str(programs / "milvus"), str(folder / "milvus.db"), f"127.0.0.1:{port}", "ERROR"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(programs)}
    with (folder / "milvus.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    for _ in range(TRIES):  # each waits for some seconds
        milvus = Milvus(f"milvus://127.0.0.1:{port}", "probe")
        try:
            milvus.call("list_collections")
        except EngineError:
            continue
        finally:
            milvus.close()
        return process
    process.kill()
    process.wait()
    raise AssertionError("Milvus Lite does not answer")
