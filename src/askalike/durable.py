"""Files that are on disk, whole, when the call returns.

Enters: a path and bytes. Leaves: a file. May import: nothing of askalike.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

__all__ = ["REFUSED", "replace_whole", "sync_folder", "writing_whole"]

REFUSED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of the system that say nothing about what is on disk."""


@contextmanager
def writing_whole(path: Path) -> Iterator[BinaryIO]:
    """Give a new file to write; it is on disk at the end, and gone where writing it failed."""
    try:
        with path.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # the system does not name the file that it has no space for
        path.unlink(missing_ok=True)
        raise


def replace_whole(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` in one step: readers find the old bytes or the new, also after a crash."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    with writing_whole(temporary) as file:
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
