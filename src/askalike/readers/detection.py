"""Which reader takes a path: the one table of formats, a search that never guesses between two, help where none fits.

A new reader is a file in this folder and a line in the table.

The rules, all of them: each reader looks at names and first bytes. Readers of a particular format come before the
readers of general ones, ``jsonl`` before ``table``. Of several in the same place none is taken: the user says which.
A folder that is no archive itself stands for the one archive that lies in it.
"""

from __future__ import annotations

import codecs
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from askalike.errors import FormatError, InputError
from askalike.files import is_there
from askalike.readers.discourse import DiscourseReader
from askalike.readers.exported import ExportReader
from askalike.readers.files import first_bytes, plain_suffix
from askalike.readers.frame import Reader
from askalike.readers.jsonl import JsonlReader, load_object
from askalike.readers.pairs import PairsReader
from askalike.readers.research.askubuntu import AskUbuntuReader
from askalike.readers.research.semeval import SemEvalReader
from askalike.readers.research.yahoo import YahooLiveQaReader, YahooReader, YahooThreadsReader
from askalike.readers.stackexchange import StackExchangeReader
from askalike.readers.table import TableReader, choose_columns, header_of, is_question_table, listed
from askalike.readers.values import Unreadable

_UNPACK: Final = "unpack it first, and index what was in it"
_GZIP: Final = b"\x1f\x8b"
_MARKS: Final[tuple[tuple[int, bytes, str, str], ...]] = (
    (0, _GZIP, "it is packed by gzip, expected a name that ends in .gz", "name it so, as in posts.csv.gz"),
    (0, b"PK\x03\x04", "it is a zip archive", _UNPACK),
    (0, b"7z\xbc\xaf\x27\x1c", "it is a 7z archive", _UNPACK),
    (0, b"Rar!", "it is a RAR archive", _UNPACK),
    (0, b"BZh", "it is packed by bzip2", _UNPACK),
    (0, b"\xfd7zXZ", "it is packed by xz", _UNPACK),
    (0, b"\x28\xb5\x2f\xfd", "it is packed by zstd", _UNPACK),
    (257, b"ustar", "it is a tar archive", _UNPACK),
    *(
        (0, mark, f"it is UTF-{bits}, expected UTF-8", f"convert it, as with: iconv -f utf-{bits} -t utf-8 OLD > NEW")
        for bits, marks in (
            (32, (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)),  # one begins with the mark of UTF-16
            (16, (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)),
        )
        for mark in marks
    ),
)
"""(offset, bytes there, what the file is, what to do)."""

_WORKBOOKS: Final = (".xlsx", ".xlsm", ".ods")
_SEPARATED: Final = (".csv", ".tsv")
_JSON_LINES: Final = (".jsonl", ".ndjson")

Cause = tuple[str, str]
"""What was found, as a clause, and what to do; "" and "" where nothing can be told."""


def unrecognised(path: Path) -> Cause:
    """Return what a file is and what to do, for one that no reader recognises."""
    if path.is_dir():
        return _folder(path)
    if not path.stat().st_size:
        return "it is empty", "fetch the file again from where it came"
    start = first_bytes(path)
    if not start and path.name.lower().endswith(".gz"):
        return "it holds no gzip data, or nothing in it", "fetch the file again, or name it without .gz"
    if path.suffix.lower() in _WORKBOOKS:
        return "it is a workbook of a spreadsheet", "save its sheet as CSV (UTF-8)"
    if start.startswith(_GZIP) and path.suffix.lower() == ".gz":
        return "it is packed by gzip twice", "unpack it once, and index what was in it"
    for at, mark, cause, hint in _MARKS:
        if start[at:].startswith(mark):
            return cause, hint
    return _json(path, start) or _table(path, start) or ("", "")


def _folder(path: Path) -> Cause:
    names = sorted(child.name for child in path.iterdir() if not child.name.startswith("."))
    if not names:
        return "it is an empty folder", "give the folder or file that the archive is in"
    if "archive.sqlite" in names:
        return "it is a forum, not an archive", 'to make an archive of it, run "askalike export --into"'
    if len(names) == 1 and (path / names[0]).is_file():
        cause, hint = unrecognised(path / names[0])
        return f"of {names[0]} in it, {cause}" if cause else "", hint
    return f"no archive is among {listed(names)}", ""


def _json(path: Path, start: bytes) -> Cause | None:
    text, suffix = start.lstrip(), plain_suffix(path)
    line = text.split(b"\n", 1)[0]
    if suffix in (".json", *_JSON_LINES):
        if text.startswith(b"["):
            hint = "write it so, as with: jq -c '.[]' questions.json > questions.jsonl"
            return "it is a JSON array, expected one object a line", hint
        if line.strip() == b"{" and b"\n" in text:
            hint = "write them so, as with: jq -c . questions.jsonl > lines.jsonl"
            return "it holds JSON objects over several lines, expected one a line", hint
    try:
        header = list(load_object(line))
    except Unreadable:
        return None
    if suffix in _JSON_LINES:
        return _missing_fields(header, path)
    if is_question_table(header):
        return "it holds JSON objects, expected them in a .jsonl file, one a line", "name it so, as in posts.jsonl"
    return None


