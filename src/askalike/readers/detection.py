"""Which reader takes a path: the one table of formats, and a search that never guesses between two.

A new reader is a file in this folder and a line in the table.

The rules, all of them: each reader looks at names and first bytes. Readers of a particular format come before the
readers of general ones, ``jsonl`` before ``table``. Of several in the same place none is taken: the user says which.
A folder that is no archive itself stands for the one archive that lies in it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from askalike.errors import FormatError, InputError
from askalike.readers.discourse import DiscourseReader
from askalike.readers.frame import Reader
from askalike.readers.jsonl import JsonlReader
from askalike.readers.pairs import PairsReader
from askalike.readers.research.askubuntu import AskUbuntuReader
from askalike.readers.research.beir import BeirReader
from askalike.readers.research.semeval import SemEvalReader
from askalike.readers.research.yahoo import YahooLiveQaReader, YahooReader
from askalike.readers.research.yahoo_threads import YahooThreadsReader
from askalike.readers.stackexchange import StackExchangeReader
from askalike.readers.table import TableReader
from askalike.readers.unrecognised import unrecognised

_ALL: tuple[Reader, ...] = (
    StackExchangeReader(),
    DiscourseReader(),
    SemEvalReader(),
    YahooReader(),
    YahooLiveQaReader(),
    YahooThreadsReader(),
    AskUbuntuReader(),
    BeirReader(),
    JsonlReader(),
    TableReader(),
    PairsReader(),
)

READERS: dict[str, Reader] = {reader.name: reader for reader in _ALL}


_MOST_MEMBERS = 1_000
_MOST_LISTED = 8

GENERAL: tuple[str, ...] = ("jsonl", "table")
"""Formats that particular ones look like too, in the order in which they are taken when no particular one matches."""


class Found(NamedTuple):
    """An archive.

    Args:
        path: where it is: what the user gave, or the one archive in that folder.
        left_out: names of what else is in the folder, which no reader recognises.
    """

    path: Path
    reader: Reader
    left_out: tuple[str, ...] = ()


def find_archive(path: Path, format_name: str | None = None) -> Found:
    """Return the archive at a path with its reader, or the only one in a folder that is none itself.

    Raises:
        InputError: there is nothing at the path, or a device, pipe or socket.
        FormatError: no such format; nothing is recognised; or a folder holds several archives, which are listed.
    """
    _check_there(path)
    readers = list(READERS.values()) if format_name is None else [named(format_name)]
    if not path.is_dir() or any(_recognises(reader, path) for reader in readers):
        return Found(path, choose(path, format_name))
    members = _members(path)
    found = {child: reader for child in members if (reader := _reader_of(child, readers)) is not None}
    if (
        format_name is not None and not found and len(members) == 1 and members[0].is_file()
    ):  # columns may be named that nobody would guess
        found = {members[0]: readers[0]}
    if len(found) > 1:
        listed = ", ".join(f"{child.name} ({reader.name})" for child, reader in list(found.items())[:_MOST_LISTED])
        more = f" and {len(found) - _MOST_LISTED} more" if len(found) > _MOST_LISTED else ""
        first = shlex.join(["askalike", "index", str(next(iter(found))), "--into", "FORUM"])
        raise FormatError(f"{path} holds several archives: {listed}{more}", f"index one at a time, as with: {first}")
    for child, reader in found.items():
        return Found(child, reader, tuple(other.name for other in members if other != child))
    return Found(path, choose(path, format_name))


def _members(folder: Path) -> list[Path]:
    """Return what lies in a folder, without hidden files, and links that lead out of it."""
    inside = os.path.realpath(folder)
    try:
        found = sorted(child for child in folder.iterdir() if not child.name.startswith("."))[:_MOST_MEMBERS]
        return [
            child for child in found if not child.is_symlink() or Path(os.path.realpath(child)).is_relative_to(inside)
        ]
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error.strerror or error}", "check its rights") from error


def _reader_of(path: Path, readers: Sequence[Reader]) -> Reader | None:
    """Return the reader of something in a folder, None for what is not recognised."""
    if not path.is_file() and not path.is_dir():
        return None
    matching = [reader for reader in readers if _recognises(reader, path)]
    return detect(path) if len(matching) > 1 else next(iter(matching), None)


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
    refusals: list[InputError] = []
    matching = [reader for reader in READERS.values() if _recognises(reader, path, refusals)]
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
    if refusals:
        raise refusals[0]
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


def _recognises(reader: Reader, path: Path, refusals: list[InputError] | None = None) -> bool:
    try:
        return reader.matches(path)
    except InputError as error:  # a link that leads nowhere or out of its folder, which may be none of this archive's
        if refusals is not None:
            refusals.append(error)
        return False
    except OSError:  # a folder or file that may not be read: the reader that is chosen will say so
        return False
