"""What an archive holds in numbers, and whether its file is sound.

Enters: an open ``Archive``. Leaves: ``Counts``. May import: errors, the archive.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from askalike.archive.archive import Archive
from askalike.errors import DamagedForumError

__all__ = ["Counts", "check", "count"]


@dataclass(frozen=True, slots=True)
class Counts:
    """How much an archive holds."""

    questions: int
    answers: int
    duplicates: int
    related: int
    questions_with_answer: int
    first_us: int | None
    last_us: int | None


def count(archive: Archive) -> Counts:
    """Return how much the archive holds."""
    connection = archive.connection
    one = connection.execute(
        "SELECT count(*) AS questions, min(created_us) AS first, max(created_us) AS last FROM questions"
    ).fetchone()
    kinds = dict(connection.execute("SELECT kind, count(*) FROM links GROUP BY kind").fetchall())
    answered = connection.execute("SELECT count(DISTINCT question_id), count(*) FROM answers").fetchone()
    return Counts(
        questions=one["questions"],
        answers=answered[1],
        duplicates=kinds.get("duplicate", 0),
        related=kinds.get("related", 0),
        questions_with_answer=answered[0],
        first_us=one["first"],
        last_us=one["last"],
    )


def check(archive: Archive) -> None:
    """Read the whole file and check its structure.

    Raises:
        DamagedForumError: SQLite found damage; the message holds its first words.
    """
    try:
        found = archive.connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        found = str(error)
    if found != "ok":
        raise DamagedForumError(f"{archive.path} is damaged: {found}", "restore it from a backup")
