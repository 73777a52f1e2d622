"""What ``askalike export`` wrote: a folder of JSON Lines, read back as it was; judgements come with their moments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from askalike.errors import DamagedInputError, FormatError
from askalike.readers.files import first_bytes, needed_file, read_lines
from askalike.readers.frame import ReadContext, Reader, regular_size
from askalike.records import TABLES, Form
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

    def matches(self, path: Path) -> bool:
        """Say whether a folder holds the manifest of an export."""
        return path.is_dir() and b'"askalike"' in first_bytes(path / MANIFEST)

    def files(self, path: Path) -> list[Path]:
        """Return the tables."""
        return [path / f"{name}.jsonl" for name in TABLES]

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield every record as it was written."""
        tables = _manifest(path).tables
        for name, kind in TABLES.items():
            if name in tables:
                yield from _records(needed_file(path, f"{name}.jsonl", _AGAIN), kind, tables[name], context)


def _manifest(folder: Path) -> Manifest:
    try:
        manifest = msgspec.json.decode(needed_file(folder, MANIFEST, _AGAIN).read_bytes(), type=Manifest)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise FormatError(f"{folder / MANIFEST} is no manifest of an export: {error}", _AGAIN) from error
    if manifest.format != FORMAT:
        hint = "read it with the version that wrote it, or a newer one"
        raise FormatError(f"{folder / MANIFEST} has format {manifest.format}, expected {FORMAT}", hint)
    if manifest.form != "jsonl":
        hint = "export the forum as JSON Lines: without --csv and --parquet"
        raise FormatError(f"{folder} is an export for other programs, as {manifest.form}", hint)
    return manifest


def _records(path: Path, kind: type, count: int, context: ReadContext) -> Iterator[Record]:
    decoder, read = msgspec.json.Decoder[Any](kind), 0
    for number, line in read_lines(path, path.name, _with_long_lines(context)) if regular_size(path) else ():
        read += 1
        try:
            record = decoder.decode(line)
        except (ValueError, RecursionError, msgspec.MsgspecError) as error:
            context.reject(path.name, number, "", str(error))
            continue
        context.records_in += 1
        yield record
    if read != count:
        what = f"{path.name} has {read:,} records, {MANIFEST} says {count:,}"
        raise DamagedInputError(what, "it was cut or changed; export the forum again")


def _with_long_lines(context: ReadContext) -> ReadContext:
    limits = replace(context.options.limits, line_bytes=max(LONGEST_LINE, context.options.limits.line_bytes))
    return replace(context, options=replace(context.options, limits=limits))
