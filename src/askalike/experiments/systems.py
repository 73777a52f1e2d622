"""Systems that answer every kind of task: BM25, TF-IDF, an encoder, and the hybrid of BM25 and an encoder.

Enters: tasks. Leaves: runs, or scores of pairs. May import: types, lexical, its own folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.experiments.blend import best_weight, blend
from askalike.experiments.rankings import over_all, rerank
from askalike.experiments.scorers import JoinedTerms, make_scorer
from askalike.experiments.tasks import PairTask, RerankTask, RetrievalTask, judge
from askalike.experiments.vector_scorer import VectorScorer
from askalike.text.settings import TextSettings
from askalike.types import Question, Run

__all__ = [
    "DEPTH",
    "Hybrid",
    "LexicalSearch",
    "System",
    "Terms",
    "Vectors",
    "best_of_collection",
    "hybrid_run",
    "tune_weight",
]

DEPTH = 100

Floats = NDArray[np.float64]


class System(Protocol):
    """Answers tasks."""

    def rerank(self, task: RerankTask) -> Run:
        """Return every query's candidates, in their given order, with the system's scores."""

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return every query's best ``DEPTH`` questions of the collection, without the query itself."""

    def pairs(self, task: PairTask) -> Floats:
        """Return one score a pair, higher is more alike.  # (N,)"""


class LexicalSearch:
    """The search by words that every task carries: the forum's own, or exact BM25 where there is no forum.

    Pairs have no search; their score is ``(bm25(a, b) + bm25(b, a)) / (bm25(a, a) + bm25(b, b))``, near 1 for the same
    words. Differs from a search's score, which is not comparable between queries.
    """

    def rerank(self, task: RerankTask) -> Run:
        """Return the candidates with their BM25 scores."""
        return task.lexical

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return the lexical search's best."""
        return {query: found[:DEPTH] for query, found in task.lexical.items()}

    def pairs(self, task: PairTask) -> Floats:
        """Return the symmetric, scaled BM25 score of each pair."""
        scorer = make_scorer("bm25", task.statistics, TextSettings())
        return np.array([_alike(scorer, first, second) for first, second in task.pairs])


class Terms:
    """A term-based scorer of ``SCORERS`` over title and body joined."""

    def __init__(self, name: str) -> None:
        self.name = name

    def rerank(self, task: RerankTask) -> Run:
        """Return the candidates with the model's scores; its statistics are the task's."""
        return rerank(task.given, make_scorer(self.name, task.statistics, TextSettings()), task.queries, task.documents)

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return the best of the collection, which the statistics are taken from too; no score 0."""
        scorer = make_scorer(self.name, task.collection, TextSettings())
        score = over_all(scorer.model, [scorer.terms(question) for question in task.collection])
        ids = [question.id for question in task.collection]
        return {
            query: [entry for entry in best_of_collection(ids, score(scorer.terms(question)), query) if entry[1] > 0]
            for query, question in task.queries.items()
        }

    def pairs(self, task: PairTask) -> Floats:
        """Return the model's score of each pair, the second as the candidate."""
        scorer = make_scorer(self.name, task.statistics, TextSettings())
        return np.array([float(scorer.scores(first, [second])[0]) for first, second in task.pairs])


class Vectors:
    """An encoder: cosines of its vectors."""

    def __init__(self, scorer: VectorScorer) -> None:
        self.scorer = scorer

    def rerank(self, task: RerankTask) -> Run:
        """Return the candidates with their cosines."""
        self.scorer.vectors([*task.queries.values(), *task.documents.values()])
        return rerank(task.given, self.scorer, task.queries, task.documents)

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return the questions of the highest cosines."""
        ids = [question.id for question in task.collection]
        return {query: best_of_collection(ids, cosines, query) for query, cosines in self.over_collection(task).items()}

    def pairs(self, task: PairTask) -> Floats:
        """Return the cosine of each pair."""
        first = self.scorer.vectors(pair[0] for pair in task.pairs)
        second = self.scorer.vectors(pair[1] for pair in task.pairs)
        return np.asarray(np.einsum("nd,nd->n", first, second), dtype=np.float64)

    def over_collection(self, task: RetrievalTask) -> dict[str, Floats]:
        """Return each query's cosines with the whole collection, in its order."""
        documents = self.scorer.vectors(task.collection)  # (N, D)
        queries = self.scorer.vectors(task.queries.values())  # (Q, D)
        return dict(zip(task.queries, (queries @ documents.T).astype(np.float64), strict=True))


