"""The candidates of one search: the best of each source, each with the scores that both sources give to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from askalike.search.engine import Candidate, Encoder, Engine
from askalike.search.query import Query, QueryTerm, TermCounts
from askalike.search.stages import Stage, stage
from askalike.types import Filters, Question


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate's score, and what it was made of."""

    key: int
    score: float
    components: Mapping[str, float]


Source = Literal["lexical", "vectors", "spelling"]

COMPONENTS: Mapping[Source, str] = {"lexical": "bm25", "vectors": "cosine"}
"""Source → the name of its score in a hit's components; ``spelling`` only proposes."""

_STAGES: Mapping[Source, Stage] = {"lexical": "lexical", "vectors": "vector", "spelling": "lexical"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, prepared for both sources.

    Args:
        terms: term → its weight and rarity.
        vector: (D,) of length 1 or zeros; None where vectors are not searched.
        unknown: terms that no question has, in their order; none where spelling is not searched.
        counts: knows all terms of the query; None where no ranker asks.
    """

    query: Query
    terms: Mapping[str, QueryTerm]
    vector: NDArray[np.float32] | None = None
    unknown: tuple[str, ...] = ()
    counts: TermCounts | None = None

    def weights(self) -> dict[str, float]:
        """Return term → weight, as candidate search wants it."""
        return {term: found.weight for term, found in self.terms.items()}


@dataclass(frozen=True, slots=True)
class Pooled:
    """A candidate.

    Args:
        components: ``bm25``, ``cosine``, or both, as the sources searched give them; 0 where no term matches, or where
            the question has no vector.
        ranks: source → its place there, 1 being the best; without the sources that did not propose it.
    """

    key: int
    components: Mapping[str, float]
    ranks: Mapping[Source, int]


@dataclass(frozen=True, slots=True)
class Pool:
    """All candidates of one search.

    Args:
        engine: where a ranker that reads questions gets them.
        is_exhausted: no source has more.
        encoder: what a ranker that compares words gets their states from; None where there is none.
        wanted: so many hits are asked for.
    """

    engine: Engine
    asked: Asked
    candidates: tuple[Pooled, ...]
    is_exhausted: bool
    encoder: Encoder | None = None
    wanted: int = 0
    _read: dict[int, Question | None] = field(default_factory=dict)

    def questions(self, keys: Sequence[int]) -> dict[int, Question]:
        """Return the questions with these keys, each read once for a pool; those that have gone are left out."""
        if missing := [key for key in keys if key not in self._read]:
            found = self.engine.questions(missing)
            self._read.update({key: found.get(key) for key in missing})
        return {key: one for key in keys if (one := self._read[key]) is not None}


def gather(
    engine: Engine,
    asked: Asked,
    sources: tuple[Source, ...],
    limit: int,
    filters: Filters,
    encoder: Encoder | None = None,
    wanted: int = 0,
) -> Pool:
    """Return the union of the ``limit`` best of each source; a candidate of one is scored by the others too."""
    found = {source: _best(engine, asked, source, limit, filters) for source in sources}
    ranks: dict[int, dict[Source, int]] = {}
    for source, candidates in found.items():
        for rank, candidate in enumerate(candidates, start=1):
            ranks.setdefault(candidate.key, {})[source] = rank
    scoring = [source for source in sources if source in COMPONENTS]
    scores = {source: {one.key: one.score for one in found[source]} for source in scoring}
    for source, known in scores.items():
        if missing := [key for key in ranks if key not in known]:
            known.update(_scores(engine, asked, source, missing))
    pooled = tuple(
        Pooled(key, {COMPONENTS[source]: scores[source].get(key, 0.0) for source in scoring}, places)
        for key, places in ranks.items()
    )
    is_exhausted = all(len(candidates) < limit for candidates in found.values())
    return Pool(engine, asked, pooled, is_exhausted, encoder, wanted)


def _best(engine: Engine, asked: Asked, source: Source, limit: int, filters: Filters) -> list[Candidate]:
    with stage(_STAGES[source]):
        if source == "lexical":
            return engine.lexical(asked.weights(), limit, filters)
        if source == "spelling":
            return engine.misspelt(asked.unknown, limit, filters) if asked.unknown else []
        return [] if asked.vector is None else engine.nearest(asked.vector, limit, filters)


def _scores(engine: Engine, asked: Asked, source: Source, keys: list[int]) -> dict[int, float]:
    with stage(_STAGES[source]):
        if source == "lexical":
            return engine.lexical_scores(asked.weights(), keys)
        return {} if asked.vector is None else engine.cosines(asked.vector, keys)
