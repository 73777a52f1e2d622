"""Pages of the pairs and clusters of a forum that may ask the same."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from msgspec import structs

from askalike.errors import SettingError
from askalike.forum import Forum
from askalike.forum.pairs import LEAST_SCORE, Cluster, clusters
from askalike.forum.queue import QueuePlace
from askalike.schemas import ClustersPage, Compared, ListedQuestion, PairsPage, ShownCluster, ShownPair
from askalike.server.presentation import listed, shown_likelihood
from askalike.store.pairs import Pair, PairPosition
from askalike.types import Draw, Question

MOST_SHOWN: Final = 20
MOST_PAIRS: Final = 100_000
"""Clusters are made of so many of the best pairs at most."""
LEVELS: Final = 20
"""Clusters are made for least scores in steps of one twentieth, whatever minimum is asked for."""
MOST_KEPT: Final = 6
"""So many of these are kept, those last asked for."""
FRESH_S: Final = 5.0
FRESH_SHARE: Final = 20
"""While pairs change, clusters are made anew only after so long, and after so many times what making them took."""

_LATEST: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Known:
    """The clusters of one least score, and of which version of the pairs."""

    version: str
    fresh_until_s: float
    found: tuple[Cluster, ...]
    of: Mapping[int, int]


class DuplicatePages:
    """The pairs of a forum as pages; any thread may ask."""

    def __init__(self, forum: Forum) -> None:
        self._forum = forum
        self._guard = threading.Lock()
        self._known: OrderedDict[int, _Known] = OrderedDict()
        self._turns = tuple(threading.Lock() for _ in range(LEVELS + 1))

    def pairs(self, cursor: str | None, limit: int, minimum: float, *, has_sample: bool = False) -> PairsPage:
        """Return a page of pairs, best first.

        Args:
            has_sample: between them pairs that chance draws over the whole range of probability.

        Raises:
            SettingError: the cursor is none.
        """
        if has_sample:
            proposals, at = self._forum.queue.page(minimum, limit, _queue_place(cursor) if cursor else None)
            pairs, draws = [one.pair for one in proposals], [one.draw for one in proposals]
            ended = _queue_cursor(at) if at else None
        else:
            pairs, place = self._forum.pairs.page(minimum, limit, _place(cursor) if cursor else None)
            draws, ended = [Draw()] * len(pairs), _cursor(place) if place else None
        of = self._clusters(minimum).of
        nums = [num for pair in pairs for num in (pair.first, pair.second)]
        held, briefs = self._briefs(nums)
        likely = self._forum.likelihoods([pair.score for pair in pairs])
        shown = tuple(
            self._pair(pair, held, briefs, of, structs.replace(draw, probability=likelihood))
            for pair, draw, likelihood in zip(pairs, draws, likely, strict=True)
            if held.keys() >= {pair.first, pair.second}
        )
        return PairsPage(shown, ended, self.progress())

    def clusters(self, cursor: str | None, limit: int, minimum: float) -> ClustersPage:
        """Return a page of clusters, largest first.

        Args:
            minimum: the least score of a pair, rounded down to a multiple of 1 / ``LEVELS``.

        Raises:
            SettingError: the cursor is none.
        """
        found = self._clusters(minimum).found
        if cursor:
            size, identifier = _numbers(cursor, 2)
            found = tuple(one for one in found if (-len(one.nums), one.id) > (-int(size), int(identifier)))
        page = found[:limit]
        shown = [self._cluster(one) for one in page]
        last = f"{len(page[-1].nums)}_{page[-1].id}" if len(found) > limit else None
        return ClustersPage(tuple(one for one in shown if one is not None), last, self.progress())

    def progress(self) -> Compared:
        """Return how many questions have been compared."""
        size = self._forum.size()
        return Compared(max(0, size - self._forum.pairs.waiting()), size)

    def _pair(
        self,
        pair: Pair,
        held: Mapping[int, Question],
        briefs: Mapping[int, ListedQuestion],
        of: Mapping[int, int],
        draw: Draw,
    ) -> ShownPair:
        earlier, later = sorted((pair.first, pair.second), key=lambda num: (held[num].created or _LATEST, num))
        return ShownPair(
            question=briefs[later],
            candidate=briefs[earlier],
            score=pair.score,
            cosine=pair.cosine,
            likelihood=shown_likelihood(draw.probability),
            cluster=of.get(pair.first, pair.first),
            draw=draw,
        )

    def _cluster(self, cluster: Cluster) -> ShownCluster | None:
        """Return a cluster with its canonical question: answered, not a duplicate, most voted, first."""
        nums = cluster.nums[: 10 * MOST_SHOWN]
        held, briefs = self._briefs(nums)
        marked = {
            link.source_id
            for question in held.values()
            for link in self._forum.links_of(question.id)
            if link.kind == "duplicate"
        }

        def rank(num: int) -> tuple[bool, bool, int, datetime, int]:
            one = briefs[num]
            return (one.id in marked, not one.answers, -(one.score or 0), held[num].created or _LATEST, num)

        ordered = sorted(held, key=rank)
        if not ordered:
            return None
        shown = tuple(briefs[num] for num in ordered[:MOST_SHOWN])
        return ShownCluster(shown[0], len(cluster.nums), cluster.pairs, cluster.best, shown)

    def _briefs(self, nums: Sequence[int]) -> tuple[dict[int, Question], dict[int, ListedQuestion]]:
        held = self._forum.questions_by_number(list(dict.fromkeys(nums)))
        counts = self._forum.answer_counts([question.id for question in held.values()])
        return held, {num: listed(question, counts.get(question.id, 0)) for num, question in held.items()}

    def _clusters(self, minimum: float) -> _Known:
        """Return the clusters of a least score, made anew when the pairs have changed.

        Who makes them holds up nobody but those who ask for the same and have nothing older to be shown.
        """
        level = math.floor(max(minimum, LEAST_SCORE) * LEVELS + 1e-9)
        version = self._forum.pairs.store.state("version") or ""
        known = self._kept(level)
        if known is not None and (known.version == version or time.monotonic() < known.fresh_until_s):
            return known
        if known is None:
            self._turns[level].acquire()
        elif not self._turns[level].acquire(blocking=False):
            return known
        try:
            newer = self._kept(level)
            return newer if newer is not None and newer is not known else self._made(level, version)
        finally:
            self._turns[level].release()

    def _kept(self, level: int) -> _Known | None:
        with self._guard:
            if level in self._known:
                self._known.move_to_end(level)
            return self._known.get(level)

    def _made(self, level: int, version: str) -> _Known:
        began = time.monotonic()
        found = tuple(clusters(self._open_pairs(level / LEVELS), self._marks()))
        of = {num: one.id for one in found for num in one.nums}
        ended = time.monotonic()
        made = _Known(version, ended + max(FRESH_S, FRESH_SHARE * (ended - began)), found, of)
        with self._guard:
            self._known[level] = made
            self._known.move_to_end(level)
            while len(self._known) > MOST_KEPT:
                self._known.popitem(last=False)
        return made

    def _open_pairs(self, minimum: float) -> Iterable[Pair]:
        return self._forum.pairs.store.page(minimum, MOST_PAIRS)

    def _marks(self) -> list[tuple[int, int]]:
        links = [link for link in self._forum.links() if link.kind == "duplicate"]
        nums = self._forum.numbers(list({one for link in links for one in (link.source_id, link.target_id)}))
        ends = [(nums.get(link.source_id), nums.get(link.target_id)) for link in links]
        return [(one, other) for one, other in ends if one is not None and other is not None]


def _cursor(place: PairPosition) -> str:
    return f"{place.score!r}_{place.first}_{place.second}"


def _place(cursor: str) -> PairPosition:
    score, first, second = _numbers(cursor, 3)
    return PairPosition(score, int(first), int(second))


def _queue_cursor(place: QueuePlace) -> str:
    return f"{_cursor(place.likely or PairPosition(2.0, 0, 0))}_{place.shown}_{place.drawn!r}"


def _queue_place(cursor: str) -> QueuePlace:
    score, first, second, shown, drawn = _numbers(cursor, 5)
    return QueuePlace(PairPosition(score, int(first), int(second)), int(shown), drawn)


def _numbers(cursor: str, count: int) -> list[float]:
    try:
        found = [float(one) for one in cursor.split("_")]
        if len(found) != count or not all(abs(one) < 2**53 for one in found):
            raise ValueError(cursor)
    except ValueError as error:
        raise SettingError("the cursor is none that a page has given", "take the next of the page before") from error
    return found
