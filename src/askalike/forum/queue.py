"""The pairs that people are asked to judge: the likeliest that are open, and between them some that chance draws; and
what moderators do with them: take, note, decide, undo.

What is said of the likeliest tells nothing of the rest. So every ``EVERY``-th pair comes from a sample over the whole
range of probability: from each stratum alike, and in it by a number that belongs to the pair for good. Which pairs are
in the sample does not depend on what else was shown or judged.

Source: Ohlsson, "Coordination of Samples Using Permanent Random Numbers", in Business Survey Methods, 1995.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Final

from askalike.errors import InputError, SettingError
from askalike.forum.pairs import KEPT_BELOW, LEAST_SCORE, Pairs
from askalike.settings import check_arguments, check_fields
from askalike.store import Store
from askalike.store.pairs import Pair, PairPosition, permanent_number
from askalike.types import Assignment, Decided, Draw, Feedback, LogEntry, Write, WriteState

EVERY: Final = 5
"""One pair in so many is of the sample (``python -m benchmarks.judgements``)."""

BORDERS: Final = (0.03, LEAST_SCORE, 0.25, 0.5, 0.75, 0.9)
"""Between the strata of probability."""

DRAWN: Final = 200
"""So many of each stratum are drawn, as long as it has as many."""

FRESH_S: Final = 20.0
"""The sample is looked up anew after so long, where pairs have changed."""


LONGEST: Final = timedelta(days=366)
"""Nobody takes a pair for longer, but until it is given back."""
_MICROSECOND: Final = timedelta(microseconds=1)
_ENTRIES: Final = 200
_ALL: Final = 2**62


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

    @property
    def propensity(self) -> float:
        """Return the share of such pairs that the sample draws."""
        return self.kept * min(1.0, DRAWN / max(1, self.pairs))


def stratum_of(probability: float) -> int:
    """Return the number of the stratum of a probability, 0 the least.

    >>> [stratum_of(one) for one in (0.0, 0.1, 0.6, 1.0)]
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
        keys = {(one.pair.first, one.pair.second): key for key, one in sample}
        waiting = iter([entry for entry in sample if entry[0] > drawn])
        found: list[Proposal] = []
        for pair in self._likely(minimum, position):
            while (shown + 1) % EVERY == 0 and len(found) < limit:
                entry = next((one for one in waiting if self._is_new(one[1].pair, position)), None)
                if entry is None:
                    break
                drawn = entry[0]
                found.append(entry[1])
                shown += 1
            if len(found) == limit:
                return found, QueuePlace(position, shown, drawn)
            position = PairPosition(pair.score, pair.first, pair.second)
            if keys.get((pair.first, pair.second), drawn + 1) > drawn:
                found.append(Proposal(pair, Draw("queue", pair.score)))
                shown += 1
        return found, None

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
            found, position = self.pairs.page(minimum, EVERY, position)
            yield from found
            if position is None:
                return

    def _sample(self) -> list[tuple[float, Proposal]]:
        """Return the pairs of the sample in the order in which they come, each with a key by which one goes on."""
        version = self.pairs.store.state("version") or ""
        with self._guard:
            known = self._known
            if known[0] != version and time.monotonic() >= known[1]:
                made = sorted(self._drawn(), key=lambda one: (one[0], one[1].pair.first, one[1].pair.second))
                known = self._known = (version, time.monotonic() + FRESH_S, made)
        return known[2]

    def _drawn(self) -> Iterator[tuple[float, Proposal]]:
        for one in self.strata():
            for pair in self.pairs.store.drawn(one.low, one.high, DRAWN, self.seed):
                key = permanent_number(pair.first, pair.second, self.seed) * one.pairs
                yield key, Proposal(pair, Draw("sample", pair.score, one.propensity))


