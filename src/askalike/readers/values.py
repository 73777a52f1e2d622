"""The fields of records: their names in exports, and what stands in them, fit to be stored.

One value at a time is read: text, identifier, number, moment, tags; ids where there are none.

A value that makes the whole record useless raises ``Unreadable``, and the reader rejects the record with that reason. A
value that can be missed (a date, a score) is left out and counted in ``ReadContext.repaired``.

Titles are plain text in every format that is read here, so a title that speaks of ``&gt;`` is left as it is. Only
tables and JSON Lines can come from an interface that escapes, and show it: where titles are escaped, none has a bare
``<``, ``>`` or ``&``.

An id is made of the question's address; where there is none, of its title (or of its body, if it has no title) and
its date. So an edited body or tag stays an edit of the same question, and an edited title is a new question that takes
the place of the old one. Row numbers would keep that one question and confuse all others behind a row that has gone.
Questions that are alike in all of this are numbered in their order.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any, Final, TypeVar

from askalike.errors import SettingError
from askalike.readers.frame import ReadContext
from askalike.text.characters import normalised
from askalike.text.markup import plain_text
from askalike.types import Answer, Markup, Question, language_code

FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "id": ("id", "questionid", "postid", "topicid", "threadid", "qid", "docid", "uid", "number"),
    "title": ("title", "subject", "questiontitle", "topictitle", "headline", "question"),
    "body": (
        "body",
        "text",
        "content",
        "description",
        "details",
        "selftext",
        "message",
        "questionbody",
        "bodyhtml",
        "bodymarkdown",
        "bodytext",
    ),
    "tags": ("tags", "tag", "labels", "tagnames", "labelnames", "category", "categories", "subreddit", "forum"),
    "created": ("created", "creationdate", "createdat", "createdutc", "date", "timestamp", "postedat", "datetime"),
    "closed": ("closed", "closeddate", "closedat"),
    "deleted": ("deleted", "deletiondate", "deletedat"),
    "score": ("score", "votes", "points", "likes", "likecount", "upvotes", "votesum"),
    "url": ("url", "htmlurl", "link", "permalink"),
    "author": ("author", "ownerdisplayname", "username", "user", "displayname"),
    "language": ("language", "lang", "locale"),
    "author_id": ("authorid", "owneruserid", "userid"),
    "type": ("posttypeid", "posttype", "type"),
    "parent_id": ("linkid", "parentid", "parent", "inreplyto"),
    "accepted_answer_id": ("acceptedanswerid", "solutionid"),
    "answer": ("answer", "bestanswer", "acceptedanswer"),
    "duplicate_of": ("duplicateof", "originalid"),
}
"""Field → names of columns that are taken for it, the likeliest first; compared by lower case letters and digits."""

MARKDOWN_NAMES: Final = frozenset(["bodymarkdown", "selftext"])
"""Names of bodies that are Markdown wherever they occur."""

_NOT_LETTER = re.compile(r"[^a-z0-9]")


def plain_name(name: str) -> str:
    """Return a name as ``FIELDS`` has it.

    >>> plain_name("Created_At"), plain_name("createdAt")
    ('createdat', 'createdat')
    """
    return _NOT_LETTER.sub("", name.lower())


def fields_of(header: Sequence[str]) -> dict[str, int]:
    """Return field → position of the column that is taken for it, of those whose name is known.

    >>> fields_of(["Id", "Subject", "createdAt", "x"])
    {'id': 0, 'title': 1, 'created': 2}
    """
    names = [plain_name(name) for name in header]
    columns: dict[str, int] = {}
    for field, synonyms in FIELDS.items():
        position = next((names.index(name) for name in synonyms if name in names), None)
        if position is not None and position not in columns.values():
            columns[field] = position
    return columns


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ID_CHARS = 1_000
_REJECT_ID_CHARS = 100
_MILLISECONDS_FROM = 100_000_000_000  # as seconds this is the year 5138; such numbers count milliseconds
_DIGITS = re.compile(r"-?\d{9,}(\.\d+)?")
_ANGLED = re.compile(r"<([^<>]+)>")
_LARGEST = 2**63 - 1


class Unreadable(ValueError):
    """A record cannot be used; the message is the reason for its reject."""


def text(value: object, name: str, context: ReadContext) -> str:
    """Return a text; NUL and lone surrogates, which no database or page can hold, become U+FFFD and are counted.

    Args:
        value: a string, number, or UTF-8 bytes; None is "".
        name: the field, for the reason.

    Raises:
        Unreadable: a list or object, or longer than ``limits.field_chars``.
    """
    if not isinstance(value, str):
        value = _as_string(value, name)
    if len(value) > context.options.limits.field_chars:
        raise Unreadable(f"the {name} has {len(value):,} characters, at most {context.options.limits.field_chars:,}")
    if value.isascii():
        if "\x00" not in value:
            return value
    elif _UNSTORABLE.search(value) is None:
        return value
    context.repair("texts with NUL characters or half surrogate pairs, replaced by U+FFFD")
    return _UNSTORABLE.sub("\ufffd", value)


def check_has_text(title: str, body: str, markup: Markup) -> None:
    """Refuse a question in which nothing can be read: ``<p></p>`` without a title is as empty as no body.

    Raises:
        Unreadable: neither the title nor the body has text.
    """
    if title:
        return
    if not body.strip():
        raise Unreadable("title and body are empty")
    if not normalised(plain_text(body, markup)).strip():
        raise Unreadable(f"the title is empty, and the body is {markup} without text")


def one_line(value: object, name: str, context: ReadContext) -> str:
    """Return a text without line ends and without space around it, as titles and names are."""
    if not value:
        return "" if value is None else text(value, name, context)
    result = text(value, name, context).strip()
    return " ".join(result.split()) if "\n" in result or "\r" in result else result


def person(value: object, name: str, context: ReadContext) -> str:
    """Return somebody's name; of an object, as GitHub's exports have it, the first of login, username and name.

    >>> person({"id": 7, "login": "ada", "name": "Ada"}, "author", ReadContext())
    'ada'
    """
    if isinstance(value, dict):
        value = next((value[key] for key in ("login", "username", "name", "display_name") if value.get(key)), "")
    known = one_line(value, name, context)
    return "" if known == "[deleted]" else known  # as Reddit's exports have it


def language(value: object, name: str, context: ReadContext) -> str:
    """Return a language's code; one that is none is left out, and counted."""
    line = one_line(value, name, context)
    try:
        return language_code(line) if line else ""
    except SettingError:
        context.repair("languages that are no codes, left out")
        return ""


