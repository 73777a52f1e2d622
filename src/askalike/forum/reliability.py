"""Whether probabilities keep what they promise in a forum: what was said of the pairs that its people judged.

A pair's probability is that before the forum's judgements changed any, so that no judgement is measured by itself.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from askalike.forum.indexes import Indexes
from askalike.search import Searcher
from askalike.search.calibration import UNMOVED
from askalike.store import Store
from askalike.types import Query, ReliabilityBin

EDGES: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
MOST_JUDGED: Final = 500
"""The newest so many judgements are looked at."""
Z: Final = 1.96


def wilson(same: int, judged: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, judged > 0.

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", 1927.

    >>> [round(end, 3) for end in wilson(8, 10)]
    [0.49, 0.943]
    """
    share, spread = same / judged, Z * Z / judged
    middle = share + spread / 2
    wide = Z * math.sqrt(share * (1 - share) / judged + spread / judged / 4)
    return max(0.0, (middle - wide) / (1 + spread)), min(1.0, (middle + wide) / (1 + spread))


def bins(judged: Sequence[tuple[float, bool]]) -> tuple[ReliabilityBin, ...]:
    """Return the groups of probability that hold a judged pair, ascending.

    >>> found = bins([(0.7, True), (0.6, False), (1.0, True)])
    >>> [(one.least, one.judged, one.same, round(one.mean, 2)) for one in found]
    [(0.6, 2, 1, 0.65), (0.8, 1, 1, 1.0)]
    """
    made = []
    for place, least in enumerate(EDGES[:-1]):
        is_last = place == len(EDGES) - 2
        held = [(p, same) for p, same in judged if least <= p and (is_last or p < EDGES[place + 1])]
        if held:
            same = sum(is_same for _, is_same in held)
            mean = sum(p for p, _ in held) / len(held)
            made.append(ReliabilityBin(least, EDGES[place + 1], len(held), same, mean, *wilson(same, len(held))))
    return tuple(made)


class Reliability:
    """The judged pairs of a forum by their probability; worked out when a judgement has come, or another model."""

    def __init__(self, store: Store, indexes: Indexes) -> None:
        self._store = store
        self._indexes = indexes
        self._guard = threading.Lock()
        self._known: tuple[object, tuple[ReliabilityBin, ...]] = (None, ())

    def bins(self) -> tuple[ReliabilityBin, ...]:
        """Return the groups of probability that hold a judged pair, ascending."""
        with self._guard:
            version = (self._store.judgement_version(), self._indexes.state().model)
            if self._known[0] != version:
                self._known = (version, bins(list(self._judged())))
            return self._known[1]

    def _judged(self) -> list[tuple[float, bool]]:
        given = self._store.judgements()[-MOST_JUDGED:]
        nums = self._store.nums_by_id({name for one in given for name in (one.question_id, one.candidate_id)})
        held = self._store.questions_by_id([one.question_id for one in given])
        found = []
        for one in given:
            asked, other = held[one.question_id], nums[one.candidate_id]
            query = Query(asked.title, asked.body, asked.markup)
            likely = self._indexes.ask(partial(_likely, query=query, key=other))
            if likely is not None:
                found.append((likely, one.verdict == "duplicate"))
        return found


def _likely(searcher: Searcher, query: Query, key: int) -> float | None:
    scoring = None if searcher.scoring is None else replace(searcher.scoring, update=UNMOVED)
    return replace(searcher, speller=None, scoring=scoring).likelihoods(query, [key]).get(key)
