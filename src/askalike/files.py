"""Files that are on disk, whole, when the call returns; removal of our own files alone; locks.

A folder that holds anything else stays, with just that in it; so does one that is a link, and all behind it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import filelock

from askalike.errors import BusyForumError, DiskFullError, ForumError, ShortageError

IS_WINDOWS: Final = os.name == "nt"
REPLACING_S: Final = 2.0
"""How long a file that others read there is tried to be replaced."""

REFUSED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of the system that say nothing about what is on disk."""
SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of the system that has no file handle or memory left for this process."""
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of the system for a disk, or a user's share of it, without room."""
LEAST_FREE_BYTES: Final = 1 << 20


def is_full(path: Path, number: int | None = None) -> bool:
    """Return whether the disk of a path is why something could not be written there.

    Args:
        number: of the system's error, where it is known; libraries hide it, and then the room that is left decides.
    """
    if number in FULL:
        return True
    with contextlib.suppress(OSError):
        return shutil.disk_usage(path if path.is_dir() else path.parent).free < LEAST_FREE_BYTES
    return False


def shortage(what: str, number: int) -> ShortageError | None:
    """Return the error of a system that has no file handle or memory left, None where that is not why.

    Args:
        what: could not be done, such as "a/file cannot be opened".
        number: of the system's error.
    """
    if number not in SHORT:
        return None
    return ShortageError(
        f"{what}: {os.strerror(number)}", 'try again; allow more open files ("ulimit -n"), or end other programs'
    )


def is_there(path: Path) -> bool:
    """Return whether there is something at a path; there is nothing at one that the system refuses, as of its name."""
    return os.path.exists(path)  # noqa: PTH110 - that of a Path raises for some of those


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
    with replacing_whole(path, is_narrow=is_narrow) as file:
        file.write(content)


@contextmanager
def replacing_whole(path: Path, *, is_narrow: bool = False) -> Iterator[BinaryIO]:
    """Give a file to write, which takes the place of the one at ``path`` at the end, as ``replace_whole`` does it.

    Where anything fails, the old one stays, and nothing lies beside it; nor is what a killed process left in the way.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    with writing_whole(temporary, is_narrow=is_narrow) as file:
        yield file
    try:
        sync_folder(path.parent)  # the files that the content names, before the content
        _put(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _put(temporary: Path, path: Path) -> None:
    """Rename a file over another; on Windows again, for a while, where somebody is reading the other."""
    last_s = time.monotonic() + REPLACING_S
    while True:
        try:
            temporary.replace(path)
        except PermissionError:
            if not IS_WINDOWS or time.monotonic() > last_s:
                raise
            time.sleep(0.02)
        else:
            return


def sync_file(path: Path) -> None:
    """Put a file on disk that something else has written."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Put the folder's list of names on disk, where the system can."""
    if IS_WINDOWS:  # a folder cannot be opened there; renames are journalled
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
        if error.errno in FULL:
            raise DiskFullError(
                f"{error.filename or path} cannot be written: {error.strerror or error}", "free space on its disk"
            ) from error
        if short := shortage(f"{error.filename or path} cannot be written", error.errno or 0):
            raise short from error
        raise ForumError(
            f"{error.filename or path} cannot be written: {error.strerror or error}",
            "check the path, its rights, the free space on its disk, and that the disk is not mounted read-only",
        ) from error


@dataclass(frozen=True, slots=True)
class Owned:
    """The names that the package gives in one of its folders, as regular expressions that match a whole name.

    Args:
        files: of files.
        folders: of folders, each with the names in it.
    """

    files: str = ""
    folders: tuple[tuple[str, Owned], ...] = ()

    def has_file(self, name: str) -> bool:
        """Return whether a file of this name is the package's."""
        return bool(self.files and re.fullmatch(self.files, name))

    def folder(self, name: str) -> Owned | None:
        """Return the names in the folder of this name, or None where it is not the package's."""
        return next((owned for pattern, owned in self.folders if re.fullmatch(pattern, name)), None)


_HAS_DESCRIPTORS: Final = os.scandir in os.supports_fd and {os.open, os.unlink, os.rmdir} <= os.supports_dir_fd
_TRIES: Final = 3
"""Who still reads what is removed may make a lock's file in it meanwhile."""
_REPARSE_POINT: Final = 0x400
"""The attribute of links and junctions on Windows."""