def read_question(
    question_id: str, fields: Mapping[str, object], markup: Markup, context: ReadContext, path: str = ""
) -> Question:
    """Return a question whose values stand under our names.

    Args:
        path: where sites of the format have it, as ``ReadContext.address`` takes it.

    Raises:
        Unreadable: it has no text, or a value that is no text where one is expected.
    """
    title = one_line(fields.get("title"), "title", context)
    body = text(fields.get("body"), "body", context)
    check_has_text(title, body, markup)
    return Question(
        id=question_id,
        title=title,
        body=body,
        markup=markup,
        tags=tags(fields.get("tags"), context),
        created=moment(fields.get("created"), context),
        closed=moment(fields.get("closed"), context),
        score=whole_number(fields.get("score"), context),
        url=one_line(fields.get("url"), "url", context) or context.address(question_id, path),
        author=person(fields.get("author"), "author", context),
        language=language(fields.get("language"), "language", context),
        is_language_detected=fields.get("is_language_detected") is True,
    )


def read_answer(
    answer_id: str, question_id: str, fields: Mapping[str, object], markup: Markup, context: ReadContext
) -> Answer:
    """Return an answer whose values stand under our names.

    Raises:
        Unreadable: it is empty, or a value is no text where one is expected.
    """
    body = text(fields.get("body"), "answer", context)
    if not body.strip():
        raise Unreadable("the answer is empty")
    return Answer(
        id=answer_id,
        question_id=question_id,
        body=body,
        markup=markup,
        created=moment(fields.get("created"), context),
        score=whole_number(fields.get("score"), context),
        author=person(fields.get("author"), "author", context),
        is_accepted=fields.get("accepted") is True,
    )


