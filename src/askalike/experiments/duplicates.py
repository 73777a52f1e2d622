"""A forum's own duplicate marks as a test collection.

Enters: an open forum. Leaves: ``DuplicateTask``. May import: forum, types, errors, its own folder.

Policy, in this one place:

- A *query* is a question that is marked a duplicate of another one that the forum holds.
- *Relevant* to it is every question that it is marked with, in either direction, and every other question that is
  marked a duplicate of the same original. Marks are not followed further: chains of them join questions that ask
  different things (one component of the travel forum has 206 questions).
- The *collection* is every question of the forum but the query itself.
- A *split* keeps whole components together, so that nothing learned on one part was seen in another; see
  ``forum_parts`` for what a training keeps of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from askalike.errors import EvaluationError
from askalike.experiments.forum_parts import SPLIT_SEED, SPLITS, split_marks
from askalike.forum import Forum
from askalike.types import Qrels, Question, Run

__all__ = ["SPLITS", "SPLIT_SEED", "DuplicateTask", "duplicate_task", "judge_candidates"]


@dataclass(frozen=True, slots=True)
class DuplicateTask:
    """Queries and what is relevant to them.

    Args:
        part: "train", "dev", "test" or "all".
        queries: id → question, ordered by id.
        qrels: query id → {relevant id: 1}.
    """

    part: str
    queries: Mapping[str, Question]
    qrels: Qrels


def duplicate_task(forum: Forum, part: str = "all", seed: int = SPLIT_SEED) -> DuplicateTask:
    """Return the forum's duplicate marks as a task.

    Raises:
        EvaluationError: the forum has no duplicate marks, or none in this part.
    """
    pairs = [(link.source_id, link.target_id) for link in forum.links() if link.kind == "duplicate"]
    if not pairs:
        raise EvaluationError(
            f"the forum at {forum.path} has no duplicate marks to evaluate on",
            "index an archive that has them, or score runs on judged data with askalike score",
        )
    wanted = _members(forum, pairs, part, seed)
    relevant = _relevant(pairs)
    queries = sorted({source for source, _ in pairs if source in wanted})
    if not queries:
        raise EvaluationError(f"no duplicate mark falls into the part {part!r}", "use --split all for a small forum")
    return DuplicateTask(
        part=part,
        queries={query: forum.question(query) for query in queries},
        qrels={query: dict.fromkeys(sorted(relevant[query]), 1) for query in queries},
    )


def judge_candidates(task: DuplicateTask, candidates: Run) -> Qrels:
    """Return a judgement, 1 or 0, for every candidate of every query that has candidates."""
    return {
        query: {document: task.qrels[query].get(document, 0) for document, _ in found}
        for query, found in candidates.items()
        if found
    }


def _relevant(pairs: list[tuple[str, str]]) -> dict[str, set[str]]:
    copies: dict[str, set[str]] = {}
    for source, target in pairs:
        copies.setdefault(target, set()).add(source)
    relevant: dict[str, set[str]] = {}
    for source, target in pairs:
        relevant.setdefault(source, set()).update({target, *copies[target]} - {source})
        relevant.setdefault(target, set()).add(source)
    return relevant


def _members(forum: Forum, pairs: list[tuple[str, str]], part: str, seed: int) -> set[str]:
    if part == "all":
        return {member for pair in pairs for member in pair}
    if part not in SPLITS:
        raise EvaluationError(f"there is no split {part!r}", f"expected all or one of {', '.join(SPLITS)}")
    return set(split_marks(forum.path, pairs, seed)[part])
