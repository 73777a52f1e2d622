"""Tables (CSV, TSV, Parquet, JSON Lines): a question a row, or a post a row with its type and its question."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, NamedTuple

from askalike.errors import DamagedInputError, FormatError, SettingError, optional_module
from askalike.readers.files import decoded_lines, first_bytes, plain_suffix
from askalike.readers.frame import Limits, ReadContext, Reader
from askalike.readers.jsonl import json_objects, load_object
from askalike.readers.values import (
    FIELDS,
    IDS_NOTICE,
    MARKDOWN_NAMES,
    SAMPLED_TITLES,
    GeneratedIds,
    Unreadable,
    are_escaped,
    fields_of,
    identifier,
    person,
    plain_name,
    read_answer,
    read_question,
    tags,
)
from askalike.text.markup import unescaped
from askalike.types import Answer, Link, Markup, Question, Record

_LONE_RETURN = re.compile(r"(?<=\r)(?!\n)")
"""Where a line ends that a carriage return alone ends, as old programs write it; within quotes the cell goes on."""
_SAMPLE_LINES = 50
_BATCH_ROWS = 512
_CELL_BYTES = 8
"""What a cell takes in memory at least, a null too."""


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
    if suffix in (".jsonl", ".ndjson"):
        return _open_json_lines(json_objects(path, name, context))
    return _open_separated(decoded_lines(path, name, context), name, suffix, context, has_header)


def header_of(sample: str, suffix: str) -> list[str]:
    """Return the cells of the first line of a CSV or TSV sample, [] where there are none."""
    try:
        return next(csv.reader(io.StringIO(sample, newline=""), **_dialect(sample, suffix)), [])
    except csv.Error:
        return []


def _dialect(sample: str, suffix: str) -> dict[str, Any]:
    """Return the settings of ``csv.reader`` that fit a sample of whole lines."""
    first = re.split(r"[\r\n]", sample, maxsplit=1)[0]
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
    columns: list[int] = []
    with contextlib.suppress(DamagedInputError):  # the sample may end within a cell
        columns.extend(len(row.cells) for row in csv_rows(io.StringIO(sample, newline=""), "", Limits(), **settings))
    return columns.count(columns[0]) if columns else 0


def _is_better_quoted(sample: str) -> bool:
    """Say whether quotes in tab separated text enclose cells: most cells that begin with one also end with one."""
    cells = [cell.strip("\r") for line in sample.split("\n") for cell in line.split("\t")]
    enclosed = sum(len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in cells)
    return enclosed > sum(cell.startswith('"') for cell in cells) / 2


def _open_separated(
    lines: Iterator[tuple[int, str]], name: str, suffix: str, context: ReadContext, has_header: bool
) -> Table:
    ended = (f"{line}\n" for _, line in lines)
    texts = (text for line in ended for text in (_LONE_RETURN.split(line) if "\r" in line else (line,)))
    sample = list(islice(texts, _SAMPLE_LINES))
    rows = csv_rows(chain(sample, texts), name, context.options.limits, **_dialect("".join(sample), suffix))
    first = next(rows, Row(1, []))
    if first.problem:
        raise DamagedInputError(f"{name}, line 1: {first.problem}", "the first line is expected to name the columns")
    context.options.limits.check_columns(name, len(first.cells))
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
                what = f"{name}, line {line}: the file ends inside a quoted cell that begins here"
                raise DamagedInputError(what, "the file is truncated, or a quote is not closed") from error
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


def _open_json_lines(objects: Iterator[tuple[int, dict[str, object], str]]) -> Table:
    sample = list(islice(objects, _SAMPLE_LINES))
    header = list(dict.fromkeys(key for _, item, _ in sample for key in item))
    rows = (
        Row(number, [] if problem else [item.get(key) for key in header], problem)
        for number, item, problem in chain(sample, objects)
    )
    return Table(header, rows)


def _open_parquet(path: Path, name: str, context: ReadContext) -> Table:
    missing = "Parquet files are read by pyarrow, which is not installed"
    pyarrow, parquet = (optional_module(name, missing, "parquet") for name in ("pyarrow", "pyarrow.parquet"))
    try:
        schema = parquet.read_schema(path)
        file = parquet.ParquetFile(path, read_dictionary=_texts_of(schema, pyarrow))
        header = list(file.schema_arrow.names)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _damaged_parquet(name, error) from error
    limits, packed = context.options.limits, path.stat().st_size
    limits.check_columns(name, len(header))
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    cells = sum(group.column(column).num_values for group in groups for column in range(group.num_columns))
    unpacked = sum(group.total_byte_size for group in groups)
    limits.check_unpacked(name, max(unpacked, _CELL_BYTES * cells), packed)

    def rows() -> Iterator[Row]:
        decoded = 0
        with file:
            try:
                for row in batch_rows(file.iter_batches(batch_size=_BATCH_ROWS)):
                    decoded += sum(len(cell) for cell in row.cells if isinstance(cell, str | bytes))
                    limits.check_unpacked(name, decoded, packed)
                    yield row
            except (pyarrow.ArrowException, OSError) as error:
                raise _damaged_parquet(name, error) from error
        context.advance(packed)

    return Table(header, rows())


def batch_rows(batches: Iterable[Any]) -> Iterator[Row]:
    """Yield the rows of Arrow's record batches."""
    import pyarrow

    numbers = count(1)
    for batch in batches:
        columns = [_values(_microseconds(column, pyarrow)) for column in batch.columns]
        for cells in zip(*columns, strict=True):
            yield Row(next(numbers), cells)


