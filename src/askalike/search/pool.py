"""The candidates of one search: the best of each source, each with the scores that both sources give to it."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import msgspec

from askalike.search.engine import Candidate, Engine
from askalike.search.query import PreparedQuery
from askalike.types import Question, Stage


class Scored(msgspec.Struct, frozen=True, gc=False):
    """A candidate's score, and what it was made of."""

    key: int
    score: float
    components: Mapping[str, float]


Source = Literal["lexical", "vectors"]

COMPONENTS: Mapping[Source, str] = {"lexical": "bm25", "vectors": "cosine"}
"""Source → the name of its score in a hit's components."""

_STAGES: Mapping[Source, Stage] = {"lexical": "lexical", "vectors": "vector"}


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


DEEPER = 4
"""Where the best of the weighted sum alone are read, so many times more are asked of words than are candidates. It
takes hardly longer, and tells of most that meaning found what they have by words, and of the others how little."""


@dataclass(frozen=True, slots=True)
class Pool:
    """All candidates of one search.

    Args:
        keys: of all candidates.
        scores: source → key → score. Of some candidates that words alone or meaning alone found, the other is missing:
            by words they have too little to be among the best.
        is_exhausted: no source has more.
        count: so many are looked at, the best by the weighted sum.
        weight: w of ``w · cos(q, p) + (1 - w) · bm25(q, p) / max_p' bm25(q, p')``.
    """

    engine: Engine
    query: PreparedQuery
    keys: tuple[int, ...]
    scores: Mapping[Source, Mapping[int, float]]
    is_exhausted: bool
    count: int = 0
    weight: float = 0.0
    _read: dict[int, Question | None] = field(default_factory=dict)

    def questions(self, keys: Sequence[int]) -> dict[int, Question]:
        """Return the questions with these keys, each read once for a pool; those that have gone are left out."""
        if missing := [key for key in keys if key not in self._read]:
            read = self.engine.questions(missing)
            self._read.update({key: read.get(key) for key in missing})
        return {key: question for key in keys if (question := self._read[key]) is not None}


def gather_from_one(engine: Engine, query: PreparedQuery, source: Source, limit: int, laps: Laps) -> Pool:
    """Return the ``limit`` best of one source."""
    candidates = _candidates(engine, query, source, limit, limit)
    laps.end(_STAGES[source])
    keys = tuple(key for key, _ in candidates)
    return Pool(engine, query, keys, {source: dict(candidates)}, len(candidates) < limit)


def gather(
    engine: Engine,
    query: PreparedQuery,
    sources: Sequence[Source],
    limit: int,
    laps: Laps,
    count: int,
    weight: float,
) -> Pool:
    """Return the union of the ``limit`` best of each source; a candidate of one is scored by the others too.

    Args:
        count, weight: so many of them alone are looked at, the best by the weighted sum; see ``Pool``.
    """
    best: dict[Source, Sequence[Candidate]] = {}
    matched: Sequence[Candidate] = ()
    for source in sources:
        best[source] = _candidates(engine, query, source, DEEPER * limit if source == "lexical" else limit, limit)
        if source == "lexical":
            matched, best[source] = best[source], best[source][:limit]
        laps.end(_STAGES[source])
    keys = dict.fromkeys(key for candidates in best.values() for key, _ in candidates)
    scores = {source: dict(candidates) for source, candidates in best.items()}
    unmatched, far = ([key for key in keys if key not in scores.get(source, keys)] for source in COMPONENTS)
    if unmatched or far:
        needed = partial(_needed, matched, DEEPER * limit, scores, unmatched, count, weight)
        for source, more in zip(
            COMPONENTS, engine.scores(query.weights, unmatched, query.vector, far, needed), strict=True
        ):
            scores.setdefault(source, {}).update(more)
    laps.end("rank")
    is_exhausted = all(len(candidates) < limit for candidates in best.values())
    return Pool(engine, query, tuple(keys), scores, is_exhausted, count, weight)


def _candidates(engine: Engine, query: PreparedQuery, source: Source, limit: int, settled: int) -> Sequence[Candidate]:
    """Return the best of one source, by score descending.

    Args:
        settled: as ``CandidateSource.lexical`` takes it.
    """
    if source == "lexical":
        return engine.lexical(query.weights, limit, query.query.filters, settled)
    if query.near is not None and query.near[0] == limit:
        return query.near[1]
    return [] if query.vector is None else engine.nearest(query.vector[None], limit, query.query.filters)[0]


def _needed(
    matched: Sequence[Candidate],
    limit: int,
    known: Mapping[Source, dict[int, float]],
    unmatched: Sequence[int],
    count: int,
    weight: float,
    cosines: Mapping[int, float],
) -> list[int]:
    """Return which of the questions that meaning alone found have still to be scored by words: mostly none.

    What ``matched`` tells of them is noted. The others have no more by words than the last of it; one that would not be
    among the ``count`` best with that much is not scored::

        w · cos(q, p) + (1 - w) · least / most < the count-th of the sums that are known, and of w · cos of the others

    Args:
        matched: best by words; fewer than ``limit`` where no other has a word.
        cosines: of those that words alone found.
    """
    lexical, near = known["lexical"], known["vectors"]
    deeper = dict(matched)
    lexical.update((key, deeper[key]) for key in unmatched if key in deeper)
    others = [key for key in unmatched if key not in deeper]
    if len(matched) < limit:
        return []
    (_, most), (_, least) = matched[0], matched[-1]
    sums = [weight * near[key] for key in others]
    for key, score in lexical.items():
        sums.append(weight * near.get(key, cosines.get(key, 0.0)) + (1.0 - weight) * (score / most))
    bound = heapq.nlargest(count, sums)[-1] if len(sums) >= count else -math.inf
    rest = (1.0 - weight) * (least / most)
    return [key for key in others if weight * near[key] + rest >= bound]
