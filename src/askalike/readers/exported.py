"""What ``askalike export`` wrote: a folder of tables, read back as it was; judgements come with their moments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from askalike.errors import DamagedInputError, FormatError
from askalike.readers.files import decoded_lines, first_bytes, needed_file, read_lines
from askalike.readers.frame import ReadContext, Reader, regular_size
from askalike.readers.table import Row, csv_rows, open_table
from askalike.records import FORMS, TABLES, Form, record_of, record_of_cells
from askalike.types import Record

MANIFEST: Final = "export.json"
FORMAT: Final = 1
LONGEST_LINE: Final = 128 << 20
"""A text of sixteen million characters, as long as a forum stores, is no longer in JSON."""

_AGAIN: Final = "export the forum again"


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


class ExportReader(Reader):
    """Reads an export of a forum."""

    name = "askalike"
    title = "a forum's export (a folder with export.json), as askalike export writes it"

    def matches(self, path: Path) -> bool:
        """Say whether a folder holds the manifest of an export."""
        return path.is_dir() and b'"askalike"' in first_bytes(path / MANIFEST)

    def files(self, path: Path) -> list[Path]:
        """Return the tables, in every form."""
        return [path / f"{name}.{form}" for name in TABLES for form in FORMS]

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
    rows, record = _rows(needed_file(folder, name, _AGAIN), manifest.form, kind, _with_long_lines(context))
    met = 0
    for row in rows:
        met += 1
        try:
            value = record(row.cells)
        except (ValueError, RecursionError, msgspec.MsgspecError) as error:
            context.reject(name, row.line, "", row.problem or str(error))
            continue
        context.records_in += 1
        yield value
    if (wanted := manifest.tables[name.split(".", 1)[0]]) != met:
        what = f"{name} has {met:,} records, {MANIFEST} says {wanted:,}"
        raise DamagedInputError(what, "it was cut or changed; export the forum again")


def _rows(
    path: Path, form: Form, kind: type, context: ReadContext
) -> tuple[Iterable[Row], Callable[[Sequence[Any]], Record]]:
    """Return a table's rows, and what makes a record of a row's cells or raises ValueError."""
    if form == "jsonl":
        decoder = msgspec.json.Decoder[Any](kind)
        lines = read_lines(path, path.name, context) if regular_size(path) else ()
        return (Row(number, [line]) for number, line in lines), lambda cells: decoder.decode(cells[0])
    if form == "csv":
        texts = (f"{line}\n" for _, line in decoded_lines(path, path.name, context))
        rows = csv_rows(texts, path.name, context.options.limits, strict=True)
        header = [str(cell) for cell in next(rows, Row(1, [])).cells]
        return rows, lambda cells: record_of_cells(header, cells, kind)
    table = open_table(path, path.name, context)
    return table.rows, lambda cells: record_of(dict(zip(table.header, cells, strict=True)), kind)


def _with_long_lines(context: ReadContext) -> ReadContext:
    limits = replace(context.options.limits, line_bytes=max(LONGEST_LINE, context.options.limits.line_bytes))
    return replace(context, options=replace(context.options, limits=limits))
