"""Removal of what the package wrote itself, by the names that it gives: nothing else is deleted, no link is followed.

A folder that holds anything else stays, with just that in it; so does one that is a link, and all behind it.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final


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
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISLNK(found.st_mode) or bool(getattr(found, "st_file_attributes", 0) & _REPARSE_POINT)


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
    found: list[Path] = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        inner = owned.folder(path.name)
        if inner is not None and path.is_dir() and not is_link(path):
            found.extend(foreign_in(path, inner))
        elif not owned.has_file(path.name) or (path.is_dir() and any(path.iterdir())):
            found.append(path)
    return found


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
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
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
