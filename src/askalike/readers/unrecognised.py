"""What can be told about a file that no reader knows: what it is, and what would make it readable."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path
from typing import Final

from askalike.errors import FormatError
from askalike.readers.files import first_bytes, plain_suffix
from askalike.readers.jsonl import ARRAY_HINT, load_object
from askalike.readers.table import choose_columns, is_question_table
from askalike.readers.table_rows import header_of
from askalike.readers.values import Unreadable

_PACKED: Final[tuple[tuple[int, bytes, str], ...]] = (
    (0, b"PK\x03\x04", "a zip archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (0, b"Rar!", "a RAR archive"),
    (0, b"BZh", "packed by bzip2"),
    (0, b"\xfd7zXZ", "packed by xz"),
    (0, b"\x28\xb5\x2f\xfd", "packed by zstd"),
    (257, b"ustar", "a tar archive"),
)
"""(offset, first bytes there, what they are of)."""

_WORKBOOKS: Final = (".xlsx", ".xlsm", ".ods")
_SEPARATED: Final = (".csv", ".tsv")
_JSON_LINES: Final = (".jsonl", ".ndjson")

_MOST_NAMES: Final = 6

Cause = tuple[str, str]
"""What was found, as a clause, and what to do; "" and "" where nothing can be told."""


def unrecognised(path: Path) -> Cause:
    """Return what a file is and what to do, for one that no reader recognises."""
    if path.is_dir():
        return _folder(path)
    if not path.is_file():
        return "", ""
    if not path.stat().st_size:
        return "it is empty", "fetch the file again from where it came"
    start = first_bytes(path)
    if not start and path.name.lower().endswith(".gz"):
        return "it holds no gzip data, or nothing in it", "fetch the file again, or name it without .gz"
    looks: tuple[Callable[[Path, bytes], Cause], ...] = (_packed, _encoded, _json, _table)
    return next((found for look in looks if (found := look(path, start))[0]), ("", ""))


def _folder(path: Path) -> Cause:
    names = sorted(child.name for child in path.iterdir() if not child.name.startswith("."))
    if not names:
        return "it is an empty folder", "give the folder or file that the archive is in"
    if len(names) == 1 and (path / names[0]).is_file():
        cause, hint = unrecognised(path / names[0])
        return f"of {names[0]} in it, {cause}" if cause else "", hint
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"no archive is among {', '.join(map(repr, names[:_MOST_NAMES]))}{more}", ""


def _packed(path: Path, start: bytes) -> Cause:
    if path.suffix.lower() in _WORKBOOKS:
        return "it is a workbook of a spreadsheet", "save its sheet as CSV (UTF-8)"
    if start.startswith(b"\x1f\x8b"):
        return "it is packed by gzip, expected a name that ends in .gz", "name it so, as in posts.csv.gz"
    found = next((kind for at, mark, kind in _PACKED if start[at:].startswith(mark)), "")
    return (f"it is {found}", "unpack it first, and index what was in it") if found else ("", "")


def _encoded(path: Path, start: bytes) -> Cause:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "it is UTF-16, expected UTF-8", "convert it, as with: iconv -f utf-16 -t utf-8 OLD > NEW"
    return "", ""


def _json(path: Path, start: bytes) -> Cause:
    text = start.lstrip()
    if text.startswith(b"[") and plain_suffix(path) in (".json", *_JSON_LINES):
        return "it is a JSON array, expected one object a line", ARRAY_HINT
    line = text.split(b"\n", 1)[0]
    try:
        header = list(load_object(line))
    except Unreadable:
        return "", ""
    if plain_suffix(path) in _JSON_LINES:
        return _lacking(header, path)
    if is_question_table(header):
        return "it holds JSON objects, expected them in a .jsonl file, one a line", "name it so, as in posts.jsonl"
    return "", ""


def _table(path: Path, start: bytes) -> Cause:
    suffix = plain_suffix(path)
    try:
        text = start.decode("utf-8")
    except UnicodeDecodeError as error:
        is_cut = error.end == len(start)  # the sample ends within a letter
        text = start.decode("utf-8", "replace") if is_cut else ""
    first = text.split("\n", 1)[0].strip()
    if suffix in _SEPARATED and first.lower().startswith("sep=") and len(first) == len("sep=;"):
        return f"its first line is Excel's {first!r}, expected the names of the columns", "delete that line"
    header = header_of(text, suffix)
    if suffix not in _SEPARATED:
        is_table = len(header) > 1 and is_question_table(header)
        return ("it is a table, expected a name that ends in .csv or .tsv", "name it so") if is_table else ("", "")
    return _lacking(header, path) if len(header) > 1 else ("", "")


def _lacking(header: list[str], path: Path) -> Cause:
    """Return what a table's columns do not tell."""
    try:
        choose_columns(header, {}, path.name)
    except FormatError as error:
        return error.message.removeprefix(
            f"{path.name}: "
        ), f"{error.hint}; as #1, #2, … where the first line is a record"
    return "it has texts, but neither ids nor titles", "say --format table to index it all the same"
