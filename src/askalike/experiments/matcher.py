"""RAMN over a re-ranking task: comparisons once, then a run for every variant of the score.

Enters: a model with the states of words, tasks, settings. Leaves: runs. May import: encode, forum, rank, types, its own
folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from askalike.encode.model import Model
from askalike.experiments.tasks import RerankTask, judge
from askalike.forum.states import ModelStates
from askalike.rank.query import Query
from askalike.rank.ramn import Comparison, RamnSettings, compare, log_scores
from askalike.rank.word_states import Similarity
from askalike.types import Run

__all__ = ["Matcher", "ramn_score"]


@dataclass
class Matcher:
    """RAMN with one autoencoder; what does not depend on the settings is computed once for each task.

    Args:
        model: its encoder gives the states, its counts the words' frequencies.
    """

    model: Model
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
        source = ModelStates(self.model)
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
    return judge(task, Matcher(model).run(task, settings)).means["mrr"]
