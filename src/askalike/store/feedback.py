"""People's verdicts on pairs of questions: stored one by one, the newest of a pair counts."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator

from msgspec import structs

from askalike.store import rows
from askalike.store.archive import Archive
from askalike.store.writes import log_change, require_question
from askalike.types import Feedback, Verdict

_COLUMNS = "num, question_id, candidate_id, verdict, judge, at_us"
_BATCH = 500
_BOTH_HERE = (
    "EXISTS (SELECT 1 FROM questions WHERE id = question_id)"
    " AND EXISTS (SELECT 1 FROM questions WHERE id = candidate_id)"
)
"""A judgement on a question that has gone has no effect, and is kept: the next load may bring the question back."""


def add_feedback(archive: Archive, given: Feedback) -> Feedback:
    """Store a verdict, in one durable transaction; return it with its moment.

    Raises:
        UnknownIdError: one of the questions is not there; nothing is stored then.
        InputError: they are the same question, or a value cannot be stored.
    """
    rows.check_feedback(given)
    at_us = time.time_ns() // 1000
    with archive.write() as connection:
        for identifier in (given.question_id, given.candidate_id):
            require_question(connection, identifier)
        connection.execute(
            "INSERT INTO feedback (question_id, candidate_id, verdict, judge, at_us) VALUES (?, ?, ?, ?, ?)",
            (given.question_id, given.candidate_id, given.verdict, given.by, at_us),
        )
        for identifier in (given.question_id, given.candidate_id):
            log_change(connection, "feedback", "add", identifier, None)
    return structs.replace(given, at=rows.from_microseconds(at_us))


def all_feedback(archive: Archive) -> Iterator[Feedback]:
    """Yield every verdict on questions that are there, oldest first, without holding them all."""
    last = 0
    while found := archive.connection.execute(
        f"SELECT {_COLUMNS} FROM feedback WHERE num > ? AND {_BOTH_HERE} ORDER BY num LIMIT ?", (last, _BATCH)
    ).fetchall():
        yield from map(_feedback_of, found)
        last = found[-1]["num"]


def feedback_version(archive: Archive) -> tuple[int, int]:
    """Return what changes when a verdict comes, or when its questions go or come back: the newest's number, a count."""
    found = archive.connection.execute(f"SELECT ifnull(max(num), 0), count(*) FROM feedback WHERE {_BOTH_HERE}")
    newest, count = found.fetchone()
    return newest, count


def verdicts_on(archive: Archive, identifier: str) -> dict[str, Verdict]:
    """Return each question that was judged beside this one, either way round, with the verdict that counts.

    A pair whose verdict was withdrawn is as one that was never judged.
    """
    if not rows.is_storable(identifier):
        return {}
    found = archive.connection.execute(
        f"SELECT {_COLUMNS} FROM feedback WHERE (question_id = ? OR candidate_id = ?) AND {_BOTH_HERE} ORDER BY num",
        (identifier, identifier),
    )
    newest = {
        (row["candidate_id"] if row["question_id"] == identifier else row["question_id"]): row["verdict"]
        for row in found
    }
    return {other: verdict for other, verdict in newest.items() if verdict != "withdrawn"}


def standing_verdicts(archive: Archive) -> list[Feedback]:
    """Return the newest verdict on each pair, whichever way round it was given, oldest first; none withdrawn."""
    newest: dict[frozenset[str], Feedback] = {}
    for one in all_feedback(archive):
        pair = frozenset((one.question_id, one.candidate_id))
        newest.pop(pair, None)  # so that the order is that of the newest
        newest[pair] = one
    return [one for one in newest.values() if one.verdict != "withdrawn"]


def _feedback_of(row: sqlite3.Row) -> Feedback:
    return Feedback(
        row["question_id"], row["candidate_id"], row["verdict"], row["judge"], rows.from_microseconds(row["at_us"])
    )
