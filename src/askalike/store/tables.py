"""The tables of a store, once for SQLite and PostgreSQL; what differs between them is filled in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_TABLES: Final = """
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE sources (num {number}, name TEXT NOT NULL UNIQUE, format TEXT NOT NULL);
CREATE TABLE questions (
    num {number},
    id TEXT NOT NULL UNIQUE,
    source BIGINT NOT NULL REFERENCES sources (num),
    digest {bytes} NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    markup TEXT NOT NULL,
    tags TEXT NOT NULL,
    created_us BIGINT,
    closed_us BIGINT,
    score BIGINT,
    url TEXT NOT NULL,
    author TEXT NOT NULL,
    language TEXT NOT NULL,
    is_language_detected INTEGER NOT NULL
);
CREATE INDEX questions_by_source ON questions (source);
CREATE INDEX questions_by_created ON questions (created_us, num);
CREATE INDEX questions_by_language ON questions (language) WHERE language <> '';
CREATE TABLE answers (
    num {number},
    id TEXT NOT NULL UNIQUE,
    source BIGINT NOT NULL REFERENCES sources (num),
    digest {bytes} NOT NULL,
    question_id TEXT NOT NULL,
    body TEXT NOT NULL,
    markup TEXT NOT NULL,
    created_us BIGINT,
    score BIGINT,
    author TEXT NOT NULL,
    is_accepted INTEGER NOT NULL
);
CREATE INDEX answers_by_question ON answers (question_id);
CREATE TABLE links (
    source_id TEXT NOT NULL,
    target_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    source BIGINT NOT NULL REFERENCES sources (num),
    PRIMARY KEY (source_id, target_id, kind)
){clustered};
CREATE INDEX links_by_target ON links (target_id);
CREATE TABLE changes (
    seq {number},
    at_us BIGINT NOT NULL,
    kind TEXT NOT NULL,
    operation TEXT NOT NULL,
    id TEXT NOT NULL,
    num BIGINT
);
CREATE TABLE feedback (
    num {number},
    question_id TEXT NOT NULL,
    candidate_id TEXT NOT NULL,
    verdict TEXT NOT NULL,
    judge TEXT NOT NULL,
    at_us BIGINT NOT NULL,
    draw TEXT NOT NULL,
    probability DOUBLE PRECISION
);
CREATE INDEX feedback_by_question ON feedback (question_id);
CREATE INDEX feedback_by_candidate ON feedback (candidate_id);
CREATE TABLE helped (question_id TEXT PRIMARY KEY, times BIGINT NOT NULL);
CREATE TABLE moderation (
    num {number},
    at_us BIGINT NOT NULL,
    kind TEXT NOT NULL,
    question_id TEXT NOT NULL,
    candidate_id TEXT NOT NULL,
    judge TEXT NOT NULL,
    undoes BIGINT NOT NULL,
    made_link INTEGER NOT NULL
);
CREATE INDEX moderation_by_question ON moderation (question_id);
CREATE INDEX moderation_by_candidate ON moderation (candidate_id);
CREATE INDEX moderation_by_undoes ON moderation (undoes) WHERE undoes > 0;
CREATE TABLE outbox (
    num {number},
    target TEXT NOT NULL,
    question_id TEXT NOT NULL,
    candidate_id TEXT NOT NULL,
    action TEXT NOT NULL,
    state TEXT NOT NULL,
    tries BIGINT NOT NULL,
    why TEXT NOT NULL,
    at_us BIGINT NOT NULL,
    UNIQUE (target, question_id, candidate_id, action)
);
CREATE INDEX outbox_by_question ON outbox (question_id);
"""


def statements(*, number: str, data: str, clustered: str = "", text: str = "TEXT") -> Iterator[str]:
    """Yield what makes the tables.

    Args:
        number: the type of a column that numbers rows, never the same twice.
        data: the type of bytes.
        clustered: what lets a table be stored by its key.
        text: the type of texts that are compared by code points.
    """
    filled = _TABLES.format(number=number, bytes=data, clustered=clustered).replace(" TEXT", f" {text}")
    yield from filter(str.strip, filled.split(";"))
