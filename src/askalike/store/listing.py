"""Lists and counts: links, answers, the newest and changed questions, what the archive holds, whether it is sound."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from askalike.errors import DamagedForumError
from askalike.store import rows
from askalike.store.archive import Archive
from askalike.store.rows import unreadable_date
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


_HERE = "EXISTS (SELECT 1 FROM questions WHERE id = {})"


@dataclass(frozen=True, slots=True)
class Counts:
    """How much an archive holds.

    Args:
        answers: to questions that are in the archive.
        duplicates: links of this kind between questions that are in the archive; so ``related``.
        first_us: the oldest date of a question; ``last_us`` the newest.
        judgements: on pairs of questions that are in the archive, those that no longer count too.
        answers_without_question: to questions that are not there. They have no effect until the question comes (back).
        links_without_question: that lack one end or both, which is the same.
        judgements_without_question: on pairs of which a question is not there.
        unreadable_dates: how many dates lie outside the years 1 to 9999; they are read as unknown.
    """

    questions: int
    answers: int
    duplicates: int
    related: int
    questions_with_answer: int
    first_us: int | None
    last_us: int | None
    judgements: int = 0
    answers_without_question: int = 0
    links_without_question: int = 0
    judgements_without_question: int = 0
    unreadable_dates: int = 0


def count(archive: Archive) -> Counts:
    """Return how much the archive holds."""
    connection = archive.connection
    created, closed = unreadable_date("created_us"), unreadable_date("closed_us")
    one = connection.execute(
        "SELECT count(*) AS questions, min(created_us) FILTER (WHERE NOT odd) AS first,"
        " max(created_us) FILTER (WHERE NOT odd) AS last, coalesce(sum(coalesce(odd, 0) + odd_closed), 0) AS odd"
        f" FROM (SELECT created_us, {created} AS odd, coalesce({closed}, 0) AS odd_closed FROM questions)"
    ).fetchone()
    odd_answers = connection.execute(f"SELECT count(*) FROM answers WHERE {created}").fetchone()[0]
    links = dict.fromkeys(("duplicate", "related", None), 0) | dict(
        connection.execute(
            f"SELECT iif({_HERE.format('source_id')} AND {_HERE.format('target_id')}, kind, NULL) AS known, count(*)"
            " FROM links GROUP BY known"
        ).fetchall()
    )
    answered, answers, apart = connection.execute(
        "SELECT coalesce(sum(here), 0), coalesce(sum(iif(here, times, 0)), 0), coalesce(sum(iif(here, 0, times)), 0)"
        f" FROM (SELECT count(*) AS times, {_HERE.format('question_id')} AS here FROM answers GROUP BY question_id)"
    ).fetchone()
    judged, judged_apart = connection.execute(
        "SELECT coalesce(sum(here), 0), coalesce(sum(NOT here), 0) FROM"
        f" (SELECT {_HERE.format('question_id')} AND {_HERE.format('candidate_id')} AS here FROM feedback)"
    ).fetchone()
    return Counts(
        questions=one["questions"],
        answers=answers,
        duplicates=links["duplicate"],
        related=links["related"],
        questions_with_answer=answered,
        first_us=one["first"],
        last_us=one["last"],
        judgements=judged,
        answers_without_question=apart,
        links_without_question=links[None],
        judgements_without_question=judged_apart,
        unreadable_dates=one["odd"] + odd_answers,
    )


def unreadable_dates(archive: Archive) -> Iterator[str]:
    """Yield what has a date outside the years 1 to 9999, such as "question 'q7'"; an older version stored it.

    It is read as if its date were not known; putting it again, or loading it, heals it.
    """
    odd = unreadable_date("created_us")
    for kind, condition in (("question", f"{odd} OR {unreadable_date('closed_us')}"), ("answer", odd)):
        for row in archive.connection.execute(f"SELECT id FROM {kind}s WHERE {condition} ORDER BY num"):
            yield f"{kind} {row['id']!r}"


def check(archive: Archive) -> None:
    """Read the whole file and check its structure.

    Raises:
        DamagedForumError: SQLite found damage; the message holds its first words.
    """
    try:
        found = archive.connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except DamagedForumError as error:
        found = error.message
    if found != "ok":
        raise DamagedForumError(f"{archive.path} is damaged: {found}", "restore it from a backup")
