"""The native format: JSON Lines, one question a line with its answers and links, plain or gzipped.

``date`` is taken for ``created``, ``text`` for ``body``, and ``links`` (pairs of a post's number and the question that
it links to) for ``related``, so that the export of a Discourse site as one topic a line is read too.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Final, cast, get_args

from askalike.readers.files import first_bytes, needed_file, plain_suffix, read_lines, stored_file
from askalike.readers.frame import ReadContext, Reader
from askalike.readers.pairs import read_links
from askalike.readers.values import (
    IDS_NOTICE,
    SAMPLED_TITLES,
    GeneratedIds,
    Unreadable,
    are_escaped,
    fields_of,
    identifier,
    read_answer,
    read_question,
)
from askalike.text.markup import unescaped
from askalike.types import Answer, Link, LinkKind, Markup, Question, Record

_ANSWER_NAMES = frozenset(["id", "body", "text", "markup", "created", "date", "score", "author", "accepted"])
_LINK_NAMES = frozenset(["duplicate_of", "related", "links"])
_LANGUAGE_NAMES = frozenset(["language", "is_language_detected"])
_QUESTION_NAMES = (
    (_ANSWER_NAMES - {"accepted"}) | _LINK_NAMES | _LANGUAGE_NAMES | {"title", "tags", "closed", "url", "answers"}
)
_MARKUPS = frozenset(get_args(Markup))
_LOOKS_NATIVE = re.compile(rb'"id"\s*:')
_HAS_TEXT = re.compile(rb'"(title|body)"\s*:')
_HAS_ANSWERS = re.compile(rb'"(?:answers|comments)"\s*:\s*\[')
_SAMPLE_BYTES = 4 << 20
_LINK_TABLES: Final[dict[str, LinkKind]] = {"duplicates": "duplicate", "linked": "related"}
_MAX_NOTICED = 20


def _constant(name: str) -> float | None:
    """Return what a constant of Python's JSON stands for: NaN is how pandas writes a gap."""
    return None if name == "NaN" else float(name)


