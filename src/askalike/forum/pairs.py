"""Which questions of a forum may ask the same: each is compared with all others, bit by bit, and again when it changes.

A question's partners are the best that a search for it finds. Their score is comparable between questions: the weighted
sum of the cosine and of BM25 as a share of what the question scores *itself*, instead of the best candidate::

    score(a, b) = w · cos(a, b) + (1 - w) · min(1, bm25(a, b) / bm25(a, a))

Of the two directions the greater counts. Pairs that are marked, lead to the same original, or were judged by a person
are settled, and are not listed.

Enters: a forum's archive and indexes. Leaves: pairs. May import: archive, rank, types, its own folder.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

import filelock

from askalike.archive import Archive, Layout, changed_questions, numbers, verdicts_on
from askalike.forum.indexes import Indexes
from askalike.forum.locks import held
from askalike.forum.pair_store import Pair, PairStore, Place
from askalike.rank import Query
from askalike.rank.originals import reached
from askalike.rank.scored import Scored
from askalike.rank.weighted_sum import weighted_sum
from askalike.types import Filters, Question

__all__ = ["Pairs"]

PARTNERS = 5
"""So many of the best are kept for each question."""

LEAST_SCORE = 0.3
"""Pairs below are not kept."""

CHANGES = 500
AT_ONCE = 20


class Pairs:
    """The pairs of a forum that may ask the same; any thread reads, one process at a time compares.

    Args:
        weight: of the cosine.
    """

    def __init__(self, layout: Layout, archive: Archive, indexes: Indexes, weight: float) -> None:
        self._archive = archive
        self._indexes = indexes
        self._weight = weight
        self._guard = threading.Lock()
        self._lock = filelock.FileLock(layout.pairs_lock, thread_local=False)
        self.store = PairStore(layout.pairs)

    def close(self) -> None:
        """Close the file."""
        self.store.close()

    def waiting(self) -> int:
        """Return how many questions are still to be compared, as far as changes were seen."""
        return self._archive.count_questions() if self._is_new() else self.store.waiting()

    def advance(self, seconds: float, is_stopped: Callable[[], bool] = lambda: False) -> int:
        """Compare questions that wait for about so long; return how many are left, 0 while another process is at it.

        What was compared is kept; a process that is killed leaves the rest to the next.
        """
        end = time.monotonic() + seconds
        if not self._guard.acquire(blocking=False):
            return 0
        try:
            with held(self._lock, 0):
                return self._advance(end, is_stopped)
        except filelock.Timeout:
            return 0
        finally:
            self._guard.release()

    def page(self, minimum: float, limit: int, after: Place | None = None) -> tuple[list[Pair], Place | None]:
        """Return open pairs of at least this score, best first, and the place to go on from, None at the end.

        A pair that was settled meanwhile is left out; pages are found by place, so that none is shown twice and none
        is passed over when others come and go.
        """
        found: list[Pair] = []
        place = after
        while part := self.store.page(minimum, limit, place):
            for pair in part:
                place = Place(pair.score, pair.first, pair.second)
                if not self.is_settled(pair):
                    found.append(pair)
                    if len(found) == limit:
                        return found, place
            if len(part) < limit:
                break
        return found, None

    def is_settled(self, pair: Pair) -> bool:
        """Return whether a pair is marked or judged, or one of it has gone."""
        held = self._archive.questions_by_num([pair.first, pair.second])
        if len(held) < 2:
            return True
        one, other = held[pair.first].id, held[pair.second].id
        return other in verdicts_on(self._archive, one) or bool(self._roots(one) & self._roots(other))

    def _advance(self, end: float, is_stopped: Callable[[], bool]) -> int:
        self._follow()
        while nums := self.store.next_waiting(AT_ONCE):
            for num in nums:
                self._compare(num)
                if is_stopped() or time.monotonic() > end:
                    return self.store.waiting()
        return 0

    def _roots(self, identifier: str) -> frozenset[str]:
        """Return a question and all that it leads to by marks: pairs whose ways meet are settled."""
        return frozenset((identifier, *reached(identifier, self._archive.originals)))

    def _is_new(self) -> bool:
        return self.store.state("made by") != self._made_by()

    def _made_by(self) -> str:
        """Return what the scores depend on: another model makes every pair anew."""
        return f"{self._indexes.state().model}, {self._weight}, {PARTNERS}, {LEAST_SCORE}"

    def _follow(self) -> None:
        """Note which questions have changed."""
        last = self._archive.last_change()
        applied = int(self.store.state("applied") or 0)
        if self._is_new() or applied > last:
            with self.store.writing() as store:
                store.clear()
                store.add_waiting(numbers(self._archive))
                store.keep("applied", str(last))
                store.keep("made by", self._made_by())
            return
        while applied < last and (changes := changed_questions(self._archive, applied, CHANGES)):
            edited = {change.num for change in changes if change.is_text}
            marked = {change.num for change in changes}
            held = self._archive.questions_by_num(sorted(marked)).keys()
            applied = changes[-1].seq
            with self.store.writing() as store:
                for num in edited:
                    pairs = store.of(num)
                    store.remove(pairs)
                    store.add_waiting(other for pair in pairs for other in (pair.first, pair.second) if other != num)
                for num in marked - held:
                    store.remove_waiting(num)
                store.add_waiting(marked & held)
                store.keep("applied", str(applied))
        if applied < last:
            with self.store.writing() as store:
                store.keep("applied", str(last))

    def _compare(self, num: int) -> None:
        question = self._archive.questions_by_num([num]).get(num)
        partners = [] if question is None else self._partners(num, question)
        settled = [pair for pair in self.store.of(num) if self.is_settled(pair)]
        with self.store.writing() as store:
            store.remove(settled)
            store.put([pair for pair in partners if not self.is_settled(pair)])
            store.remove_waiting(num)

    def _partners(self, num: int, question: Question) -> Sequence[Pair]:
        query = Query(question.title, question.body, question.markup)
        ranked = self._indexes.ask(lambda searcher: searcher.ranking(query, PARTNERS + 1, Filters()))
        own = next((scored for scored, _ in ranked.found if scored.key == num), None)
        if own is None:  # it has no telling word, or is not indexed yet
            return []
        scored = map(partial(self._pair, own), (one for one, _ in ranked.found if one.key != num))
        return [pair for pair in scored if pair.score >= LEAST_SCORE]

    def _pair(self, own: Scored, other: Scored) -> Pair:
        most = own.components.get("bm25", 0.0)
        share = min(1.0, other.components.get("bm25", 0.0) / most) if most > 0 else 0.0
        cosine = other.components.get("cosine")
        score = share if cosine is None else max(0.0, min(1.0, weighted_sum(cosine, share, self._weight)))
        return Pair(min(own.key, other.key), max(own.key, other.key), score, cosine)
