"""Lists for showing: a question's links, how many answers questions have, the questions that came last.

Enters: an open ``Archive``. Leaves: values of ``askalike.types``. May import: types, the archive.
"""

from __future__ import annotations

from collections.abc import Sequence

from askalike.archive import rows
from askalike.archive.archive import Archive
from askalike.types import Link, Question

__all__ = ["answer_counts", "links_of", "newest"]

_BATCH = 500


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
                f"SELECT question_id, count(*) FROM answers WHERE question_id IN ({marks}) GROUP BY question_id", batch
            ).fetchall()
        )
    return found


def newest(archive: Archive, limit: int, before: int | None = None) -> list[tuple[int, Question]]:
    """Return (internal number, question), those that came last first.

    Args:
        before: only numbers below this one.
    """
    names = ", ".join(rows.QUESTION_COLUMNS)
    found = archive.connection.execute(
        f"SELECT num, {names} FROM questions WHERE num < ? ORDER BY num DESC LIMIT ?",
        (2**63 - 1 if before is None else before, limit),
    )
    return [(row["num"], rows.question_of(row)) for row in found]
