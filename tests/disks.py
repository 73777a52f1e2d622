"""Disks of a few megabytes for tests, where they may be mounted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """Give a disk of its own that is mounted at a folder."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if os.name == "nt" or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, left: int) -> None:
    """Leave so many bytes free on a disk."""
    other = disk / "other"
    other.unlink(missing_ok=True)
    status = os.statvfs(disk)
    other.write_bytes(bytes(max(0, status.f_bavail * status.f_frsize - left)))
