"""From the asker's title and body to weighted terms."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from askalike.errors import SettingError
from askalike.models.term_weighting import inverse_document_frequency
from askalike.search.engine import CandidateSource
from askalike.text.analyzer import Analyzer
from askalike.types import Markup


@dataclass(frozen=True, slots=True)
class Query:
    """What was asked, as the asker wrote it."""

    title: str
    body: str = ""
    markup: Markup = "plain"


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """How the terms of a query are weighed.

    Args:
        body_weight: how much a term in the body counts beside one in the title, ≥ 0.
        max_terms: only so many terms are searched for, those with the highest weight · idf; bounds the time that a
            long body costs.

    Raises:
        SettingError: a value is out of range.
    """

    body_weight: float = 0.5
    max_terms: int = 64

    def __post_init__(self) -> None:
        if self.body_weight < 0 or self.max_terms < 1:
            raise SettingError(
                f"body_weight is {self.body_weight} and max_terms is {self.max_terms}",
                "expected body_weight ≥ 0 and max_terms ≥ 1",
            )


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """A term of the query: how much it counts, and how rare it is in the forum."""

    weight: float
    idf: float


class TermCounts:
    """How many questions there are, and how many have a term: asked for in batches, remembered for one search."""

    def __init__(self, source: CandidateSource) -> None:
        self._source = source
        self._known: dict[str, int] = {}
        self._size: int | None = None

    def look_up(self, terms: Iterable[str]) -> None:
        """Ask for those of some terms that are not known, in one call."""
        missing = set(terms).difference(self._known)
        if missing or self._size is None:
            found = self._source.statistics(missing)
            self._size = found.size
            self._known.update({term: found.frequencies.get(term, 0) for term in missing})

    def size(self) -> int:
        """Return how many questions there are."""
        if self._size is None:
            self.look_up(())
        return self._size or 0

    def document_frequency(self, term: str) -> int:
        """Return in how many questions a term occurs."""
        if term not in self._known:
            self.look_up((term,))
        return self._known[term]

    def known_frequency(self, term: str) -> int:
        """Return in how many questions a term occurs, as far as was asked for before: 0 otherwise."""
        return self._known.get(term, 0)


def weigh(query: Query, analyzer: Analyzer, settings: QuerySettings, counts: TermCounts) -> dict[str, QueryTerm]:
    """Return the most informative terms of the query, weighted ``tf(t, title) + body_weight · tf(t, body)``.

    Terms that no question has are left out: they cannot match. The order is by weight · idf descending, then term.
    """
    prepared = analyzer.prepare(query.title, query.body, query.markup)
    weights = {term: float(times) for term, times in Counter(prepared.title).items()}
    if settings.body_weight:
        for term, times in Counter(prepared.body).items():
            weights[term] = weights.get(term, 0.0) + settings.body_weight * times
    counts.look_up(weights)
    size = counts.size()
    found: dict[str, QueryTerm] = {}
    for term, weight in weights.items():
        frequency = counts.document_frequency(term)
        if frequency:
            found[term] = QueryTerm(weight, inverse_document_frequency(max(size, frequency), frequency))
    best = heapq.nsmallest(settings.max_terms, found, key=lambda term: (-found[term].weight * found[term].idf, term))
    return {term: found[term] for term in best}


def unknown_terms(query: Query, analyzer: Analyzer, counts: TermCounts) -> tuple[str, ...]:
    """Return the terms of the query that no question has, each once: those of the title, then those of the body."""
    prepared = analyzer.prepare(query.title, query.body, query.markup)
    terms = dict.fromkeys([*prepared.title, *prepared.body])
    counts.look_up(terms)
    return tuple(term for term in terms if not counts.document_frequency(term))
