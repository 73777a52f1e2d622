"""Lists: a question's links, how many answers questions have, the questions that came last or that changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from askalike.archive import rows
from askalike.archive.archive import Archive
from askalike.types import Link, Question

_BATCH = 500
LAST = 2**63 - 1

Place = tuple[int | None, int]
"""Where a question is in the order of dates: its moment in microseconds, None without a date, and its number."""


@dataclass(frozen=True, slots=True)
class ChangedQuestion:
    """A question that changed, or whose links or verdicts did.

    Args:
        is_text: the question itself.
    """

    seq: int
    num: int
    is_text: bool


def changed_questions(archive: Archive, after: int, limit: int) -> list[ChangedQuestion]:
    """Return what happened to questions with seq > ``after``, oldest first."""
    found = archive.connection.execute(
        "SELECT seq, coalesce(changes.num, questions.num) AS num, kind FROM changes"
        " LEFT JOIN questions ON kind <> 'question' AND questions.id = changes.id"
        " WHERE seq > ? AND kind IN ('question', 'link', 'feedback')"
        " AND coalesce(changes.num, questions.num) IS NOT NULL ORDER BY seq LIMIT ?",
        (after, limit),
    )
    return [ChangedQuestion(row["seq"], row["num"], row["kind"] == "question") for row in found]


def links_of(archive: Archive, identifier: str) -> list[Link]:
    """Return the links from or to a question whose two ends are in the archive, ordered by source, target, kind."""
    if not rows.is_storable(identifier):
        return []
    found = archive.connection.execute(
        "SELECT source_id, target_id, kind FROM links"
        " JOIN questions AS one ON one.id = source_id JOIN questions AS other ON other.id = target_id"
        " WHERE source_id = ? OR target_id = ? ORDER BY source_id, target_id, kind",
        (identifier, identifier),
    )
    return [Link(row["source_id"], row["target_id"], row["kind"]) for row in found]


def answer_counts(archive: Archive, ids: Sequence[str]) -> dict[str, int]:
    """Return how many answers each of these questions has; those without one are left out."""
    found: dict[str, int] = {}
    storable = [one for one in ids if rows.is_storable(one)]
    for start in range(0, len(storable), _BATCH):
        batch = storable[start : start + _BATCH]
        marks = ", ".join("?" * len(batch))
        found.update(
            archive.connection.execute(
                f"SELECT question_id, count(*) FROM answers WHERE question_id IN ({marks})"
                " AND EXISTS (SELECT 1 FROM questions WHERE questions.id = question_id) GROUP BY question_id",
                batch,
            ).fetchall()
        )
    return found


def newest(archive: Archive, limit: int, after: Place | None = None) -> list[tuple[Place, Question]]:
    """Return questions with their places, newest first by date; those without a date are last, the last stored first.

    Args:
        after: only those behind this place, whether or not its question is still there.
    """
    names = ", ".join(rows.QUESTION_COLUMNS)
    moment, num = after or (LAST, LAST)
    found: list[sqlite3.Row] = []
    if moment is not None:
        found += archive.connection.execute(
            f"SELECT num, {names} FROM questions WHERE created_us IS NOT NULL AND (created_us, num) < (?, ?)"
            " ORDER BY created_us DESC, num DESC LIMIT ?",
            (moment, num, limit),
        )
        num = LAST
    if len(found) < limit:
        found += archive.connection.execute(
            f"SELECT num, {names} FROM questions WHERE created_us IS NULL AND num < ? ORDER BY num DESC LIMIT ?",
            (num, limit - len(found)),
        )
    return [((row["created_us"], row["num"]), rows.question_of(row)) for row in found]


def numbers(archive: Archive) -> list[int]:
    """Return the internal numbers of all questions, ascending."""
    return [row["num"] for row in archive.connection.execute("SELECT num FROM questions ORDER BY num")]
