"""Re-ranking tasks as values, a forum's duplicate links among them, and the systems that put their candidates in order.

Systems are term-based ones by the names that reports use, any encoder, and the hybrid of it and BM25. The candidates
are always those of the lexical search, whatever the forum's default ranker is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.evaluation import CandidateTask, Report, evaluate
from askalike.evaluation.forum.links import DuplicateTask, judge_candidates
from askalike.forum import Forum
from askalike.models.term_weighting import BM25, CollectionStatistics, TfIdf
from askalike.search import Reranker
from askalike.search.settings import MAX_HITS
from askalike.text.analyzer import Analyzer
from askalike.text.settings import SNOWBALL, TextSettings
from askalike.types import Filters, Judged, Qrels, Query, Question, Run

OnQuery = Callable[[], object]
"""Called after each query."""


def ignore() -> None:
    """Do nothing after a query."""


class TermScorer(Protocol):
    """Scores lists of terms; BM25 and TF-IDF are such."""

    def scores(self, query: Sequence[str], documents: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Return one score for each of the N documents.  # (N,)"""


class JoinedTerms:
    """A term-based model over title and body joined, each text prepared once."""

    def __init__(
        self,
        collection: Iterable[Question],
        make: Callable[[Sequence[Sequence[str]]], TermScorer],
        settings: TextSettings,
    ) -> None:
        self._analyzer = Analyzer(settings)
        self._terms: dict[Question, list[str]] = {}
        self.model = make([self.terms(question) for question in collection])

    def terms(self, question: Question) -> list[str]:
        """Return the terms of title and body, one after the other."""
        known = self._terms.get(question)
        if known is None:
            prepared = self._analyzer.prepare(question.title, question.body, question.markup)
            known = self._terms[question] = prepared.title + prepared.body
        return known

    def score(self, query: Question, candidates: Sequence[Question]) -> NDArray[np.float64]:
        """Return the model's scores.  # (N,)"""
        return self.model.scores(self.terms(query), [self.terms(candidate) for candidate in candidates])


def _bm25(documents: Sequence[Sequence[str]]) -> TermScorer:
    return BM25(CollectionStatistics.count(documents))


def _tfidf(longest: int) -> Callable[[Sequence[Sequence[str]]], TermScorer]:
    return lambda documents: TfIdf(documents, longest=longest)


SCORERS: dict[str, tuple[Callable[[Sequence[Sequence[str]]], TermScorer], bool]] = {
    "bm25": (_bm25, True),
    "tfidf": (_tfidf(1), True),
    "tfidf-2": (_tfidf(2), True),
    "tfidf-3": (_tfidf(3), True),
    "tfidf-all-words": (_tfidf(1), False),
    "tfidf-2-all-words": (_tfidf(2), False),
    "tfidf-3-all-words": (_tfidf(3), False),
}
"""name → (how the model is made from a collection, whether stop words are dropped). All use stems; tfidf-N takes
n-grams of up to N terms."""


def make_scorer(name: str, collection: Iterable[Question], text: TextSettings) -> JoinedTerms:
    """Return the named scorer with its statistics taken from ``collection``.

    Raises:
        SettingError: there is no such system.
    """
    if name not in SCORERS:
        raise SettingError(f"there is no system {name!r}", f"expected one of {', '.join(SCORERS)}")
    make, drops_stop_words = SCORERS[name]
    settings = replace(text, stop_words=text.stop_words and drops_stop_words)
    return JoinedTerms(collection, make, settings)


def over_all(model: TermScorer, documents: Sequence[Sequence[str]]) -> Callable[[Sequence[str]], NDArray[np.float64]]:
    """Return the function from a query's terms to the scores of all documents; vectors are made once."""
    if not isinstance(model, TfIdf):
        return lambda query: model.scores(query, documents)
    vectors = model.vectors(documents)  # (N, V)
    return lambda query: np.asarray((vectors @ model.vectors([query]).T).toarray()).ravel()


