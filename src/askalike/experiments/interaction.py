"""The ranker ``interaction`` as a system: a hybrid whose best candidates are compared word by word.

Enters: tasks. Leaves: runs, or scores of pairs. May import: encode, rank, types, its own folder.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from askalike.experiments.systems import Hybrid, LexicalSearch
from askalike.experiments.tasks import PairTask, RerankTask, RetrievalTask
from askalike.experiments.vector_scorer import VectorScorer
from askalike.models.encoders.model import Model
from askalike.rank.interaction import WeighedStates, interactions, meaning, rarities
from askalike.rank.settings import JoinSettings
from askalike.types import Question, Run

__all__ = ["Interaction"]

Floats = NDArray[np.float64]


class Interaction:
    """The forum's ranker of that name over tasks.

    Args:
        model: whose vectors the scorer has.
        settings: weights and depth; in re-ranking every candidate is compared.
    """

    def __init__(self, model: Model, scorer: VectorScorer, settings: JoinSettings) -> None:
        self._model = model
        self._scorer = scorer
        self._settings = settings
        self._hybrid = Hybrid(scorer, settings.weight)

    def rerank(self, task: RerankTask) -> Run:
        """Return the candidates with their scores."""
        run: Run = {}
        for query, found in task.lexical.items():
            ids = [document for document, _ in found]
            lexical = np.array([score for _, score in found])
            scores = self._blended(task.queries[query], [task.documents[one] for one in ids], lexical, lexical.max())
            run[query] = list(zip(ids, scores.tolist(), strict=True))
        return run

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return the hybrid's best questions, the first of them in the order of their comparison word by word."""
        documents = {one.id: one for one in task.collection}
        run: Run = {}
        for query, found in self._hybrid.retrieve(task).items():
            lexical = dict(task.lexical[query])
            ids = [document for document, _ in found[: self._settings.interaction_depth]]
            values = np.array([lexical.get(one, 0.0) for one in ids])
            most = max(lexical.values(), default=0.0)
            scores = self._blended(task.queries[query], [documents[one] for one in ids], values, most)
            order = np.argsort(-scores, kind="stable")
            last = float(scores.min(initial=0.0))
            others = [(one, last - place) for place, (one, _) in enumerate(found[len(ids) :], start=1)]
            run[query] = [(ids[place], float(scores[place])) for place in order] + others
        return run

    def pairs(self, task: PairTask) -> Floats:
        """Return ``w · meaning + (1 - w) · scaled BM25``; a pair has no candidates to scale by."""
        near = [self._meaning(first, [second])[0] for first, second in task.pairs]
        weight = self._settings.interaction_weight
        return weight * np.array(near) + (1 - weight) * LexicalSearch().pairs(task)

    def _blended(self, query: Question, candidates: Sequence[Question], lexical: Floats, most: float) -> Floats:
        """Return the weighted sum of meaning and of BM25 as a share of ``most``.  # (N,)"""
        near = self._meaning(query, candidates)
        weight = self._settings.interaction_weight
        return weight * near + (1 - weight) * (lexical / most if most > 0 else np.zeros(len(lexical)))

    def _meaning(self, query: Question, candidates: Sequence[Question]) -> Floats:
        """Return (cos + 2 · m) / 3 of each candidate.  # (N,)"""
        asked, *read = self._states([query, *candidates])
        return meaning(self._scorer.scores(query, candidates), interactions(asked, read))

    def _states(self, questions: Sequence[Question]) -> list[WeighedStates]:
        size = len(self._model.vocabulary)
        return [WeighedStates(one.words, one.states, rarities(one.ids, size)) for one in self._model.states(questions)]
