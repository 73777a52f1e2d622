"""Between the values of ``askalike.types`` and the rows of a store: what can be stored, conversion, digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from numbers import Real
from typing import Any, get_args

import msgspec

from askalike.errors import DamagedForumError, InputError, SettingError, UnknownIdError
from askalike.store.values import MANUAL_SOURCE
from askalike.types import (
    Answer,
    Draw,
    DrawnBy,
    Feedback,
    Link,
    LinkKind,
    Markup,
    Question,
    Source,
    Verdict,
    language_code,
)

QUESTION_COLUMNS = (
    *("id", "title", "body", "markup", "tags", "created_us", "closed_us", "score", "url", "author"),
    *("language", "is_language_detected"),
)
ANSWER_COLUMNS = ("id", "question_id", "body", "markup", "created_us", "score", "author", "is_accepted")
POSTS = {"questions": QUESTION_COLUMNS, "answers": ANSWER_COLUMNS}
MAX_ID_CHARACTERS = 512
MAX_TEXT_CHARACTERS = 16 * 1024 * 1024
"""SQLite keeps no row of more than a billion bytes."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MARKUPS = frozenset(get_args(Markup))
_LINK_KINDS = frozenset(get_args(LinkKind))
_VERDICTS = get_args(Verdict)
_DRAWS = get_args(DrawnBy)
INTEGER_LIMIT = 2**63
_FIRST_US = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
LAST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND

Value = str | int | None

_json = json.JSONEncoder(ensure_ascii=False).encode  # made once: dumps would make an encoder a row


def to_microseconds(moment: datetime | None) -> int | None:
    """Return microseconds since 1970 UTC; a moment without a time zone is taken as UTC."""
    if moment is None:
        return None
    aware = moment if moment.utcoffset() is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def from_microseconds(value: int | None) -> datetime | None:
    """Return the moment in UTC, None for None.

    Raises:
        DamagedForumError: it lies outside the years 1 to 9999, which is never written.
    """
    if value is None:
        return None
    if not _FIRST_US <= value <= LAST_US:
        raise DamagedForumError(f"a moment is {value} µs from 1970", "restore the forum from a backup")
    return _EPOCH + timedelta(microseconds=value)


