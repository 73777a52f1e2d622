"""What probabilities promise in a forum: the least that keeps a promise, and how right they were on judged pairs.

A pair's probability is that before the forum's judgements changed any, so that no judgement is measured by itself.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.forum.calibrations import JudgedPair
from askalike.forum.indexes import Indexes
from askalike.forum.queue import Queue, stratum_of
from askalike.search import Searcher
from askalike.search.calibration import UNMOVED, Update, moved_probabilities, unmoved_probabilities
from askalike.search.correction import no_speller
from askalike.search.scorer import USUAL, WORDS, probability
from askalike.search.thresholds import (
    UNKNOWN,
    Floats,
    Promise,
    Share,
    Threshold,
    clopper_pearson,
    drawn_threshold,
    expected_threshold,
    needed,
    parse_minimum,
)
from askalike.store import Store
from askalike.store.pairs import permanent_number
from askalike.types import Query, ReliabilityBin

FEW_PAIRS: Final = 200
COMPARING_S: Final = 5.0
"""Where fewer pairs are known than that, questions are compared for so long first."""

LOOKED_AT: Final = 2000
"""So many open pairs of each stratum stand for all of it."""

FRESH_S: Final = 60.0


class Thresholds:
    """The thresholds of a forum; any thread may ask. They are worked out again when people have judged."""

    def __init__(self, store: Store, indexes: Indexes, queue: Queue) -> None:
        self._store = store
        self._indexes = indexes
        self._queue = queue
        self._guard = threading.Lock()
        self._known: dict[Promise, tuple[object, float, Threshold]] = {}

    def least(self, minimum: float | str, query: Query | None = None) -> float:
        """Return the least probability that a setting asks for: itself, by a promise, or the default of a widget.

        Where nothing keeps the promise, it is 1: texts that are the same alone are shown.

        Args:
            query: by whose language's encoder the default is; None for the forum's.

        Raises:
            SettingError: it is none of these.
        """
        wanted = parse_minimum(minimum)
        if wanted is None:
            return self._indexes.ask(partial(_usual, query=query))
        if isinstance(wanted, float):
            return wanted
        found = self.of(wanted)
        return 1.0 if found.minimum is None else found.minimum

    def least_score(self, minimum: float | str) -> float:
        """Return the least score of likely pairs that a setting asks for; see ``least``.

        A promise is kept by probabilities that judgements have moved; a number is that of scores before.

        Raises:
            SettingError: it is none of these, or above 1.
        """
        least = self.least(minimum)
        if least > 1:
            raise SettingError(f"the least score of a pair is {least:g}", "expected a number from 0 to 1, or a promise")
        return least if least == parse_minimum(minimum) else unmoved_probabilities(self.update(), [least])[0]

    def likelihoods(self, scores: Sequence[float]) -> list[float]:
        """Return how likely pairs with these scores ask the same, by what people of this forum judged meanwhile."""
        return moved_probabilities(self.update(), scores)

    def update(self) -> Update:
        """Return what the forum's judgements change in logits."""
        return self._indexes.ask(lambda searcher: UNMOVED if searcher.scoring is None else searcher.scoring.update)

    def of(self, promise: Promise) -> Threshold:
        """Return the threshold of a promise."""
        state = (self._store.judgement_version(), self._indexes.state().model)
        with self._guard:
            known = self._known.get(promise)
            if known is None or known[0] != state or time.monotonic() > known[1]:
                known = (state, time.monotonic() + FRESH_S, self._made(promise))
                self._known[promise] = known
        return known[2]

    def _made(self, promise: Promise) -> Threshold:
        pairs = self._queue.pairs
        if pairs.store.count() < FEW_PAIRS and pairs.waiting():
            pairs.advance(COMPARING_S)
        update = self.update()
        judged = self._indexes.judged()
        strata = np.array([stratum_of(float(probability(np.array(one.logit)))) for one in judged], dtype=np.int64)
        sizes = np.array([one.pairs / one.kept for one in self._queue.strata()])
        sizes += np.bincount(strata, minlength=len(sizes))
        chosen = self._of_sample(judged, strata)
        drawn = [judged[place] for place in chosen]
        count = len(drawn)
        if count:
            likely = probability(update.moved(np.array([one.logit for one in drawn])))
            is_same = np.array([float(one.is_same) for one in drawn])
            minimum, share = drawn_threshold(promise, likely, is_same, strata[chosen], sizes)
            missing = [one for one in range(len(sizes)) if sizes[one] and one not in strata[chosen]]
            if minimum is not None and all(one > stratum_of(minimum) for one in missing if promise.kind == "recall"):
                about = f"rests on {count:,} judged pairs that were drawn by chance"
                return Threshold(promise, minimum, share, count, about)
        labelled = [pair for pair in judged if pair.by == "label"]
        if labelled:
            likely = probability(update.moved(np.array([pair.logit for pair in labelled])))
            is_so = np.array([pair.is_same for pair in labelled])
            minimum, share = labelled_threshold(promise, likely, is_so, components([pair.pair for pair in labelled]))
            if minimum is not None:
                return Threshold(promise, minimum, share, len(labelled), about_labels(len(labelled)))
        minimum, share = self._expected(promise, judged, update)
        why = (
            f"{count:,} judged pairs were drawn by chance, too few to tell"
            if count
            else "no judged pair was drawn by chance"
        )
        least = 2 * needed(promise.share)
        kind = "likely pairs" if promise.kind == "precision" else "duplicates"
        about = (
            f"an estimate, not a promise: it rests on the scorer's calibration on other forums: {why} (it takes at"
            f" least {least:,} {kind} of the sample, which people judge with askalike judge or on the page's Review)"
        )
        if minimum is None:
            about = f"no probability promises that in this forum; {why}"
        return Threshold(promise, minimum, share, 0, about)

    def _of_sample(self, judged: list[JudgedPair], strata: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of the judged pairs that are of the sample: those that were drawn, and those of the queue
        that would have been drawn by now."""
        numbers = [permanent_number(min(one.pair), max(one.pair), self._queue.seed) for one in judged]
        reached: dict[int, float] = {}
        for one, number, stratum in zip(judged, numbers, strata.tolist(), strict=True):
            if one.by == "sample":
                reached[stratum] = max(reached.get(stratum, 0.0), number)
        found = [
            place
            for place, (one, number, stratum) in enumerate(zip(judged, numbers, strata.tolist(), strict=True))
            if one.by in ("sample", "queue") and number <= reached.get(stratum, -1.0)
        ]
        return np.array(found, dtype=np.int64)

    def _expected(self, promise: Promise, judged: list[JudgedPair], update: Update) -> tuple[float | None, Share]:
        scores, weights = [float(probability(np.array(one.logit))) for one in judged], [1.0] * len(judged)
        store = self._queue.pairs.store
        for one in self._queue.strata():
            found = store.drawn(one.low, one.high, LOOKED_AT, self._queue.seed)
            scores += [pair.score for pair in found]
            weights += [one.pairs / one.kept / max(1, len(found))] * len(found)
        return expected_threshold(promise, np.array(moved_probabilities(update, scores)), np.array(weights))


def components(pairs: Sequence[tuple[Hashable, Hashable]]) -> NDArray[np.int64]:
    """Return the number of each pair's component: pairs that share a question, directly or by others, are in one.

    >>> components([("a", "b"), ("c", "d"), ("b", "e")]).tolist()
    [0, 1, 0]
    """
    parents: dict[Hashable, Hashable] = {}

    def root(end: Hashable) -> Hashable:
        while (parent := parents.setdefault(end, end)) != end:
            parents[end] = end = parents[parent]
        return end

    for first, second in pairs:
        parents[root(second)] = root(first)
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(root(first), len(numbers)) for first, _ in pairs], dtype=np.int64)


def clustered_share(is_so: NDArray[np.bool_], clusters: NDArray[np.int64]) -> Share:
    """Return the share of pairs that are so, with the limits of as many independent ones as they are worth. ::

        n* = (Σ n_c)² / Σ n_c²        n_c: pairs of component c, which may all be so for one reason

    Source: Kish, "Survey Sampling", 1965, section 8.2, with full correlation within a component; Clopper and Pearson,
    1934, for the limits.

    Example:
        Of two pairs that share a question and two others, three are so: worth 4² / (2² + 1 + 1) = 2.67.

        >>> share = clustered_share(np.array([True, True, True, False]), np.array([0, 0, 1, 2]))
        >>> share.value, round(share.worth, 2)
        (0.75, 2.67)
    """
    counts = np.unique(clusters, return_counts=True)[1].astype(np.float64)
    if not len(counts):
        return UNKNOWN
    value, worth = float(is_so.mean()), float(counts.sum() ** 2 / (counts @ counts))
    low, high = clopper_pearson(round(value * worth, 9), round(worth, 9))
    return Share(value, low, high, worth)


MOST_TRIED: Final = 300
"""So many thresholds are tried at most, one after the other from the safe end."""


def labelled_threshold(
    promise: Promise, likely: Floats, is_same: NDArray[np.bool_], clusters: NDArray[np.int64]
) -> tuple[float | None, Share]:
    """Return the threshold that labelled pairs prove for pairs like them, and the share there; None where none.

    Thresholds are tried from the safe end, as ``search.thresholds`` does it.

    Args:
        likely: probabilities of the pairs.  # (N,)
        clusters: of each pair, its component.  # (N,)
    """
    at = np.argsort(-likely, kind="stable")
    likely, is_same, clusters = likely[at], is_same[at], clusters[at]
    ends = np.flatnonzero(np.append(likely[1:] < likely[:-1], True)) if len(likely) else np.array([], dtype=np.int64)
    ends = ends[ends + 1 >= 2 * needed(promise.share)] if promise.kind == "precision" else ends[::-1]
    proven: tuple[float | None, Share] = (None, UNKNOWN)
    for place in ends[np.unique(np.linspace(0, len(ends) - 1, MOST_TRIED).astype(int))] if len(ends) else ():
        share = share_at(promise.kind, likely, is_same, clusters, float(likely[place]))
        if share.low < promise.share:
            return proven if proven[0] is not None else (None, share)
        proven = float(likely[place]), share
    return proven


def share_at(
    kind: str, likely: Floats, is_same: NDArray[np.bool_], clusters: NDArray[np.int64], minimum: float
) -> Share:
    """Return the precision or recall of the pairs from a probability on."""
    is_shown = likely >= minimum
    if kind == "precision":
        return clustered_share(is_same[is_shown], clusters[is_shown])
    return clustered_share(is_shown[is_same], clusters[is_same])


def about_labels(count: int) -> str:
    """Return on what a threshold rests that labels prove."""
    return f"rests on {count:,} labelled pairs, and holds for pairs that are drawn as they were"


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
            query = Query(asked.title, asked.body, asked.markup, language=asked.language)
            likely = self._indexes.ask(partial(_likely, query=query, key=other))
            if likely is not None:
                found.append((likely, one.verdict == "duplicate"))
        return found


def _usual(searcher: Searcher, query: Query | None) -> float:
    scoring = searcher.scoring
    return USUAL[WORDS if scoring is None else scoring.version]


def _likely(searcher: Searcher, query: Query, key: int) -> float | None:
    scoring = None if searcher.scoring is None else replace(searcher.scoring, update=UNMOVED)
    return replace(searcher, speller_of=no_speller, scoring=scoring).likelihoods(query, [key]).get(key)