class BrokenCell:
    """Stands for a cell of Parquet that Python has no value for: a day beyond its calendar, text that is no UTF-8."""


def _values(column: Any) -> list[object]:
    """Return the cells of a column; where one cannot be had, the others are. Cells of one dictionary entry are one."""
    if hasattr(column, "dictionary"):
        known = _values(column.dictionary)
        return [None if place is None else known[place] for place in column.indices.to_pylist()]
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


def _texts_of(schema: Any, pyarrow: Any) -> list[str]:
    """Return the names of the columns of texts: equal ones are held once where the file holds them once."""
    kinds = pyarrow.types
    return [
        field.name
        for field in schema
        if kinds.is_string(field.type) or kinds.is_large_string(field.type) or kinds.is_dictionary(field.type)
    ]


def _damaged_parquet(name: str, error: Exception) -> DamagedInputError:
    return DamagedInputError(f"{name} cannot be read as Parquet: {error}", "fetch the file again from where it came")


_REFERENCES = frozenset(["parent_id", "accepted_answer_id", "duplicate_of"])
_POSITION = re.compile(r"#([1-9][0-9]{0,8})")
_SHOWN = 12


def is_headerless(mapping: Mapping[str, str]) -> bool:
    """Say whether a mapping names columns by position (``#1`` is the first): then the first line is a record.

    >>> is_headerless({"id": "#1", "title": "#3"}), is_headerless({"id": "key"}), is_headerless({})
    (True, False, False)
    """
    return bool(mapping) and all(_POSITION.fullmatch(column) for column in mapping.values())


def is_question_table(header: Sequence[str]) -> bool:
    """Say whether the names of the columns alone tell where the title is, or the id and the body."""
    guessed = fields_of(header)
    return ("id" in guessed and "body" in guessed) or ("title" in guessed and not _lacks_id(guessed))


def _lacks_id(columns: Mapping[str, int]) -> bool:
    """Say whether there is no id though other columns refer to ids; else one can be made."""
    return "id" not in columns and not _REFERENCES.isdisjoint(columns)


