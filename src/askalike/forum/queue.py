"""The pairs that people are asked to judge: the likeliest that are open, and between them some that chance draws.

What is said of the likeliest tells nothing of the rest. So every ``EVERY``-th pair comes from a sample over the whole
range of probability: from each stratum alike, and in it by a number that belongs to the pair for good. Which pairs are
in the sample does not depend on what else was shown or judged.

Source: Ohlsson, "Coordination of Samples Using Permanent Random Numbers", in Business Survey Methods, 1995.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from askalike.forum.duplicates import Duplicate, has_tag
from askalike.forum.pairs import KEPT_BELOW, LEAST_SCORE, Pairs
from askalike.store.pairs import Pair, PairPosition, permanent_number
from askalike.types import Draw

EVERY: Final = 5
"""One pair of this many is of the sample."""

BORDERS: Final = (0.03, LEAST_SCORE, 0.25, 0.5, 0.75, 0.9)
"""Between the strata of probability."""

DRAWN: Final = 200
"""So many of each stratum are drawn, as long as it has as many."""

SHOWN: Final = 20
"""So many pairs are looked up at a time."""

FRESH_S: Final = 20.0
"""The sample is looked up anew after so long, where pairs have changed."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A pair, and how it was drawn."""

    pair: Pair
    draw: Draw


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """Where a page ended.

    Args:
        likely: the last of the likeliest, None before the first.
        shown: pairs of the pages up to here.
        drawn: the key of the last of the sample.
    """

    likely: PairPosition | None = None
    shown: int = 0
    drawn: float = -1.0


@dataclass(frozen=True, slots=True)
class Stratum:
    """Pairs of like probability.

    Args:
        low, high: of the probability; high is not included but in the last.
        pairs: how many are open, by those that are kept.
        kept: the share of all such pairs that is kept.
    """

    low: float
    high: float
    pairs: int
    kept: float = 1.0


def stratum_of(probability: float) -> int:
    """Return the number of the stratum of a probability, 0 the least.

    >>> [stratum_of(probability) for probability in (0.0, 0.1, 0.6, 1.0)]
    [0, 2, 4, 6]
    """
    return bisect_right(BORDERS, probability)


class Queue:
    """Pages of pairs to judge; any thread may ask."""

    def __init__(self, pairs: Pairs, seed: int = 0) -> None:
        self.pairs = pairs
        self.seed = seed
        self._guard = threading.Lock()
        self._known: tuple[str, float, list[tuple[float, Proposal]]] = ("", 0.0, [])

    def page(
        self, minimum: float, limit: int, after: QueuePlace | None = None
    ) -> tuple[list[Proposal], QueuePlace | None]:
        """Return open pairs to judge, and the place to go on from, None at the end; none comes twice.

        Args:
            minimum: the least score of those that come by their score; the sample has others too.
        """
        place = after or QueuePlace()
        shown, drawn, position = place.shown, place.drawn, place.likely
        sample = self._sample()
        keys = {(proposal.pair.first, proposal.pair.second): key for key, proposal in sample}
        waiting = iter([entry for entry in sample if entry[0] > drawn])
        proposals: list[Proposal] = []
        for pair in self._likely(minimum, position):
            while (shown + 1) % EVERY == 0 and len(proposals) < limit:
                entry = next((entry for entry in waiting if self._is_new(entry[1].pair, position)), None)
                if entry is None:
                    break
                drawn = entry[0]
                proposals.append(entry[1])
                shown += 1
            if len(proposals) == limit:
                return proposals, QueuePlace(position, shown, drawn)
            position = PairPosition(pair.score, pair.first, pair.second)
            if keys.get((pair.first, pair.second), drawn + 1) > drawn:
                proposals.append(Proposal(pair, Draw("queue", pair.score)))
                shown += 1
        return proposals, None

    def proposals(self, minimum: float | str = 0.5, *, tag: str = "") -> Iterator[Duplicate]:
        """Yield pairs for a person to judge, as far as was compared: the likeliest open ones, and drawn ones between.

        Every fifth is drawn by chance over the whole range of probability. ``Forum.judge`` takes a pair's ``draw``.

        Args:
            minimum: of the likeliest ones, as ``Pairs.duplicates`` takes it.
            tag: only pairs of which a question has it, whatever its case; "" for all.

        Raises:
            SettingError: the minimum is no probability.
        """
        return self._proposals(self.pairs.least_score(minimum), tag)

    def _proposals(self, minimum: float, tag: str) -> Iterator[Duplicate]:
        place = None
        while True:
            queued, place = self.page(minimum, SHOWN, place)
            draws = [proposal.draw for proposal in queued]
            for pair in self.pairs.describe([proposal.pair for proposal in queued], draws):
                if has_tag((*pair.question.tags, *pair.candidate.tags), tag):
                    yield pair
            if place is None:
                return

    def strata(self) -> list[Stratum]:
        """Return the strata of the open pairs."""
        ends = (0.0, *BORDERS, 2.0)
        store = self.pairs.store
        return [
            Stratum(low, high, store.count(low, high), KEPT_BELOW if high <= LEAST_SCORE else 1.0)
            for low, high in pairwise(ends)
        ]

    def _is_new(self, pair: Pair, position: PairPosition | None) -> bool:
        """Return whether a pair of the sample is open, and was not among the likeliest already."""
        is_passed = position is not None and (-pair.score, pair.first, pair.second) <= (
            -position.score,
            position.first,
            position.second,
        )
        return not is_passed and not self.pairs.is_settled(pair)

    def _likely(self, minimum: float, position: PairPosition | None) -> Iterator[Pair]:
        while True:
            pairs, position = self.pairs.page(minimum, EVERY, position)
            yield from pairs
            if position is None:
                return

    def _sample(self) -> list[tuple[float, Proposal]]:
        """Return the pairs of the sample in the order in which they come, each with a key by which one goes on."""
        version = self.pairs.store.state("version") or ""
        with self._guard:
            known = self._known
            if known[0] != version and time.monotonic() >= known[1]:
                sample = sorted(self._drawn(), key=lambda entry: (entry[0], entry[1].pair.first, entry[1].pair.second))
                known = self._known = (version, time.monotonic() + FRESH_S, sample)
        return known[2]

    def _drawn(self) -> Iterator[tuple[float, Proposal]]:
        for stratum in self.strata():
            for pair in self.pairs.store.drawn(stratum.low, stratum.high, DRAWN, self.seed):
                key = permanent_number(pair.first, pair.second, self.seed) * stratum.pairs
                yield key, Proposal(pair, Draw("sample", pair.score))
