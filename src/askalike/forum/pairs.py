"""Which questions of a forum may ask the same: each is compared with all others, and again when it changes.

Questions with the same text come first, however many: each is the pair of the first of them, with the score 1, and
only that one is compared with questions of other texts, for all. Two texts are the same when they differ in nothing but
markup, case and white space.

A question's other partners are the best that a search for it finds, by the most informative of its words that are in
100,000 questions together (``POSTINGS``). Their score is the probability that both ask the same, before what people
judged; what they judged keeps the order of scores (``search.calibration``). Of the two directions the greater counts.
Where many wait, blocks of questions near each other are searched for together (``Searcher.closest``): they have much of
what is read in common. Pairs that are marked, lead to the same original, or were judged by a person
are settled, and are not listed. Pairs that nobody found, and that alone keep two groups from being joined, are compared
last.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice, repeat, zip_longest
from pathlib import Path
from typing import Final

import filelock
import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from askalike.errors import BusyForumError
from askalike.executors import Executor, Numbered, Task
from askalike.executors.processes import Processes
from askalike.files import holding
from askalike.forum.duplicates import Duplicate, has_tag
from askalike.forum.groups import FOLLOWED, HASHED, HASHING, LEAST, MOST_PARTIAL, EvidenceReader, TextHashes
from askalike.forum.indexes import ForumSettings, Indexes, stored_text_settings
from askalike.forum.linkage import MOST_REFUSED, Ends, lacking
from askalike.progress import Progress, SilentProgress
from askalike.records import batches
from askalike.search import Query, Searcher
from askalike.search.calibration import UNMOVED
from askalike.search.correction import no_speller
from askalike.search.differences import differences
from askalike.search.originals import reached
from askalike.search.rankers import PROBABILITY
from askalike.search.scorer import digest
from askalike.search.settings import MAX_HITS, JoinSettings
from askalike.search.texts import reader_of
from askalike.store import ForumLayout, Store, open_store
from askalike.store.pairs import DamagedPairsError, Pair, PairPosition, PairStore, permanent_number
from askalike.text.analyzer import Analyzer
from askalike.types import Draw, Question

_Partners = dict[int, list[Pair]]
"""Number of a question → its pairs."""

_SEED_OF_KEPT: Final = -1
"""None that a queue has: what is kept is independent of what it draws."""

PARTNERS: Final = 5
"""So many of the best are kept for each question."""

MARKED: Final = "marked"
"""How a pair is settled whose ways by duplicate links meet."""

LEAST_SCORE: Final = 0.1
"""Pairs below are not shown, and ``KEPT_BELOW`` of them are kept, so that chance can draw them for people to judge."""
KEPT_BELOW: Final = 0.05

CHANGES: Final = 500
TEXTS: Final = 1_000
AT_ONCE: Final = 20
"""Questions that are compared in one go while searches wait."""
BLOCK: Final = 512
"""Questions that are searched for together: of 20,000 candidates a third is read, where the questions are near each
other; of 128 half."""
KEPT_EACH_S: Final = 15.0
"""So often pairs are stored while many are compared: each time most pages of their indexes change, however few pairs
there are, and a killed process has compared for so long in vain."""
_ORDERED: Final = 4_096
DEPTH: Final = 36
"""So many others are looked at by words, and so many by meaning."""
SCORED: Final = 44
"""So many others are scored for each question, the best of the weighted sum."""

SLICE_S: Final = 0.5
"""How often progress is reported."""
PAUSE_S: Final = 0.01
PATIENCE_S: Final = 60.0
"""So long another process that compares may get nowhere."""
PAGE: Final = 500
_LATEST: Final = datetime.max.replace(tzinfo=UTC)

POSTINGS: Final = 100_000
"""The words by which others are looked for are in so many questions together, in a forum of any size.