def is_link(path: Path) -> bool:
    """Return whether a path is a link, or anything else that leads to another folder, as a junction does."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISLNK(status.st_mode) or bool(getattr(status, "st_file_attributes", 0) & _REPARSE_POINT)


def remove_owned(folder: Path, owned: Owned) -> list[Path]:
    """Remove the package's files in a folder, and the folder when nothing is left in it.

    A link that has the name of a file is removed itself; one that has the name of a folder stays.

    Returns:
        what is left, at most one path of each folder in it; nothing when the folder has gone, or was never there.
    """
    left: list[Path] = []
    for _ in range(_TRIES):
        if not os.path.lexists(folder):
            return []
        left = list(_cleared(folder, owned, folder, None))
        if not left:
            try:
                folder.rmdir()
            except FileNotFoundError:
                return []
            except OSError:
                left = [folder]
    return left


def remove_file(path: Path) -> None:
    """Remove a file of the package, or what stands in its place: a link itself, an empty folder.

    Raises:
        OSError: it cannot be removed, as a folder that holds something.
    """
    with contextlib.suppress(FileNotFoundError):
        if path.is_dir() and not is_link(path):
            path.rmdir()
        else:
            path.unlink()


def foreign_in(folder: Path, owned: Owned) -> list[Path]:
    """Return what lies in a folder, at any depth, and has none of the package's names; links are not followed."""
    foreign: list[Path] = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        inner = owned.folder(path.name)
        if inner is not None and path.is_dir() and not is_link(path):
            foreign.extend(foreign_in(path, inner))
        elif not owned.has_file(path.name) or (path.is_dir() and any(path.iterdir())):
            foreign.append(path)
    return foreign


def _cleared(path: Path, owned: Owned, name: Path | str, parent: int | None) -> Iterator[Path]:
    """Remove what is the package's in a folder, and give what cannot or must not be removed.

    Args:
        path: of the folder, for what is given.
        name: by which it is opened in ``parent``: the folder that was looked at, whatever stands at its path by now.
    """
    if parent is None and is_link(path):
        yield path
        return
    try:
        here = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent) if _HAS_DESCRIPTORS else None
    except FileNotFoundError:
        return
    except OSError:  # a file, a link, or a folder that may not be read
        yield path
        return
    try:
        with os.scandir(path if here is None else here) as entries:
            in_order = sorted(entries, key=lambda entry: entry.name)
        for entry in in_order:
            yield from _removed(path / entry.name, owned, here)
    finally:
        if here is not None:
            os.close(here)


def _removed(path: Path, owned: Owned, here: int | None) -> Iterator[Path]:
    name = path if here is None else path.name
    inner = owned.folder(path.name)
    try:
        is_folder = stat.S_ISDIR(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode)
        if inner is not None and is_folder:
            left = list(_cleared(path, inner, name, here))
            yield from left
            if not left:
                os.rmdir(name, dir_fd=here)
        elif not owned.has_file(path.name):
            yield path
        elif is_folder:
            os.rmdir(name, dir_fd=here)  # in the place of a file; only an empty one goes
        else:
            os.unlink(name, dir_fd=here)
    except FileNotFoundError:
        return
    except OSError:  # not empty; or, on Windows, still open elsewhere
        yield path


class UnlockableError(ForumError):
    """A lock's file cannot be made or opened, as on a disk that is full or may only be read."""


@contextmanager
def holding(lock: filelock.BaseFileLock, timeout_s: float, busy: BusyForumError | None = None) -> Iterator[None]:
    """Hold a lock.

    Args:
        busy: raised where another process holds it for longer than ``timeout_s``.

    Raises:
        filelock.Timeout: another process holds it for longer, and there is no ``busy``.
        UnlockableError: the system does not let it be taken, or its folder is not there.
        ShortageError: the system has no file handle left.
    """
    folder = Path(lock.lock_file).parent
    if not folder.is_dir():  # it would be made anew, in the place of a forum that was moved
        raise UnlockableError(f"the folder {folder} is not there", "open the forum again")
    try:
        lock.acquire(timeout=timeout_s)
    except filelock.Timeout as error:
        if busy is None:
            raise
        raise busy from error
    except (OSError, NotImplementedError) as error:
        if short := shortage(f"{lock.lock_file} cannot be locked", getattr(error, "errno", 0) or 0):
            raise short from error
        raise UnlockableError(
            f"{lock.lock_file} cannot be locked: {error}", "free space, or check the rights of the forum's folder"
        ) from error
    try:
        yield
    finally:
        lock.release()
