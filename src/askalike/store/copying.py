"""A copy of a forum's folder, made while others may read and write it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path
from typing import Final

_LEFT_OUT: Final = ("keys.json", "training", "*.lock", "*.sqlite", "*-wal", "*-shm", "*-journal")
_DATABASES_LEFT_OUT: Final = ("loading.sqlite", "follow.sqlite")


def copy_forum(folder: Path, into: Path) -> None:
    """Copy a forum's folder, each database as it is at a moment; without keys and what is under way.

    Raises:
        OSError, sqlite3.Error: something cannot be read or written.
    """
    shutil.copytree(folder, into, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    for path in folder.rglob("*.sqlite"):
        copy = into / path.relative_to(folder)
        if path.name in _DATABASES_LEFT_OUT or not copy.parent.is_dir():
            continue
        with contextlib.closing(sqlite3.connect(path)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
            source.backup(target)
