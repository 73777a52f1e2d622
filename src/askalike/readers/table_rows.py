"""The rows of a table, whatever it is stored as: CSV, TSV, Parquet, or JSON Lines."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from askalike.errors import DamagedInputError, MissingExtraError
from askalike.readers.files import plain_suffix, read_lines
from askalike.readers.frame import Limits, ReadContext
from askalike.readers.jsonl import load_object
from askalike.readers.values import Unreadable

_SAMPLE_LINES = 50
_BATCH_ROWS = 512


class Row(NamedTuple):
    """One row.

    Args:
        line: where it begins, 1 is the file's first line (of Parquet, its first row).
        cells: as many as there are columns; empty when there is a problem.
        problem: why it cannot be read, or "".
    """

    line: int
    cells: Sequence[object]
    problem: str = ""


@dataclass(frozen=True)
class Table:
    """A table's columns by name, and its rows, to be read once."""

    header: Sequence[str]
    rows: Iterator[Row]


def open_table(path: Path, name: str, context: ReadContext, has_header: bool = True) -> Table:
    """Open a table by its ending; without a header the columns are called #1, #2, ….

    Raises:
        DamagedInputError: empty, truncated or mis-encoded; names file and line.
        MissingExtraError: Parquet without pyarrow.
    """
    suffix = plain_suffix(path)
    if suffix == ".parquet":
        return _open_parquet(path, name, context)
    lines = read_lines(path, name, context)
    if suffix in (".jsonl", ".ndjson"):
        return _open_json_lines(lines)
    return _open_separated(lines, name, suffix, context, has_header)


def header_of(sample: str, suffix: str) -> list[str]:
    """Return the cells of the first line of a CSV or TSV sample, [] where there are none."""
    try:
        return next(csv.reader(io.StringIO(sample, newline=""), **_dialect(sample, suffix)), [])
    except csv.Error:
        return []


def _dialect(sample: str, suffix: str) -> dict[str, Any]:
    """Return the settings of ``csv.reader`` that fit a sample of whole lines."""
    first = sample.split("\n", 1)[0]
    delimiter = "\t" if suffix == ".tsv" else max(",;\t|", key=first.count)
    if delimiter == "\t":
        plain: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "quotechar": None}
        quoted = {"delimiter": "\t", "strict": True}
        return quoted if _is_better_quoted(sample) else plain
    doubled: dict[str, Any] = {"delimiter": delimiter, "strict": True}
    if '\\"' not in sample:
        return doubled
    escaped = doubled | {"escapechar": "\\", "doublequote": False}  # a text may end with \ too: see what fits
    return max(doubled, escaped, key=lambda settings: _rows_of_width(sample, settings))


def _rows_of_width(sample: str, settings: dict[str, Any]) -> int:
    """Return how many rows of a sample have as many cells as its first one."""
    found: list[int] = []
    with contextlib.suppress(DamagedInputError):  # the sample may end within a cell
        found.extend(len(row.cells) for row in csv_rows(io.StringIO(sample, newline=""), "", Limits(), **settings))
    return found.count(found[0]) if found else 0


def _is_better_quoted(sample: str) -> bool:
    """Say whether quotes in tab separated text enclose cells: most cells that begin with one also end with one."""
    cells = [cell.strip("\r") for line in sample.split("\n") for cell in line.split("\t")]
    enclosed = sum(len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in cells)
    return enclosed > sum(cell.startswith('"') for cell in cells) / 2


def _open_separated(
    lines: Iterator[tuple[int, bytes]], name: str, suffix: str, context: ReadContext, has_header: bool
) -> Table:
    def decoded() -> Iterator[str]:
        for number, line in lines:
            try:
                yield line.decode("utf-8") + "\n"
            except UnicodeDecodeError as error:
                hint = "convert the table to UTF-8"
                raise DamagedInputError(f"{name}, line {number}: not UTF-8", hint) from error

    texts = decoded()
    sample = list(islice(texts, _SAMPLE_LINES))
    rows = csv_rows(chain(sample, texts), name, context.options.limits, **_dialect("".join(sample), suffix))
    first = next(rows, Row(1, []))
    if first.problem:
        raise DamagedInputError(f"{name}, line 1: {first.problem}", "the first line is expected to name the columns")
    if has_header:
        header = [str(cell).strip() for cell in first.cells]
    else:
        header, rows = [f"#{number}" for number in range(1, len(first.cells) + 1)], chain([first], rows)
    return Table(header, _of_width(rows, len(header)))


