"""RAMN over a re-ranking task: comparisons once, then a run for every variant of the score.

Enters: a model with the states of words, or what else gives them, tasks, settings. Leaves: runs. May import: encode,
forum, rank, types, its own folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from askalike.encode.model import Model
from askalike.experiments.tasks import RerankTask, judge
from askalike.forum.states import ModelStates
from askalike.rank.query import Query
from askalike.rank.ramn import Comparison, RamnSettings, StateSource, compare, log_scores
from askalike.rank.word_states import Similarity, WordStates
from askalike.types import Question, Run

__all__ = ["Matcher", "WordsAlone", "ramn_score"]


class WordsAlone:
    """A source of states that are all the same: what RAMN is without its autoencoder, every word matched alike.

    Args:
        source: its words and their frequencies are taken.
    """

    def __init__(self, source: StateSource) -> None:
        self._source = source
        self.frequencies = source.frequencies

    def of_query(self, query: Query) -> WordStates:
        """Return the words of a query, all with the state 1."""
        return _alike(self._source.of_query(query))

    def of_questions(self, questions: Sequence[tuple[int, Question]]) -> list[WordStates]:
        """Return the words of questions, all with the state 1."""
        return [_alike(one) for one in self._source.of_questions(questions)]


@dataclass(frozen=True, slots=True)
class _Alike:
    words: tuple[str, ...]
    states: NDArray[np.float32]


def _alike(found: WordStates) -> WordStates:
    return _Alike(found.words, np.ones((len(found.words), 1), dtype=np.float32))


@dataclass
class Matcher:
    """RAMN with one autoencoder; what does not depend on the settings is computed once for each task.

    Args:
        source: of states and frequencies.
        whitened: of whitened states, where there are any.
    """

    source: StateSource
    whitened: StateSource | None = None
    _compared: dict[tuple[str, Similarity, bool], Mapping[str, Comparison]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model) -> Matcher:
        """Return the matcher of an autoencoder's states, and of its whitened ones where it has learned how."""
        white = None if model.whitening is None else ModelStates(model, is_whitened=True)
        return cls(ModelStates(model), white)

    def run(self, task: RerankTask, settings: RamnSettings) -> Run:
        """Return every query's candidates, in their given order, with log g(q, Q); theirs is the initial rank."""
        compared = self.comparisons(task, settings)
        run: Run = {}
        for query, found in task.given.items():
            scores = log_scores(compared[query], np.arange(1, len(found) + 1), settings).tolist()
            run[query] = [(document, score) for (document, _), score in zip(found, scores, strict=True)]
        return run

    def comparisons(self, task: RerankTask, settings: RamnSettings) -> Mapping[str, Comparison]:
        """Return each query beside its candidates, in both directions.

        Args:
            settings: similarity and whitening are taken from these.

        Raises:
            ValueError: there are no whitened states.
        """
        key = (task.name, settings.similarity, settings.is_whitened)
        if key not in self._compared:
            source = self.whitened if settings.is_whitened else self.source
            if source is None:
                raise ValueError("the model has not learned how its states are whitened")
            self._compared[key] = _compare(source, task, settings.similarity)
        return self._compared[key]


def _compare(source: StateSource, task: RerankTask, similarity: Similarity) -> Mapping[str, Comparison]:
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
    return judge(task, Matcher.of(model).run(task, settings)).means["mrr"]
