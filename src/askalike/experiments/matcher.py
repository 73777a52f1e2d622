"""RAMN over a re-ranking task: comparisons once, then a run for every variant of the score.

Enters: a model with the states of words, tasks, settings. Leaves: runs. May import: encode, forum, rank, types, its own
folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from askalike.encode.model import Model
from askalike.experiments.tasks import RerankTask, judge
from askalike.forum.states import ModelStates
from askalike.rank.query import Query
from askalike.rank.ramn import Comparison, RamnSettings, compare, log_scores
from askalike.rank.ramn.settings import Similarity
from askalike.types import Run

__all__ = ["Matcher", "ramn_score"]


@dataclass
class Matcher:
    """RAMN with one autoencoder; what does not depend on the settings is computed once for each task.

    Args:
        model: its encoder gives the states, its counts the words' frequencies.
    """

    model: Model
    _forth: dict[tuple[str, Similarity], Mapping[str, Comparison]] = field(default_factory=dict)
    _back: dict[tuple[str, Similarity], Mapping[str, Sequence[Comparison]]] = field(default_factory=dict)

    def run(self, task: RerankTask, settings: RamnSettings) -> Run:
        """Return every query's candidates, in their given order, with log g(q, Q); theirs is the initial rank."""
        compared = self.comparisons(task, settings.similarity)
        run: Run = {}
        for query, found in task.given.items():
            scores = log_scores(compared[query], np.arange(1, len(found) + 1), settings).tolist()
            run[query] = [(document, score) for (document, _), score in zip(found, scores, strict=True)]
        return run

    def comparisons(self, task: RerankTask, similarity: Similarity) -> Mapping[str, Comparison]:
        """Return each query beside its candidates."""
        self._compare(task, similarity)
        return self._forth[task.name, similarity]

    def backwards(self, task: RerankTask, similarity: Similarity) -> Mapping[str, Sequence[Comparison]]:
        """Return for each query its candidates, each beside the query as if that were its only candidate."""
        self._compare(task, similarity)
        return self._back[task.name, similarity]

    def _compare(self, task: RerankTask, similarity: Similarity) -> None:
        key = (task.name, similarity)
        if key in self._forth:
            return
        source = ModelStates(self.model)
        forth: dict[str, Comparison] = {}
        back: dict[str, Sequence[Comparison]] = {}
        for query, entries in task.given.items():
            asked = task.queries[query]
            own = source.of_query(Query(asked.title, asked.body, asked.markup))
            theirs = source.of_questions(
                [(-place, task.documents[document]) for place, (document, _) in enumerate(entries)]
            )
            forth[query] = compare(own, theirs, source.frequencies, similarity)
            back[query] = [compare(one, [own], source.frequencies, similarity) for one in theirs]
        self._forth[key], self._back[key] = forth, back


def ramn_score(task: RerankTask, model: Model, settings: RamnSettings) -> float:
    """Return the MRR of a task's candidates in the order that RAMN gives them."""
    return judge(task, Matcher(model).run(task, settings)).means["mrr"]