def csv_rows(lines: Iterable[str], name: str, limits: Limits, **dialect: Any) -> Iterator[Row]:
    """Yield the rows of separated text that are not blank; those that cannot be read come with the reason.

    A cell may be as long as a line: that a text is too long for a forum is for its reader to say.

    Raises:
        DamagedInputError: the text ends inside a quoted cell.
    """
    # The limit is the csv module's own and holds for the process; it is only ever raised here.
    longest = max(csv.field_size_limit(), limits.line_bytes)
    csv.field_size_limit(longest)
    return _separated_rows(csv.reader(lines, **dialect), name, longest)


def _separated_rows(reader: Iterator[list[str]], name: str, longest: int) -> Iterator[Row]:
    while True:
        line = reader.line_num + 1  # type: ignore[attr-defined]
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                found = f"{name}, line {line}: the file ends inside a quoted cell that begins here"
                raise DamagedInputError(found, "the file is truncated, or a quote is not closed") from error
            is_long = "field larger than field limit" in str(error)
            yield Row(
                line, [], f"a cell longer than {longest:,} characters" if is_long else f"no row of cells: {error}"
            )
        else:
            if cells:
                yield Row(line, cells)


def _of_width(rows: Iterator[Row], width: int) -> Iterator[Row]:
    for row in rows:
        if not row.problem and len(row.cells) != width:
            yield Row(row.line, [], f"{len(row.cells)} cells, expected {width}")
        else:
            yield row


def _open_json_lines(lines: Iterator[tuple[int, bytes]]) -> Table:
    def objects() -> Iterator[tuple[int, Mapping[str, object], str]]:
        for number, line in lines:
            if line and not line.isspace():
                try:
                    yield number, load_object(line), ""
                except Unreadable as error:
                    yield number, {}, str(error)

    items = objects()
    sample = list(islice(items, _SAMPLE_LINES))
    header = list(dict.fromkeys(key for _, item, _ in sample for key in item))
    rows = (
        Row(number, [] if problem else [item.get(key) for key in header], problem)
        for number, item, problem in chain(sample, items)
    )
    return Table(header, rows)


def _open_parquet(path: Path, name: str, context: ReadContext) -> Table:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("Parquet files are read by pyarrow, which is not installed", "parquet") from error
    try:
        file = parquet.ParquetFile(path)
        header = list(file.schema_arrow.names)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _damaged_parquet(name, error) from error
    held = file.metadata
    unpacked = sum(held.row_group(number).total_byte_size for number in range(held.num_row_groups))
    context.options.limits.check_unpacked(name, unpacked, path.stat().st_size)

    def rows() -> Iterator[Row]:
        number = 0
        with file:
            try:
                for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                    columns = [_values(_microseconds(column, pyarrow)) for column in batch.columns]
                    for cells in zip(*columns, strict=True):
                        number += 1
                        yield Row(number, cells)
            except (pyarrow.ArrowException, OSError) as error:
                raise _damaged_parquet(name, error) from error
        context.advance(path.stat().st_size)

    return Table(header, rows())


class BrokenCell:
    """Stands for a cell of Parquet that Python has no value for: a day beyond its calendar, text that is no UTF-8."""


def _values(column: Any) -> list[object]:
    """Return the cells of a column; where one cannot be had, the others are."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        return [_value(cell) for cell in column]


def _value(cell: Any) -> object:
    try:
        return cell.as_py()
    except (OverflowError, ValueError):
        return BrokenCell()


def _microseconds(column: Any, pyarrow: Any) -> Any:
    """Return a column of moments in the unit that Python's ``datetime`` holds; others as they are."""
    kind = column.type
    if pyarrow.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(pyarrow.timestamp("us", tz=kind.tz), safe=False)
    return column


def _damaged_parquet(name: str, error: Exception) -> DamagedInputError:
    return DamagedInputError(f"{name} cannot be read as Parquet: {error}", "fetch the file again from where it came")
