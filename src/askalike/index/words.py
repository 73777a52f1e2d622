"""The word index: BM25 over titles, whole texts and best answers, in segments fed with the project's own terms.

``score = Σ_field weight(field) · Σ_t weight(t) · idf_field(t) · saturated(f_field, l_field)``, see ``postings``.
Document frequencies are those of what is there now, whatever was there before. Mean lengths are, too, up to ``EXACT``
entries; a larger index keeps those of its last whole writing until they are off by ``DRIFT``.

Beside its terms each entry has what its question is compared by, see ``search.texts``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from askalike.errors import ForumError
from askalike.files import is_link, remove_file, remove_owned
from askalike.index.checked_file import FileEntry
from askalike.index.cursor import CURSOR_FILE, Cursor
from askalike.index.postings import (
    ANSWERS,
    FIELDS,
    NO_MOMENT,
    TAGS,
    TEXT,
    TITLE,
    WORDS,
    Collector,
    Entries,
    WordSegment,
    hash_of,
    idf,
    read_words,
    tag_term,
    write_words,
)
from askalike.index.segments import (
    OWNED,
    Chosen,
    Commit,
    Manifest,
    Part,
    SegmentedIndex,
    SegmentWriter,
    whole_numbers,
)
from askalike.types import Filters

EXACT: Final = 2_000
"""An index of so many entries is one segment, written anew in 20 ms, so that scores depend on what is there alone."""
DRIFT: Final = 0.01
"""A larger index is written anew when a mean length differs by this share: scores are off by less than half of it."""
MAX_TOKENS: Final = 6_000_000
"""So many terms are sorted at a time, in 250 MB."""

_BLOCK: Final = 64
_FEW_BLOCKS: Final = 8
_ABOVE_NOTHING: Final = np.finfo(np.float32).smallest_subnormal
_MAX_REMEMBERED: Final = 100_000


@dataclass(frozen=True, slots=True)
class FieldWeights:
    """How much a match counts: ``score = title · BM25_title + text · BM25_text + answers · BM25_answers``.

    Text is title and body joined: a word of the title counts in both. Joined text was better on every forum measured
    than a body of its own.
    """

    title: float = 0.25
    text: float = 1.0
    answers: float = 0.2


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """What is indexed of one question: terms of title, body and best answers, exact tags, moment of asking; as it is
    compared."""

    num: int
    title: Sequence[str]
    body: Sequence[str]
    tags: Sequence[str] = ()
    created_us: int | None = None
    text: bytes = b""
    answers: Sequence[str] = ()


def best(sums: NDArray[np.float32], nums: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """Return the rows of the greatest sums above 0 (n,), n ≤ ``limit``, descending, then by number.

    >>> best(np.array([0.5, 0.0, 2.0, 0.5], np.float32), np.array([4, 5, 6, 3]), 2).tolist()
    [2, 3]
    """
    count = len(sums) // _BLOCK  # of blocks, whose rows lie that far apart, so that maxima are taken side by side
    least, near = _ABOVE_NOTHING, None
    if limit < count:
        tops = sums[: count * _BLOCK].reshape(_BLOCK, count).max(axis=0)
        # as many blocks hold one as good: none below is among the best
        least = max(least, np.partition(tops, -limit)[-limit])
        near = np.flatnonzero(tops >= least)
    if near is None or _FEW_BLOCKS * len(near) > count:  # as where many sums are equal
        rows = np.flatnonzero(sums >= least)
    else:
        within = (np.arange(0, count * _BLOCK, count)[:, None] + near).ravel()
        rows = np.concatenate([within, np.arange(count * _BLOCK, len(sums))])
        rows = rows[sums.take(rows) >= least]
    return rows[np.lexsort((nums[rows], -sums[rows]))[:limit]]


@dataclass(frozen=True, eq=False)
class WordPart(Part[WordSegment]):
    """A segment of words in one commit."""

    def frequency(self, field: int, place: int) -> int:
        """Return how many entries have a term in a field; place -1 stands for no term."""
        if place < 0:
            return 0
        starts = self.segment.entries.fields[field].starts
        count = int(starts[place + 1]) - int(starts[place])
        if count and len(self.dead):
            count = int(np.count_nonzero(self.is_alive[self.segment.rows_with(field, place)]))
        return count

    def has_term(self, field: int, term: int) -> NDArray[np.bool_]:
        """Return whether each row (size,) has a term in a field."""
        mask = np.zeros(self.size, np.bool_)
        [place] = self.segment.places(np.array([term], np.uint64))
        if place >= 0:
            mask[self.segment.rows_with(field, int(place))] = True
        return mask


class WordCommit(Commit[WordPart]):
    """The words of one commit."""

    _listed: tuple[frozenset[int], NDArray[np.bool_]] | None = None

    @classmethod
    def _segment(cls, folder: Path, entry: FileEntry, manifest: Manifest) -> WordSegment:
        return read_words(folder, entry)

    @classmethod
    def _part(cls, segment: WordSegment, dead: NDArray[np.int64], start: int) -> WordPart:
        return WordPart(segment, dead, start)

    @cached_property
    def nums(self) -> NDArray[np.int64]:
        """Return the number of each row.  # (size,)"""
        if len(self.parts) == 1:
            return self.parts[0].segment.nums
        return np.concatenate([np.zeros(0, np.int64), *(part.segment.nums for part in self.parts)])

    @cached_property
    def frequencies(self) -> dict[tuple[int, int], int]:
        """Field and hash of a term → in how many entries, as far as it was asked for."""
        return {}

    def frequency(self, field: int, places: Sequence[int], term: int) -> int:
        """Return in how many entries a term is in a field, given its place in each part."""
        known = self.frequencies.get((field, term))
        if known is None:
            known = sum(part.frequency(field, place) for part, place in zip(self.parts, places, strict=True))
            if len(self.frequencies) < _MAX_REMEMBERED:
                self.frequencies[field, term] = known
        return known

    def sums(self, weights: Mapping[str, float], fields: FieldWeights) -> NDArray[np.float32]:
        """Return the score of every row, 0 for one that is gone.  # (size,) float32"""
        by_hash: dict[int, float] = {}
        for term, weight in weights.items():
            by_hash[hash_of(term)] = by_hash.get(hash_of(term), 0.0) + weight
        terms = sorted(by_hash, reverse=True)  # see ``WordSegment.sums``
        hashes = np.array(terms, np.uint64)
        places = [part.segment.places(hashes) for part in self.parts]
        by_term = list(zip(*(each.tolist() for each in places), strict=True))
        factors = []
        for field, weight in ((ANSWERS, fields.answers), (TEXT, fields.text), (TITLE, fields.title)):
            if not weight:
                continue
            counts = [self.frequency(field, at, term) for at, term in zip(by_term, terms, strict=True)]
            rarities = idf(self.entries, np.array(counts, np.int64))
            factors.append((field, (weight * rarities * [by_hash[term] for term in terms]).astype(np.float32)))
        sums = [np.zeros(0, np.float32)]
        for part, at in zip(self.parts, places, strict=True):
            is_here = at >= 0
            own = part.segment.sums([(field, at[is_here], each[is_here]) for field, each in factors])
            own[part.dead] = 0
            sums.append(own)
        return sums[1] if len(sums) == 2 else np.concatenate(sums)

    def admitted(self, filters: Filters) -> NDArray[np.bool_]:
        """Return whether each row is an entry that satisfies tags and dates.  # (size,)"""
        return np.concatenate([np.zeros(0, np.bool_), *(_admitted(part, filters) for part in self.parts)])

    def listed(self, nums: frozenset[int]) -> NDArray[np.bool_]:
        """Return whether each row is an entry with one of these numbers; searches ask for the same ones again."""
        known = self._listed  # another thread may replace it
        if known is None or known[0] is not nums:
            rows = self.locate(whole_numbers(nums))
            mask = np.zeros(self.size, np.bool_)
            mask[rows[rows >= 0]] = True
            self._listed = known = (nums, mask)
        return known[1]

    def text(self, row: int) -> bytes:
        """Return what the entry of a row is compared by; b"" where there is nothing that can be."""
        for part in self.parts:
            if row < part.start + part.size:
                entries = part.segment.entries
                begin, end = entries.text_starts[row - part.start : row - part.start + 2].tolist()
                return entries.texts[begin:end].tobytes() if 0 <= begin <= end else b""
        return b""