def load_object(line: bytes) -> dict[str, object]:
    """Return the JSON object that a line holds.

    Raises:
        Unreadable: not UTF-8, not JSON, or no object.
    """
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 at byte {error.start + 1} of the line") from error
    except RecursionError as error:
        raise Unreadable("JSON nested too deep") from error
    except ValueError as error:
        raise Unreadable(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Unreadable(f"a JSON {type(value).__name__}, expected an object")
    return value


def json_objects(path: Path, name: str, context: ReadContext) -> Iterator[tuple[int, dict[str, object], str]]:
    """Yield (line, object, why there is none) for each line that is not blank.

    Raises:
        DamagedInputError: empty, truncated, or a line too long; names file and line.
    """
    for number, line in read_lines(path, name, context):
        if not line or line.isspace():
            context.skipped["blank line"] += 1
            continue
        try:
            yield number, load_object(line), ""
        except Unreadable as error:
            yield number, {}, str(error)


class JsonlReader(Reader):
    """Reads the native format."""

    name = "jsonl"

    def matches(self, path: Path) -> bool:
        """Say whether the first line has a title or body, and an id or answers, under our names."""
        if path.is_dir():
            return any(self.matches(path / name) for name in ("questions.jsonl", "questions.jsonl.gz"))
        if plain_suffix(path) not in (".jsonl", ".ndjson"):
            return False
        start = first_bytes(path).lstrip().split(b"\n", 1)[0]
        has_answers = _HAS_ANSWERS.search(start) is not None
        is_native = has_answers or (_LOOKS_NATIVE.search(start) is not None and not _is_post_a_line(start))
        return start.startswith(b"{") and is_native and _HAS_TEXT.search(start) is not None

    def files(self, path: Path) -> list[Path]:
        """Return the file, or the questions of a folder and the tables of links beside them."""
        if not path.is_dir():
            return [path]
        tables = (stored_file(path, f"{stem}.tsv") for stem in _LINK_TABLES)
        return [needed_file(path, "questions.jsonl", "name another --format"), *filter(None, tables)]

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield every question with its answers and links, then the links of the tables beside it."""
        questions, *tables = self.files(path)
        if path.is_dir():
            others = {file.name for file in path.iterdir()} - {questions.name, *(table.name for table in tables)}
            if others:
                context.notice(f"{path.name}: not read: {', '.join(sorted(others))[:200]}")
        numbered = read_lines(questions, questions.name, context)
        sample = list(_sample_lines(numbered))
        lines = _Lines(questions.name, sample, context)
        for number, line in chain(sample, numbered):
            if not line or line.isspace():
                context.skipped["blank line"] += 1
            else:
                yield from lines.records(number, line)
        for table in tables:
            yield from read_links(table, table.name, _LINK_TABLES[table.name.split(".", 1)[0]], context)


def _is_post_a_line(line: bytes) -> bool:
    """Say whether a line holds one post of a table of posts, or its text under a name that tables alone have."""
    try:
        names = set(load_object(line))
    except Unreadable:
        return False
    fields = fields_of(sorted(names))
    has_body = not names.isdisjoint(("body", "text"))
    return not fields.keys().isdisjoint(("type", "parent_id", "accepted_answer_id")) or (
        "body" in fields and not has_body
    )


def _with_our_names(data: dict[str, object]) -> dict[str, object]:
    """Return a record whose fields have our names where exports of forums have others, such as ``createdAt``.

    >>> _with_our_names({"number": 7, "createdAt": "2026-01-01", "closed": False, "comments": []})
    {'id': 7, 'created': '2026-01-01', 'answers': []}
    """
    if data.keys() <= _QUESTION_NAMES:
        return data
    if isinstance(data.get("closed"), bool):  # which says whether, not when
        data = {name: value for name, value in data.items() if name != "closed"}
    ours = _our_names(tuple(data))
    return {ours.get(name, name): value for name, value in data.items()} if ours else data


@lru_cache(maxsize=256)
def _our_names(names: tuple[str, ...]) -> dict[str, str]:
    ours = {names[place]: field for field, place in fields_of(names).items() if field in _QUESTION_NAMES}
    ours = {name: field for name, field in ours.items() if name not in _QUESTION_NAMES and field not in names}
    if "comments" in names and "answers" not in names:
        ours["comments"] = "answers"
    return ours


def _sample_lines(lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield the first lines, from which it is told how a file is written: not many, and not long ones."""
    left = _SAMPLE_BYTES
    for number, line in islice(lines, SAMPLED_TITLES):
        yield number, line
        left -= len(line)
        if left < 0:
            return


class _Lines:
    """The lines of one file: turns each into records, and remembers which unknown names were shown.

    Args:
        sample: the first lines, which show whether questions have ids, and whether titles are escaped for HTML.
    """

    def __init__(self, file: str, sample: Sequence[tuple[int, bytes]], context: ReadContext) -> None:
        self.file = file
        self.context = context
        self.generated_ids = GeneratedIds()
        self.markup: Markup = context.options.markup or "markdown"
        self.noticed: set[str] = set()
        objects: list[dict[str, object]] = []
        for _, line in sample:
            with contextlib.suppress(Unreadable):  # rejected when its turn comes
                objects.append(_with_our_names(load_object(line)))
        self.has_ids = not objects or any("id" in data for data in objects)
        if not self.has_ids:
            context.notice(f"{file}: {IDS_NOTICE}")
        is_escaped = context.options.is_html_escaped_twice
        self.has_escaped_texts = is_escaped or False
        self.has_escaped_titles = (
            are_escaped((data.get("title") for data in objects), file, context) if is_escaped is None else is_escaped
        )

    def records(self, number: int, line: bytes) -> Iterator[Record]:
        """Yield a line's question, answers and links; reject what cannot be read."""
        question_id, data = "", {}
        try:
            data = _with_our_names(load_object(line))
            question_id = identifier(data.get("id")) if self.has_ids else ""
            question = self._question(question_id, data)
            question_id = question.id
            answers = _list(data.get("answers"), "answers")
            if len(answers) > self.context.options.limits.parts:
                raise Unreadable(f"{len(answers):,} answers, at most {self.context.options.limits.parts:,} are read")
            links = [] if _LINK_NAMES.isdisjoint(data) else list(self._links(question_id, data))
        except Unreadable as error:
            self.context.reject(self.file, number, question_id, str(error))
            return
        if not data.keys() <= _QUESTION_NAMES:
            self._notice_unknown(data.keys() - _QUESTION_NAMES, "questions")
        self.context.records_in += 1 + len(links)
        yield question
        for position, answer in enumerate(answers, start=1):
            yield from self._answers(question, position, answer, number)
        yield from links

    def _question(self, question_id: str, data: dict[str, object]) -> Question:
        fields = self._fields(data)
        fields["title"] = _plain(fields.get("title"), self.has_escaped_titles)
        markup = _markup(data.get("markup"), self.markup)
        return self.generated_ids.named(read_question(question_id, fields, markup, self.context, "/questions/{id}"))

    def _fields(self, data: dict[str, object]) -> dict[str, object]:
        """Return a record's values; ``text`` is taken for its body, and ``date`` for when it was written."""
        body = data["body"] if "body" in data else data.get("text")
        created = data["created"] if "created" in data else data.get("date")
        return {**data, "body": _plain(body, self.has_escaped_texts), "created": created}

    def _answers(self, question: Question, position: int, data: object, number: int) -> Iterator[Answer]:
        context = self.context
        answer_id = f"{question.id}-a{position}"
        try:
            if not isinstance(data, dict):
                raise Unreadable(f"the answer is a {type(data).__name__}, expected an object")
            data = _with_our_names(data)
            if data.get("id") is not None:
                answer_id = identifier(data["id"], "answer id")
            markup = _markup(data.get("markup"), question.markup)
            answer = read_answer(answer_id, question.id, self._fields(data), markup, context)
        except Unreadable as error:
            context.reject(self.file, number, answer_id, str(error))
            return
        if not data.keys() <= _ANSWER_NAMES:
            self._notice_unknown(data.keys() - _ANSWER_NAMES, "answers")
        context.records_in += 1
        yield answer

    def _links(self, question_id: str, data: dict[str, object]) -> Iterator[Link]:
        originals = [identifier(value, "duplicate_of") for value in _list(data.get("duplicate_of"), "duplicate_of")]
        related = [identifier(value, "related") for value in _list(data.get("related"), "related")]
        for pair in _list(data.get("links"), "links"):
            if not isinstance(pair, list) or len(pair) != 2:
                raise Unreadable("links is expected to hold pairs of a post's number and a question's id")
            related.append(identifier(pair[1], "link's target"))
        for target in dict.fromkeys(originals):
            yield Link(question_id, target, "duplicate")
        for target in dict.fromkeys(related):
            if target == question_id:
                self.context.skipped["link of a question to itself"] += 1
            else:
                yield Link(question_id, target, "related")

    def _notice_unknown(self, names: set[str], kind: str) -> None:
        fresh = sorted(name for name in names if f"{kind}.{name}" not in self.noticed)
        if fresh and len(self.noticed) < _MAX_NOTICED:
            self.noticed.update(f"{kind}.{name}" for name in fresh)
            self.context.notice(
                f"{self.file}: fields of {kind} that are not known are left out: {', '.join(fresh)[:200]}"
            )


def _plain(value: object, is_escaped: bool) -> object:
    return unescaped(value) if is_escaped and isinstance(value, str) else value


def _list(value: object, name: str) -> list[object]:
    if value is None:
        return []
    if isinstance(value, list):
        return value
    if isinstance(value, str | int) and name in ("duplicate_of", "related"):
        return [value]
    raise Unreadable(f"{name} is a {type(value).__name__}, expected a list")


def _markup(value: object, default: Markup) -> Markup:
    if value is None:
        return default
    if not isinstance(value, str) or value not in _MARKUPS:
        raise Unreadable(f"the markup is {str(value)[:40]!r}, expected one of {', '.join(sorted(_MARKUPS))}")
    return cast("Markup", value)
