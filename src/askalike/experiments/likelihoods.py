"""Language models as systems: a query's likelihood by each candidate.

Enters: a model, tasks. Leaves: runs, scores of pairs. May import: language, types, its own folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from askalike.experiments.rankings import rerank
from askalike.experiments.systems import best_of_collection
from askalike.experiments.tasks import PairTask, RerankTask, RetrievalTask, judge
from askalike.models.language.model import LanguageModel
from askalike.models.query_likelihood.terms import TermLists
from askalike.types import Answer, Question, Run

__all__ = ["Likelihoods", "likelihood_score"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


class Likelihoods:
    """A ``System`` and a ``PairScorer``; its score is how much likelier a candidate makes a word of the query.

    Args:
        model: what was learned.
        answers: a candidate's answers, best first; asked for where the model reads them. Without it there are none.
    """

    def __init__(self, model: LanguageModel, answers: Callable[[str], Sequence[Answer]] = lambda _: ()) -> None:
        self.model = model
        self._answers = answers
        self._ids: dict[Question, Ids] = {}

    def scores(self, query: Question, candidates: Sequence[Question]) -> Floats:
        """Return one score for each candidate, > 0.  # (N,)"""
        return self.model.scorer.mean_ratios(self._read(query), *self._lists(candidates))

    def rerank(self, task: RerankTask) -> Run:
        """Return every query's candidates, in their given order, with their scores."""
        return rerank(task.given, self, task.queries, task.documents)

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return the questions of the collection that make each query likeliest."""
        ids, lists = [question.id for question in task.collection], self._lists(task.collection)
        return {
            query: best_of_collection(ids, self.model.scorer.mean_ratios(self._read(question), *lists), query)
            for query, question in task.queries.items()
        }

    def pairs(self, task: PairTask) -> Floats:
        """Return the score of each pair, the second as the candidate.  # (N,)"""
        return np.array([float(self.scores(first, [second])[0]) for first, second in task.pairs])

    def _lists(self, candidates: Sequence[Question]) -> tuple[TermLists, TermLists | None, Floats | None]:
        own, answers = TermLists.of(map(self._read, candidates)), None
        if self.model.settings.options.reads_answers:
            best = (self._answers(question.id)[:1] for question in candidates)
            answers = TermLists.of(self.model.answer_ids(found[0]) if found else () for found in best)
        return own, answers, self.model.mixtures(own, answers)

    def _read(self, question: Question) -> Ids:
        known = self._ids.get(question)
        if known is None:
            known = self._ids[question] = self.model.question_ids(question)
        return known


def likelihood_score(
    task: RerankTask, model: LanguageModel, answers: Callable[[str], Sequence[Answer]] = lambda _: ()
) -> float:
    """Return the MRR of a task's candidates in the order that a language model gives them."""
    return judge(task, Likelihoods(model, answers).rerank(task)).means["mrr"]