def question_values(question: Question) -> tuple[Value, ...]:
    """Return the row of a question in the order of ``QUESTION_COLUMNS``.

    Raises:
        InputError: a value cannot be stored; the message names the question and the value.
    """
    where = f"question {question.id!r}"
    _check_id(question.id, "a question's id")
    _check_text(where, "title", question.title)
    _check_text(where, "body", question.body)
    if not isinstance(question.tags, tuple | list):
        raise InputError(f"{where}: tags is {type(question.tags).__name__}", "expected several texts, such as a tuple")
    for tag in question.tags:
        _check_text(where, "tag", tag)
    tags = _json(question.tags)
    _check_text(where, "all tags", tags)
    _check_text(where, "url", question.url)
    _check_text(where, "author", question.author)
    _check_post(where, question)
    language, is_detected = _language_value(where, question.language), question.is_language_detected
    if not isinstance(is_detected, bool):
        raise InputError(f"{where}: is_language_detected is {is_detected!r}", "expected True or False")
    return (
        question.id,
        question.title,
        question.body,
        question.markup,
        tags,
        _moment_value(where, "created", question.created),
        _moment_value(where, "closed", question.closed),
        question.score,
        question.url,
        question.author,
        language,
        int(is_detected and bool(language)),
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
    _check_text(where, "author", answer.author)
    _check_post(where, answer)
    if not isinstance(answer.is_accepted, bool):
        raise InputError(f"{where}: is_accepted is {answer.is_accepted!r}", "expected True or False")
    return (
        answer.id,
        answer.question_id,
        answer.body,
        answer.markup,
        _moment_value(where, "created", answer.created),
        answer.score,
        answer.author,
        int(answer.is_accepted),
    )


def check_question(question: Question) -> None:
    """Raise InputError unless the question can be stored."""
    question_values(question)


def check_feedback(judgement: Feedback) -> None:
    """Raise InputError unless a judgement on two questions that are there can be stored."""
    ids: tuple[Any, ...] = (judgement.question_id, judgement.candidate_id)  # notebooks check no types
    draw: Any = judgement.draw
    if not all(isinstance(identifier, str) for identifier in ids):
        where = f"a judgement on {judgement.question_id!r:.80} and {judgement.candidate_id!r:.80}"
        raise InputError(where, "expected the ids of two questions")
    if judgement.question_id == judgement.candidate_id:
        raise InputError(f"question {judgement.question_id!r} is judged against itself", "name two questions")
    if not isinstance(judgement.verdict, str) or judgement.verdict not in _VERDICTS:
        raise InputError(f"the verdict is {judgement.verdict!r}", f"expected one of {', '.join(_VERDICTS)}")
    _check_text("a judgement", "the judge's name", judgement.by)
    _moment_value("a judgement", "its moment", judgement.at)
    if not isinstance(draw, Draw):
        raise InputError(f"the pair was drawn by {draw!r:.80}", "expected a Draw")
    if not isinstance(draw.by, str) or draw.by not in _DRAWS:
        raise InputError(f"the pair was drawn by {judgement.draw.by!r}", f"expected one of {', '.join(_DRAWS)}")
    chances: tuple[tuple[str, Any], ...] = (("probability", draw.probability), ("propensity", draw.propensity))
    for name, value in chances:
        if value is not None and not (isinstance(value, Real) and 0 <= float(value) <= 1):
            raise InputError(f"the {name} of the judged pair is {value!r:.80}", "expected a number from 0 to 1")


def check_link(link: Link) -> None:
    """Raise InputError unless the link can be stored."""
    _check_id(link.source_id, "a link's source id")
    _check_id(link.target_id, "a link's target id")
    if not isinstance(link.kind, str) or link.kind not in _LINK_KINDS:
        raise InputError(f"link kind is {link.kind!r}", f"expected one of {sorted(_LINK_KINDS)}")
    if link.source_id == link.target_id:
        raise InputError(f"question {link.source_id!r} is linked to itself", "leave the link out")


def check_source(source: Source) -> None:
    """Raise InputError unless an archive, or a site that is followed, can be known by this name."""
    if not (is_storable(source.name) and is_storable(source.format)):
        raise InputError(f"the source's name {source.name!r:.80} is not UTF-8", "choose another name")
    if source.name == MANUAL_SOURCE:
        raise InputError(
            f"the source {MANUAL_SOURCE!r} is what people and programs have added, which no archive replaces",
            "choose another name",
        )


def digest(values: Iterable[Value]) -> bytes:
    """Return 16 bytes that differ when any value differs: how an edit is recognised.

    A question's language counts where it was given: what was detected follows from its text.
    """
    content = tuple(values)
    if len(content) == len(QUESTION_COLUMNS):
        *rest, language, is_detected = content
        content = (*rest, language) if language and not is_detected else tuple(rest)
    return hashlib.blake2b(msgspec.msgpack.encode(content), digest_size=16).digest()


def is_storable(text: str) -> bool:
    """Return whether a text can be written as UTF-8: half a surrogate pair cannot, nor what is no text."""
    try:
        text.encode()
    except (UnicodeEncodeError, AttributeError):
        return False
    return True


def question_of(row: Mapping[str, Any]) -> Question:
    """Return the question of a row that has ``QUESTION_COLUMNS``.

    Raises:
        DamagedForumError: the row is not as it was written.
    """
    try:
        tags = json.loads(row["tags"])
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise ValueError(f"found {str(row['tags'])[:100]}, expected a list of texts")
    except (ValueError, TypeError, RecursionError) as error:
        problem = f"the tags of question {row['id']!r} cannot be read: {error}"
        raise DamagedForumError(problem, "restore the forum from a backup, or put the question again") from error
    return Question(
        id=row["id"],
        title=row["title"],
        body=row["body"],
        markup=row["markup"],
        tags=tuple(tags),
        created=from_microseconds(row["created_us"]),
        closed=from_microseconds(row["closed_us"]),
        score=row["score"],
        url=row["url"],
        author=row["author"],
        language=row["language"],
        is_language_detected=bool(row["is_language_detected"]),
    )


def answer_of(row: Mapping[str, Any]) -> Answer:
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


def post_fault(table: str, row: Any) -> str:
    """Return what is wrong with a stored question or answer, "" where it is as it was written.

    Args:
        row: of one of ``POSTS``, with its number and digest.
    """
    name = f"{table[:-1]} {row['id']!r} (number {row['num']})"
    try:
        if digest(row[column] for column in POSTS[table]) != row["digest"]:
            return f"{name} does not hold what was written"
        (question_of if table == "questions" else answer_of)(row)
    except UnicodeEncodeError:
        return f"{name} does not hold what was written"
    except (DamagedForumError, ValueError, TypeError, OverflowError) as error:
        return f"{name} cannot be read: {error}"
    return ""


def _check_id(value: str, what: str) -> None:
    if not isinstance(value, str) or not value or value != value.strip():
        raise InputError(f"{what} is {value!r}", "expected a text that is not empty, without spaces around it")
    if len(value) > MAX_ID_CHARACTERS:
        raise InputError(f"{what} has {len(value)} characters", f"expected at most {MAX_ID_CHARACTERS}")
    _check_text(what, "id", value)


def _check_text(where: str, name: str, value: str) -> None:
    if not isinstance(value, str):
        raise InputError(f"{where}: {name} is {type(value).__name__}", "expected a text")
    if len(value) > MAX_TEXT_CHARACTERS:
        raise InputError(
            f"{where}: {name} has {len(value):,} characters", f"expected at most {MAX_TEXT_CHARACTERS:,}; shorten it"
        )
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{where}: {name} has a lone surrogate at character {error.start}", "decode the text as UTF-8 first"
            ) from error


