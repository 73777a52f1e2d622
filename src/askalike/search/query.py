"""From the asker's title and body to weighted terms and a vector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from askalike.errors import SettingError
from askalike.models.term_weighting import inverse_document_frequency
from askalike.search.engine import Engine
from askalike.text.analyzer import Prepared


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """How the terms of a query are weighed.

    Args:
        body_weight: how much a term in the body counts beside one in the title, ≥ 0.
        max_terms: only so many terms are searched for, those with the highest weight · idf; bounds the time that a
            long body costs.
        max_postings: of these the most informative ones, that are in so many questions together; a term that is in
            more than are left is passed over. None for all.

    Raises:
        SettingError: a value is out of range.
    """

    body_weight: float = 0.5
    max_terms: int = 64
    max_postings: int | None = None

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


@dataclass(slots=True)
class TermCounts:
    """How many questions there are, and how many have a term: asked for in batches, remembered for one search.

    Args:
        size: how many questions there are, once anything was looked up.
        known: every term that was looked up → in how many questions it occurs.
    """

    source: Engine
    size: int | None = None
    known: dict[str, int] = field(default_factory=dict)

    def look_up(self, terms: Iterable[str]) -> Mapping[str, int]:
        """Return ``known`` with these terms; those that it lacks are asked for together."""
        missing = set(terms).difference(self.known)
        if missing or self.size is None:
            statistics = self.source.statistics(missing)
            self.size = statistics.size
            self.known.update(dict.fromkeys(missing, 0))
            self.known.update(statistics.frequencies)
        return self.known


def weigh(
    prepared: Prepared, settings: QuerySettings, counts: TermCounts, others: Sequence[Prepared] = ()
) -> dict[str, QueryTerm]:
    """Return the most informative terms of the query, weighted ``tf(t, title) + body_weight · tf(t, body)``.

    Terms that no question has are left out: they cannot match. The order is by weight · idf descending, then term.

    Args:
        others: the terms that the query has as the forum's other languages are read. A question has what one of them
            gives, so that a term of several counts once. As many terms of these together are looked for as of the
            query's own.
    """
    first: dict[str, float] = {}
    rest: dict[str, float] = {}
    for place, reading in enumerate((prepared, *others)):
        weights = {term: float(times) for term, times in Counter(reading.title).items()}
        if settings.body_weight:
            for term, times in Counter(reading.body).items():
                weights[term] = weights.get(term, 0.0) + settings.body_weight * times
        if not place:
            first = weights
            continue
        rest.update({term: max(it, rest.get(term, 0.0)) for term, it in weights.items() if term not in first})
    known = counts.look_up([*first, *rest])
    size = counts.size or 0
    best: dict[str, QueryTerm] = {}
    for weights in (first, rest) if rest else (first,):
        weighed: dict[str, QueryTerm] = {}
        for term, weight in weights.items():
            if frequency := known[term]:
                weighed[term] = QueryTerm(weight, inverse_document_frequency(max(size, frequency), frequency))
        ordered = sorted((-weighed[term].weight * weighed[term].idf, term) for term in weighed)
        left = settings.max_postings
        for _, term in ordered[: settings.max_terms]:
            if left is not None:
                if best and known[term] > left:
                    continue
                left -= known[term]
            best[term] = weighed[term]
    return best
