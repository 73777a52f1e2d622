"""Systems that put a task's candidates in order: an encoder, the hybrid of it and BM25, language models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.evaluation import Report
from askalike.evaluation.forum.scorers import VectorScorer, rerank
from askalike.evaluation.forum.tasks import RerankTask, judge
from askalike.models.language.model import LanguageModel
from askalike.models.query_likelihood.terms import TermLists
from askalike.types import Answer, Question, Run

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

WEIGHTS: Final = tuple(round(0.05 * step, 2) for step in range(21))
"""What is tried for w: 0 is BM25 alone, 1 the cosine alone."""


def blend(cosines: NDArray[np.floating], lexical: NDArray[np.floating], weight: float) -> NDArray[np.float64]:
    """Return ``w · cos + (1 - w) · bm25 / max bm25`` over one query's candidates.

    Where no candidate shares a term with the query, the second summand is 0.

    Args:
        cosines: (N,), in [-1, 1].
        lexical: (N,), ≥ 0.
        weight: w, in [0, 1].

    Example:
        0.5 · 0.8 + 0.5 · 10/10 and 0.5 · 0.9 + 0.5 · 5/10:

        >>> blend(np.array([0.8, 0.9]), np.array([10.0, 5.0]), 0.5).round(4).tolist()
        [0.9, 0.7]
    """
    highest = float(lexical.max(initial=0.0))
    scaled = lexical / highest if highest > 0 else np.zeros(len(lexical))
    return np.asarray(weight * cosines + (1 - weight) * scaled, dtype=np.float64)


def best_weight(value: Callable[[float], float]) -> tuple[float, Mapping[float, float]]:
    """Return the weight of the highest value, the smallest one of equals, and every value that was seen.

    Args:
        value: weight → what is to be high, in [0, 1].

    Example:
        >>> best_weight(lambda weight: 1 - abs(weight - 0.3))[0]
        0.3
    """
    seen = {weight: value(weight) for weight in WEIGHTS}
    return max(seen, key=lambda weight: (seen[weight], -weight)), seen


def cosine_run(task: RerankTask, scorer: VectorScorer) -> Run:
    """Return every query's candidates, in their given order, with their cosines."""
    scorer.vectors([*task.queries.values(), *task.documents.values()])
    return rerank(task.given, scorer, task.queries, task.documents)


def hybrid_run(task: RerankTask, cosines: Run, weight: float) -> Run:
    """Return candidates blended of the task's BM25 scores and of cosines in the same order."""
    run: Run = {}
    for query, found in task.lexical.items():
        ids = [document for document, _ in found]
        lexical = np.array([score for _, score in found])
        near = np.array([score for _, score in cosines[query]])
        run[query] = list(zip(ids, blend(near, lexical, weight).tolist(), strict=True))
    return run


class Likelihoods:
    """A ``PairScorer``; its score is how much likelier a candidate makes a word of the query.

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


def likelihood_report(
    task: RerankTask, model: LanguageModel, answers: Callable[[str], Sequence[Answer]] = lambda _: ()
) -> Report:
    """Return what the order is worth that a language model gives a task's candidates."""
    return judge(task, Likelihoods(model, answers).rerank(task))