def choose_columns(header: Sequence[str], mapping: Mapping[str, str], file: str) -> dict[str, int]:
    """Return field → position of its column, 0 is the first.

    Args:
        header: the names of the columns (their number counts where the mapping goes by position).
        mapping: field → column, as the user says; "" for a field that the table does not have. Other fields are
            guessed, except where the mapping goes by position.

    >>> choose_columns(["PostId", "Subject", "x"], {}, "posts.csv")
    {'id': 0, 'title': 1}
    >>> choose_columns(["PostId", "Subject", "x"], {"title": "", "body": "x"}, "posts.csv")
    {'id': 0, 'body': 2}

    Raises:
        SettingError: the mapping names a field that there is not, or a column that the table has not.
        FormatError: nothing is said or guessed for both title and body, or for an id that other columns refer to.
    """
    columns = _mapped_columns(header, mapping, file)
    if not is_headerless(mapping):
        guessed = fields_of(header)
        free = {name: at for name, at in guessed.items() if name not in mapping and at not in columns.values()}
        columns = {name: (columns | free)[name] for name in FIELDS if name in columns or name in free}
    if _lacks_id(columns) or not columns.keys() & {"title", "body"}:
        referring = next((name for name in columns if name in _REFERENCES), "")
        missing = f"an id, and {referring} refers to it" if _lacks_id(columns) else "a title or a body"
        raise FormatError(
            f"{file}: no column is known to hold {missing}; the columns are {listed(header)}",
            "say which is which, for example --column id=COLUMN --column title=COLUMN --column body=COLUMN; in Python"
            ' columns={"id": "COLUMN", "title": "COLUMN"}',
        )
    return columns


def describe(header: Sequence[str], columns: Mapping[str, int]) -> str:
    """Return one line that says which column was taken for what, and which are left out."""
    taken = ", ".join(f"{name} = {header[position]}" for name, position in columns.items())
    rest = [name for position, name in enumerate(header) if position not in columns.values()]
    return f"{taken}; left out: {listed(rest)}" if rest else taken


def _mapped_columns(header: Sequence[str], mapping: Mapping[str, str], file: str) -> dict[str, int]:
    columns: dict[str, int] = {}
    for name, column in mapping.items():
        if name not in FIELDS:
            raise SettingError(f"{name!r} is no field of a question", f"the fields are {', '.join(FIELDS)}")
        if not column:
            continue
        position = _POSITION.fullmatch(column) if is_headerless(mapping) else None
        at = int(position[1]) - 1 if position else -1
        if position is None and column in header:
            at = list(header).index(column)
        if not 0 <= at < len(header):
            raise SettingError(f"{file} has no column {column!r}", f"its columns are {listed(header)}")
        columns[name] = at
    return columns


