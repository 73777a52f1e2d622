"""Which column of a table holds what: as the user says, or guessed from the names of the columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from askalike.errors import FormatError, SettingError

FIELDS: dict[str, tuple[str, ...]] = {
    "id": ("id", "questionid", "postid", "topicid", "threadid", "qid", "docid", "uid"),
    "title": ("title", "subject", "questiontitle", "topictitle", "headline", "question"),
    "body": ("body", "text", "content", "description", "details", "selftext", "message", "questionbody", "bodyhtml"),
    "tags": ("tags", "tag", "labels", "tagnames", "category", "categories", "subreddit", "forum"),
    "created": ("created", "creationdate", "createdat", "createdutc", "date", "timestamp", "postedat", "datetime"),
    "closed": ("closed", "closeddate", "closedat"),
    "deleted": ("deleted", "deletiondate", "deletedat"),
    "score": ("score", "votes", "points", "likes", "likecount", "upvotes"),
    "url": ("url", "link", "permalink"),
    "author": ("author", "ownerdisplayname", "username", "user", "displayname"),
    "author_id": ("authorid", "owneruserid", "userid"),
    "type": ("posttypeid", "posttype", "type"),
    "parent_id": ("parentid", "parent", "inreplyto"),
    "accepted_answer_id": ("acceptedanswerid", "solutionid"),
    "answer": ("answer", "bestanswer", "acceptedanswer"),
    "duplicate_of": ("duplicateof", "originalid"),
}
"""Field → names of columns that are taken for it, the likeliest first; compared by lower case letters and digits."""

_REFERENCES = frozenset(["parent_id", "accepted_answer_id", "duplicate_of"])
_POSITION = re.compile(r"#([1-9][0-9]{0,8})")
_NOT_LETTER = re.compile(r"[^a-z0-9]")
_SHOWN = 12


def is_headerless(mapping: Mapping[str, str]) -> bool:
    """Say whether a mapping names columns by position (``#1`` is the first): then the first line is a record.

    >>> is_headerless({"id": "#1", "title": "#3"}), is_headerless({"id": "key"}), is_headerless({})
    (True, False, False)
    """
    return bool(mapping) and all(_POSITION.fullmatch(column) for column in mapping.values())


def is_question_table(header: Sequence[str]) -> bool:
    """Say whether the names of the columns alone tell where the title is, or the id and the body."""
    guessed = _guess(header)
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
        file: the table's name for messages.

    >>> choose_columns(["PostId", "Subject", "x"], {}, "posts.csv")
    {'id': 0, 'title': 1}
    >>> choose_columns(["PostId", "Subject", "x"], {"title": "", "body": "x"}, "posts.csv")
    {'id': 0, 'body': 2}

    Raises:
        SettingError: the mapping names a field that there is not, or a column that the table has not.
        FormatError: nothing is said or guessed for both title and body, or for an id that other columns refer to.
    """
    columns = _said(header, mapping, file)
    if not is_headerless(mapping):
        guessed = _guess(header)
        free = {name: at for name, at in guessed.items() if name not in mapping and at not in columns.values()}
        columns = {name: (columns | free)[name] for name in FIELDS if name in columns or name in free}
    if _lacks_id(columns) or not columns.keys() & {"title", "body"}:
        missing = f"an id, and {_refers(columns)} refers to it" if _lacks_id(columns) else "a title or a body"
        raise FormatError(
            f"{file}: no column is known to hold {missing}; the columns are {_listed(header)}",
            "say which is which, for example --column id=COLUMN --column title=COLUMN --column body=COLUMN",
        )
    return columns


def describe(header: Sequence[str], columns: Mapping[str, int]) -> str:
    """Return one line that says which column was taken for what, and which are left out."""
    taken = ", ".join(f"{name} = {header[position]}" for name, position in columns.items())
    rest = [name for position, name in enumerate(header) if position not in columns.values()]
    return f"{taken}; left out: {_listed(rest)}" if rest else taken


def _refers(columns: Mapping[str, int]) -> str:
    return next(name for name in columns if name in _REFERENCES)


def _said(header: Sequence[str], mapping: Mapping[str, str], file: str) -> dict[str, int]:
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
            raise SettingError(f"{file} has no column {column!r}", f"its columns are {_listed(header)}")
        columns[name] = at
    return columns


def _guess(header: Sequence[str]) -> dict[str, int]:
    names = [_NOT_LETTER.sub("", name.lower()) for name in header]
    columns: dict[str, int] = {}
    for field, synonyms in FIELDS.items():
        position = next((names.index(name) for name in synonyms if name in names), None)
        if position is not None and position not in columns.values():
            columns[field] = position
    return columns


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown or "none"