class Hybrid:
    """BM25 and an encoder, blended by one weight; in retrieval the candidates are the whole collection.

    A question that the lexical search did not bring, deep as it was, has the BM25 score 0.
    """

    def __init__(self, scorer: VectorScorer, weight: float) -> None:
        self.vectors = Vectors(scorer)
        self.weight = weight

    def rerank(self, task: RerankTask) -> Run:
        """Return the candidates with blended scores."""
        return hybrid_run(task, self.vectors.rerank(task), self.weight)

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return the questions of the highest blended scores."""
        return _blended_collection(task, self.vectors.over_collection(task), self.weight)

    def pairs(self, task: PairTask) -> Floats:
        """Return ``w · cos + (1 - w) · scaled BM25``; a pair has no candidates to scale by."""
        return self.weight * self.vectors.pairs(task) + (1 - self.weight) * LexicalSearch().pairs(task)


def hybrid_run(task: RerankTask, cosines: Run, weight: float) -> Run:
    """Return candidates blended of the task's BM25 scores and of cosines in the same order."""
    run: Run = {}
    for query, found in task.lexical.items():
        ids = [document for document, _ in found]
        lexical = np.array([score for _, score in found])
        near = np.array([score for _, score in cosines[query]])
        run[query] = list(zip(ids, blend(near, lexical, weight).tolist(), strict=True))
    return run


def tune_weight(task: RerankTask | RetrievalTask, scorer: VectorScorer) -> tuple[float, Mapping[float, float]]:
    """Return the hybrid's weight that is best by the task's main measure, and the measure at each weight."""
    if isinstance(task, RerankTask):
        near = Vectors(scorer).rerank(task)
        return best_weight(lambda weight: judge(task, hybrid_run(task, near, weight)).means[task.main])
    cosines = Vectors(scorer).over_collection(task)
    return best_weight(lambda weight: judge(task, _blended_collection(task, cosines, weight)).means[task.main])


def _blended_collection(task: RetrievalTask, cosines: Mapping[str, Floats], weight: float) -> Run:
    ids = [question.id for question in task.collection]
    places = {identifier: place for place, identifier in enumerate(ids)}
    run: Run = {}
    for query, near in cosines.items():
        lexical = np.zeros(len(ids))
        for document, score in task.lexical[query]:
            lexical[places[document]] = score
        run[query] = best_of_collection(ids, blend(near, lexical, weight), query)
    return run


def best_of_collection(ids: Sequence[str], scores: Floats, query: str) -> list[tuple[str, float]]:
    """Return the best of a collection but the query itself; equal scores in the collection's order."""
    least = -np.partition(-scores, DEPTH)[DEPTH] if len(scores) > DEPTH else -np.inf
    places = np.flatnonzero(scores >= least)
    order = places[np.argsort(-scores[places], kind="stable")]
    found = [(ids[place], float(scores[place])) for place in order[: DEPTH + 1] if ids[place] != query]
    return found[:DEPTH]


def _alike(scorer: JoinedTerms, first: Question, second: Question) -> float:
    same = scorer.scores(first, [first])[0] + scorer.scores(second, [second])[0]
    return float((scorer.scores(first, [second])[0] + scorer.scores(second, [first])[0]) / same) if same else 0.0