def _admitted(part: WordPart, filters: Filters) -> NDArray[np.bool_]:
    mask = part.is_alive.copy()
    created = part.segment.entries.created_us
    if filters.before is not None:
        mask &= (created < _microseconds(filters.before)) & (created != NO_MOMENT)
    if filters.after is not None:
        mask &= created >= max(_microseconds(filters.after), NO_MOMENT + 1)
    for tag in filters.tags:
        mask &= part.has_term(TAGS, hash_of(tag_term(tag)))
    for tag in filters.exclude_tags:
        mask &= ~part.has_term(TAGS, hash_of(tag_term(tag)))
    return mask


def _microseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


class WordSnapshot:
    """BM25 (k1 = 1.2, b = 0.75) over title, body and best answers, in one commit of the index.

    Raises:
        DamagedForumError: of every method that reads: a file of the index is damaged.
    """

    def __init__(self, folder: Path, commit: WordCommit) -> None:
        self.folder = folder
        self._now = commit
        self._summed: tuple[WordCommit, Mapping[str, float], FieldWeights, NDArray[np.float32]] | None = None

    @property
    def cursor(self) -> Cursor:
        """Return how far the index had come."""
        return self._now.manifest.cursor

    @property
    def entries(self) -> int:
        """Return how many questions are in the index."""
        return self._now.entries

    def numbers(self) -> list[int]:
        """Return the numbers of all entries, ascending; one that it holds twice is there twice."""
        numbers: list[int] = self._now.numbers().tolist()
        return numbers

    def texts(self, nums: Sequence[int]) -> dict[int, bytes]:
        """Return what entries are compared by, of those that are there."""
        now = self._now
        rows = now.locate(whole_numbers(nums)).tolist()
        return {num: text for num, row in zip(nums, rows, strict=True) if row >= 0 and (text := now.text(row))}

    def search(
        self,
        weights: Mapping[str, float],
        fields: FieldWeights,
        limit: int,
        filters: Filters | None = None,
        excluded: Collection[int] = (),
        among: frozenset[int] | None = None,
    ) -> list[tuple[int, float]]:
        """Return the best entries, by ``score = Σ_f weight(f) · Σ_t weight(t) · BM25_f(t)``.

        Args:
            weights: term → weight > 0.
            limit: at most this many, ≥ 1.
            filters: tags and dates are applied here; the others are the caller's, who knows records.
            excluded: never these entries.
            among: only these entries; None for all.

        Returns:
            (internal number, score), by score descending, then number ascending.
        """
        now = self._now
        if not weights or not now.size:
            return []
        sums = self._sums(now, weights, fields)
        if filters is not None and filters.has_tags_or_dates:
            sums = np.where(now.admitted(filters), sums, np.float32(0))
        if among is not None:
            sums = np.where(now.listed(among), sums, np.float32(0))
        rows = best(sums, now.nums, limit + len(excluded))
        if excluded:
            rows = rows[~np.isin(now.nums[rows], whole_numbers(excluded))][:limit]
        return list(zip(now.nums[rows].tolist(), sums[rows].tolist(), strict=True))

    def scores(self, weights: Mapping[str, float], fields: FieldWeights, nums: Sequence[int]) -> dict[int, float]:
        """Return the scores that ``search`` gives to these entries; those that match no term are left out."""
        now = self._now
        if not weights or not len(nums) or not now.size:
            return {}
        rows = now.locate(whole_numbers(nums))
        scores = np.where(rows >= 0, self._sums(now, weights, fields)[rows], np.float32(0)).tolist()
        return {num: score for num, score in zip(nums, scores, strict=True) if score > 0}

    def admitted(self, nums: Sequence[int], filters: Filters) -> set[int]:
        """Return those of the entries that satisfy tags and dates."""
        if not len(nums) or not filters.has_tags_or_dates:
            return set(nums)
        now = self._now
        rows = now.locate(whole_numbers(nums))
        is_admitted = now.admitted(filters)[rows] & (rows >= 0) if now.size else rows >= 0
        return {num for num, kept in zip(nums, is_admitted.tolist(), strict=True) if kept}

    def count_admitted(self, filters: Filters) -> int:
        """Return how many entries satisfy tags and dates."""
        return int(np.count_nonzero(self._now.admitted(filters))) if filters.has_tags_or_dates else self.entries

    def all_admitted(self, filters: Filters) -> list[int]:
        """Return every entry that satisfies tags and dates, ascending."""
        numbers: list[int] = np.sort(self._now.nums[self._now.admitted(filters)]).tolist()
        return numbers

    def document_frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """Return the terms that occur → in how many entries, in title or body; of those in none, in answers."""
        now, names = self._now, list(terms)
        hashes = np.fromiter(map(hash_of, names), np.uint64, len(names))
        places = np.array([part.segment.places(hashes) for part in now.parts], np.int64)  # (parts, terms)
        counts = {}
        for at in np.flatnonzero((places >= 0).any(axis=0)).tolist():
            in_parts, term = places[:, at].tolist(), int(hashes[at])
            if count := now.frequency(TEXT, in_parts, term) or now.frequency(ANSWERS, in_parts, term):
                counts[names[at]] = count
        return counts

    def _sums(self, now: WordCommit, weights: Mapping[str, float], fields: FieldWeights) -> NDArray[np.float32]:
        """Return the score of every row; a search asks for the same ones twice."""
        known = self._summed
        if known is not None and known[0] is now and known[1] is weights and known[2] is fields:
            return known[3]
        sums = now.sums(weights, fields)
        self._summed = (now, weights, fields, sums)
        return sums