Of 1,314 pairs from .1 on of 597 among 224,741 questions, .972 are found from one side with these three settings, .984
from either, and all from .2 on; of 2,345 among 1,000,000, most of which are others with some words changed, .989 and
.991. With 40 looked at and 48 scored .977 and .989, .990 and .993, in a twentieth more time; with 32 and 40 .969 and
.979; with 28 and 32 .954 and .963, .983 and .988. With 150,000 postings hardly more are found."""


class Pairs:
    """The pairs of a forum that may ask the same; any thread reads, one process at a time compares.

    Args:
        least_score: of a number or a promise (``Thresholds``); by default of a number alone.
    """

    def __init__(
        self,
        layout: ForumLayout,
        store: Store,
        indexes: Indexes,
        least_score: Callable[[float | str], float] = float,
    ) -> None:
        self._folder = layout.folder
        self._records = store
        self._indexes = indexes
        self._guard = threading.Lock()
        self._lock = filelock.FileLock(layout.pairs_lock, thread_local=False)
        self.store = PairStore(layout.pairs, store.check_folder)
        self.least_score = least_score
        self._lacking: list[Ends] = []
        self._filled: set[Ends] = set()
        self._looked = ("", 0)  # "begun" of the store, and the "version" up to which pairs were found lacking
        is_plain = indexes.settings == ForumSettings()  # another process knows no others
        folder, module = layout.folder.resolve(), __name__ if is_plain else ""
        self.task = Task(self.partners, module, str(folder), _DECODER.decode, folder=folder)

    def close(self) -> None:
        """Close the file."""
        self.store.close()

    def waiting(self) -> int:
        """Return how many questions are still to be compared, as far as changes were seen."""
        return self._records.count_questions() if self._is_new() else self.store.waiting()

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
            with holding(self._lock, 0):
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

    def compare(self, *, progress: Progress | None = None, is_exact: bool = False) -> None:
        """Compare all questions that were not compared yet: groups and the queue then know of all.

        What was compared is kept, so that it can be interrupted and goes on where it was.

        Args:
            is_exact: only find the questions with the same text.

        Raises:
            BusyForumError: another process has been indexing or comparing for too long.
        """
        shown = progress or SilentProgress()
        self._indexes.catch_up(shown, is_waiting=True)
        left = self.waiting()
        shown.start("reading texts" if is_exact else "comparing questions", 0 if is_exact else left, "questions")
        looked_s = moved_s = time.monotonic()

        def report() -> bool:
            nonlocal left, looked_s, moved_s
            if time.monotonic() - looked_s >= SLICE_S:
                before, left, looked_s = left, self.waiting(), time.monotonic()
                if left < before:
                    shown.advance(before - left)
                    moved_s = looked_s
            return False  # go on

        def is_compared() -> bool:
            if is_exact:
                return self.read_texts()
            return not self.advance(math.inf, report) and not self.waiting()

        while not is_compared():  # another process is at it
            report()
            if time.monotonic() - moved_s > PATIENCE_S:
                raise BusyForumError(
                    f"another process is comparing or indexing {self._folder}",
                    "wait until it has finished; what was compared is kept",
                )
            time.sleep(PAUSE_S)
        shown.advance(left)

    def duplicates(
        self,
        minimum: float | str = 0.5,
        *,
        since: datetime | None = None,
        is_exact: bool = False,
        tag: str = "",
        progress: Progress | None = None,
    ) -> Iterator[Duplicate]:
        """Compare all questions that were not compared yet, and yield the pairs that may be duplicates, best first.

        Pairs that are linked (``linked_duplicates``) or were judged are left out.

        Args:
            minimum: the least probability, before what people judged meanwhile; or a promise, "precision:0.9".
            since: only pairs of which a question was asked at this moment or later.
            is_exact: only questions with the same text, for which nothing else need be compared.
            tag: only pairs of which a question has it; "" for all.

        Raises:
            SettingError: the minimum is no probability.
            BusyForumError: as ``compare``.
        """
        minimum = self.least_score(minimum)
        since = since.replace(tzinfo=UTC) if since is not None and since.tzinfo is None else since
        return self._open_duplicates(minimum, since, is_exact=is_exact, tag=tag, progress=progress)

    def _open_duplicates(
        self, minimum: float, since: datetime | None, *, is_exact: bool, tag: str, progress: Progress | None
    ) -> Iterator[Duplicate]:
        self.compare(progress=progress, is_exact=is_exact)
        position = None
        while True:
            pairs, position = self.page(1.0 if is_exact else minimum, PAGE, position)
            for pair in self.describe(pairs):
                moments = (pair.question.created, pair.candidate.created)
                is_recent = since is None or any(moment is not None and moment >= since for moment in moments)
                tags = (*pair.question.tags, *pair.candidate.tags)
                if is_recent and has_tag(tags, tag) and (pair.is_exact or not is_exact):
                    yield pair
            if position is None:
                return

    def linked_duplicates(self, minimum: float | str = 0.5, *, progress: Progress | None = None) -> Iterator[Duplicate]:
        """Compare all questions that were not compared yet, and yield likely pairs that are linked already, best first.

        Their duplicate links lead from one to the other, or to one original.

        Raises:
            SettingError, BusyForumError: as ``duplicates``.
        """
        minimum = self.least_score(minimum)
        self.compare(progress=progress)
        linked = [pair for pair in self.store.pairs_of(minimum=minimum) if not pair.is_open]
        linked.sort(key=lambda pair: (-pair.score, pair.first, pair.second))
        for batch in batches(linked, PAGE):
            yield from self.describe(batch)

    def describe(self, pairs: Sequence[Pair], draws: Sequence[Draw] = ()) -> Iterator[Duplicate]:
        """Yield pairs with their questions; one of which a question was deleted meanwhile is left out."""
        questions = self._records.questions_by_num(list({num for pair in pairs for num in (pair.first, pair.second)}))
        likelihoods = self._indexes.likelihoods([pair.score for pair in pairs])
        for pair, likelihood, draw in zip_longest(pairs, likelihoods, draws):
            if questions.keys() >= {pair.first, pair.second}:
                ends = (questions[pair.first], questions[pair.second])
                earlier, later = sorted(ends, key=lambda end: (end.created or _LATEST, end is ends[1]))
                is_exact = pair.score == 1.0 and self.are_copies(pair)
                drawn = None if draw is None else structs.replace(draw, probability=likelihood)
                yield Duplicate(later, earlier, pair.score, likelihood, pair.cosine, is_exact, drawn)

    def read_texts(self) -> bool:
        """Find the questions with the same text, comparing next to nothing else; return whether all texts were read.

        They were not while another process is at it.
        """
        self.advance(math.inf, lambda: not self.store.next_unread(1))
        return not self._is_new() and not self.store.next_unread(1)

    def are_copies(self, pair: Pair) -> bool:
        """Return whether two questions have the same text."""
        return self.store.copies(pair.first, 1) == self.store.copies(pair.second, 1) != []

    def page(
        self, minimum: float, limit: int, after: PairPosition | None = None
    ) -> tuple[list[Pair], PairPosition | None]:
        """Return open pairs of at least this score, best first, and the position to go on from, None at the end.

        A pair that was settled meanwhile is left out; pages are found by position, so that none is shown twice and none
        is passed over when others come and go.
        """
        open_pairs: list[Pair] = []
        position, minimum = after, max(minimum, LEAST_SCORE)
        while part := self.store.page(minimum, limit, position):
            for pair in part:
                position = PairPosition(pair.score, pair.first, pair.second)
                if not self.is_settled(pair):
                    open_pairs.append(pair)
                    if len(open_pairs) == limit:
                        return open_pairs, position
            if len(part) < limit:
                break
        return open_pairs, None

    def is_settled(self, pair: Pair) -> bool:
        """Return whether a pair is marked or judged, or one of it has gone."""
        return self._settled_as([pair]) != [""]

    def _settled_as(self, pairs: Sequence[Pair]) -> list[str]:
        """Return of each pair "gone", the verdict, or ``MARKED``; "" for one that is open."""
        nums = sorted({num for pair in pairs for num in (pair.first, pair.second)})
        ids = self._records.ids_by_num(nums)
        verdicts = {num: self._records.judgements_on(ids[num]) for num in {pair.first for pair in pairs} & ids.keys()}
        originals = self._records.originals_of(list(ids.values()))
        ways = {end: {end, *reached([end], lambda name: originals.get(name, ()))} for end in ids.values()}

        def settled_as(pair: Pair) -> str:
            if not ids.keys() >= {pair.first, pair.second}:
                return "gone"
            if verdict := verdicts[pair.first].get(ids[pair.second]):
                return verdict
            is_marked = not ways[ids[pair.first]].isdisjoint(ways[ids[pair.second]])  # their ways meet
            return MARKED if is_marked else ""

        return list(map(settled_as, pairs))

    def _advance(self, end: float, is_stopped: Callable[[], bool]) -> int:
        if not self._follow():
            return self.waiting()

        def is_over() -> bool:
            return is_stopped() or time.monotonic() > end

        executor = self._indexes.executor if end == math.inf else _HERE
        while unread := self.store.next_unread(-1):
            self._read_texts(unread, executor, is_over)
            if is_over() and self.store.next_unread(1):
                return self.store.waiting()
        if end == math.inf:
            while nums := self.store.next_waiting(-1):
                nums = self._indexes.with_searcher(partial(side_by_side, nums=nums))
                self._compare(nums, BLOCK, executor, is_over)
                if is_over():
                    return self.store.waiting() + len(self._lacking)
        while nums := self.store.next_waiting(AT_ONCE):
            self._compare(nums, 1, executor, is_over)  # searches wait for each
            if is_over():
                return self.store.waiting() + len(self._lacking)
        while ends := self._next_lacking():
            self._fill(ends)
            if is_over():
                break
        return self.store.waiting() + len(self._lacking)

    def _is_new(self) -> bool:
        return self.store.state("made by") != self._made_by()

    def _made_by(self) -> str:
        """Return what the scores depend on: another model makes every pair anew."""
        by = f"{self._indexes.state().model}, probability by {digest()}"
        return f"{by}, {PARTNERS}, {LEAST_SCORE}, {KEPT_BELOW}, {HASHED}"

    def _follow(self) -> bool:
        """Note which questions have changed, as far as searches see them; return whether they see the forum at all."""
        self._indexes.words.index.refresh()
        cursor = self._indexes.words.index.cursor
        if not cursor.is_complete:
            return False
        last = self._records.last_change()
        if self._records.count_changes(cursor.applied):
            last = min(last, cursor.applied)
        applied, seen = int(self.store.state("applied") or 0), self._indexes.last_encoded_change()
        if self._is_new() or applied > self._records.last_change():
            with self.store.writing() as store:
                numbers = self._records.numbers()
                store.clear()
                store.add_waiting(numbers)
                store.add_unread(numbers)
                store.keep("applied", str(last))
                store.keep("encoded", str(min(last, seen)))
                store.keep("made by", self._made_by())
            applied = last
        encoded = int(self.store.state("encoded") or applied)
        self._note(encoded, min(applied, seen), "encoded")  # compared by words, before they had a vector
        self._note(applied, last, "applied")
        if (come := min(last, seen)) > encoded:
            with self.store.writing() as store:
                store.keep("encoded", str(come))
        return True

    def _note(self, applied: int, last: int, name: str) -> None:
        """Note which questions these changes are of, and how far that has come as the state of this name."""
        while applied < last:
            changes = [change for change in self._records.changes(applied, CHANGES, FOLLOWED) if change.seq <= last]
            edited = {change.num for change in changes if change.kind == "question"}
            marked = {change.num for change in changes}
            marked |= self._leading_to({change.num for change in changes if change.kind == "link"})
            present = self._records.questions_by_num(sorted(marked)).keys()
            applied = changes[-1].seq if changes else last
            with self.store.writing() as store:
                for num in edited:
                    pairs = store.pairs_of([num])
                    store.remove(pairs)
                    store.add_waiting(other for pair in pairs for other in (pair.first, pair.second) if other != num)
                    if (copies := store.copies(num, 2)) and copies[0] == num:  # the others are pairs of the next one
                        store.add_waiting(store.copies(num, -1)[1:])
                for num in marked - present:
                    store.remove_waiting(num)
                store.add_unread(edited)
                store.add_waiting(marked & present)
                store.keep(name, str(applied))

    def _leading_to(self, nums: Collection[int]) -> set[int]:
        """Return the questions that duplicate links lead from to one of these: a link that has gone settles no more."""
        links_of = self._records.links_of

        def sources(name: str) -> list[str]:
            return [link.source_id for link in links_of(name) if (link.target_id, link.kind) == (name, "duplicate")]

        leading = reached(self._records.ids_by_num(sorted(nums)).values(), sources)
        return set(self._records.nums_by_id(leading).values())

    def _read_texts(self, unread: list[int], executor: Executor, is_over: Callable[[], bool]) -> None:
        """Read texts until it is over."""
        parts = (unread[start : start + TEXTS] for start in range(0, len(unread), TEXTS))
        batches = ((nums, list(self._records.questions_by_num(nums).items())) for nums in parts)
        for nums, _, hashes in executor.map(HASHING, batches, len(unread)):
            self._keep_texts(nums, hashes)
            if is_over():
                break

    def _keep_texts(self, nums: list[int], hashes: TextHashes) -> None:
        """Keep what texts are known by, and find the questions that say the same as others do."""
        with self.store.writing() as store:
            store.put_texts({num: hashes.get(num) for num in nums})
            for num in nums:
                copies = store.copies(num, 2)
                if len(copies) == 2:  # it is the first of several, or one of those after it
                    store.put(self._twin(max(num, copies[1])) or [])

    def _compare(self, nums: list[int], size: int, executor: Executor, is_over: Callable[[], bool]) -> None:
        """Compare these questions, so many at a time, until it is over; those that are left go on waiting."""
        parts = (self._twins(nums[start : start + size]) for start in range(0, len(nums), size))
        unkept: _Partners = {}
        kept_s = time.monotonic()
        try:
            for partners, _, searched in executor.map(self.task, parts, len(nums)):
                unkept |= partners | searched
                if is_over():
                    break
                if time.monotonic() - kept_s > KEPT_EACH_S:
                    self._keep(unkept)
                    unkept, kept_s = {}, time.monotonic()
        finally:
            self._keep(unkept)

    def _twins(self, nums: list[int]) -> tuple[_Partners, Numbered]:
        """Return the pairs of questions that have a twin or have gone, and the others, which are to be compared."""
        questions = self._records.questions_by_num(nums)
        twins = {num: self._twin(num) if num in questions else [] for num in nums}
        alone = [(num, questions[num]) for num, pairs in twins.items() if pairs is None]
        return {num: pairs for num, pairs in twins.items() if pairs is not None}, alone

    def _keep(self, partners: _Partners) -> None:
        """Keep the pairs of questions that were compared, in place of those that they had."""
        before = {(pair.first, pair.second): pair for pair in self.store.pairs_of(partners)}
        best = dict(before)
        for pair in chain.from_iterable(partners.values()):
            known = best.get(ends := (pair.first, pair.second))
            if known is None or not known.is_open or pair.score > known.score:
                best[ends] = pair if known is None or pair.cosine is not None else replace(pair, cosine=known.cosine)
            elif known.cosine is None and pair.cosine is not None:
                best[ends] = replace(known, cosine=pair.cosine)
        kept = {(pair.first, pair.second): pair for pair in self._open_or_linked(best.values())}
        with self.store.writing() as store:
            store.remove(pair for ends, pair in before.items() if ends not in kept)
            store.put([pair for ends, pair in kept.items() if pair != before.get(ends)])
            for num in partners:
                store.remove_waiting(num)

    def _next_lacking(self) -> list[Ends]:
        """Take the pairs of one question that nobody compared and that keep groups from being joined; [] at the end."""
        if not self._lacking:
            version, begun = self.store.state("version") or "0", self.store.state("begun") or ""
            filled = int(self.store.state("filled") or 0)
            looked = self._looked[1] if self._looked[0] == begun else 0  # what was lacking then is asked already
            changed = self.store.touched(max(filled, looked))
            if not changed and looked <= filled:
                return []
            reader = EvidenceReader(self._records, self.store)
            near = reader.near(changed) if len(changed) <= MOST_PARTIAL else None
            missing = lacking(reader.evidence(near, 0.0), LEAST)
            self._lacking = sorted((ends for ends in missing if ends not in self._filled), reverse=True)
            self._looked = (begun, int(version))  # only now: what could not be read is looked at again
            if not self._lacking:
                self._filled.clear()
                with self.store.writing() as store:
                    store.keep("filled", version)
                return []
        taken = [self._lacking.pop()]
        while self._lacking and self._lacking[-1][0] == taken[0][0]:
            taken.append(self._lacking.pop())
        return taken

    def _fill(self, pairs: list[Ends]) -> None:
        """Compare questions with others that no search has found for them, in both directions."""
        self._filled.update(pairs)
        nums = [pairs[0][0], *(other for _, other in pairs)]
        questions = self._records.questions_by_num(nums)
        scored: list[Pair] = []
        for num, others in ((nums[0], nums[1:]), *((other, nums[:1]) for other in nums[1:])):
            if num in questions:
                ask = partial(_compared, query=_as_query(questions[num], 1), num=num, others=others)
                likely = self._indexes.with_searcher(ask)
                scored.extend(
                    Pair(min(num, other), max(num, other), score)
                    for other, score in likely.items()
                    if other in questions
                )
        kept = self._open_or_linked(scored)
        with self.store.writing() as store:
            store.put(kept)

    def _open_or_linked(self, pairs: Iterable[Pair]) -> list[Pair]:
        """Return those of the pairs that are open, or that people linked; nobody is shown the latter to judge."""
        listed = list(pairs)
        settled = list(zip(listed, self._settled_as(listed), strict=True))
        linked = [replace(pair, is_open=False) for pair, how in settled if how == MARKED]
        # one that is not open any more was scored as linked: a search scores it anew
        open_pairs = [pair for pair, how in settled if not how and pair.is_open]
        return open_pairs + (
            self._indexes.with_searcher(partial(self._scored_as_linked, pairs=linked)) if linked else []
        )

    def _scored_as_linked(self, searcher: Searcher, pairs: list[Pair]) -> list[Pair]:
        """Return the pairs, those with a link from one to the other scored without what differs in their titles."""
        questions = self._records.questions_by_num(sorted({num for pair in pairs for num in (pair.first, pair.second)}))
        originals = self._records.originals_of([question.id for question in questions.values()])
        scored: list[Pair] = []
        for pair in pairs:
            score = pair.score
            first, second = questions.get(pair.first), questions.get(pair.second)
            if first and second and _are_linked(first.id, second.id, originals) and _differ(searcher, first, second):
                for num, query, other in ((pair.first, first, pair.second), (pair.second, second, pair.first)):
                    likely = _compared(searcher, _as_query(query, 1), num, [other], are_linked=True)
                    score = max(score, likely.get(other, 0.0))
            scored.append(replace(pair, score=score))
        return scored

    def _twin(self, num: int) -> list[Pair] | None:
        """Return the pair of a question with the first of the same text, none where it is settled that both ask the
        same; None where there is no earlier one, or all were judged different.
        """
        for first in self.store.copies(num, MOST_REFUSED):
            if first == num:
                break
            pair = Pair(first, num, 1.0, 1.0 if self._indexes.state().model else None)
            [settled_as] = self._settled_as([pair])
            if not settled_as:
                return [pair]
            if settled_as not in ("gone", "different"):
                return []
        return None

    def partners(self, questions: Numbered) -> _Partners:
        """Return the pairs of these questions with the best of other texts."""
        return self._indexes.with_searcher(partial(self._searched, questions=dict(questions))) if questions else {}

    def _searched(self, searcher: Searcher, questions: dict[int, Question]) -> _Partners:
        """Return the pairs of these questions, by the rules of each one's language."""
        partners: _Partners = {}
        queries = {
            num: searcher.with_language(_as_query(question, PARTNERS + 1)) for num, question in questions.items()
        }
        plain = _plain(searcher, queries)
        join = plain.settings.join
        depth = DEPTH if join.depth == JoinSettings().depth else join.depth
        join = replace(join, depth=depth, scored=max(SCORED, join.scored))
        query_settings = replace(plain.settings.query, max_postings=POSTINGS)
        plain = replace(plain, settings=replace(plain.settings, join=join, query=query_settings))
        for start in range(0, len(queries), BLOCK):
            partners |= self._partners(plain, dict(islice(queries.items(), start, start + BLOCK)))
        return partners

    def _partners(self, searcher: Searcher, queries: dict[int, Query]) -> _Partners:
        """Return the pairs of questions with the best of other texts; of several with one text the first counts."""
        partners: _Partners = {}
        while queries:
            closest = searcher.closest(list(queries.values()))
            firsts = self.store.firsts(sorted({key for best in closest for key in best.keys.tolist()}))
            further: dict[int, Query] = {}
            for (num, query), best in zip(queries.items(), closest, strict=True):
                pairs: dict[int, Pair] = {}
                cosines = best.components["cosine"].tolist() if "cosine" in best.components else repeat(None)
                for key, score, cosine in zip(best.keys.tolist(), best.scores.tolist(), cosines, strict=False):
                    first = firsts.get(key, key)
                    if first not in (num, *pairs) and len(pairs) < PARTNERS:
                        pairs[first] = Pair(min(num, first), max(num, first), score, cosine)
                if len(pairs) == PARTNERS or len(best.keys) < query.k or query.k == MAX_HITS:
                    partners[num] = [pair for pair in pairs.values() if pair.score >= LEAST_SCORE or _is_kept(pair)]
                else:
                    further[num] = replace(query, k=min(4 * query.k, MAX_HITS))
            queries = further
        return partners


