"""The folder of a vector index: its locks, the names of its files, and the removal of orphaned ones."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal

import filelock

from askalike.errors import BusyForumError, ForumError
from askalike.files import Owned

_DOING = {"write": "is being written", "build": "is having its neighbour graph built"}


@contextmanager
def alone(folder: Path, task: Literal["write", "build"], patience_s: float = 0) -> Iterator[None]:
    """Hold the lock of this task; the system frees it when the process dies.

    Args:
        patience_s: how long to wait for it.

    Raises:
        BusyForumError: it is held, in this process or another.
        ForumError: the system does not let it be taken.
    """
    lock = filelock.FileLock(folder / f"{task}.lock", thread_local=False)
    try:
        lock.acquire(timeout=patience_s)
    except filelock.Timeout as error:
        raise BusyForumError(
            f"the vector index in {folder} {_DOING[task]} by another process", "wait until it has finished"
        ) from error
    except (OSError, NotImplementedError) as error:
        raise ForumError(
            f"{lock.lock_file} cannot be locked: {error}", "check the rights of the forum's folder"
        ) from error
    try:
        yield
    finally:
        lock.release()


_NAME: Final = r"\d{8,}-[0-9a-f]{8}"
_COMMITTED: Final = rf"{_NAME}\.(segment|dead|graph)|mark\.json\.\d+\.tmp"
BUILDING: Final = rf"{_NAME}\.building"

OWNED: Final = Owned(rf"{_COMMITTED}|{BUILDING}|mark\.json|(write|build)\.lock")
"""What lies in an index's folder."""


def file_name(generation: int, kind: str) -> str:
    """Return a name that no file has had: a killed process may have left one of the same commit."""
    return f"{generation:08d}-{secrets.token_hex(4)}.{kind}"


def clear_orphaned_files(folder: Path, pattern: str = _COMMITTED, *, named: Collection[str] = ()) -> None:
    """Delete files of ours that are not ``named``; only who holds the lock of their writers may call this."""
    for path in folder.iterdir():
        if path.name not in named and re.fullmatch(pattern, path.name):
            with suppress(PermissionError, IsADirectoryError):  # Windows: a reader has it open; the next writer tries
                path.unlink(missing_ok=True)
