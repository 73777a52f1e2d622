"""One process at a time: the locks of those who write the index and of those who build its graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import filelock

from askalike.errors import BusyForumError, ForumError

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