def _moment_value(where: str, name: str, moment: datetime | None) -> int | None:
    """Return a moment as it is stored.

    Raises:
        InputError: in UTC it lies outside the years 1 to 9999, so that it could not be read back.
    """
    if moment is None:
        return None
    if not isinstance(moment, datetime):
        raise InputError(f"{where}: {name} is {type(moment).__name__}", "expected a datetime")
    hint = "expected a moment that in UTC lies in the years 1 to 9999"
    try:
        value = to_microseconds(moment)
    except (OverflowError, ValueError) as error:  # a time zone has no answer for this moment, or it is pandas' NaT
        raise InputError(f"{where}: {name} is {moment!r}", hint) from error
    if value is not None and not _FIRST_US <= value <= LAST_US:
        raise InputError(f"{where}: {name} is {moment}", hint)
    return value


def _language_value(where: str, language: str) -> str:
    """Return a language's code as it is stored, or raise InputError."""
    try:
        return language_code(language) if language is not None else ""
    except (SettingError, AttributeError, TypeError) as error:
        raise InputError(
            f"{where}: the language is {str(language)[:80]!r}", "expected a code such as de or pt-BR"
        ) from error


def _check_post(where: str, post: Question | Answer) -> None:
    if not isinstance(post.markup, str) or post.markup not in _MARKUPS:
        raise InputError(f"{where}: markup is {post.markup!r}", f"expected one of {sorted(_MARKUPS)}")
    score = post.score
    if score is not None and not (isinstance(score, int) and -INTEGER_LIMIT <= score < INTEGER_LIMIT):
        raise InputError(f"{where}: score is {score!r}", "expected a whole number of at most 64 bits")


def unknown_id(kind: str, identifier: str) -> UnknownIdError:
    """Return the error for an id that is not there."""
    hint = '"askalike info" lists them' if kind == "source" else "look it up with a search, or add it first"
    return UnknownIdError(f"the forum holds no {kind} with the id {identifier!r:.600}", hint)