@dataclass(frozen=True, slots=True)
class _Stored:
    """``search.Encoder`` by the vectors that questions have already: encoding takes long, or costs something.

    Args:
        vectors: title and body → the vector.
    """

    vectors: Mapping[tuple[str, str], NDArray[np.float32]]
    dimensions: int

    def encode(self, queries: Sequence[Query]) -> NDArray[np.float32]:
        """Return the vectors that are stored for these texts, zeros where there is none.  # (N, D)"""
        none = np.zeros(self.dimensions, dtype=np.float32)
        return np.stack([self.vectors.get((query.title, query.body), none) for query in queries])

    def reads(self, query: Query) -> bool:
        """Return True: whether a pair is likely is all that is asked."""
        return True


def _as_query(question: Question, k: int) -> Query:
    title, body, markup, language = question.title, question.body, question.markup, question.language
    return Query(title, body, markup, k, ranker=PROBABILITY, is_canonical=False, language=language)


def _plain(searcher: Searcher, query_of: Mapping[int, Query]) -> Searcher:
    """Return a searcher for questions that are held, as they are written, before what people judged or answered.

    Args:
        query_of: the number of each, and the query that is made of it.
    """
    scoring = replace(searcher.scoring, update=UNMOVED, reads_answers=False)
    engine = searcher.engine.without_answers()
    searcher = replace(searcher, engine=engine, speller_of=no_speller, scoring=scoring)
    stored = None if searcher.encoder is None else searcher.engine.stored_vectors(list(query_of))
    if stored is None:
        return replace(searcher, encoder=None)
    numbers, vectors = stored
    queries = [query_of[num] for num in numbers.tolist()]
    known = {(query.title, query.body): vector for query, vector in zip(queries, vectors, strict=True)}
    return replace(searcher, encoder=_Stored(known, vectors.shape[1]))


