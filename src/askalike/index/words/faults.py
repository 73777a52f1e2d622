"""The border to tantivy: every failure of it becomes an error that names the folder and what to do.

Damage that tantivy does not expect ends in a panic of Rust, which reaches Python as a ``BaseException`` of a class that
no module exports; it is known by its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from askalike.errors import BusyForumError, DamagedForumError, ForumError
from askalike.files import REFUSED, is_full
from askalike.index.checked_file import REBUILD, unwritable

_SYSTEM_ERROR: Final = re.compile(r"(?:os error|code:) (\d+)")


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Tell failures to read the index in a folder.

    Raises:
        DamagedForumError: a file is damaged, or has gone.
        ForumError: the system does not let it be read.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        number = _system_error(error)
        if number in REFUSED:
            raise ForumError(
                f"the word index in {folder} cannot be read: {error}", "check the rights of the forum's folder"
            ) from error
        raise unread(folder, error) from error
    except BaseException as error:
        if not is_panic(error):
            raise
        raise unread(folder, error) from error


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Tell failures to write the index in a folder.

    Raises:
        BusyForumError: another writer is open, in this process or another.
        DamagedForumError: what is there cannot be read.
        ForumError: the system does not let it be written, as on a full disk.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        if "LockBusy" in str(error):
            raise BusyForumError(
                f"the word index in {folder} is being written by another process", "wait until it has finished"
            ) from error
        disk_is_full = is_full(folder, _system_error(error))
        raise unwritable(f"the word index in {folder}", error, is_full=disk_is_full) from error
    except BaseException as error:
        if not is_panic(error):
            raise
        raise unread(folder, error) from error


def unread(folder: Path, error: BaseException) -> DamagedForumError:
    """Return the error of an index that is damaged."""
    return DamagedForumError(f"the word index in {folder} cannot be read: {error}", REBUILD)


def is_panic(error: BaseException) -> bool:
    """Return whether an error is a panic of Rust."""
    return type(error).__name__ == "PanicException" and type(error).__module__ == "pyo3_runtime"


def _system_error(error: Exception) -> int | None:
    if isinstance(error, OSError):
        return error.errno
    found = _SYSTEM_ERROR.search(str(error))
    return int(found[1]) if found else None