class Encoder(Protocol):
    """Whatever makes vectors of questions: ``askalike.models.encoders.model.Model`` is one."""

    def encode(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        """Return one vector of length 1 for each question, or of zeros for one without words.  # (N, D)"""


class VectorScorer:
    """Scores pairs of questions by the cosine of their vectors.

    Args:
        encoder: asked once for each distinct question.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[Question, NDArray[np.float32]] = {}

    def vectors(self, questions: Iterable[Question]) -> NDArray[np.float32]:
        """Return the vectors of questions, in their order.  # (N, D)"""
        queries = list(questions)
        new = list(dict.fromkeys(question for question in queries if question not in self._known))
        if new:
            self._known.update(zip(new, self._encoder.encode(new), strict=True))
        return np.stack([self._known[question] for question in queries])

    def score(self, query: Question, candidates: Sequence[Question]) -> NDArray[np.float64]:
        """Return the cosines of one query with N candidates, in [-1, 1].  # (N,)"""
        vectors = self.vectors([query, *candidates])
        return np.asarray(vectors[1:] @ vectors[0], dtype=np.float64)


def rerank(
    candidates: Run,
    scorer: Reranker,
    queries: Mapping[str, Question],
    documents: Mapping[str, Question],
    on_query: OnQuery = ignore,
) -> Run:
    """Return the candidates of each query with the scorer's scores, in the candidates' own order.

    The scores decide; equal ones keep the order of the candidate search, as the protocols for re-ranking have it.
    """
    run: Run = {}
    for identifier, ranked in candidates.items():
        ids = [document for document, _ in ranked]
        scores = scorer.score(queries[identifier], [documents[document] for document in ids])
        run[identifier] = [(document, float(score)) for document, score in zip(ids, scores, strict=True)]
        on_query()
    return run


RERANK_MEASURES: Final = ("map", "mrr", "p@1", "p@5")


@dataclass(frozen=True, slots=True)
class RerankTask:
    """A few candidates a query, to be put in a better order.

    Args:
        name: the set and its split, such as "travel dev".
        protocol: whose scoring: "askubuntu" or "semeval".
        queries: id → question.
        documents: id → question, of every candidate.
        given: query id → candidates with the scores of the search that found them, in its order.
        qrels: query id → {candidate id: grade}.
        statistics: the questions that document frequencies are taken from.
        main: the measure that systems are compared by.
    """

    name: str
    protocol: str
    queries: Mapping[str, Question]
    documents: Mapping[str, Question]
    given: Run
    qrels: Qrels
    statistics: tuple[Question, ...]
    main: str = "map"

    def digest(self) -> str:
        """Return the SHA-256 of everything that decides a score, texts and judgements, in hexadecimal."""
        digest = hashlib.sha256()
        for part in (*self.queries.values(), *self.documents.values(), *self.statistics):
            digest.update(json.dumps([part.id, part.title, part.markup, part.body]).encode())
        judged = [self.name, self.protocol, self.main, self.given, self.qrels]
        digest.update(json.dumps(judged, sort_keys=True).encode())
        return digest.hexdigest()


def judge(task: RerankTask, run: Run) -> Report:
    """Return what a run is worth under the task's protocol."""
    return evaluate(task.qrels, run, task.protocol, RERANK_MEASURES)


def candidate_task(task: RerankTask) -> CandidateTask:
    """Return a re-ranking task in numbers, to be scored after every epoch of a training.

    Its policy is AskUbuntu's; its questions are each distinct question once, queries first.
    """
    places: dict[Question, int] = {}
    for question in (*task.queries.values(), *task.documents.values()):
        places.setdefault(question, len(places))
    candidates = {query: [document for document, _ in entries] for query, entries in task.given.items() if entries}
    return CandidateTask(
        list(places),
        [places[task.queries[query]] for query in candidates],
        [[places[task.documents[document]] for document in ids] for ids in candidates.values()],
        [[task.qrels[query].get(document, 0) for document in ids] for query, ids in candidates.items()],
    )


def questions_of(judged: Judged) -> list[Question]:
    """Return every question of a set once, queries first."""
    return list({**judged.queries, **judged.documents}.values())


def judged_task(judged: Judged, protocol: str, statistics: Iterable[Question]) -> RerankTask:
    """Return a judged set as a task.

    Args:
        statistics: questions that document frequencies are taken from; not those of a test set.
    """
    return RerankTask(
        name=judged.name,
        protocol=protocol,
        queries=judged.queries,
        documents=judged.documents,
        given=judged.candidates,
        qrels=judged.qrels,
        statistics=tuple(statistics),
    )


def bm25_run(task: RerankTask) -> Run:
    """Return every query's candidates, in their given order, with BM25 over title and body joined, untuned."""
    return rerank(task.given, make_scorer("bm25", task.statistics, SNOWBALL), task.queries, task.documents)


CANDIDATES: Final = 20


def forum_run(
    forum: Forum,
    task: DuplicateTask,
    depth: int,
    *,
    title_only: bool = False,
    ranker: str | None = None,
    on_query: OnQuery = ignore,
) -> Run:
    """Return the forum's own search for each query, the query itself excluded, and what is not in the collection.

    Args:
        ranker: one of the forum's, or None for its default.
        on_query: called after each query.
    """
    run: Run = {}
    for identifier, question in task.queries.items():
        body = "" if title_only else question.body
        others = Filters(exclude_ids=frozenset([identifier]))
        ranked = forum.indexes.ranking(Query(question.title, body, question.markup, depth, others, ranker))
        run[identifier] = [entry for entry in ranked if entry[0] in task.collection]
        on_query()
    return run


def lexical_run(forum: Forum, task: DuplicateTask, depth: int, on_query: OnQuery = ignore) -> Run:
    """Return the forum's search by words alone for each query, the query itself excluded."""
    return forum_run(forum, task, depth, ranker="words", on_query=on_query)


def collection_run(
    task: DuplicateTask, scorer: JoinedTerms, collection: Sequence[Question], depth: int, on_query: OnQuery = ignore
) -> Run:
    """Return the best of a whole collection by scoring every pair, each query itself excluded; ties by id."""
    ordered = sorted(collection, key=lambda question: question.id)
    score = over_all(scorer.model, [scorer.terms(question) for question in ordered])
    run: Run = {}
    for identifier, question in task.queries.items():
        scores = score(scorer.terms(question))  # (N,)
        best = np.argsort(-scores, kind="stable")[: depth + 1]
        ranked = [(ordered[place].id, float(scores[place])) for place in best if scores[place] > 0]
        run[identifier] = [entry for entry in ranked if entry[0] != identifier][:depth]
        on_query()
    return run


def search_rerank(
    forum: Forum, task: DuplicateTask, candidates: Run, ranker: str | None, on_query: OnQuery = ignore
) -> Run:
    """Return the candidates of each query with the scores of the forum's own search, in the candidates' own order.

    A candidate that is not among the search's ``MAX_HITS`` best comes after those that are.

    Args:
        ranker: one of the forum's, or None for its default.
    """
    searched = forum_run(forum, task, MAX_HITS, ranker=ranker, on_query=on_query)
    run: Run = {}
    for identifier, ranked in candidates.items():
        scores = dict(searched[identifier])
        last = min(scores.values(), default=0.0) - 1.0
        run[identifier] = [(document, scores.get(document, last)) for document, _ in ranked]
    return run


def forum_rerank_task(name: str, forum: Forum, links: DuplicateTask) -> RerankTask:
    """Return the twenty best of the lexical search for each query, under AskUbuntu's protocol.

    A query that the search finds nothing for is left out.
    """
    candidates = {query: entries for query, entries in lexical_run(forum, links, CANDIDATES).items() if entries}
    return RerankTask(
        name=f"{name} {links.split}",
        protocol="askubuntu",
        queries={query: links.queries[query] for query in candidates},
        documents={document: links.collection[document] for entries in candidates.values() for document, _ in entries},
        given=candidates,
        qrels=judge_candidates(links, candidates),
        statistics=tuple(links.collection.values()),
    )


Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

WEIGHTS: Final = tuple(round(0.05 * step, 2) for step in range(21))
"""What is tried for w: 0 is BM25 alone, 1 the cosine alone."""


def standardised(values: NDArray[np.floating]) -> Floats:
    """Return values less their mean, divided by their standard deviation; zeros where all are the same.

    >>> standardised(np.array([1.0, 3.0])).tolist(), standardised(np.array([2.0, 2.0])).tolist()
    ([-1.0, 1.0], [0.0, 0.0])
    """
    spread = float(values.std())
    return np.asarray((values - values.mean()) / spread if spread > _LEAST_SPREAD else np.zeros(len(values)))


_LEAST_SPREAD: Final = 1e-9

Scaling = Literal["share", "z-score"]
"""How a cosine and a score of BM25, which has no upper bound, are brought together: ``share`` takes BM25 as its share
of the best candidate's, ``z-score`` standardises both over the query's candidates."""


def blend(
    cosines: NDArray[np.floating], lexical: NDArray[np.floating], weight: float, scaling: Scaling = "share"
) -> Floats:
    """Return ``w · cos + (1 - w) · bm25`` over one query's candidates, both scaled.

    Where no candidate shares a term with the query, the second summand is 0.

    Args:
        cosines: (N,), in [-1, 1].
        lexical: (N,), ≥ 0.
        weight: w, in [0, 1].

    Example:
        0.5 · 0.8 + 0.5 · 10/10 and 0.5 · 0.9 + 0.5 · 5/10; and -1 and 1 beside 1 and -1:

        >>> pair = np.array([0.8, 0.9]), np.array([10.0, 5.0])
        >>> blend(*pair, 0.5).round(4).tolist(), blend(*pair, 0.75, "z-score").round(4).tolist()
        ([0.9, 0.7], [-0.5, 0.5])
    """
    if scaling == "z-score":
        return np.asarray(weight * standardised(cosines) + (1 - weight) * standardised(lexical))
    highest = float(lexical.max(initial=0.0))
    scaled = lexical / highest if highest > 0 else np.zeros(len(lexical))
    return np.asarray(weight * cosines + (1 - weight) * scaled, dtype=np.float64)


def cosine_run(task: RerankTask, scorer: VectorScorer) -> Run:
    """Return every query's candidates, in their given order, with their cosines."""
    scorer.vectors([*task.queries.values(), *task.documents.values()])
    return rerank(task.given, scorer, task.queries, task.documents)


def hybrid_run(cosines: Run, lexical: Run, weight: float, scaling: Scaling = "share") -> Run:
    """Return candidates blended of cosines and of BM25, two runs with the same candidates in the same order."""
    run: Run = {}
    for query, near in cosines.items():
        first, second = (np.array([score for _, score in ranked]) for ranked in (near, lexical[query]))
        blended = blend(first, second, weight, scaling).tolist()
        run[query] = [(document, score) for (document, _), score in zip(near, blended, strict=True)]
    return run