def listed(names: Sequence[str]) -> str:
    """Return the first names between quotes, and how many more there are."""
    shown = ", ".join(repr(name[:40]) for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown or "none"


_SAMPLE_BODIES = 100
_REMOVED = ("[removed]", "[deleted]")
"""Bodies of Reddit's posts that are gone."""
_TAGS = "p|a|br|div|span|pre|code|ul|ol|li|em|strong|b|i|blockquote|img|h[1-6]|hr"
_TAG = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_ESCAPED_TAG = re.compile(rf"&lt;/?(?:{_TAGS})(?:\s|/|&gt;)", re.IGNORECASE)
_QUESTION_TYPES = frozenset(["1", "question", "topic", "thread"])
_ANSWER_TYPES = frozenset(["2", "answer", "reply", "comment"])
_FALSE = frozenset(["", "0", "false", "no", "none", "null"])


class TableReader(Reader):
    """Reads tables of questions or posts."""

    name = "table"

    def matches(self, path: Path) -> bool:
        """Say whether the columns' names tell where id and title or body are (of Parquet: whether it is one)."""
        suffix = plain_suffix(path)
        if suffix == ".parquet":
            return first_bytes(path, 4) == b"PAR1"
        start = first_bytes(path)
        if suffix in (".csv", ".tsv"):
            return is_question_table(header_of(start.decode("utf-8", "replace"), suffix))
        if suffix in (".jsonl", ".ndjson"):
            try:
                return is_question_table(list(load_object(start.lstrip().split(b"\n", 1)[0])))
            except Unreadable:
                return False
        return False

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield a question or an answer a row, and the links that rows name."""
        mapping = context.options.mapping
        table = open_table(path, path.name, context, has_header=not is_headerless(mapping))
        columns = choose_columns(table.header, mapping, path.name)
        if not is_headerless(mapping):
            context.notice(f"{path.name}: {describe(table.header, columns)}; to change it, say --column FIELD=COLUMN")
        sample = list(islice(table.rows, SAMPLED_TITLES))
        rows = _Rows(path.name, table.header, columns, sample, context)
        if "id" not in columns:
            context.notice(f"{path.name}: {IDS_NOTICE}")
        for row in chain(sample, table.rows):
            yield from rows.records(row)


_COMPARED = ("title", "body", "created", "author", "language")


def row_questions(
    table: Table, columns: Mapping[str, int], file: str, context: ReadContext
) -> Iterator[tuple[Row, Question | str]]:
    """Yield each row with its question, whose id is the number of the row, 0 the first; or why it has none.

    Args:
        columns: as ``choose_columns`` returns them.
        file: what messages call the table.
    """
    compared = {name: columns[name] for name in _COMPARED if name in columns}
    sample = list(islice(table.rows, SAMPLED_TITLES))
    rows = _Rows(file, table.header, compared, sample, context)
    for number, row in enumerate(chain(sample, table.rows)):
        try:
            yield row, rows.question(row, str(number))
        except Unreadable as error:
            yield row, str(error)


class _Rows:
    """The rows of one table: turns each into records.

    Args:
        sample: the first rows, which show how texts are written where the user has not said it.
    """

    def __init__(
        self, file: str, header: Sequence[str], columns: dict[str, int], sample: Sequence[Row], context: ReadContext
    ) -> None:
        self.file = file
        self.columns = columns
        self.is_reddit = {"subreddit", "created_utc"} <= set(header)
        self.context = context
        self.deleted: set[str] = set()
        self.generated_ids = GeneratedIds()
        readable = [row.cells for row in sample if not row.problem]
        places = [columns[name] for name in ("body", "answer") if name in columns]
        cells = (cells[place] for cells in readable[:_SAMPLE_BODIES] for place in places)
        bodies = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
        escaped = sum(_ESCAPED_TAG.search(body) is not None and _TAG.search(body) is None for body in bodies)
        is_escaped = context.options.is_html_escaped_twice
        self.is_escaped = escaped * 2 > len(bodies) if is_escaped is None else is_escaped
        if is_escaped is None and self.is_escaped:
            context.notice(f"{file}: the HTML is escaped once more; that layer is taken off")
        self.has_escaped_titles = (
            is_escaped is None
            and not self.is_escaped
            and "title" in columns
            and are_escaped((cells[columns["title"]] for cells in readable), file, context)
        )
        tagged = escaped if self.is_escaped else sum(_TAG.search(body) is not None for body in bodies)
        has_markdown = "body" in columns and plain_name(header[columns["body"]]) in MARKDOWN_NAMES
        guess: Markup = "markdown" if has_markdown else "html" if tagged * 2 > len(bodies) else "plain"
        self.markup: Markup = context.options.markup or guess
        if context.options.markup is None and bodies and not has_markdown:
            context.notice(f"{file}: bodies are read as {'HTML' if guess == 'html' else 'plain text'}")

    def records(self, row: Row) -> Iterator[Record]:
        """Yield what a row holds; reject what cannot be read."""
        if row.problem:
            self.context.reject(self.file, row.line, "", row.problem)
            return
        if all(cell is None or cell == "" for cell in row.cells):
            self.context.skipped["blank row"] += 1
            return
        cells = self._cells(row)
        try:
            records = list(self._records(cells))
        except Unreadable as error:
            self.context.reject(self.file, row.line, str(cells.get("id") or "")[:100], str(error))
            return
        self.context.records_in += len(records)
        for record in records:
            yield self.context.with_acceptance(record) if isinstance(record, Answer) else record
            if isinstance(record, Question) and (accepted_id := self._accepted_id(cells)):
                self.context.accepted.add(accepted_id)

    def question(self, row: Row, question_id: str) -> Question:
        """Return what a row asks, under another id.

        Raises:
            Unreadable: it asks nothing that can be read.
        """
        if row.problem:
            raise Unreadable(row.problem)
        return self._question(question_id, self._cells(row))

    def _cells(self, row: Row) -> dict[str, object]:
        cells = {name: _value_of(name, row.cells[position]) for name, position in self.columns.items()}
        if self.is_escaped:
            return {name: unescaped(cell) if isinstance(cell, str) else cell for name, cell in cells.items()}
        if self.has_escaped_titles and isinstance(title := cells["title"], str):
            cells["title"] = unescaped(title)
        return cells

    def _records(self, cells: dict[str, object]) -> Iterator[Record]:
        record_id = identifier(cells["id"]) if "id" in cells else ""
        if self.is_reddit and str(cells.get("body")) in _REMOVED:
            self.context.skipped["removed post"] += 1
            self.deleted.add(record_id)
            return
        if str(cells.get("deleted") or "").strip().lower() not in _FALSE:
            self.context.skipped["deleted post"] += 1
            self.deleted.add(record_id)
            return
        kind = self._kind(cells)
        if kind == "answer":
            parent_id = identifier(cells.get("parent_id"), "parent id")
            parent_id = parent_id.removeprefix("t3_") if self.is_reddit else parent_id
            if parent_id in self.deleted:
                self.context.skipped["answer to a deleted question"] += 1
            else:
                yield self._answer(record_id, parent_id, cells, "body")
        elif kind == "question":
            question = self._question(record_id, cells)
            record_id = question.id
            yield question
            if str(cells.get("answer") or "").strip():
                yield self._answer(f"{record_id}-a1", record_id, cells, "answer")
            for original in _originals(cells.get("duplicate_of"), self.context):
                yield Link(record_id, original, "duplicate")
        else:
            self.context.skipped[kind] += 1

    def _kind(self, cells: dict[str, object]) -> str:
        if "type" not in cells:
            return "answer" if _reference(cells.get("parent_id")) else "question"
        kind = _reference(cells["type"]).lower()
        if kind in _ANSWER_TYPES:
            return "answer"
        if kind in _QUESTION_TYPES:
            return "question"
        if not kind:
            raise Unreadable("no post type")
        return f"post of type {kind[:40]}"

    def _question(self, question_id: str, cells: dict[str, object]) -> Question:
        fields = {**cells, "author": self._author(cells)}
        question = read_question(question_id, fields, self.markup, self.context, "/questions/{id}")
        return self.generated_ids.named(question)

    def _answer(self, answer_id: str, question_id: str, cells: dict[str, object], column: str) -> Answer:
        if column == "answer":  # date, score and author of the row are the question's
            fields: dict[str, object] = {"body": cells["answer"]}
        else:
            fields = {name: cells.get(name) for name in ("body", "created", "score")}
            fields["author"] = self._author(cells)
        return read_answer(answer_id, question_id, fields, self.markup, self.context)

    def _accepted_id(self, cells: dict[str, object]) -> str:
        try:
            return _reference(cells.get("accepted_answer_id"))
        except Unreadable:
            self.context.repair("ids of accepted answers that cannot be read, left out")
            return ""

    def _author(self, cells: dict[str, object]) -> str:
        name = person(cells.get("author"), "author", self.context)
        return name or _reference(cells.get("author_id"))


_NULLS = ("\\N", "NULL")
"""How databases write an empty cell into a text."""
_WHOLE_NUMBERS = frozenset(["id", "type", "parent_id", "accepted_answer_id", "author_id", "author", "deleted"])
_FLOAT = re.compile(r"(-?[0-9]{1,15})\.0")


def _value_of(field: str, cell: object) -> object:
    """Return a cell as it was meant: None for a gap, and a whole number that a column with gaps turned into a float.

    >>> _value_of("id", "7.0"), _value_of("title", "7.0"), _value_of("body", float("nan")), _value_of("score", "NULL")
    ('7', '7.0', None, None)
    """
    if isinstance(cell, float):
        if cell != cell:
            return None
        return int(cell) if field in _WHOLE_NUMBERS and cell.is_integer() else cell
    if not isinstance(cell, str) or cell in _NULLS:
        return None if isinstance(cell, str) else cell
    number = _FLOAT.fullmatch(cell) if field in _WHOLE_NUMBERS else None
    return number[1] if number else cell


def _originals(value: object, context: ReadContext) -> list[str]:
    """Return the ids of a cell: a number, a list of numbers or texts, or text with commas."""
    if isinstance(value, int | float):
        return [identifier(value, "duplicate_of")] if value == value else []  # NaN stands for an empty cell
    if isinstance(value, list | tuple):
        return [identifier(target, "duplicate_of") for target in value]
    return [identifier(_value_of("id", name), "duplicate_of") for name in tags(value, context)]


def _reference(value: object) -> str:
    """Return another record's id, "" where the cell is empty."""
    return "" if value is None or value == "" or value != value else identifier(value, "reference")
