"""The candidates of one search: the best of each source, each with the scores that both sources give to it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from askalike.search.engine import Candidate, Encoder, Engine, WordEncoder
from askalike.search.query import PreparedQuery
from askalike.types import Filters, Question, Stage


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


@dataclass(slots=True)
class Laps:
    """How long each stage of one search took."""

    seconds: dict[Stage, float] = field(default_factory=dict)
    since: float = field(default_factory=time.perf_counter)

    def end(self, stage: Stage) -> None:
        """Count the time since the last end, or the beginning, to a stage."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self.since
        self.since = now


class Pooled(NamedTuple):
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
        encoder: what a ranker that compares words gets their states from; None where nothing can tell.
        wanted: so many hits are asked for.
    """

    engine: Engine
    asked: PreparedQuery
    candidates: tuple[Pooled, ...]
    is_exhausted: bool
    encoder: WordEncoder | None = None
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
    asked: PreparedQuery,
    sources: tuple[Source, ...],
    limit: int,
    filters: Filters,
    encoder: Encoder | None,
    laps: Laps,
    wanted: int = 0,
) -> Pool:
    """Return the union of the ``limit`` best of each source; a candidate of one is scored by the others too."""
    found: dict[Source, Sequence[Candidate]] = {}
    ranks: dict[int, dict[Source, int]] = {}
    for source in sources:
        if source == "lexical":
            found[source] = engine.lexical(asked.weights, limit, filters)
        elif source == "spelling":
            found[source] = engine.misspelt(asked.unknown, limit, filters) if asked.unknown else []
        elif asked.near is not None and asked.near[0] == limit:
            found[source] = asked.near[1]
        else:
            found[source] = [] if asked.vector is None else engine.nearest(asked.vector[None], limit, filters)[0]
        for rank, (key, _) in enumerate(found[source], start=1):
            ranks.setdefault(key, {})[source] = rank
        laps.end(_STAGES[source])
    known = {source: dict(some) for source, some in found.items() if source in COMPONENTS}
    unmatched, far = ([key for key in ranks if key not in known.get(one, ranks)] for one in COMPONENTS)
    if unmatched or far:
        for source, scores in zip(COMPONENTS, engine.scores(asked.weights, unmatched, asked.vector, far), strict=True):
            known.setdefault(source, {}).update(scores)
    names = [(COMPONENTS[source], known[source]) for source in sources if source in COMPONENTS]
    components = {key: {name: scores.get(key, 0.0) for name, scores in names} for key in ranks}
    laps.end("rank")
    pooled = tuple(Pooled(key, components[key], places) for key, places in ranks.items())
    words = encoder if isinstance(encoder, WordEncoder) else None
    return Pool(engine, asked, pooled, all(len(one) < limit for one in found.values()), words, wanted)