def as_object(value: object) -> dict[str, Any]:
    """Return a JSON object, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_objects(value: object) -> list[dict[str, Any]]:
    """Return the objects of a JSON list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


Item = TypeVar("Item")
Value = TypeVar("Value")


def read_each(
    items: Iterable[tuple[int, Item]],
    read: Callable[[Item], Value],
    file: str,
    context: ReadContext,
    id_of: Callable[[Item], str] = lambda item: "",
) -> Iterator[Value]:
    """Yield what each item of a file is read as, and count it; what is ``Unreadable`` is rejected.

    Args:
        items: each with its line.
        file: what rejects call it.
        id_of: by which a reject names the item.
    """
    for line, item in items:
        try:
            value = read(item)
        except Unreadable as error:
            context.reject(file, line, id_of(item)[:_REJECT_ID_CHARS], str(error))
            continue
        context.records_in += 1
        yield value


def _as_string(value: object, name: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Unreadable(f"the {name} is not UTF-8") from error
    raise Unreadable(f"the {name} is a {type(value).__name__}, expected text")


def identifier(value: object, name: str = "id") -> str:
    """Return an identifier: a string without space around it, or a whole number written out.

    >>> identifier(17.0), identifier(" t-4 ")
    ('17', 't-4')

    Raises:
        Unreadable: missing, empty, too long, or with characters that cannot be stored.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a column of ids with gaps is often stored as floats
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Unreadable(f"no {name}" if value is None else f"the {name} is a {type(value).__name__}, expected text")
    result = str(value).strip()
    if not result:
        raise Unreadable(f"no {name}")
    if len(result) > _ID_CHARS:
        raise Unreadable(f"the {name} has {len(result):,} characters, at most {_ID_CHARS:,}")
    if _UNSTORABLE.search(result):
        raise Unreadable(f"the {name} holds NUL characters or half surrogate pairs")
    return result


def whole_number(value: object, context: ReadContext) -> int | None:
    """Return a count such as a score; None when missing, and counted as a repair when it is no number of 64 bits."""
    if isinstance(value, int) and not isinstance(value, bool):
        number: float = value
    elif value is None or value == "":
        return None
    else:
        try:
            number = float(str(value))
        except ValueError:
            number = math.nan
    if not -_LARGEST <= number <= _LARGEST:  # NaN fails too
        context.repair("scores that are no numbers, left out")
        return None
    return int(number)


def moment(value: object, context: ReadContext) -> datetime | None:
    """Return a moment in UTC; None when missing, and counted as a repair when it cannot be read.

    Args:
        value: ISO 8601 (without a zone it is UTC; a day alone is its midnight), seconds or milliseconds since 1970 as a
            number or in digits, or a ``datetime``.

    >>> moment("2020-01-01T02:00:00+01:00", ReadContext()), moment(0, ReadContext())
    (datetime.datetime(2020, 1, 1, 1, 0, tzinfo=datetime.timezone.utc), \
datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc))
    """
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str):
            value = value.strip()
            if not value:
                return None
            value = float(value) if _DIGITS.fullmatch(value) else datetime.fromisoformat(value.removesuffix(" UTC"))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if abs(value) >= _MILLISECONDS_FROM else value, UTC)
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        if isinstance(value, datetime):
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        pass  # falls through to the repair below
    context.repair("dates that cannot be read, left out")
    return None


def tags(value: object, context: ReadContext) -> tuple[str, ...]:
    """Return labels in their order, each once.

    Args:
        value: a list of strings or of ``{"name": ...}``, or one string: ``<a><b>``, ``|a|b|``, a JSON list, or a list
            with commas or semicolons.

    >>> tags("<a><b>", ReadContext()), tags("|a|b|", ReadContext()), tags("x, y", ReadContext())
    (('a', 'b'), ('a', 'b'), ('x', 'y'))
    """
    if not value:
        return ()
    if isinstance(value, str):
        items: list[object] = list(_split_tags(value))
    elif isinstance(value, list | tuple):
        items = list(value)
    else:
        raise Unreadable(f"the tags are a {type(value).__name__}, expected a list or text")
    if len(items) > context.options.limits.parts:
        raise Unreadable(f"{len(items):,} tags, at most {context.options.limits.parts:,} are read")
    names = (item.get("name") if isinstance(item, dict) else item for item in items)
    cleaned = (text(name, "tag", context).strip() for name in names)
    return tuple(dict.fromkeys(name for name in cleaned if name))


def _split_tags(value: str) -> list[str]:
    value = value.strip()
    if value.startswith("<") and value.endswith(">"):
        return _ANGLED.findall(value)
    if value.startswith("[") and value.endswith("]"):
        try:
            items = json.loads(value)
        except (ValueError, RecursionError):
            items = None
        if isinstance(items, list) and all(isinstance(item, str) for item in items):
            return items
    for separator in ("|", ",", ";"):
        if separator in value:
            return value.split(separator)
    return [value]


SAMPLED_TITLES: Final = 1_000
"""So many records at the beginning are looked at."""

ESCAPED_TITLES: Final = (
    "titles are escaped for HTML (&amp; for &); that is taken off; if they are not, say --no-html-escaped"
)
"""What the user should know about it."""

_LEAST: Final = 3
_REFERENCE = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
_BARE = re.compile("[<>&]")


def are_escaped(titles: Iterable[object], file: str, context: ReadContext) -> bool:
    """Say whether titles were escaped: several have a character reference, and none a sign that would be one.

    >>> are_escaped(["AT&amp;T", "a &lt; b", "Why &quot;x&quot;?", "How?"], "a.csv", ReadContext())
    True
    >>> are_escaped(["Does &gt; work?", "Tom & Jerry", "What is &amp;?", "And &lt;?"], "a.csv", ReadContext())
    False
    """
    matching = 0
    for title in titles:
        rest, count = _REFERENCE.subn("", title) if isinstance(title, str) else ("", 0)
        if _BARE.search(rest):
            return False
        matching += count > 0
    if matching >= _LEAST:
        context.notice(f"{file}: {ESCAPED_TITLES}")
    return matching >= _LEAST


IDS_NOTICE: Final = (
    "there are no ids; they are made of each question's address, or of its title and date: a question whose title is"
    " edited is a new one at the next reading"
)
"""What the user should know about it."""


class GeneratedIds:
    """Makes the ids of one reading; what is held for each is a number of 64 bits."""

    def __init__(self) -> None:
        self._times: Counter[int] = Counter()

    def named(self, question: Question) -> Question:
        """Return a question that has an id, its own or one that is made.

        >>> ids, question = GeneratedIds(), Question("", "How do I exit vim?")
        >>> ids.named(question).id, ids.named(question).id, ids.named(Question("7", "Why?")).id
        ('q-63be661d285ad823', 'q-63be661d285ad823-2', '7')
        """
        if question.id:
            return question
        created = question.created.isoformat() if question.created else ""
        own = f"{question.title or question.body}\0{created}"
        digest = _digest(question.url or own)
        if question.url and digest in self._times:  # an address that several share tells them not apart
            digest = _digest(f"{question.url}\0{own}")
        self._times[digest] += 1
        times = self._times[digest]
        return replace(question, id=f"q-{digest:016x}" if times == 1 else f"q-{digest:016x}-{times}")


def _digest(key: str) -> int:
    return int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:8])