@check_arguments
class Moderation:
    """What moderators do with pairs, stored with who did it and when; any thread may ask.

    A pair is two ids, of the duplicate and of its original where they are duplicates.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def decide(self, given: Sequence[Feedback], *, has_links: bool = True, is_preview: bool = False) -> Decided:
        """Store decisions of people, each a judgement too, in one step: all of them, or none.

        Args:
            has_links: a duplicate is linked to its original, which searches then show in its place.
            is_preview: store nothing, and return what would be stored and what refused.

        Raises:
            InputError: some cannot be stored, and nothing was: somebody else has taken a pair, or it was decided
                before, or a link would close a circle or lead to a duplicate.
        """
        if not given:
            raise InputError("no pair was given", "name one at least")
        found = self._store.decide(given, has_links=has_links, is_preview=is_preview)
        if found.refused and not is_preview:
            one, count = found.refused[0], len(found.refused)
            many = f"; {count} of {len(given)} cannot be stored, and nothing was" if len(given) > 1 else ""
            raise InputError(one.error + many, one.hint)
        return found

    def undo(self, numbers: Sequence[int] = (), *, bulk: str = "", by: str = "") -> list[LogEntry]:
        """Take decisions back in one step: those of some entries of the log, or what stands of a bulk.

        The judgement before each counts again. A link that a decision made goes, unless somebody else has made it too.
        What was written to another forum stays there; what waits to be is cancelled.

        Raises:
            UnknownIdError: there is no such entry or bulk.
            InputError: it is no decision, or undone already; nothing is undone then.
        """
        if bool(numbers) == bool(bulk):
            raise SettingError("expected the numbers of entries, or a bulk", "the log has both")
        if bulk:
            together = self._store.log(_ALL, bulk=bulk)
            numbers = [one.number for one in together if one.kind in ("duplicate", "different") and not one.undone]
            if not numbers:
                raise InputError(f"nothing stands of a bulk {bulk!r}", "look it up in the log")
        return self._store.undo(numbers, by)

    def last(self, by: str = "") -> LogEntry:
        """Return the newest decision that stands, of somebody or of all.

        Raises:
            InputError: there is none.
        """
        before = 0
        while found := self._store.log(_ENTRIES, before):
            for one in found:
                if one.kind in ("duplicate", "different") and not one.undone and by in ("", one.by):
                    return one
            before = found[-1].number
        raise InputError(f"no decision{f' of {by}' if by else ''} stands", "nothing is to be undone")

    def note(self, question_id: str, candidate_id: str, text: str, by: str = "") -> LogEntry:
        """Store a note on a pair.

        Raises:
            UnknownIdError: a question is not there.
            InputError: the text is empty or too long, or both are the same question.
        """
        return self._store.add_note(question_id, candidate_id, text, by)

    def log(
        self, limit: int = 50, before: int = 0, *, pair: tuple[str, str] | None = None, bulk: str = ""
    ) -> list[LogEntry]:
        """Return entries of the log, newest first.

        Args:
            before: only those with smaller numbers, to go on from a page; 0 for the first.
            pair: only those on this pair, either way round.
            bulk: only what was done together under this name.
        """
        return self._store.log(limit, before, pair=pair, bulk=bulk)

    def take(self, pairs: Sequence[tuple[str, str]], by: str, lasting: timedelta | None = None) -> list[Assignment]:
        """Let somebody have pairs, all or none; nobody else is shown them or can decide on them meanwhile.

        Args:
            lasting: for how long; None until they are given back, or decided.

        Raises:
            UnknownIdError: a question is not there.
            InputError: somebody else has one of them, one comes twice, or nobody is named.
            SettingError: the time is none.
        """
        if lasting is not None and not timedelta() < lasting <= LONGEST:
            raise SettingError(f"pairs are taken for {lasting}", f"expected up to {LONGEST.days} days, or no time")
        now_us = time.time_ns() // 1000
        return self._store.take_pairs(pairs, by, None if lasting is None else now_us + lasting // _MICROSECOND)

    def give_back(self, pairs: Sequence[tuple[str, str]], by: str | None) -> int:
        """Free pairs; return how many were taken.

        Args:
            by: who has them; None for whoever it is.

        Raises:
            InputError: somebody else has one of them; none is freed then.
        """
        return self._store.give_back(pairs, by)

    def assignments(self) -> list[Assignment]:
        """Return who has which pairs now, the oldest first."""
        return self._store.assignments()

    def taken(self) -> dict[frozenset[str], Assignment]:
        """Return who has which pairs now, by the two ids of each."""
        return {frozenset((one.question_id, one.candidate_id)): one for one in self._store.assignments()}

    # -- what is written back to a forum that is followed ------------------------------------------------------

    def decided_duplicates(self, source: str) -> list[LogEntry]:
        """Return the decisions that stand, by which a question is a duplicate of another of the same source."""
        return self._store.decided_duplicates(source)

    def outbox(self, target: str = "") -> list[Write]:
        """Return what was written to the forums that are followed, or to one, or waits to be, oldest first."""
        return self._store.outbox(target)

    def put_writes(self, wanted: Sequence[Write]) -> int:
        """Let things wait to be written that were not asked for before, or were cancelled; return how many."""
        for one in wanted:
            check_fields(one)
        return self._store.put_writes(wanted)

    def set_write(self, number: int, state: WriteState, why: str = "", *, is_try: bool = True) -> bool:
        """Note what became of a write; return False where it was cancelled meanwhile, which stays so unless done."""
        return self._store.set_write(number, state, why, is_try=is_try)

    def writing_alone(self) -> AbstractContextManager[None]:
        """Keep every other machine with the same store from writing back.

        Raises:
            BusyForumError: another one has been at it for too long.
        """
        return self._store.alone("writeback")
