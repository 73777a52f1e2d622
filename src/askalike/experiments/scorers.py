"""The systems that score given pairs of questions, by the names that reports use.

Enters: the texts of a collection. Leaves: functions from a query and candidates to scores. May import: lexical, text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.lexical import BM25, CollectionStatistics, TfIdf
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Question

__all__ = ["SCORERS", "PairScorer", "make_scorer"]


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