def side_by_side(searcher: Searcher, nums: list[int]) -> list[int]:
    """Return questions so that those near each other follow each other: a block of such has half as much to read.

    Each goes to the nearest of √N of them, drawn by chance, which follow each other each by the nearest that is left.
    """
    stored_vectors = searcher.engine.stored_vectors
    drawn = stored_vectors(np.random.default_rng(0).choice(nums, math.isqrt(len(nums)), replace=False).tolist())
    if drawn is None or not len(drawn[0]):  # hardly any has a vector yet
        return nums
    centres = drawn[1]
    left = np.zeros(len(centres))
    rank = np.empty(len(centres), np.int64)
    place = 0
    for number in range(len(centres)):
        rank[place], left[place] = number, -np.inf
        place = int((centres @ centres[place] + left).argmax())
    ranked: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for start in range(0, len(nums), _ORDERED):
        if (stored := stored_vectors(nums[start : start + _ORDERED])) is not None:
            ranked.append((stored[0], rank[(stored[1] @ centres.T).argmax(axis=1)]))
    numbers, ranks = (np.concatenate(column) for column in zip(*ranked, strict=True))
    without = np.setdiff1d(nums, numbers)
    return [*numbers[np.argsort(ranks, kind="stable")].tolist(), *without.tolist()]


