"""Finds the reader for a path, and never guesses between two.

Enters: a path. Leaves: its reader. May import: errors, the registry, its own folder.

The rules, all of them: each reader looks at names and first bytes. Readers of a particular format come before the
readers of general ones, ``jsonl`` before ``table``. Of several in the same place none is taken: the user says which.
"""

from __future__ import annotations

from pathlib import Path

from askalike.errors import FormatError, InputError
from askalike.read.frame import Reader
from askalike.read.registry import READERS
from askalike.read.unrecognised import unrecognised

__all__ = ["GENERAL", "choose", "detect", "named"]

GENERAL: tuple[str, ...] = ("jsonl", "table")
"""Formats that particular ones look like too, in the order in which they are taken when no particular one matches."""


def choose(path: Path, format_name: str | None = None) -> Reader:
    """Return the reader that the user named, or else the one that is detected.

    Raises:
        InputError: there is nothing at the path, or a device, pipe or socket.
        FormatError: no such format; or, when detected, no reader or several match.
    """
    _check_there(path)
    return detect(path) if format_name is None else named(format_name)


def named(name: str) -> Reader:
    """Return a reader by its format's name.

    Raises:
        FormatError: there is no such format; the choices are listed.
    """
    if name not in READERS:
        raise FormatError(f"{name!r} is no format that can be read", f"the formats are {', '.join(sorted(READERS))}")
    return READERS[name]


def detect(path: Path) -> Reader:
    """Return the one reader that recognises a path.

    Raises:
        InputError: there is nothing at the path, or a device, pipe or socket.
        FormatError: no reader, or several, recognise it.
    """
    _check_there(path)
    matching = [reader for reader in READERS.values() if _recognises(reader, path)]
    particular = [reader for reader in matching if reader.name not in GENERAL]
    general = sorted((reader for reader in matching if reader.name in GENERAL), key=lambda r: GENERAL.index(r.name))
    if len(particular) == 1:
        return particular[0]
    if particular:
        raise FormatError(
            f"{path} looks like several formats: {', '.join(reader.name for reader in particular)}",
            f"say which it is: {', '.join(f'--format {reader.name}' for reader in particular)}",
        )
    if general:
        return general[0]
    cause, hint = unrecognised(path)
    raise FormatError(
        f"the format of {path} is not recognised{': ' if cause else ''}{cause}",
        hint or f"say it with --format, one of {', '.join(sorted(READERS))}; docs/formats.md shows each",
    )


def _check_there(path: Path) -> None:
    if not path.exists():
        raise InputError(f"there is nothing at {path}", "look at the path")
    if not path.is_file() and not path.is_dir():
        raise InputError(
            f"{path} is a device, a pipe or a socket, expected a file or folder",
            "save what comes through it in a file first",
        )


def _recognises(reader: Reader, path: Path) -> bool:
    try:
        return reader.matches(path)
    except OSError:  # a folder or file that may not be read: the reader that is chosen will say so
        return False