class WordWriter(SegmentWriter[WordCommit]):
    """Adds, replaces and removes entries; nothing is seen or kept before ``commit``."""

    kind = "word"
    suffix = WORDS

    def __init__(self, folder: Path, commit: WordCommit) -> None:
        super().__init__(folder, commit)
        self._collector = Collector()
        self._sorted: list[Entries] = []  # the entries before those of the collector
        self._dropped: dict[int, int] = {}  # number → so many of the sorted ones do not count any more

    def put(self, entry: IndexEntry) -> None:
        """Add an entry, or replace the one with its number."""
        self._collector.put(entry.num, entry.title, entry.body, entry.tags, entry.created_us, entry.text, entry.answers)
        if self._collector.tokens >= MAX_TOKENS:
            self._sort()

    def _sort(self) -> None:
        if len(self._collector):
            self._sorted.append(self._collector.entries())
        self._collector = Collector()

    def _drop(self, num: int) -> None:
        self._collector.drop(num)
        if self._sorted:
            self._dropped[num] = len(self._sorted)

    def _arriving(self) -> list[Chosen[Any]]:
        self._sort()
        chosen: list[Chosen[Any]] = []
        later = np.zeros(0, np.int64)
        for place, entries in reversed(list(enumerate(self._sorted))):
            dropped = [num for num, count in self._dropped.items() if place < count]
            taken = np.flatnonzero(~np.isin(entries.nums, np.union1d(later, np.array(dropped, np.int64))))
            later = np.union1d(later, entries.nums)
            if len(taken):
                chosen.append((entries, taken))
        return chosen[::-1]

    def _forget(self) -> None:
        self._sorted, self._dropped = [], {}

    def _to_merge(self, dead: Sequence[NDArray[np.int64]], arriving: Sequence[Chosen[Any]]) -> list[int]:
        parts, means = self._now.parts, self._now.manifest.means
        totals = sum((_totals(entries, taken) for entries, taken in arriving), np.zeros(len(FIELDS), np.int64))
        count = sum(len(taken) for _, taken in arriving)
        for part, gone in zip(parts, dead, strict=True):
            totals = totals + part.segment.totals - _totals(part.segment.entries, gone)
            count += part.size - len(gone)
        exact = _means(totals, count)
        has_drifted = not means or any(abs(new - old) > DRIFT * old for new, old in zip(exact, means, strict=True))
        if count <= EXACT or has_drifted:
            return list(range(len(parts)))
        return super()._to_merge(dead, arriving)

    def _prepared(self, manifest: Manifest, chosen: Sequence[Chosen[Any]], *, is_whole: bool) -> Manifest:
        if manifest.cursor.is_complete and not is_whole:
            return manifest
        totals = sum((_totals(_entries_of(each), taken) for each, taken in chosen), np.zeros(len(FIELDS), np.int64))
        return replace(manifest, means=_means(totals, sum(len(taken) for _, taken in chosen)))

    def _write_segment(self, path: Path, chosen: Sequence[Chosen[Any]], manifest: Manifest) -> FileEntry:
        return write_words(path, [(_entries_of(each), taken) for each, taken in chosen], manifest.means)


