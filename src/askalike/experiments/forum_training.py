"""A forum as training data: what is learned from, what training stops by, what is left alone.

Enters: an open forum. Leaves: ``ForumTraining``; how good a model is on its dev part.
May import: forum, evaluate, encode, what of train needs no torch, types, errors, its own folder.

Policy, in this one place:

- Duplicate marks are split by connected component as ``askalike evaluate --split`` does; what was in a part stays
  in it, and what is learned from because there is no dev counts as train from then on.
- *dev* stops the training and decides whether the new model is better: the split's dev part, where the forum has at
  least ``LEAST_COMPONENTS`` components; otherwise there is none, and every mark is learned from.
- *test* is learned from too, unless it is to be held out for a measurement afterwards.
- Texts of all questions are learned from, those of dev and test too: a text says nothing of what it is marked with.
- *Hard negatives* of a question that is marked a duplicate are the best that the forum's words find for it and that
  are not in its component.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from askalike.errors import EvaluationError
from askalike.evaluation import Report, components
from askalike.experiments.duplicates import Marks, duplicate_task, read_marks
from askalike.experiments.forum_parts import kept_parts, split_marks
from askalike.experiments.forum_tasks import forum_rerank_task
from askalike.experiments.systems import Vectors, hybrid_run
from askalike.experiments.tasks import RerankTask, candidate_task, judge
from askalike.experiments.vector_scorer import Encoder, VectorScorer
from askalike.forum import Forum
from askalike.models.encoders.model import Model
from askalike.training.corpus import TrainingData
from askalike.training.recipe import Recipe
from askalike.types import Answer, Filters, Question

__all__ = ["LEAST_COMPONENTS", "DevScore", "ForumTraining", "dev_score", "forum_training", "going_on"]

LEAST_COMPONENTS: Final = 10
"""Duplicate components from which on a fifth of them is kept as dev."""

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ForumTraining:
    """What is learned from a forum.

    Args:
        data: for ``train.fit``.
        dev: dev queries with the twenty best of the search by words, or None.
        marks: duplicate marks in all, those of dev and test too.
        components: groups of questions that they join.
        held_out: marks of the test part, where it is held out.
        why_no_dev: the reason where there is no dev, else "".
        parts: question → part, to be kept with the forum.
    """

    data: TrainingData
    dev: RerankTask | None
    marks: int
    components: int
    held_out: int
    why_no_dev: str
    parts: Mapping[str, str]

    @property
    def dev_queries_that_count(self) -> int:
        """Return how many dev queries have a relevant candidate: the others are in no mean."""
        return sum(any(grades.values()) for grades in self.dev.qrels.values()) if self.dev else 0


@dataclass(frozen=True, slots=True, order=True)
class DevScore:
    """How well the dev queries' candidates are ordered; the search decides, then the cosine.

    Args:
        search: MRR by words and vectors together, as the forum searches; by words alone where there is no model.
        cosine: MRR by vectors alone; 0 where there is no model.
        report: the search query by query, to be compared with another's; None where nothing is to be.
    """

    search: float
    cosine: float
    report: Report | None = field(default=None, compare=False, repr=False)


def forum_training(
    forum: Forum, *, is_test_held_out: bool = False, answers: int = 1, hard_negatives: int = 0
) -> ForumTraining:
    """Return what can be learned from a forum.

    Args:
        is_test_held_out: leave out the marks of the part that ``askalike evaluate --split test`` scores.
        answers: of each question at most so many, the best: accepted, then most voted.
        hard_negatives: of each question that is marked a duplicate and learned from, at most so many; a search each.
    """
    marks = read_marks(forum)
    questions, pairs = list(marks.questions.values()), sorted(set(marks.pairs))
    groups = components(pairs)
    dev, why_no_dev = _dev(forum, marks, len(groups))
    parts = split_marks(forum.path, pairs)
    left = {"dev"} if dev else set()
    left |= {"test"} if is_test_held_out else set()
    learned = {identifier for part, members in parts.items() if part not in left for identifier in members}
    kept = [pair for pair in pairs if pair[0] in learned]
    data = TrainingData(
        questions,
        kept,
        _answers(forum, questions, answers),
        _hard_negatives(forum, marks, kept, hard_negatives),
        {"dev": candidate_task(dev)} if dev else {},
    )
    test = set(parts["test"]) if is_test_held_out else set()
    held_out = sum(pair[0] in test for pair in pairs)
    return ForumTraining(data, dev, len(pairs), len(groups), held_out, why_no_dev, _kept(forum, parts, dev))


def dev_score(dev: RerankTask, model: Encoder | None, weight: float) -> DevScore:
    """Return how well a model orders the dev candidates.

    Args:
        model: None for the search by words alone.
        weight: of the cosine in the search's weighted sum, in [0, 1].
    """
    if model is None:
        words = judge(dev, dev.lexical)
        return DevScore(words.means["mrr"], 0.0, words)
    cosines = Vectors(VectorScorer(model)).rerank(dev)
    search = judge(dev, hybrid_run(dev, cosines, weight))
    return DevScore(search.means["mrr"], judge(dev, cosines).means["mrr"], search)


def _dev(forum: Forum, marks: Marks, found: int) -> tuple[RerankTask | None, str]:
    if found < LEAST_COMPONENTS:
        return None, f"{found} groups of duplicates, and a part is kept as dev from {LEAST_COMPONENTS} on"
    try:
        dev = forum_rerank_task("dev", forum, duplicate_task(forum, "dev", marks=marks))
    except EvaluationError as error:
        return None, error.message
    if not any(any(grades.values()) for grades in dev.qrels.values()):
        return None, "the search by words finds no marked question of the dev part among its twenty best"
    return dev, ""


def _kept(forum: Forum, parts: Mapping[str, Collection[str]], dev: RerankTask | None) -> dict[str, str]:
    found = {**kept_parts(forum.path), **{one: part for part, members in parts.items() for one in members}}
    return found if dev else {one: "train" if part == "dev" else part for one, part in found.items()}


def _answers(forum: Forum, questions: Sequence[Question], most: int) -> list[Answer]:
    return [answer for question in questions for answer in forum.answers(question.id)[:most]] if most else []


def _hard_negatives(forum: Forum, marks: Marks, pairs: Pairs, most: int) -> dict[str, list[str]]:
    if not most:
        return {}
    group = {identifier: frozenset(members) for members in components(marks.pairs) for identifier in members}
    found: dict[str, list[str]] = {}
    for identifier in sorted({source for source, _ in pairs}):
        question = marks.questions[identifier]
        ranked = forum.ranking(
            question.title,
            question.body,
            most,
            markup=question.markup,
            filters=Filters(exclude_ids=group[identifier]),
            ranker="lexical",
        )
        found[identifier] = [other for other, _ in ranked if other in marks.questions]
    return found


def going_on(recipe: Recipe, start: Model) -> Recipe:
    """Return the recipe with everything that the model to go on from has settled: encoder, reading, precisions."""
    settings = start.settings
    return replace(
        recipe,
        encoder=settings.encoder,
        words=replace(recipe.words, size=settings.encoder.input_size, unknown=settings.unknown),
        reads=settings.reads,
        word_limit=settings.word_limit,
        embedding_precision=settings.embedding_precision,
        encoder_precision=settings.encoder_precision,
        stems=settings.stems,
    )
