"""RAMN over a re-ranking task: comparisons once, then a run for every variant of the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.evaluation import Report
from askalike.evaluation.forum.tasks import RerankTask, judge
from askalike.index.states import ModelStates
from askalike.models.encoders.model import Model
from askalike.models.ramn.comparison import Comparison, Similarity, compare
from askalike.models.ramn.score import RamnSettings, in_order, log_scores, rank_factors
from askalike.search.ramn import StateSource
from askalike.types import Query, Question, Run

COLLAPSED: Final = 0.9
"""From which likeness on the states tell next to nothing: attention autoencoders had 0.99 after a thousand questions,
0.4 after five thousand and 0.1 after fifty thousand."""
_MOST: Final = 500


@dataclass
class Matcher:
    """RAMN with one autoencoder; what does not depend on the settings is computed once for each task.

    Args:
        source: of states and frequencies.
    """

    source: StateSource
    _compared: dict[tuple[str, Similarity], Mapping[str, Comparison]] = field(default_factory=dict)

    def run(self, task: RerankTask, settings: RamnSettings) -> Run:
        """Return every query's candidates, in their given order, with scores in the order of g(q, Q).

        The initial rank is the position among the candidates where the rank factor is ``scaled``, otherwise the rank
        that the search engine gave.
        """
        compared = self.comparisons(task, settings.similarity)
        run: Run = {}
        for query, found in task.given.items():
            is_scaled = settings.rank_factor == "scaled"
            ranks = np.arange(1, len(found) + 1) if is_scaled else engine_ranks(found)
            scores = log_scores(compared[query], ranks, settings)
            if settings.rank_factor == "signed":
                scores = in_order(scores, rank_factors(ranks, settings.alpha, "signed"))
            run[query] = [(document, score) for (document, _), score in zip(found, scores.tolist(), strict=True)]
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


def engine_ranks(candidates: Sequence[tuple[str, float]]) -> NDArray[np.int64]:
    """Return the ranks of candidates that have 1 / rank as their score, as SemEval's are read.  # (N,)

    >>> engine_ranks([("a", 1.0), ("b", 1 / 7), ("c", 1 / 166)]).tolist()
    [1, 7, 166]
    """
    return np.array([round(1 / score) for _, score in candidates], dtype=np.int64)


def ramn_report(task: RerankTask, model: Model, settings: RamnSettings) -> Report:
    """Return what the order is worth that RAMN gives a task's candidates."""
    return judge(task, Matcher(ModelStates(model)).run(task, settings))


def likeness(model: Model, questions: Sequence[Question]) -> float:
    """Return the mean cosine of each word's state with that of the word half of all words further on; 0 without words.

    Args:
        questions: of many, 500 evenly spread ones are read.
    """
    step = max(1, len(questions) // _MOST)
    found = [one.states for one in model.states(questions[::step][:_MOST]) if one.words]
    if not found:
        return 0.0
    states = np.concatenate(found)
    unit = states / np.maximum(np.linalg.norm(states, axis=1, keepdims=True), 1e-12)
    return float(np.einsum("td,td->t", unit, np.roll(unit, len(unit) // 2, axis=0)).mean())
