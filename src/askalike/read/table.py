"""Tables: one question a row, or one post a row with its type and the question that it answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

from askalike.read.accepted import AcceptedAnswers
from askalike.read.columns import choose_columns, describe, is_headerless, is_question_table
from askalike.read.escapes import ESCAPED_TITLES, SAMPLED_TITLES, are_escaped
from askalike.read.files import first_bytes, plain_suffix, regular_size
from askalike.read.frame import ReadContext
from askalike.read.jsonl import load_object
from askalike.read.made_ids import MADE_IDS, MadeIds
from askalike.read.table_rows import Row, header_of, open_table
from askalike.read.values import (
    Unreadable,
    check_has_text,
    identifier,
    moment,
    one_line,
    tags,
    text,
    unescaped,
    whole_number,
)
from askalike.types import Answer, Link, Markup, Question, Record

_SAMPLE_BODIES = 100
_TAGS = "p|a|br|div|span|pre|code|ul|ol|li|em|strong|b|i|blockquote|img|h[1-6]|hr"
_TAG = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_ESCAPED_TAG = re.compile(rf"&lt;/?(?:{_TAGS})(?:\s|/|&gt;)", re.IGNORECASE)
_QUESTION_TYPES = frozenset(["1", "question", "topic", "thread"])
_ANSWER_TYPES = frozenset(["2", "answer", "reply", "comment"])
_FALSE = frozenset(["", "0", "false", "no", "none", "null"])


class TableReader:
    """Reads tables of questions or posts."""

    name = "table"
    title = "a table: CSV, TSV, Parquet or JSON Lines; columns are guessed or given by --column FIELD=COLUMN"

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

    def size_bytes(self, path: Path) -> int:
        """Return the file's size."""
        return regular_size(path)

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield a question or an answer a row, and the links that rows name."""
        mapping = context.options.mapping
        table = open_table(path, path.name, context, has_header=not is_headerless(mapping))
        columns = choose_columns(table.header, mapping, path.name)
        if not is_headerless(mapping):
            context.notice(f"{path.name}: {describe(table.header, columns)}; to change it, say --column FIELD=COLUMN")
        sample = list(islice(table.rows, SAMPLED_TITLES))
        style = _style(path.name, sample, columns, context)
        if "id" not in columns:
            context.notice(f"{path.name}: {MADE_IDS}")
        rows = _Rows(path.name, columns, style, context)
        for row in chain(sample, table.rows):
            yield from rows.records(row)
        yield from rows.accepted.finish(context)


@dataclass(frozen=True)
class _Style:
    """How the texts of a table are written."""

    markup: Markup
    is_escaped: bool
    has_escaped_titles: bool


def _style(name: str, sample: Sequence[Row], columns: dict[str, int], context: ReadContext) -> _Style:
    """Find out from the first rows how bodies are written, unless the user said it."""
    places = [columns[name] for name in ("body", "answer") if name in columns]
    cells = (row.cells[place] for row in sample[:_SAMPLE_BODIES] if not row.problem for place in places)
    bodies = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
    escaped = sum(_ESCAPED_TAG.search(body) is not None and _TAG.search(body) is None for body in bodies)
    is_escaped = context.options.is_html_escaped_twice
    if is_escaped is None:
        is_escaped = escaped * 2 > len(bodies)
        if is_escaped:
            context.notice(f"{name}: the HTML is escaped once more; that layer is taken off")
    markup = context.options.markup
    if markup is None:
        tagged = escaped if is_escaped else sum(_TAG.search(body) is not None for body in bodies)
        markup = "html" if tagged * 2 > len(bodies) else "plain"
        if bodies:
            context.notice(f"{name}: bodies are read as {'HTML' if markup == 'html' else 'plain text'}")
    return _Style(markup, is_escaped, is_escaped or _has_escaped_titles(name, sample, columns, context))


def _has_escaped_titles(name: str, sample: Sequence[Row], columns: dict[str, int], context: ReadContext) -> bool:
    if "title" not in columns or context.options.is_html_escaped_twice is not None:
        return False
    cells = (row.cells[columns["title"]] for row in sample if not row.problem)
    is_found = are_escaped(cell for cell in cells if isinstance(cell, str))
    if is_found:
        context.notice(f"{name}: {ESCAPED_TITLES}")
    return is_found


class _Rows:
    """The rows of one table: turns each into records."""

    def __init__(self, file: str, columns: dict[str, int], style: _Style, context: ReadContext) -> None:
        self.file = file
        self.columns = columns
        self.style = style
        self.context = context
        self.accepted = AcceptedAnswers()
        self.deleted: set[str] = set()
        self.made_ids = MadeIds()
        self.has_posts = bool(columns.keys() & {"type", "parent_id"})

    def records(self, row: Row) -> Iterator[Record]:
        """Yield what a row holds; reject what cannot be read."""
        if row.problem:
            self.context.reject(self.file, row.line, "", row.problem)
            return
        if all(cell is None or cell == "" for cell in row.cells):
            self.context.skipped["blank row"] += 1
            return
        cells = {name: row.cells[position] for name, position in self.columns.items()}
        if self.style.is_escaped:
            cells = {name: unescaped(cell) if isinstance(cell, str) else cell for name, cell in cells.items()}
        elif self.style.has_escaped_titles and isinstance(title := cells["title"], str):
            cells["title"] = unescaped(title)
        try:
            records = list(self._records(cells))
        except Unreadable as error:
            self.context.reject(self.file, row.line, str(cells.get("id") or "")[:100], str(error))
            return
        self.context.records_in += len(records)
        for record in records:
            if isinstance(record, Answer) and self.has_posts:
                yield from self.accepted.take_answer(record)
            else:
                yield record
            if isinstance(record, Question):
                yield from self.accepted.take_question(record.id, self._accepted_id(cells))

    def _records(self, cells: dict[str, object]) -> Iterator[Record]:
        record_id = identifier(cells["id"]) if "id" in cells else ""
        if str(cells.get("deleted") or "").strip().lower() not in _FALSE:
            self.context.skipped["deleted post"] += 1
            self.deleted.add(record_id)
            return
        kind = self._kind(cells)
        if kind == "answer":
            parent_id = identifier(cells.get("parent_id"), "parent id")
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
            for original in tags(cells.get("duplicate_of"), self.context):
                yield Link(record_id, identifier(original), "duplicate")
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
        context = self.context
        title = one_line(cells.get("title"), "title", context)
        body = text(cells.get("body"), "body", context)
        check_has_text(title, body, self.style.markup)
        url = one_line(cells.get("url"), "url", context)
        found = Question(
            id=question_id,
            title=title,
            body=body,
            markup=self.style.markup,
            tags=tags(cells.get("tags"), context),
            created=moment(cells.get("created"), context),
            closed=moment(cells.get("closed"), context),
            score=whole_number(cells.get("score"), context),
            url=url or context.address(question_id, "/questions/{id}"),
            author=self._author(cells),
        )
        return found if question_id else replace(found, id=self.made_ids.of(found))

    def _answer(self, answer_id: str, question_id: str, cells: dict[str, object], column: str) -> Answer:
        body = text(cells.get(column), column, self.context)
        if not body.strip():
            raise Unreadable("the answer is empty")
        if column == "answer":  # date, score and author of the row are the question's
            return Answer(answer_id, question_id, body, self.style.markup)
        created, score = moment(cells.get("created"), self.context), whole_number(cells.get("score"), self.context)
        return Answer(answer_id, question_id, body, self.style.markup, created, score, self._author(cells))

    def _accepted_id(self, cells: dict[str, object]) -> str:
        try:
            return _reference(cells.get("accepted_answer_id"))
        except Unreadable:
            self.context.repair("ids of accepted answers that cannot be read, left out")
            return ""

    def _author(self, cells: dict[str, object]) -> str:
        name = one_line(cells.get("author"), "author", self.context)
        return name or _reference(cells.get("author_id"))


def _reference(value: object) -> str:
    """Return another record's id, "" where the cell is empty."""
    return "" if value is None or value == "" or value != value else identifier(value, "reference")
