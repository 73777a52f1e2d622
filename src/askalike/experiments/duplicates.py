"""A forum's own duplicate marks as a test collection.

Enters: an open forum. Leaves: ``DuplicateTask``. May import: forum, types, errors, its own folder.

Policy, in this one place:

- A *query* is a question that is marked a duplicate of another one that the forum holds, or was judged to be one by
  a person; people's verdicts count above marks.
- *Relevant* to it is every question that it is marked with, in either direction, and every other question that is
  marked a duplicate of the same original. Marks are not followed further: chains of them join questions that ask
  different things (one component of the travel forum has 206 questions).
- The *collection* is every question of the forum but the query itself.
- A *split* keeps whole components together, so that nothing learned on one part was seen in another; see
  ``forum_parts`` for what a training keeps of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from askalike.errors import EvaluationError
from askalike.experiments.forum_parts import SPLIT_SEED, SPLITS, split_marks
from askalike.forum import Forum
from askalike.types import Qrels, Question, Run

__all__ = ["SPLITS", "SPLIT_SEED", "DuplicateTask", "Marks", "duplicate_task", "judge_candidates", "read_marks"]


@dataclass(frozen=True, slots=True)
class DuplicateTask:
    """Queries and what is relevant to them.

    Args:
        part: "train", "dev", "test" or "all".
        queries: id → question, ordered by id.
        qrels: query id → {relevant id: 1}.
        collection: id → question, in the order of their coming. What came to the forum later is no part of the task.
    """

    part: str
    queries: Mapping[str, Question]
    qrels: Qrels
    collection: Mapping[str, Question]


@dataclass(frozen=True, slots=True)
class Marks:
    """A forum's questions and the duplicate marks between them, read once: others may write to the forum meanwhile.

    Args:
        questions: id → question, in the order of their coming.
        pairs: (duplicate, original), ordered.
    """

    questions: Mapping[str, Question]
    pairs: Sequence[tuple[str, str]]


def read_marks(forum: Forum) -> Marks:
    """Return the forum's questions, and its duplicate marks between these.

    A pair that a person judged a duplicate is a mark too, and one that was judged different is none.
    """
    questions = {question.id: question for question in forum.questions()}
    verdicts = forum.verdicts()
    different = {frozenset((one.question_id, one.candidate_id)) for one in verdicts if one.verdict == "different"}
    marked = {(link.source_id, link.target_id) for link in forum.links() if link.kind == "duplicate"}
    judged = {(one.question_id, one.candidate_id) for one in verdicts if one.verdict == "duplicate"}
    judged -= {(target, source) for source, target in marked}  # judged the other way round: one mark, not two
    pairs = sorted(pair for pair in marked | judged if frozenset(pair) not in different)
    return Marks(questions, [pair for pair in pairs if questions.keys() >= {*pair}])


def duplicate_task(
    forum: Forum, part: str = "all", seed: int = SPLIT_SEED, marks: Marks | None = None
) -> DuplicateTask:
    """Return the forum's duplicate marks as a task.

    Args:
        marks: as they were read, or None to read them.

    Raises:
        EvaluationError: the forum has no duplicate marks, or none in this part.
    """
    marks = marks or read_marks(forum)
    pairs = marks.pairs
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
        queries={query: marks.questions[query] for query in queries},
        qrels={query: dict.fromkeys(sorted(relevant[query]), 1) for query in queries},
        collection=marks.questions,
    )


def judge_candidates(task: DuplicateTask, candidates: Run) -> Qrels:
    """Return a judgement, 1 or 0, for every candidate of every query that has candidates."""
    return {
        query: {document: task.qrels[query].get(document, 0) for document, _ in found}
        for query, found in candidates.items()
        if found
    }


def _relevant(pairs: Sequence[tuple[str, str]]) -> dict[str, set[str]]:
    copies: dict[str, set[str]] = {}
    for source, target in pairs:
        copies.setdefault(target, set()).add(source)
    relevant: dict[str, set[str]] = {}
    for source, target in pairs:
        relevant.setdefault(source, set()).update({target, *copies[target]} - {source})
        relevant.setdefault(target, set()).add(source)
    return relevant


def _members(forum: Forum, pairs: Sequence[tuple[str, str]], part: str, seed: int) -> set[str]:
    if part == "all":
        return {member for pair in pairs for member in pair}
    if part not in SPLITS:
        raise EvaluationError(f"there is no split {part!r}", f"expected all or one of {', '.join(SPLITS)}")
    return set(split_marks(forum.path, pairs, seed)[part])
