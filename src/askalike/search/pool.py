"""The candidates of one search: the best of each source, each with the scores that both sources give to it."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from askalike.search.engine import Candidate, Encoder, Engine, WordEncoder
from askalike.search.query import PreparedQuery
from askalike.types import Question, Stage


class Scored(msgspec.Struct, frozen=True, gc=False):
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


DEEPER = 4
"""Where the best of the weighted sum alone are read, so many times more are asked of words than are candidates. It
takes hardly longer, and tells of most that meaning found what they have by words, and of the others how little."""


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
        known: source → key → score; for a ranker that looks at the best of the weighted sum alone, in place of
            candidates. Some that are not among these lack their score by words.
        keys: of all candidates, then.
        read: so many are looked at, and w of ``w · cos(q, p) + (1 - w) · bm25(q, p) / max_p' bm25(q, p')``.
    """

    engine: Engine
    asked: PreparedQuery
    candidates: tuple[Pooled, ...]
    is_exhausted: bool
    encoder: WordEncoder | None = None
    known: Mapping[Source, Mapping[int, float]] = field(default_factory=dict)
    keys: tuple[int, ...] = ()
    read: tuple[int, float] = (0, 0.0)
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
    encoder: Encoder | None,
    laps: Laps,
    read: tuple[int, float] | None = None,
) -> Pool:
    """Return the union of the ``limit`` best of each source; a candidate of one is scored by the others too.

    Args:
        read: so many of them alone are looked at, the best by the weighted sum, and w; see ``Pool``.
    """
    filters = asked.query.filters
    found: dict[Source, Sequence[Candidate]] = {}
    ranks: dict[int, dict[Source, int]] = {}
    for source in sources:
        if source == "lexical":
            matched = engine.lexical(asked.weights, limit if read is None else DEEPER * limit, filters, limit)
            found[source] = matched[:limit]
        elif source == "spelling":
            found[source] = engine.misspelt(asked.unknown, limit, filters) if asked.unknown else []
        elif asked.near is not None and asked.near[0] == limit:
            found[source] = asked.near[1]
        else:
            found[source] = [] if asked.vector is None else engine.nearest(asked.vector[None], limit, filters)[0]
        for rank, (key, _) in enumerate(found[source], start=1):
            ranks.setdefault(key, {})[source] = rank
        laps.end(_STAGES[source])
    known: dict[Source, dict[int, float]] = {
        source: dict(some) for source, some in found.items() if source in COMPONENTS
    }
    unmatched, far = ([key for key in ranks if key not in known.get(one, ranks)] for one in COMPONENTS)
    if unmatched or far:
        needed = None if read is None else partial(_needed, matched, DEEPER * limit, known, unmatched, *read)
        scored = engine.scores(asked.weights, unmatched, asked.vector, far, needed)
        for source, scores in zip(COMPONENTS, scored, strict=True):
            known.setdefault(source, {}).update(scores)
    laps.end("rank")
    is_exhausted = all(len(one) < limit for one in found.values())
    if read is not None:
        return Pool(engine, asked, (), is_exhausted, None, known, tuple(ranks), read)
    names = [(COMPONENTS[source], known[source]) for source in sources if source in COMPONENTS]
    components = {key: {name: scores.get(key, 0.0) for name, scores in names} for key in ranks}
    pooled = tuple(Pooled(key, components[key], places) for key, places in ranks.items())
    words = encoder if isinstance(encoder, WordEncoder) else None
    return Pool(engine, asked, pooled, is_exhausted, words)


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
