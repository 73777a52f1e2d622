"""What ``askalike export`` wrote: a folder of tables, read back as it was; judgements come with their moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from askalike.errors import DamagedInputError, FormatError
from askalike.readers.files import first_bytes, needed_file, read_lines
from askalike.readers.frame import ReadContext, regular_size
from askalike.readers.table import Row, csv_rows, open_table
from askalike.records import FORMS, TABLES, Form, record_of, record_of_cells
from askalike.types import Record

MANIFEST: Final = "export.json"
FORMAT: Final = 1
LONGEST_LINE: Final = 128 << 20
"""A text of sixteen million characters, as long as a forum stores, is no longer in JSON."""

_AGAIN: Final = "export the forum again"

_Unread = tuple[int, Callable[[], Any]]
"""A record's line, and what makes the record or raises ValueError."""


class Manifest(msgspec.Struct, frozen=True):
    """What an export's folder says of itself.

    Args:
        tables: name → number of records.
        text: the forum's text settings.
    """

    format: int
    askalike: str
    form: Form
    tables: dict[str, int]
    text: dict[str, Any] = {}


class ExportReader:
    """Reads an export of a forum."""

    name = "askalike"
    title = "a forum's export (a folder with export.json), as askalike export writes it"

    def matches(self, path: Path) -> bool:
        """Say whether a folder holds the manifest of an export."""
        return path.is_dir() and b'"askalike"' in first_bytes(path / MANIFEST)

    def size_bytes(self, path: Path) -> int:
        """Return the size of the tables."""
        return sum(regular_size(path / f"{name}.{form}") for name in TABLES for form in FORMS)

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield every record as it was written."""
        manifest = _manifest(path)
        for name, kind in TABLES.items():
            if name in manifest.tables:
                yield from _records(path, f"{name}.{manifest.form}", kind, manifest, context)


def _manifest(folder: Path) -> Manifest:
    try:
        manifest = msgspec.json.decode(needed_file(folder, MANIFEST, _AGAIN).read_bytes(), type=Manifest)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise FormatError(f"{folder / MANIFEST} is no manifest of an export: {error}", _AGAIN) from error
    if manifest.format != FORMAT:
        hint = "read it with the version that wrote it, or a newer one"
        raise FormatError(f"{folder / MANIFEST} has format {manifest.format}, expected {FORMAT}", hint)
    return manifest


def _records(folder: Path, name: str, kind: type, manifest: Manifest, context: ReadContext) -> Iterator[Record]:
    rows = {"jsonl": _json_lines, "csv": _csv, "parquet": _parquet}[manifest.form]
    met = 0
    for line, make in rows(needed_file(folder, name, _AGAIN), name, kind, context):
        met += 1
        try:
            record = make()
        except (ValueError, RecursionError, msgspec.MsgspecError) as error:
            context.reject(name, line, "", str(error))
            continue
        context.records_in += 1
        yield record
    if (wanted := manifest.tables[name.split(".", 1)[0]]) != met:
        what = f"{name} has {met:,} records, {MANIFEST} says {wanted:,}"
        raise DamagedInputError(what, "it was cut or changed; export the forum again")


def _json_lines(path: Path, name: str, kind: type, context: ReadContext) -> Iterator[_Unread]:
    decode: Callable[[bytes], Any] = msgspec.json.Decoder(kind).decode
    for number, line in read_lines(path, name, _with_long_lines(context)) if regular_size(path) else ():
        yield number, partial(decode, line)


def _csv(path: Path, name: str, kind: type, context: ReadContext) -> Iterator[_Unread]:
    long = _with_long_lines(context)
    lines = (_decoded(line, name, number) for number, line in read_lines(path, name, long))
    rows = csv_rows(lines, name, long.options.limits, strict=True)
    header = [str(cell) for cell in next(rows, Row(1, [])).cells]
    for row in rows:
        cells = [row.problem] if row.problem else row.cells  # does not fit the header, and is rejected
        yield row.line, partial(record_of_cells, header, cells, kind)


def _decoded(line: bytes, name: str, number: int) -> str:
    try:
        return line.decode("utf-8") + "\n"
    except UnicodeDecodeError as error:
        raise DamagedInputError(f"{name}, line {number}: not UTF-8", _AGAIN) from error


def _parquet(path: Path, name: str, kind: type, context: ReadContext) -> Iterator[_Unread]:
    table = open_table(path, name, context)
    for row in table.rows:
        yield row.line, partial(record_of, dict(zip(table.header, row.cells, strict=True)), kind)


def _with_long_lines(context: ReadContext) -> ReadContext:
    limits = replace(context.options.limits, line_bytes=max(LONGEST_LINE, context.options.limits.line_bytes))
    return replace(context, options=replace(context.options, limits=limits))
