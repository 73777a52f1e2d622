"""Systems that answer every kind of task: candidates to re-rank, a collection to search, pairs to tell apart.

Each task carries the answer of the search by words, so that it is the same for every system whatever the default ranker
of a forum is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.errors import EvaluationError
from askalike.evaluation import Report, evaluate, split_components
from askalike.evaluation.forum import tasks as reranking
from askalike.evaluation.forum.links import HALVES, DuplicateTask
from askalike.evaluation.forum.tasks import (
    JoinedTerms,
    RerankTask,
    VectorScorer,
    bm25_run,
    cosine_run,
    lexical_run,
    make_scorer,
)
from askalike.forum import Forum
from askalike.text.settings import TextSettings
from askalike.types import Filters, Qrels, Query, Question, Run
from benchmarks.labelled_pairs import Pair

DEPTH: Final = 100
LEXICAL_DEPTH: Final = 1000
RETRIEVAL_MEASURES: Final = ("recall@10", "recall@100", "mrr", "ndcg@10")
SPLIT_SEED: Final = 0

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RetrievalTask:
    """A whole collection to search, the query itself excluded.

    Args:
        name: the set and its split.
        queries: id → question; members of the collection.
        collection: every question that can be found, by id.
        lexical: query id → the lexical search's best, many more than are scored.
        qrels: query id → {relevant id: 1}.
        main: the measure that systems are compared by.
    """

    name: str
    queries: Mapping[str, Question]
    collection: tuple[Question, ...]
    lexical: Run
    qrels: Qrels
    main: str = "ndcg@10"


@dataclass(frozen=True, slots=True)
class PairTask:
    """Pairs of questions, some of which ask the same.

    Args:
        name: the set and its split.
        pairs: first and second question.
        labels: 1 for a duplicate, else 0.
        statistics: the questions that document frequencies are taken from.
    """

    name: str
    pairs: tuple[tuple[Question, Question], ...]
    labels: tuple[int, ...]
    statistics: tuple[Question, ...]


def judge(task: RerankTask | RetrievalTask, run: Run, retrieval_measures: Sequence[str] = RETRIEVAL_MEASURES) -> Report:
    """Return what a run is worth under the task's protocol."""
    if isinstance(task, RerankTask):
        return reranking.judge(task, run)
    return evaluate(task.qrels, run, "trec", retrieval_measures)


def pair_task(name: str, pairs: Iterable[Pair], half: str) -> PairTask:
    """Return one half of labelled pairs, which shares no question with the other.

    Document frequencies are those of the questions of the half "dev".

    Raises:
        EvaluationError: there is no such half.
    """
    if half not in HALVES:
        raise EvaluationError(f"there is no half {half!r} of the pairs", f"expected one of {', '.join(HALVES)}")
    pairs = list(pairs)
    parts = split_components([(pair.first, pair.second) for pair in pairs], HALVES, SPLIT_SEED)
    members = {part: set(texts) for part, texts in parts.items()}
    of_half = [pair for pair in pairs if pair.first in members[half]]
    return PairTask(
        name=f"{name} {half}",
        pairs=tuple((title_alone(pair.first), title_alone(pair.second)) for pair in of_half),
        labels=tuple(int(pair.is_duplicate) for pair in of_half),
        statistics=tuple(title_alone(text) for text in sorted(members["dev"])),
    )


def title_alone(text: str) -> Question:
    """Return a text as a question; its id is the same for the same text, and short enough for a forum."""
    return Question(hashlib.blake2b(text.encode(), digest_size=10).hexdigest(), text)


def forum_retrieval_task(name: str, forum: Forum, links: DuplicateTask, *, main: str = "ndcg@10") -> RetrievalTask:
    """Return the whole forum as the collection, the query itself excluded.

    Args:
        main: the measure that systems are compared by.
    """

    def by_id(question: Question) -> str:
        return question.id

    return RetrievalTask(
        name=f"{name} {links.split}",
        queries=links.queries,
        collection=tuple(sorted(links.collection.values(), key=by_id)),
        lexical=lexical_run(forum, links, LEXICAL_DEPTH),
        qrels=links.qrels,
        main=main,
    )


class System(Protocol):
    """Scores the candidates, collection or pairs of a task."""

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
        """Return the candidates with the scores of the search by words, or of exact BM25 where another found them."""
        return bm25_run(task) if task.protocol == "semeval" else task.given

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return the lexical search's best."""
        return {query: ranking[:DEPTH] for query, ranking in task.lexical.items()}

    def pairs(self, task: PairTask) -> Floats:
        """Return the symmetric, scaled BM25 score of each pair."""
        scorer = make_scorer("bm25", task.statistics, TextSettings())
        return np.array([_alike(scorer, first, second) for first, second in task.pairs])


class Vectors:
    """An encoder: cosines of its vectors."""

    def __init__(self, scorer: VectorScorer) -> None:
        self.scorer = scorer

    def rerank(self, task: RerankTask) -> Run:
        """Return the candidates with their cosines."""
        return cosine_run(task, self.scorer)

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


def best_of_collection(ids: Sequence[str], scores: Floats, query: str) -> list[tuple[str, float]]:
    """Return the best of a collection but the query itself; equal scores in the collection's order."""
    least = -np.partition(-scores, DEPTH)[DEPTH] if len(scores) > DEPTH else -np.inf
    places = np.flatnonzero(scores >= least)
    order = places[np.argsort(-scores[places], kind="stable")]
    ranking = [(ids[place], float(scores[place])) for place in order[: DEPTH + 1] if ids[place] != query]
    return ranking[:DEPTH]


def _alike(scorer: JoinedTerms, first: Question, second: Question) -> float:
    same = scorer.score(first, [first])[0] + scorer.score(second, [second])[0]
    return float((scorer.score(first, [second])[0] + scorer.score(second, [first])[0]) / same) if same else 0.0


class Search:
    """A forum's search as its users get it, by the default ranker; the forum holds every question of its tasks.

    Args:
        shown: hits of each search, which decides how many candidates are compared.
    """

    def __init__(self, forum: Forum, shown: int = Query("").k) -> None:
        self._forum = forum
        self._searcher = forum.indexes.searcher()
        self._shown = shown

    def rerank(self, task: RerankTask) -> Run:
        """Return the candidates with their probabilities, whether or not a search would find them."""
        run: Run = {}
        for query, candidates in task.given.items():
            ids = [document for document, _ in candidates]
            run[query] = list(zip(ids, self._likelihoods(task.queries[query], ids), strict=True))
        return run

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return the hits of each query, itself excluded."""
        run: Run = {}
        for identifier, question in task.queries.items():
            others = Filters(exclude_ids=frozenset([identifier]))
            query = Query(question.title, question.body, question.markup, self._shown, others, is_canonical=False)
            run[identifier] = self._forum.indexes.ranking(query)
        return run

    def pairs(self, task: PairTask) -> Floats:
        """Return the probability of each pair, the first as the query and the second as the candidate."""
        return np.array([self._likelihoods(first, [second.id])[0] for first, second in task.pairs])

    def _likelihoods(self, question: Question, ids: Sequence[str]) -> list[float]:
        numbers = self._forum.store.nums_by_id(ids)
        query = Query(question.title, question.body, question.markup)
        likely = self._searcher.likelihoods(query, list(numbers.values()))
        return [likely[numbers[identifier]] if likely else 0.0 for identifier in ids]
