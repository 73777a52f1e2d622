"""From the asker's title and body to weighted terms.

Enters: title and body. Leaves: ``Query``. May import: text, errors, types, ``rank.engine``.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from askalike.errors import SettingError
from askalike.lexical.bm25 import inverse_document_frequency
from askalike.text.analyzer import Analyzer
from askalike.types import Markup

__all__ = ["Query", "QuerySettings", "QueryTerm", "unknown_terms", "weigh"]


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


def weigh(
    query: Query,
    analyzer: Analyzer,
    settings: QuerySettings,
    size: int,
    document_frequency: Callable[[str], int],
) -> dict[str, QueryTerm]:
    """Return the most telling terms of the query, weighted ``tf(t, title) + body_weight · tf(t, body)``.

    Terms that no question has are left out: they cannot match. The order is by weight · idf descending, then term.
    """
    prepared = analyzer.prepare(query.title, query.body, query.markup)
    weights = {term: float(times) for term, times in Counter(prepared.title).items()}
    if settings.body_weight:
        for term, times in Counter(prepared.body).items():
            weights[term] = weights.get(term, 0.0) + settings.body_weight * times
    found: dict[str, QueryTerm] = {}
    for term, weight in weights.items():
        frequency = document_frequency(term)
        if frequency:
            found[term] = QueryTerm(weight, inverse_document_frequency(max(size, frequency), frequency))
    best = heapq.nsmallest(settings.max_terms, found, key=lambda term: (-found[term].weight * found[term].idf, term))
    return {term: found[term] for term in best}


def unknown_terms(query: Query, analyzer: Analyzer, document_frequency: Callable[[str], int]) -> tuple[str, ...]:
    """Return the terms of the query that no question has, each once: those of the title, then those of the body."""
    prepared = analyzer.prepare(query.title, query.body, query.markup)
    return tuple(term for term in dict.fromkeys([*prepared.title, *prepared.body]) if not document_frequency(term))
