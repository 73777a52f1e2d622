"""Records as tables: JSON Lines, which are read back as they were written, CSV and Parquet.

A column is a field of the record's type, under its name in JSON; what has fields itself is JSON, but in JSON Lines. In
CSV a list is JSON, and None an empty cell; texts are quoted where they need it, and keep their line ends.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, BinaryIO, Final, Literal, TypeVar, cast, get_args

import msgspec
from msgspec import inspect

from askalike.errors import SettingError, optional_module
from askalike.types import Answer, Feedback, Link, LogEntry, Question

Form = Literal["jsonl", "csv", "parquet"]
FORMS: Final = cast("tuple[Form, ...]", get_args(Form))

TABLES: Final[Mapping[str, type]] = {
    "questions": Question,
    "answers": Answer,
    "links": Link,
    "judgements": Feedback,
    "log": LogEntry,
}
"""What an export holds: name of the table → its records."""

_Record = TypeVar("_Record")
_BATCH: Final = 2_000

_KINDS: Final[Mapping[type, str]] = {
    inspect.IntType: "int64",
    inspect.FloatType: "float64",
    inspect.BoolType: "bool",
    inspect.DateTimeType: "moment",
    inspect.VarTupleType: "texts",
    inspect.StructType: "json",
}


@cache
def columns_of(kind: Any) -> dict[str, str]:
    """Return the names of a record's columns, each with what is in it: a number, "moment", "texts", "json", "text".

    >>> columns_of(Link)
    {'source_id': 'text', 'target_id': 'text', 'kind': 'text'}
    """
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType | inspect.DataclassType)
    kinds: dict[str, str] = {}
    for field in info.fields:
        types = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
        kinds[field.encode_name] = next((_KINDS[type(part)] for part in types if type(part) in _KINDS), "text")
    return kinds


def write_records(records: Iterable[Any], kind: type, form: Form, file: BinaryIO) -> int:
    """Write records as a table; return how many.

    Raises:
        SettingError: there is no such form.
        MissingExtraError: Parquet without pyarrow.
    """
    if form not in FORMS:
        raise SettingError(f"there is no form {form!r}", f"expected one of {', '.join(FORMS)}")
    if form == "parquet":
        return _write_parquet(records, kind, file)
    written = 0
    if form == "jsonl":
        for record in records:
            file.write(msgspec.json.encode(record) + b"\n")
            written += 1
        return written
    columns = columns_of(kind)
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text)
        writer.writerow(columns)
        for record in records:
            row = msgspec.to_builtins(record)
            writer.writerow([_cell(row.get(name)) for name in columns])
            written += 1
    finally:
        text.detach()  # whose file stays open
    return written


def _cell(value: object) -> object:
    if isinstance(value, bool | list | tuple | dict):
        return json.dumps(value, ensure_ascii=False)
    return value


def _write_parquet(records: Iterable[Any], kind: type, file: BinaryIO) -> int:
    missing = "Parquet files are written by pyarrow, which is not installed"
    pyarrow, parquet = (optional_module(name, missing, "parquet") for name in ("pyarrow", "pyarrow.parquet"))
    schema = arrow_schema(kind)
    written = 0
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in batches(records, _BATCH):
            writer.write_table(pyarrow.Table.from_pylist(arrow_rows(batch), schema=schema))
            written += len(batch)
    return written


def arrow_schema(kind: type) -> Any:
    """Return the columns of a record's type as Arrow has them."""
    import pyarrow

    special = {"moment": pyarrow.timestamp("us", tz="UTC"), "texts": pyarrow.list_(pyarrow.string())}
    types = {"text": pyarrow.string(), "json": pyarrow.string(), "bool": pyarrow.bool_(), **special}
    return pyarrow.schema([(name, types.get(what, what)) for name, what in columns_of(kind).items()])


def arrow_rows(records: Iterable[Any]) -> list[dict[str, Any]]:
    """Return records as Arrow takes them: moments stay moments."""
    from datetime import datetime

    rows = (msgspec.to_builtins(record, builtin_types=(datetime,)) for record in records)
    return [{name: _cell(value) if isinstance(value, dict) else value for name, value in row.items()} for row in rows]


def batches(records: Iterable[_Record], size: int) -> Iterator[list[_Record]]:
    """Yield records so many at a time."""
    waiting = iter(records)
    while batch := list(islice(waiting, size)):
        yield batch
