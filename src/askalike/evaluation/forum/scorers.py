"""The systems that score given pairs of questions: term-based ones by the names that reports use, and any encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.term_weighting import BM25, CollectionStatistics, TfIdf
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Question, Run

OnQuery = Callable[[], object]
"""Called after each query."""


def ignore() -> None:
    """Do nothing after a query."""


class PairScorer(Protocol):
    """Scores one query against candidates."""

    def scores(self, query: Question, candidates: Sequence[Question]) -> NDArray[np.float64]:
        """Return one score for each of the N candidates, higher is better.  # (N,)"""


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

    def scores(self, query: Question, candidates: Sequence[Question]) -> NDArray[np.float64]:
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
    settings = TextSettings(text.language, text.with_code, text.stem, text.stop_words and drops_stop_words)
    return JoinedTerms(collection, make, settings)


def over_all(model: TermScorer, documents: Sequence[Sequence[str]]) -> Callable[[Sequence[str]], NDArray[np.float64]]:
    """Return the function from a query's terms to the scores of all documents; vectors are made once."""
    if not isinstance(model, TfIdf):
        return lambda query: model.scores(query, documents)
    vectors = model.vectors(documents)  # (N, V)
    return lambda query: vectors.dot(model.vectors([query]))


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
        asked = list(questions)
        new = list(dict.fromkeys(question for question in asked if question not in self._known))
        if new:
            self._known.update(zip(new, self._encoder.encode(new), strict=True))
        return np.stack([self._known[question] for question in asked])

    def scores(self, query: Question, candidates: Sequence[Question]) -> NDArray[np.float64]:
        """Return the cosines of one query with N candidates, in [-1, 1].  # (N,)"""
        found = self.vectors([query, *candidates])
        return np.asarray(found[1:] @ found[0], dtype=np.float64)


def rerank(
    candidates: Run,
    scorer: PairScorer,
    queries: Mapping[str, Question],
    documents: Mapping[str, Question],
    on_query: OnQuery = ignore,
) -> Run:
    """Return the candidates of each query with the scorer's scores, in the candidates' own order.

    The scores decide; equal ones keep the order of the candidate search, as the protocols for re-ranking have it.
    """
    run: Run = {}
    for identifier, found in candidates.items():
        ids = [document for document, _ in found]
        scores = scorer.scores(queries[identifier], [documents[document] for document in ids])
        run[identifier] = [(document, float(score)) for document, score in zip(ids, scores, strict=True)]
        on_query()
    return run