def _entries_of(segment: WordSegment | Entries) -> Entries:
    return segment.entries if isinstance(segment, WordSegment) else segment


def _totals(entries: Entries, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many terms rows have together in each field."""
    totals: NDArray[np.int64] = entries.lengths[:, rows].sum(axis=1, dtype=np.int64)
    return totals


def _means(totals: NDArray[np.int64], count: int) -> tuple[float, ...]:
    """Return the mean lengths of fields, never 0."""
    return tuple(max(1.0, float(total)) / max(1, count) for total in totals.tolist())


class WordIndex(SegmentedIndex[WordCommit, WordWriter], WordSnapshot):
    """The index as it is on disk: each look replaces the commit that searches see; one process writes, any number read.

    Raises:
        DamagedForumError: it cannot be read, or a file of it is damaged.
        ForumError: the system does not let it be read.
    """

    kind = "word"
    _commits = WordCommit
    _writers = WordWriter

    def __init__(self, folder: Path) -> None:
        SegmentedIndex.__init__(self, folder)
        WordSnapshot.__init__(self, folder, self._now)

    @classmethod
    def create(cls, folder: Path, *, applied: int, fingerprint: str) -> WordIndex:
        """Make an empty index in place of whatever is at ``folder``.

        Args:
            applied: the store's last change when the scan that fills the index begins.
            fingerprint: of the text settings.

        Raises:
            ForumError: it cannot be made there.
        """
        cls.remove(folder)
        return cls._create(folder, applied=applied, fingerprint=fingerprint)

    @staticmethod
    def remove(folder: Path) -> None:
        """Delete an index, whatever its state; nothing happens where there is none.

        Raises:
            ForumError: the folder is a link, or something in it is not of an index.
        """
        if not is_link(folder):
            with suppress(OSError):  # first: a killed process leaves nothing that names what is no longer there
                remove_file(folder / CURSOR_FILE)
        if left := remove_owned(folder, OWNED):
            what = "is a link" if left[0] == folder else "is not a file of the word index"
            raise ForumError(f"{left[0]} {what}, and would be deleted", "move it elsewhere, then reindex")

    def snapshot(self) -> WordSnapshot:
        """Return the commit of the last look; what is committed after it is not seen there."""
        return WordSnapshot(self.folder, self._now)

    def check(self) -> None:
        """Read everything and compare the sums; opening an index compares those of small segments.

        Raises:
            DamagedForumError: a file does not hold what was written.
        """
        for part in self._now.parts:
            part.segment.check()
