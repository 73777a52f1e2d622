"""RAMN over a re-ranking task: comparisons once, then a run for every variant of the score.

Enters: a model with the states of words, or what else gives them, tasks, settings. Leaves: runs. May import: encode,
forum, rank, types, its own folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from askalike.experiments.tasks import RerankTask, judge
from askalike.forum.states import ModelStates
from askalike.models.encoders.model import Model
from askalike.models.ramn.comparison import Comparison, Similarity, WordStates, compare
from askalike.models.ramn.score import RamnSettings, log_scores
from askalike.rank.query import Query
from askalike.rank.ramn import StateSource
from askalike.types import Question, Run

__all__ = ["ChangedStates", "Matcher", "all_alike", "ramn_score"]

Floats = NDArray[np.float32]


class ChangedStates:
    """A source of the same words with other states.

    Args:
        source: words, states and frequencies.
        change: states of one text (T, D) → its states instead (T, D').
    """

    def __init__(self, source: StateSource, change: Callable[[Floats], Floats]) -> None:
        self._source, self._change = source, change
        self.frequencies = source.frequencies

    def of_query(self, query: Query) -> WordStates:
        """Return the words of a query with their changed states."""
        return self._changed(self._source.of_query(query))

    def of_questions(self, questions: Sequence[tuple[int, Question]]) -> list[WordStates]:
        """Return the words of questions with their changed states."""
        return [self._changed(one) for one in self._source.of_questions(questions)]

    def _changed(self, found: WordStates) -> WordStates:
        return _Text(found.words, self._change(found.states))


@dataclass(frozen=True, slots=True)
class _Text:
    words: tuple[str, ...]
    states: Floats


def all_alike(states: Floats) -> Floats:
    """Return the state 1 for each word: every word is matched by every other as well as by itself.  # (T, 1)"""
    return np.ones((len(states), 1), dtype=np.float32)


@dataclass
class Matcher:
    """RAMN with one autoencoder; what does not depend on the settings is computed once for each task.

    Args:
        source: of states and frequencies.
    """

    source: StateSource
    _compared: dict[tuple[str, Similarity], Mapping[str, Comparison]] = field(default_factory=dict)

    def run(self, task: RerankTask, settings: RamnSettings) -> Run:
        """Return every query's candidates, in their given order, with log g(q, Q); theirs is the initial rank."""
        compared = self.comparisons(task, settings.similarity)
        run: Run = {}
        for query, found in task.given.items():
            scores = log_scores(compared[query], np.arange(1, len(found) + 1), settings).tolist()
            run[query] = [(document, score) for (document, _), score in zip(found, scores, strict=True)]
        return run

    def comparisons(self, task: RerankTask, similarity: Similarity) -> Mapping[str, Comparison]:
        """Return each query beside its candidates, in both directions."""
        key = (task.name, similarity)
        if key not in self._compared:
            self._compared[key] = self._compare(task, similarity)
        return self._compared[key]

    def _compare(self, task: RerankTask, similarity: Similarity) -> Mapping[str, Comparison]:
        source = self.source
        found: dict[str, Comparison] = {}
        for query, entries in task.given.items():
            asked = task.queries[query]
            candidates = [(-place, task.documents[document]) for place, (document, _) in enumerate(entries)]
            found[query] = compare(
                source.of_query(Query(asked.title, asked.body, asked.markup)),
                source.of_questions(candidates),
                source.frequencies,
                similarity,
                is_both_ways=True,
            )
        return found


def ramn_score(task: RerankTask, model: Model, settings: RamnSettings) -> float:
    """Return the MRR of a task's candidates in the order that RAMN gives them."""
    return judge(task, Matcher(ModelStates(model)).run(task, settings)).means["mrr"]
