"""Between the values of ``askalike.types`` and the rows of a store: what can be stored, conversion, digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
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
COMPARED_COLUMNS = ("title", "body", "markup", "created_us", "author", "language")
"""What vectors and pairs are made of; an edit of other columns leaves them."""
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


def values_of(post: Question | Answer) -> tuple[Value, ...]:
    """Return the row of a question or an answer in the order of its table's columns.

    Raises:
        InputError: a value cannot be stored; the message names the post and the value.
    """
    kind = "question" if isinstance(post, Question) else "answer"
    where = f"{kind} {post.id!r:.600}"
    values = [stored(where, name, getattr(post, name)) for name, stored in _STORED[kind]]
    if kind == "question" and not values[-2]:  # no language is none that was detected
        values[-1] = 0
    return tuple(values)


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
    _text_value("a judgement", "the judge's name", judgement.by)
    _moment_value("a judgement", "its moment", judgement.at)
    if not isinstance(draw, Draw):
        raise InputError(f"the pair was drawn by {draw!r:.80}", "expected a Draw")
    if not isinstance(draw.by, str) or draw.by not in _DRAWS:
        raise InputError(f"the pair was drawn by {judgement.draw.by!r}", f"expected one of {', '.join(_DRAWS)}")
    chance: Any = draw.probability
    if chance is not None and not (isinstance(chance, Real) and 0 <= float(chance) <= 1):
        raise InputError(f"the probability of the judged pair is {chance!r:.80}", "expected a number from 0 to 1")


def check_link(link: Link) -> None:
    """Raise InputError unless the link can be stored."""
    for name in ("source_id", "target_id"):
        _id_value("a link", name, getattr(link, name))
    if not isinstance(link.kind, str) or link.kind not in _LINK_KINDS:
        raise InputError(f"link kind is {link.kind!r}", f"expected one of {sorted(_LINK_KINDS)}")
    if link.source_id == link.target_id:
        raise InputError(f"question {link.source_id!r} is linked to itself", "leave the link out")


def check_source(source: Source) -> None:
    """Raise InputError unless an archive, or a site that is followed, can be known by this name."""
    if not (is_storable(source.name) and is_storable(source.format)):
        raise InputError(f"the source's name {source.name!r:.80} cannot be stored", "expected UTF-8 without NUL")
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
    """Return whether a text can be stored: UTF-8 without NUL, which PostgreSQL does not take."""
    try:
        text.encode()
    except (UnicodeEncodeError, AttributeError):
        return False
    return "\x00" not in text


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


def _id_value(where: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or not value or value != value.strip():
        raise InputError(f"{where}: {name} is {value!r}", "expected a text that is not empty, without spaces around it")
    if len(value) > MAX_ID_CHARACTERS:
        raise InputError(f"{where}: {name} has {len(value)} characters", f"expected at most {MAX_ID_CHARACTERS}")
    return _text_value(where, name, value)


def _text_value(where: str, name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{where}: {name} is {type(value).__name__}", "expected a text")
    if len(value) > MAX_TEXT_CHARACTERS:
        raise InputError(
            f"{where}: {name} has {len(value):,} characters", f"expected at most {MAX_TEXT_CHARACTERS:,}; shorten it"
        )
    if "\x00" in value:
        raise InputError(f"{where}: {name} has a NUL character", "leave it out")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{where}: {name} has a lone surrogate at character {error.start}", "decode the text as UTF-8 first"
            ) from error
    return value


def _tags_value(where: str, name: str, value: Any) -> str:
    if not isinstance(value, tuple | list):
        raise InputError(f"{where}: {name} is {type(value).__name__}", "expected several texts, such as a tuple")
    for tag in value:
        _text_value(where, "tag", tag)
    return _text_value(where, "all tags", _json(value))


def _moment_value(where: str, name: str, value: Any) -> int | None:
    """Return a moment as it is stored: one that in UTC lies outside the years 1 to 9999 could not be read back."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise InputError(f"{where}: {name} is {type(value).__name__}", "expected a datetime")
    hint = "expected a moment that in UTC lies in the years 1 to 9999"
    try:
        moment = to_microseconds(value)
    except (OverflowError, ValueError) as error:  # a time zone has no answer for this moment, or it is pandas' NaT
        raise InputError(f"{where}: {name} is {value!r}", hint) from error
    if moment is not None and not _FIRST_US <= moment <= LAST_US:
        raise InputError(f"{where}: {name} is {value}", hint)
    return moment


def _language_value(where: str, name: str, value: Any) -> str:
    try:
        return language_code(value) if value is not None else ""
    except (SettingError, AttributeError, TypeError) as error:
        hint = "expected a code such as de or pt-BR"
        raise InputError(f"{where}: the {name} is {str(value)[:80]!r}", hint) from error


def _markup_value(where: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or value not in _MARKUPS:
        raise InputError(f"{where}: {name} is {value!r}", f"expected one of {sorted(_MARKUPS)}")
    return value


def _score_value(where: str, name: str, value: Any) -> int | None:
    if value is not None and not (isinstance(value, int) and -INTEGER_LIMIT <= value < INTEGER_LIMIT):
        raise InputError(f"{where}: {name} is {value!r}", "expected a whole number of at most 64 bits")
    return value


def _flag_value(where: str, name: str, value: Any) -> int:
    if not isinstance(value, bool):
        raise InputError(f"{where}: {name} is {value!r}", "expected True or False")
    return int(value)


_STORED_AS: Mapping[str, Callable[[str, str, Any], Value]] = {
    **dict.fromkeys(("id", "question_id"), _id_value),
    **dict.fromkeys(("created", "closed"), _moment_value),
    **dict.fromkeys(("is_accepted", "is_language_detected"), _flag_value),
    **{"tags": _tags_value, "markup": _markup_value, "score": _score_value, "language": _language_value},
}
"""Fields of posts that are not stored as texts."""
_STORED = {
    table.removesuffix("s"): [
        (name, _STORED_AS.get(name, _text_value)) for name in (column.removesuffix("_us") for column in columns)
    ]
    for table, columns in POSTS.items()
}


def unknown_id(kind: str, identifier: str) -> UnknownIdError:
    """Return the error for an id that is not there."""
    hint = '"askalike info" lists them' if kind == "source" else "look it up with a search, or add it first"
    return UnknownIdError(f"the forum holds no {kind} with the id {identifier!r:.600}", hint)
