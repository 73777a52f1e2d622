"""Locks of a forum's files: a lock that the system does not let be taken is told as an error of the forum."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import filelock

from askalike.errors import ForumError


class UnlockableError(ForumError):
    """A lock's file cannot be made or opened, as on a disk that is full or may only be read."""


@contextmanager
def held(lock: filelock.BaseFileLock, timeout_s: float) -> Iterator[None]:
    """Hold a lock.

    Raises:
        filelock.Timeout: another process holds it for longer than ``timeout_s``.
        UnlockableError: the system does not let it be taken.
    """
    try:
        lock.acquire(timeout=timeout_s)
    except filelock.Timeout:
        raise
    except (OSError, NotImplementedError) as error:
        raise UnlockableError(
            f"{lock.lock_file} cannot be locked: {error}", "free space, or check the rights of the forum's folder"
        ) from error
    try:
        yield
    finally:
        lock.release()
