"""Files that are on disk, whole, when the call returns."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from askalike.errors import ForumError

REFUSED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of the system that say nothing about what is on disk."""


def narrow(path: str, flags: int) -> int:
    """Open a file so that one that is made may be read and written by its owner alone; one that is there stays.

    An opener for ``open``: ``open(path, "xb", opener=narrow)``. The rights are those of the first moment: nobody can
    open the file before they are narrowed. Who shares a file with a group widens it once, and it stays so.
    """
    return os.open(path, flags, 0o600)


@contextmanager
def writing_whole(path: Path, *, is_narrow: bool = False) -> Iterator[BinaryIO]:
    """Give a new file to write; it is on disk at the end, and gone where writing it failed.

    Args:
        is_narrow: only its owner may read it.
    """
    try:
        with open(path, "xb", opener=narrow if is_narrow else None) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # the system does not name the file that it has no space for
        path.unlink(missing_ok=True)
        raise


def replace_whole(path: Path, content: bytes, *, is_narrow: bool = False) -> None:
    """Put ``content`` at ``path`` in one step: readers find the old bytes or the new, also after a crash.

    Args:
        is_narrow: only its owner may read it.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    with writing_whole(temporary, is_narrow=is_narrow) as file:
        file.write(content)
    sync_folder(path.parent)  # the files that the content names, before the content
    temporary.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Put the folder's list of names on disk, where the system can."""
    if os.name == "nt":  # a folder cannot be opened there; renames are journalled
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def writing_named(path: Path) -> Iterator[None]:
    """Raise ForumError, which names the file, where the system refuses to write it."""
    try:
        yield
    except OSError as error:
        raise ForumError(
            f"{error.filename or path} cannot be written: {error.strerror or error}",
            "check the path, its rights, the free space on its disk, and that the disk is not mounted read-only",
        ) from error
