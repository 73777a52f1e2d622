"""A forum as training data: what is learned from, what training stops by, what is left alone.

Policy, in this one place:

- Duplicate links are split by connected component as ``askalike evaluate --split`` does; what was in a split stays
  in it, and what is learned from because there is no dev counts as train from then on.
- *dev* stops the training and decides whether the new model is better: the dev split, where the forum has at least
  ``LEAST_COMPONENTS`` components; otherwise there is none, and every link is learned from.
- *test* is learned from too, unless it is to be held out for a measurement afterwards.
- Texts of all questions are learned from, those of dev and test too: a text says nothing of what it is linked with.
- *Hard negatives* of a question that has a duplicate link are the best that the forum's words find for it and that
  are not in its component.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from askalike.errors import EvaluationError
from askalike.evaluation import components
from askalike.evaluation.forum.links import DuplicateLinks, duplicate_task, read_duplicate_links
from askalike.evaluation.forum.splits import kept_splits, split_links
from askalike.evaluation.forum.tasks import RerankTask, candidate_task, forum_rerank_task
from askalike.forum import Forum
from askalike.training.corpus import TrainingData
from askalike.types import Answer, Filters, Query, Question

LEAST_COMPONENTS: Final = 10
"""Duplicate components from which on a fifth of them is kept as dev."""

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ForumTraining:
    """What is learned from a forum.

    Args:
        data: for ``train_encoder``.
        dev: dev queries with the twenty best of the search by words, or None.
        links: duplicate links in all, those of dev and test too.
        components: groups of questions that they join.
        held_out: links of the test split, where it is held out.
        why_no_dev: the reason where there is no dev, else "".
        splits: question → split, to be kept with the forum.
    """

    data: TrainingData
    dev: RerankTask | None
    links: int
    components: int
    held_out: int
    why_no_dev: str
    splits: Mapping[str, str]

    @property
    def dev_queries_that_count(self) -> int:
        """Return how many dev queries have a relevant candidate: the others are in no mean."""
        return sum(any(grades.values()) for grades in self.dev.qrels.values()) if self.dev else 0


def forum_training(
    forum: Forum, *, is_test_held_out: bool = False, answers: int = 1, hard_negatives: int = 0
) -> ForumTraining:
    """Return what can be learned from a forum.

    Args:
        is_test_held_out: leave out the links of the split that ``askalike evaluate --split test`` scores.
        answers: of each question at most so many, the best: accepted, then most voted.
        hard_negatives: of each question that has a duplicate link and is learned from, at most so many; a search each.
    """
    links = read_duplicate_links(forum)
    questions, pairs = list(links.questions.values()), sorted(set(links.pairs))
    groups = components(pairs)
    dev, why_no_dev = _dev(forum, links, len(groups))
    splits = split_links(forum.path, pairs)
    left = {"dev"} if dev else set()
    left |= {"test"} if is_test_held_out else set()
    learned = {identifier for split, members in splits.items() if split not in left for identifier in members}
    kept = [pair for pair in pairs if pair[0] in learned]
    data = TrainingData(
        questions,
        kept,
        _answers(forum, questions, answers),
        _hard_negatives(forum, links, kept, hard_negatives),
        {"dev": candidate_task(dev)} if dev else {},
    )
    test = set(splits["test"]) if is_test_held_out else set()
    held_out = sum(pair[0] in test for pair in pairs)
    return ForumTraining(data, dev, len(pairs), len(groups), held_out, why_no_dev, _kept(forum, splits, dev))


def _dev(forum: Forum, links: DuplicateLinks, found: int) -> tuple[RerankTask | None, str]:
    if found < LEAST_COMPONENTS:
        return None, f"{found} groups of duplicates, and a dev split is kept from {LEAST_COMPONENTS} on"
    try:
        dev = forum_rerank_task("dev", forum, duplicate_task(forum, "dev", links=links))
    except EvaluationError as error:
        return None, error.message
    if not any(any(grades.values()) for grades in dev.qrels.values()):
        return None, "the search by words finds no linked question of the dev split among its twenty best"
    return dev, ""


def _kept(forum: Forum, splits: Mapping[str, Collection[str]], dev: RerankTask | None) -> dict[str, str]:
    found = {**kept_splits(forum.path), **{one: split for split, members in splits.items() for one in members}}
    return found if dev else {one: "train" if split == "dev" else split for one, split in found.items()}


def _answers(forum: Forum, questions: Sequence[Question], most: int) -> list[Answer]:
    return [answer for question in questions for answer in forum.answers(question.id)[:most]] if most else []


def _hard_negatives(forum: Forum, links: DuplicateLinks, pairs: Pairs, most: int) -> dict[str, list[str]]:
    if not most:
        return {}
    group = {identifier: frozenset(members) for members in components(links.pairs) for identifier in members}
    found: dict[str, list[str]] = {}
    for identifier in sorted({source for source, _ in pairs}):
        question = links.questions[identifier]
        others = Filters(exclude_ids=group[identifier])
        ranked = forum.ranking(Query(question.title, question.body, question.markup, most, others, "lexical"))
        found[identifier] = [other for other, _ in ranked if other in links.questions]
    return found
