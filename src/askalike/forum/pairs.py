"""Which questions of a forum may ask the same: each is compared with all others, and again when it changes; groups.

Questions with the same text come first, however many: each is the pair of the first of them, with the score 1, and
only that one is compared with questions of other texts, for all. Two texts are the same when they differ in nothing but
markup, case and white space.

A question's other partners are the best that a search for it finds. Their score is comparable between questions: the
weighted sum of the cosine and of BM25 as a share of what the question scores *itself*, instead of the best candidate::

    score(a, b) = w · cos(a, b) + (1 - w) · min(1, bm25(a, b) / bm25(a, a))

Of the two directions the greater counts. Pairs that are marked, lead to the same original, or were judged by a person
are settled, and are not listed.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import filelock

from askalike.files import held
from askalike.forum.indexes import Indexes
from askalike.forum.pair_store import DamagedPairsError, Pair, PairStore, Place
from askalike.search import Query, Searcher
from askalike.search.originals import reached
from askalike.search.pool import Scored
from askalike.search.rankers import weighted_sum
from askalike.search.settings import MAX_HITS
from askalike.store import Archive, Layout, changed_questions, numbers, verdicts_on
from askalike.text.markup import readable
from askalike.types import Question


@dataclass(frozen=True, slots=True)
class Cluster:
    """Questions each of which leads to every other over pairs and marks.

    Args:
        id: the least number among them; it stays while that question stays.
        nums: ascending.
        pairs: how many pairs are open between them.
        best: the greatest score of these.
    """

    id: int
    nums: tuple[int, ...]
    pairs: int
    best: float


def clusters(pairs: Iterable[Pair], marks: Iterable[tuple[int, int]]) -> list[Cluster]:
    """Return the clusters that have an open pair, largest first, of equals the one with the least number.

    >>> found = clusters([Pair(1, 2, 0.9), Pair(8, 9, 0.5)], [(2, 5), (3, 4)])
    >>> [(one.nums, one.pairs, one.best) for one in found]
    [((1, 2, 5), 1, 0.9), ((8, 9), 1, 0.5)]
    """
    listed = list(pairs)
    leader: dict[int, int] = {}
    for one, other in [*((pair.first, pair.second) for pair in listed), *marks]:
        first, second = sorted((_lead(leader, one), _lead(leader, other)))
        leader[second] = first
    members: dict[int, list[int]] = {}
    for num in leader:
        members.setdefault(_lead(leader, num), []).append(num)
    counts: dict[int, tuple[int, float]] = {}
    for pair in listed:
        lead = _lead(leader, pair.first)
        count, best = counts.get(lead, (0, 0.0))
        counts[lead] = (count + 1, max(best, pair.score))
    found = [Cluster(lead, tuple(sorted(members[lead])), count, best) for lead, (count, best) in counts.items()]
    return sorted(found, key=lambda one: (-len(one.nums), one.id))


def _lead(leader: dict[int, int], num: int) -> int:
    """Return the least number that is known to hang together with this one; ways are shortened as they are walked."""
    leader.setdefault(num, num)
    while leader[num] != num:
        leader[num] = leader[leader[num]]
        num = leader[num]
    return num


PARTNERS: Final = 5
"""So many of the best are kept for each question."""

LEAST_SCORE: Final = 0.3
"""Pairs below are not kept."""

MOST_REFUSED: Final = 20
"""So many others of the same text are looked at for one from which a question was not judged different."""

CHANGES: Final = 500
TEXTS: Final = 200
AT_ONCE: Final = 20

HASHED: Final = "title and body, no markup, case folded, 1"
"""How a text's hash is made; another way makes every hash anew."""


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

        What was compared is kept; a process that is killed leaves the rest to the next. A damaged file is begun again.

        Raises:
            BusyForumError: another program has locked the file for too long.
        """
        end = time.monotonic() + seconds
        if not self._guard.acquire(blocking=False):
            return 0
        try:
            with held(self._lock, 0):
                if self.store.was_damaged:
                    self.store.mend()
                try:
                    return self._advance(end, is_stopped)
                except DamagedPairsError:
                    self.store.mend()
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
        return self._settled_as(pair) != ""

    def _settled_as(self, pair: Pair) -> str:
        """Return "gone", the verdict, or "marked"; "" for a pair that is open."""
        held = self._archive.questions_by_num([pair.first, pair.second])
        if len(held) < 2:
            return "gone"
        one, other = held[pair.first].id, held[pair.second].id
        verdict = verdicts_on(self._archive, one).get(other)
        return verdict or ("marked" if self._roots(one) & self._roots(other) else "")

    def _advance(self, end: float, is_stopped: Callable[[], bool]) -> int:
        if not self._follow():
            return self.waiting()
        while nums := self.store.next_unread(TEXTS):
            self._read(nums)
            if (is_stopped() or time.monotonic() > end) and self.store.next_unread(1):
                return self.store.waiting()
        while nums := self.store.next_waiting(AT_ONCE):
            for num in nums:
                self._compare(num)
                if is_stopped() or time.monotonic() > end:
                    return self.store.waiting()
        return self.store.waiting()

    def _roots(self, identifier: str) -> frozenset[str]:
        """Return a question and all that it leads to by marks: pairs whose ways meet are settled."""
        return frozenset((identifier, *reached(identifier, self._archive.originals)))

    def _is_new(self) -> bool:
        return self.store.state("made by") != self._made_by()

    def _made_by(self) -> str:
        """Return what the scores depend on: another model makes every pair anew."""
        return f"{self._indexes.state().model}, {self._weight}, {PARTNERS}, {LEAST_SCORE}"

    def _follow(self) -> bool:
        """Note which questions have changed, as far as searches see them; return whether they see the forum at all."""
        self._indexes.lexical.refresh()
        mark = self._indexes.lexical.mark
        if not mark.is_complete:
            return False
        last = self._archive.last_change()
        if self._archive.count_question_changes(mark.applied):
            last = min(last, mark.applied)
        applied = int(self.store.state("applied") or 0)
        if self._is_new() or applied > self._archive.last_change():
            with self.store.writing() as store:
                store.clear()
                store.keep("texts", "")
                store.add_waiting(numbers(self._archive))
                store.keep("applied", str(last))
                store.keep("made by", self._made_by())
            applied = last
        if self.store.state("texts") != HASHED:
            with self.store.writing() as store:
                everything = numbers(self._archive)
                store.forget_texts()
                store.add_unread(everything)
                store.add_waiting(everything)
                store.keep("texts", HASHED)
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
                    if (copies := store.copies(num, 2)) and copies[0] == num:  # the others are pairs of the next one
                        store.add_waiting(store.copies(num, -1)[1:])
                for num in marked - held:
                    store.remove_waiting(num)
                store.add_unread(edited)
                store.add_waiting(marked & held)
                store.keep("applied", str(applied))
        if applied < last:
            with self.store.writing() as store:
                store.keep("applied", str(last))
        return True

    def _read(self, nums: list[int]) -> None:
        """Find the questions that say the same as others do, without comparing them."""
        held = self._archive.questions_by_num(nums)
        with self.store.writing() as store:
            for num in nums:
                store.put_text(num, _hash(held[num]) if num in held else None)
            for num in nums:
                copies = store.copies(num, 2)
                if len(copies) == 2:  # it is the first of several, or one of those after it
                    store.put(self._twin(max(num, copies[1])) or [])

    def _compare(self, num: int) -> None:
        question = self._archive.questions_by_num([num]).get(num)
        partners = self._twin(num)
        if partners is None:  # no other is compared for it
            partners = [] if question is None else self._partners(num, question)
        settled = [pair for pair in self.store.of(num) if self.is_settled(pair)]
        with self.store.writing() as store:
            store.remove(settled)
            store.put([pair for pair in partners if not self.is_settled(pair)])
            store.remove_waiting(num)

    def _twin(self, num: int) -> list[Pair] | None:
        """Return the pair of a question with the first of the same text, none where it is settled that both ask the
        same; None where there is no earlier one, or all were judged different.
        """
        cosine = 1.0 if self._indexes.state().model else None
        for first in self.store.copies(num, MOST_REFUSED):
            if first == num:
                break
            pair = Pair(first, num, 1.0, cosine)
            settled_as = self._settled_as(pair)
            if not settled_as:
                return [pair]
            if settled_as not in ("gone", "different"):
                return []
        return None

    def _partners(self, num: int, question: Question) -> list[Pair]:
        """Return the pairs of a question with the best of other texts; of several with one text the first counts."""
        found: dict[int, Pair] = {}
        query, limit = Query(question.title, question.body, question.markup), PARTNERS + 1
        while True:
            ranked, most = self._indexes.ask(partial(_ranked, query=replace(query, k=limit), num=num))
            for scored in ranked:
                first = next(iter(self.store.copies(scored.key, 1)), scored.key)
                if first not in (num, *found) and len(found) < PARTNERS:
                    found[first] = self._pair(num, first, scored, most)
            if len(found) == PARTNERS or len(ranked) < limit or limit == MAX_HITS:
                return [pair for pair in found.values() if pair.score >= LEAST_SCORE]
            limit = min(4 * limit, MAX_HITS)

    def _pair(self, num: int, other: int, scored: Scored, most: float) -> Pair:
        """Return the pair of two questions; ``most`` is what the one scores itself."""
        share = min(1.0, scored.components.get("bm25", 0.0) / most) if most > 0 else 0.0
        cosine = scored.components.get("cosine")
        score = share if cosine is None else max(0.0, min(1.0, weighted_sum(cosine, share, self._weight)))
        return Pair(min(num, other), max(num, other), score, cosine)


def _ranked(searcher: Searcher, query: Query, num: int) -> tuple[list[Scored], float]:
    """Return the best as they are written, and the score by words of the question itself: it need not be among them."""
    ranked = replace(searcher, speller=None).ranking(query)
    own = searcher.engine.lexical_scores(ranked.asked.weights, [num])
    return [one.scored for one in ranked.found], own.get(num, 0.0)


def _hash(question: Question) -> bytes | None:
    """Return what the questions that say the same have in common; None for one without words.

    >>> _hash(Question("a", "Hello  World")) == _hash(Question("b", "hello", "<p>world</p>", markup="html"))
    True
    """
    text = f"{question.title} {readable(question.body, question.markup, with_code=True)}"
    folded = " ".join(text.casefold().split())
    return hashlib.blake2b(folded.encode(), digest_size=16).digest() if folded else None
