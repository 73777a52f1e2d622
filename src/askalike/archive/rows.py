"""Between the values of ``askalike.types`` and the archive's rows: checks, conversion, digests.

Enters: ``Question``, ``Answer``, ``Link`` or an ``sqlite3.Row``. Leaves: the other one. May import: types, errors.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import get_args

from askalike.errors import DamagedForumError, InputError
from askalike.types import Answer, Link, LinkKind, Markup, Question

__all__ = [
    "ANSWER_COLUMNS",
    "MAX_ID_CHARACTERS",
    "QUESTION_COLUMNS",
    "answer_of",
    "answer_values",
    "check_link",
    "digest",
    "from_microseconds",
    "is_storable",
    "question_of",
    "question_values",
    "to_microseconds",
]

QUESTION_COLUMNS = ("id", "title", "body", "markup", "tags", "created_us", "closed_us", "score", "url", "author")
ANSWER_COLUMNS = ("id", "question_id", "body", "markup", "created_us", "score", "author", "is_accepted")
MAX_ID_CHARACTERS = 512

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MARKUPS = frozenset(get_args(Markup))
_LINK_KINDS = frozenset(get_args(LinkKind))
_INTEGER_LIMIT = 2**63

Value = str | int | None

_json = json.JSONEncoder(ensure_ascii=False).encode  # made once: dumps would make an encoder a row


def to_microseconds(moment: datetime | None) -> int | None:
    """Return microseconds since 1970 UTC; a moment without a time zone is taken as UTC."""
    if moment is None:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def from_microseconds(value: int | None) -> datetime | None:
    """Return the moment in UTC."""
    return None if value is None else _EPOCH + timedelta(microseconds=value)


def question_values(question: Question) -> tuple[Value, ...]:
    """Return the row of a question in the order of ``QUESTION_COLUMNS``.

    Raises:
        InputError: a value cannot be stored; the message names the question and the value.
    """
    where = f"question {question.id!r}"
    _check_id(question.id, "a question's id")
    _check_text(where, "title", question.title)
    _check_text(where, "body", question.body)
    _check_markup(where, question.markup)
    for tag in question.tags:
        _check_text(where, "tag", tag)
    _check_text(where, "url", question.url)
    _check_text(where, "author", question.author)
    _check_score(where, question.score)
    return (
        question.id,
        question.title,
        question.body,
        question.markup,
        _json(question.tags),
        to_microseconds(question.created),
        to_microseconds(question.closed),
        question.score,
        question.url,
        question.author,
    )


def answer_values(answer: Answer) -> tuple[Value, ...]:
    """Return the row of an answer in the order of ``ANSWER_COLUMNS``.

    Raises:
        InputError: a value cannot be stored; the message names the answer and the value.
    """
    where = f"answer {answer.id!r}"
    _check_id(answer.id, "an answer's id")
    _check_id(answer.question_id, f"the question id of {where}")
    _check_text(where, "body", answer.body)
    _check_markup(where, answer.markup)
    _check_text(where, "author", answer.author)
    _check_score(where, answer.score)
    return (
        answer.id,
        answer.question_id,
        answer.body,
        answer.markup,
        to_microseconds(answer.created),
        answer.score,
        answer.author,
        int(answer.is_accepted),
    )


def check_link(link: Link) -> None:
    """Raise InputError unless the link can be stored."""
    _check_id(link.source_id, "a link's source id")
    _check_id(link.target_id, "a link's target id")
    if link.kind not in _LINK_KINDS:
        raise InputError(f"link kind is {link.kind!r}", f"expected one of {sorted(_LINK_KINDS)}")
    if link.source_id == link.target_id:
        raise InputError(f"question {link.source_id!r} is linked to itself", "leave the link out")


def digest(values: Iterable[Value]) -> bytes:
    """Return 16 bytes that differ when any value differs: how an edit is recognised."""
    return hashlib.blake2b(repr(tuple(values)).encode(), digest_size=16).digest()


def is_storable(text: str) -> bool:
    """Return whether a text can be written as UTF-8: half a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def question_of(row: sqlite3.Row) -> Question:
    """Return the question of a row that has ``QUESTION_COLUMNS``.

    Raises:
        DamagedForumError: the row is not as it was written.
    """
    try:
        tags = tuple(json.loads(row["tags"]))
    except ValueError as error:
        found = f"the tags of question {row['id']!r} cannot be read: {error}"
        raise DamagedForumError(found, "restore the forum from a backup, or put the question again") from error
    return Question(
        id=row["id"],
        title=row["title"],
        body=row["body"],
        markup=row["markup"],
        tags=tags,
        created=from_microseconds(row["created_us"]),
        closed=from_microseconds(row["closed_us"]),
        score=row["score"],
        url=row["url"],
        author=row["author"],
    )


def answer_of(row: sqlite3.Row) -> Answer:
    """Return the answer of a row that has ``ANSWER_COLUMNS``."""
    return Answer(
        id=row["id"],
        question_id=row["question_id"],
        body=row["body"],
        markup=row["markup"],
        created=from_microseconds(row["created_us"]),
        score=row["score"],
        author=row["author"],
        is_accepted=bool(row["is_accepted"]),
    )


def _check_id(value: str, what: str) -> None:
    if not isinstance(value, str) or not value or value != value.strip():
        raise InputError(f"{what} is {value!r}", "expected a text that is not empty, without spaces around it")
    if len(value) > MAX_ID_CHARACTERS:
        raise InputError(f"{what} has {len(value)} characters", f"expected at most {MAX_ID_CHARACTERS}")
    _check_text(what, "id", value)


def _check_text(where: str, name: str, value: str) -> None:
    if not isinstance(value, str):
        raise InputError(f"{where}: {name} is {type(value).__name__}", "expected a text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{where}: {name} has a lone surrogate at character {error.start}", "decode the text as UTF-8 first"
            ) from error


def _check_markup(where: str, markup: str) -> None:
    if markup not in _MARKUPS:
        raise InputError(f"{where}: markup is {markup!r}", f"expected one of {sorted(_MARKUPS)}")


def _check_score(where: str, score: int | None) -> None:
    if score is not None and not (isinstance(score, int) and -_INTEGER_LIMIT <= score < _INTEGER_LIMIT):
        raise InputError(f"{where}: score is {score!r}", "expected a whole number of at most 64 bits")
