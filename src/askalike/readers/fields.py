"""The names under which exports of forums hold the fields of a question or an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

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