def _are_linked(first: str, second: str, originals: Mapping[str, Sequence[str]]) -> bool:
    return second in originals.get(first, ()) or first in originals.get(second, ())


def _differ(searcher: Searcher, first: Question, second: Question) -> bool:
    """Return whether anything differs in two titles that would count if they shared all else."""
    analyzer = searcher.analyzer.of(second.language)
    read = reader_of(analyzer).read
    ours = read(first.title, first.body, first.markup).text
    theirs = read(second.title, second.body, second.markup).text
    return any(differences(ours, theirs, analyzer, 1.0))


def _is_kept(pair: Pair) -> bool:
    """Return whether a pair is one of those that are kept of the unlikely ones."""
    return permanent_number(pair.first, pair.second, _SEED_OF_KEPT) < KEPT_BELOW


def _compared(
    searcher: Searcher, query: Query, num: int, others: list[int], are_linked: bool = False
) -> dict[int, float]:
    """Return the probabilities of these others; see ``Scoring.are_linked``."""
    query = searcher.with_language(query)
    plain = _plain(searcher, {num: query})
    scoring = replace(plain.scoring, are_linked=are_linked)
    return replace(plain, scoring=scoring).likelihoods(query, others)


_DECODER: Final = msgspec.msgpack.Decoder(_Partners)
_HERE: Final = Processes(1)


def preparing(order: str) -> Callable[[Numbered], bytes]:
    """Return what compares questions of the forum in a folder, as ``executors.Task`` asks for it."""
    layout = ForumLayout(Path(order))
    store = open_store(layout)
    indexes = Indexes(layout, store, Analyzer(stored_text_settings(store)), ForumSettings())
    pairs = Pairs(layout, store, indexes)
    return lambda questions: msgspec.msgpack.encode(pairs.partners(questions))