def _table(path: Path, start: bytes) -> Cause | None:
    suffix = plain_suffix(path)
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(start)  # the sample may end within a letter
    except UnicodeDecodeError:
        return None
    first = text.split("\n", 1)[0].strip()
    if suffix in _SEPARATED and first.lower().startswith("sep=") and len(first) == len("sep=;"):
        return f"its first line is Excel's {first!r}, expected the names of the columns", "delete that line"
    header = header_of(text, suffix)
    if len(header) < 2:
        return None
    if suffix in _SEPARATED:
        return _missing_fields(header, path)
    name = "it is a table, expected a name that ends in .csv or .tsv"
    return (name, "name it so") if is_question_table(header) else None


def _missing_fields(header: list[str], path: Path) -> Cause:
    """Return which fields no column of a table is known to hold."""
    try:
        choose_columns(header, {}, path.name)
    except FormatError as error:
        cause = error.message.removeprefix(f"{path.name}: ")
        return cause, f"{error.hint}; as #1, #2, … where the first line is a record"
    return "it has texts, but neither ids nor titles", "say --format table to index it all the same"


_ALL: Final[tuple[Reader, ...]] = (
    ExportReader(),
    StackExchangeReader(),
    DiscourseReader(),
    SemEvalReader(),
    YahooReader(),
    YahooLiveQaReader(),
    YahooThreadsReader(),
    AskUbuntuReader(),
    JsonlReader(),
    TableReader(),
    PairsReader(),
)
READERS: Final[dict[str, Reader]] = {reader.name: reader for reader in _ALL}

_MOST_MEMBERS = 1_000
_MOST_LISTED = 8

_GENERAL: Final = ("jsonl", "table")
"""Formats that particular ones look like too; the first of them is taken when no particular one matches."""


class Archive(NamedTuple):
    """An archive.

    Args:
        path: where it is: what the user gave, or the one archive in that folder.
        left_out: names of what else is in the folder, which no reader recognises.
    """

    path: Path
    reader: Reader
    left_out: tuple[str, ...] = ()


def find_archive(path: Path, format_name: str | None = None) -> Archive:
    """Return the archive at a path with its reader, or the only one in a folder that is none itself.

    Raises:
        InputError: there is nothing at the path, or a device, pipe or socket.
        FormatError: no such format; nothing is recognised; or a folder holds several archives, which are listed.
    """
    _check_there(path)
    readers = list(READERS.values()) if format_name is None else [named(format_name)]
    if path.is_dir() and not any(_recognises(reader, path) for reader in readers):
        members = _members(path)
        reader_of = {child: reader for child in members if (reader := _reader_of(child, readers)) is not None}
        if format_name is not None and not reader_of and len(members) == 1 and members[0].is_file():
            reader_of = {members[0]: readers[0]}  # columns may be named that nobody would guess
        if len(reader_of) > 1:
            names = [f"{child.name} ({reader.name})" for child, reader in reader_of.items()]
            more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
            first = shlex.join(["askalike", "index", str(next(iter(reader_of))), "--into", "FORUM"])
            raise FormatError(
                f"{path} holds several archives: {', '.join(names[:_MOST_LISTED])}{more}",
                f"index one at a time, as with: {first}",
            )
        for child, reader in reader_of.items():
            return Archive(child, reader, tuple(other.name for other in members if other != child))
    return Archive(path, choose(path, format_name))


def _members(folder: Path) -> list[Path]:
    """Return what lies in a folder, without hidden files, and links that lead out of it."""
    inside = os.path.realpath(folder)
    try:
        children = sorted(child for child in folder.iterdir() if not child.name.startswith("."))[:_MOST_MEMBERS]
        return [
            child
            for child in children
            if not child.is_symlink() or Path(os.path.realpath(child)).is_relative_to(inside)
        ]
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error.strerror or error}", "check its rights") from error


def _reader_of(path: Path, readers: Sequence[Reader]) -> Reader | None:
    """Return the reader of something in a folder, None for what is not recognised."""
    if not path.is_file() and not path.is_dir():
        return None
    matching = [reader for reader in readers if _recognises(reader, path)]
    return choose(path) if len(matching) > 1 else next(iter(matching), None)


def named(name: str) -> Reader:
    """Return a reader by its format's name.

    Raises:
        FormatError: there is no such format; the choices are listed.
    """
    if name not in READERS:
        raise FormatError(f"{name!r} is no format that can be read", f"the formats are {', '.join(sorted(READERS))}")
    return READERS[name]


def choose(path: Path, format_name: str | None = None) -> Reader:
    """Return the reader that the user named, or else the one that recognises a path.

    Raises:
        InputError: there is nothing at the path, or a device, pipe or socket.
        FormatError: no such format; or, when none is named, no reader or several recognise it.
    """
    _check_there(path)
    if format_name is not None:
        return named(format_name)
    refusals: list[InputError] = []
    matching = [reader for reader in READERS.values() if _recognises(reader, path, refusals)]
    particular = [reader for reader in matching if reader.name not in _GENERAL]
    if len(particular) > 1:
        raise FormatError(
            f"{path} looks like several formats: {', '.join(reader.name for reader in particular)}",
            f"say which it is: {', '.join(f'--format {reader.name}' for reader in particular)}",
        )
    if matching:
        return (particular or matching)[0]
    if refusals:
        raise refusals[0]
    cause, hint = unrecognised(path)
    raise FormatError(
        f"the format of {path} is not recognised{': ' if cause else ''}{cause}",
        hint or f"say it with --format, one of {', '.join(sorted(READERS))}; docs/formats.md shows each",
    )


def _check_there(path: Path) -> None:
    if not is_there(path):
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
