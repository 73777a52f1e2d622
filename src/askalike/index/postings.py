"""A segment of the word index: for each term, the questions that have it, and what it adds to the score of each.

::

    saturated(f, l) = f (k₁ + 1) / (f + k₁ (1 − b + b · l / mean))
    BM25_field(q,d) = Σ_t weight(t) · idf_field(t) · saturated(f_field, l_field)

with k₁ = 1.2, b = .75, and lengths kept as one byte keeps them, as in Lucene. What ``saturated`` gives is written
beside each posting, its *impact*. A query's scores are one sparse product, exact and without pruning, of all entries
at once.

An entry has four fields: the title, the text (title and body joined), its best answers, and its tags, by which filters
ask.

Source: Robertson and Zaragoza 2009, The probabilistic relevance framework: BM25 and beyond; Anh, de Kretser and Moffat
2001, Vector-space ranking with effective early termination (impacts); lengths in a byte as Lucene's SmallFloat.

In a file, one after the other: numbers i64 (N), moments i64 (N), where an entry's text begins i64 (N + 1), hashes of
terms u64 (T); lengths u32 (F, N), where a term's postings begin u32 (F, T + 1); rows i32, impacts f32 and frequencies
u16 of all postings, those of one field after those of another; the texts u8.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from askalike.errors import ForumError
from askalike.index.checked_file import CheckedFile, FileEntry, damage, read_file, write_file

K1: Final = 1.2
B: Final = 0.75

WORDS: Final = "words"
"""The kind of file that a segment is."""
TITLE, TEXT, ANSWERS, TAGS = FIELDS = range(4)
NO_MOMENT: Final = -(2**63)
"""In the place of the moment when a question was asked that has none."""

CHECKED_BYTES: Final = 16 * 1024 * 1024
"""Files of up to this size are compared with their sums when they are opened, in 15 ms."""
MAX_POSTINGS: Final = 2**31 - 1
FEW_PRODUCTS: Final = 20
"""So many products are made without SciPy, which takes a quarter of a second to load and a quarter of the time then."""

_BLOCK_POSTINGS: Final = 1 << 22
_EXACT_LENGTHS: Final = 24
_MAX_HASHES: Final = 1 << 17
_MAX_FREQUENCY: Final = np.iinfo(np.uint16).max


@lru_cache(_MAX_HASHES)
def hash_of(term: str) -> int:
    """Return the hash of a term, 64 bits: among ten million terms two are alike once in 400,000 forums."""
    return int.from_bytes(blake2b(term.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


def tag_term(tag: str) -> str:
    """Return what a tag is kept as among the terms, none of which has such a sign."""
    return f"\0{tag.casefold()}"


def kept_lengths(lengths: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return lengths as one byte keeps them, rounded down: exact up to 40, then four binary digits of what is above 24.

    >>> kept_lengths(np.array([0, 7, 39, 40, 41, 57, 100, 1_000])).tolist()
    [0, 7, 39, 40, 40, 56, 96, 984]
    """
    above = np.maximum(lengths.astype(np.int64) - _EXACT_LENGTHS, 0)
    digits = np.frexp(above.astype(np.float64))[1]
    shift = np.maximum(digits - 4, 0)
    return np.where(lengths < _EXACT_LENGTHS, lengths, _EXACT_LENGTHS + ((above >> shift) << shift))


def idf(entries: int, frequency: Any) -> Any:
    """Return ``ln(1 + (N − n + ½) / (n + ½))`` of terms that n of N entries have; n is a number or an array.

    >>> idf(3, np.array([1])).round(4).tolist()
    [0.9808]
    """
    return np.log1p((entries - frequency + 0.5) / (frequency + 0.5))


def saturated(frequency: Any, length: Any, mean: float) -> Any:
    """Return ``f (k₁ + 1) / (f + k₁ (1 − b + b · l / mean))``; f and l are numbers or arrays.

    >>> saturated(np.array([2]), np.array([4]), 4.0).tolist()
    [1.375]
    """
    return frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * length / mean))


# -- postings ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """The postings of one field.

    Args:
        starts: (T + 1,) of each term's postings.
        rows: (P,) int32, each posting's place among the entries.
        frequencies: (P,) uint16, of the term in the field.
        impacts: (P,) float32; None before they are on disk.
    """

    starts: NDArray[np.integer[Any]]
    rows: NDArray[np.int32]
    frequencies: NDArray[np.uint16]
    impacts: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Entries side by side.

    Args:
        nums: (N,) int64 ascending.
        created_us: (N,) int64, moments of asking.
        lengths: (F, N) uint32, of each field in terms.
        hashes: (T,) uint64 ascending, of the terms.
        fields: the postings of each field.
        text_starts: (N + 1,) int64, where each entry's text begins.
        texts: (B,) uint8, what questions are compared by, one after the other.
    """

    nums: NDArray[np.int64]
    created_us: NDArray[np.int64]
    lengths: NDArray[np.uint32]
    hashes: NDArray[np.uint64]
    fields: Sequence[Postings]
    text_starts: NDArray[np.int64]
    texts: NDArray[np.uint8]


class Collector:
    """Takes entries' terms, and gives their postings."""

    def __init__(self) -> None:
        self._ids: defaultdict[str, int] = defaultdict(count().__next__)
        self._places: dict[int, int] = {}  # number → the last place that it was put at
        self._tokens = [array("I") for _ in FIELDS]
        self._lengths = [array("I") for _ in FIELDS]
        self._created = array("q")
        self._texts: list[bytes] = []

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, num: int) -> bool:
        return num in self._places

    @property
    def tokens(self) -> int:
        """Return how many terms were taken, repeated ones too: four bytes each until ``entries`` sorts them."""
        return sum(map(len, self._tokens))

    def put(
        self,
        num: int,
        title: Sequence[str],
        body: Sequence[str],
        tags: Sequence[str] = (),
        created_us: int | None = None,
        text: bytes = b"",
        answers: Sequence[str] = (),
    ) -> None:
        """Take an entry, in place of the one with its number."""
        self._places[num] = len(self._created)
        self._created.append(NO_MOMENT if created_us is None else created_us)
        self._texts.append(text)
        for field, terms in enumerate((title, body, answers, [tag_term(tag) for tag in dict.fromkeys(tags)])):
            self._tokens[field].extend(map(self._ids.__getitem__, terms))
            self._lengths[field].append(len(terms))

    def drop(self, num: int) -> None:
        """Forget the entry with a number, if it was put."""
        self._places.pop(num, None)

    def entries(self) -> Entries:
        """Return the entries that were taken."""
        names = np.array([hash_of.__wrapped__(term) for term in self._ids], np.uint64)
        hashes, ranks = np.unique(names, return_inverse=True)
        nums = np.fromiter(sorted(self._places), np.int64, len(self._places))
        taken = np.array([self._places[num] for num in nums.tolist()], np.int64)
        lengths = np.array(self._lengths, np.uint32).reshape(len(FIELDS), -1)
        rows = np.full(lengths.shape[1], -1, np.int64)
        rows[taken] = np.arange(len(taken))
        keys = []  # of each token that is taken: its term and its row
        for tokens, each in zip(self._tokens, lengths, strict=True):
            row = np.repeat(rows, each)
            key = (ranks[np.frombuffer(tokens, np.uint32)].astype(np.int64) << 32) | row
            keys.append(key[row >= 0])
        keys[TEXT] = np.concatenate((keys[TITLE], keys[TEXT]))
        chosen = lengths[:, taken]
        chosen[TEXT] += chosen[TITLE]
        texts = [self._texts[place] for place in taken.tolist()]
        starts = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        fields = [_counted(key, len(hashes)) for key in keys]
        created = np.array(self._created, np.int64)[taken]
        return Entries(nums, created, chosen, hashes, fields, starts, np.frombuffer(b"".join(texts), np.uint8))


def _counted(keys: NDArray[np.int64], terms: int) -> Postings:
    """Return the postings of tokens, each given as its term and its row in one number."""
    distinct, frequencies = np.unique(keys, return_counts=True)
    starts = np.searchsorted(distinct >> 32, np.arange(terms + 1))
    capped = np.minimum(frequencies, _MAX_FREQUENCY).astype(np.uint16)
    return Postings(starts, (distinct & 0xFFFFFFFF).astype(np.int32), capped)


# -- on disk ----------------------------------------------------------------------------------------------------------


_products = count(1)


class WordSegment:
    """A segment as it is on disk.

    Args:
        rows, impacts: those of all fields, one after the other.  # (P,)

    Raises:
        DamagedForumError: of what adds up postings: one is of an entry that is not there.
    """

    def __init__(
        self, entries: Entries, rows: NDArray[np.int32], impacts: NDArray[np.float32], stored: CheckedFile
    ) -> None:
        self.entries = entries
        self.rows = rows
        self.impacts = impacts
        self.stored = stored
        fields = entries.fields
        self._starts = np.cumsum([0, *(len(postings.rows) for postings in fields)])[:-1]  # of each field's postings
        self._is_checked = np.zeros((len(fields), len(entries.hashes)), np.bool_)
        self._matrices: dict[int, Any] = {}

    @property
    def nums(self) -> NDArray[np.int64]:
        """Return the numbers of the entries, ascending.  # (N,)"""
        return self.entries.nums

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """How many terms all entries have together in each field.  # (F,)"""
        totals: NDArray[np.int64] = self.entries.lengths.sum(axis=1, dtype=np.int64)
        return totals

    def check(self) -> None:
        """Read all of it.

        Raises:
            DamagedForumError: it is not what was written.
        """
        self.stored.check_payload()
        entries = self.entries
        if len(self.rows) and not (self.rows.min() >= 0 and self.rows.max() < len(entries.nums)):
            raise damage(self.stored.path, "holds a posting of a question that is not there")
        if (np.diff(entries.text_starts) < 0).any():
            raise damage(self.stored.path, "holds texts that do not follow each other")

    def places(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the places of terms, -1 for one that no entry has."""
        own = self.entries.hashes
        if not len(own):
            return np.full(len(hashes), -1, np.int64)
        at = np.minimum(np.searchsorted(own, hashes), len(own) - 1)
        return np.where(own[at] == hashes, at, -1)

    def rows_with(self, field: int, place: int) -> NDArray[np.int32]:
        """Return the rows that have a term in a field."""
        postings = self.entries.fields[field]
        self._check(field, np.array([place]))
        return postings.rows[postings.starts[place] : postings.starts[place + 1]]

    def sums(self, weighted: Sequence[tuple[int, NDArray[np.int64], NDArray[np.float32]]]) -> NDArray[np.float32]:
        """Return ``Σ_f Σ_t factor_f(t) · impact_f(t, d)`` of every row (N,).

        Args:
            weighted: fields, descending, each with the places of terms, descending, and their factors.
        """
        size, rows, impacts = len(self.nums), self.rows, self.impacts
        begins, ends = [], []
        for field, places, _ in weighted:
            self._check(field, places)
            starts = self.entries.fields[field].starts
            begins.append(self._starts[field] + starts[places])
            ends.append(self._starts[field] + starts[places + 1])
        begin, end = np.concatenate(begins), np.concatenate(ends)
        factors = np.concatenate([each for _, _, each in weighted])
        if not len(factors):
            return np.zeros(size, np.float32)
        if "scipy.sparse" not in sys.modules and next(_products) <= FEW_PRODUCTS:
            sums = np.zeros(size, np.float32)
            for of_term, factor in zip(map(slice, begin, end), factors, strict=True):
                np.add.at(sums, rows[of_term], impacts[of_term] * factor)
            return sums
        # A column of the matrix is what lies between two neighbours of its pointers. Terms are taken from the last to
        # the first, so that what would lie between one and the next runs backwards and is nothing: nothing is copied.
        pointers = np.empty(2 * len(factors), np.int32)
        pointers[0::2], pointers[1::2] = begin, end
        by_column = np.zeros(len(pointers) - 1, np.float32)
        by_column[0::2] = factors
        matrix = copy(self._matrix(len(by_column)))
        matrix.indptr = pointers
        summed: NDArray[np.float32] = matrix @ by_column
        return summed

    def _matrix(self, columns: int) -> Any:
        """Return a matrix of all postings with so many columns, of which nobody has said yet where they lie.

        Making one takes a fifth as long as the product: it is made once, and copied without what it holds.
        """
        known = self._matrices.get(columns)
        if known is None:
            sparse = importlib.import_module("scipy.sparse")
            known = sparse.csc_matrix((len(self.nums), columns), dtype=np.float32)
            known.data, known.indices = self.impacts, self.rows
            self._matrices[columns] = known
        return known

    def _check(self, field: int, places: NDArray[np.int64]) -> None:
        """Look, once for each term, whether its postings are of rows that are there: the product does not."""
        postings, size = self.entries.fields[field], len(self.nums)
        for place in places[~self._is_checked[field, places]]:
            rows = postings.rows[postings.starts[place] : postings.starts[place + 1]]
            if len(rows) and not (rows.min() >= 0 and rows.max() < size):
                raise damage(self.stored.path, "holds a posting of a question that is not there")
            self._is_checked[field, place] = True


_HEAD: Final = 2 + len(FIELDS)


def read_words(folder: Path, entry: FileEntry) -> WordSegment:
    """Open a segment that the manifest names.

    Raises:
        FileNotFoundError: it is not there.
        DamagedForumError: it is not what was written.
    """
    stored = read_file(folder / entry.name, WORDS, entry)
    if len(stored.front) != 8 * _HEAD:
        raise damage(stored.path, "does not begin as words do")
    terms, text_bytes, *sizes = np.frombuffer(stored.front, "<i8").tolist()
    rows, fields = entry.rows, len(FIELDS)
    shapes = [("<i8", rows), ("<i8", rows), ("<i8", rows + 1), ("<u8", terms), ("<u4", fields * rows)]
    shapes += [("<u4", fields * (terms + 1))]
    shapes += [("<i4", sum(sizes)), ("<f4", sum(sizes)), ("<u2", sum(sizes)), ("u1", text_bytes)]
    lengths = [np.dtype(kind).itemsize * size for kind, size in shapes]
    if min(*lengths, *sizes) < 0 or sum(sizes) > MAX_POSTINGS or len(stored.payload) != sum(lengths):
        raise damage(stored.path, f"does not have the size of {rows:,} questions with {terms:,} terms")
    ends = np.cumsum(lengths)
    pieces = [
        stored.payload[end - length : end].view(kind)
        for end, length, (kind, _) in zip(ends, lengths, shapes, strict=True)
    ]
    nums, created, text_starts, hashes, kept, starts, of_rows, impacts, frequencies, texts = pieces
    starts = starts.reshape(fields, terms + 1)
    if (nums[1:] <= nums[:-1]).any():
        raise damage(stored.path, "holds numbers that do not ascend")
    for size, each in zip(sizes, starts, strict=True):
        if each[0] != 0 or each[-1] != size or (each[1:] < each[:-1]).any():
            raise damage(stored.path, "holds terms whose postings do not follow each other")
    if len(stored.payload) <= CHECKED_BYTES:
        stored.check_payload()
    ends = np.cumsum(sizes).tolist()
    postings = [
        Postings(each, of_rows[end - size : end], frequencies[end - size : end], impacts[end - size : end])
        for each, end, size in zip(starts, ends, sizes, strict=True)
    ]
    entries = Entries(nums, created, kept.reshape(fields, rows), hashes, postings, text_starts, texts)
    return WordSegment(entries, of_rows, impacts, stored)


def write_words(path: Path, chosen: Sequence[tuple[Entries, NDArray[np.int64]]], means: Sequence[float]) -> FileEntry:
    """Write chosen entries as one new segment, ordered by number.

    Args:
        chosen: entries, and the ascending positions of those that are taken; no number is taken twice.
        means: the mean length of each field, by which impacts are made.

    Raises:
        ForumError: there are more postings than one file holds.
    """
    nums = np.concatenate([entries.nums[taken] for entries, taken in chosen])
    order = np.argsort(nums)
    nums = nums[order]
    places = []  # of each entry among all, -1 for one that is not taken
    for entries, taken in chosen:
        place = np.full(len(entries.nums), -1, np.int32)
        place[taken] = np.searchsorted(nums, entries.nums[taken])
        places.append(place)
    created = np.concatenate([entries.created_us[taken] for entries, taken in chosen])[order]
    lengths = np.concatenate([entries.lengths[:, taken] for entries, taken in chosen], axis=1)[:, order]
    counts = [  # of each part and field, the postings of each term that are taken
        [_taken_counts(postings, place) for postings in entries.fields]
        for (entries, _), place in zip(chosen, places, strict=True)
    ]
    parts = [(entries, np.array(of)) for (entries, _), of in zip(chosen, counts, strict=True)]  # counts (F, T)
    hashes = np.unique(np.concatenate([entries.hashes[of.any(axis=0)] for entries, of in parts]))
    starts = np.zeros((len(FIELDS), len(hashes) + 1), np.int64)
    for entries, of in parts:
        is_present = of.any(axis=0)
        starts[:, 1 + np.searchsorted(hashes, entries.hashes[is_present])] += of[:, is_present]
    np.cumsum(starts, axis=1, out=starts)
    sizes = starts[:, -1].tolist()
    if sum(sizes) > MAX_POSTINGS:
        raise ForumError(
            f"{path} would hold {sum(sizes):,} words of questions, and a file holds {MAX_POSTINGS:,}",
            'let an engine hold the forum with "askalike attach"',
        )
    with tempfile.TemporaryFile(dir=path.parent) as file:
        total = sum(sizes)
        scratch = _scratch(file, 10 * total)
        rows, impacts = scratch[: 4 * total].view("<i4"), scratch[4 * total : 8 * total].view("<f4")
        frequencies = scratch[8 * total :].view("<u2")
        for field, (end, size) in enumerate(zip(np.cumsum(sizes).tolist(), sizes, strict=True)):
            own = slice(end - size, end)
            merged = Postings(starts[field], rows[own], frequencies[own], impacts[own])
            free = starts[field, :-1].copy()  # where a term's next postings go
            for (entries, of), place in zip(parts, places, strict=True):
                _append(merged, free, hashes, entries, field, place, of[field])
            _fill_impacts(merged, kept_lengths(lengths[field]), means[field])
        text_starts, texts = _joined_texts(chosen, order)
        front = np.array([len(hashes), int(text_starts[-1]), *sizes], "<i8")
        arrays: list[NDArray[Any]] = [nums.astype("<i8"), created.astype("<i8"), text_starts.astype("<i8")]
        arrays += [hashes.astype("<u8"), lengths.astype("<u4").ravel(), starts.astype("<u4").ravel()]
        arrays += [rows, impacts, frequencies]
        return write_file(path, WORDS, 0, len(nums), [front], _blocks(arrays, texts), is_narrow=True)


def _blocks(arrays: Sequence[NDArray[Any]], texts: Iterator[NDArray[np.uint8]]) -> Iterator[NDArray[Any]]:
    for column in arrays:
        for start in range(0, len(column), _BLOCK_POSTINGS):
            yield column[start : start + _BLOCK_POSTINGS]
    yield from texts


def _scratch(file: Any, size: int) -> NDArray[np.uint8]:
    """Return room for postings: in memory, or in a file of that size where it is much."""
    if size <= CHECKED_BYTES:
        return np.zeros(size, np.uint8)
    if hasattr(os, "posix_fallocate"):  # a full disk is told here, and not by a signal later
        os.posix_fallocate(file.fileno(), 0, size)
    return np.memmap(file, np.uint8, "w+", shape=(size,))


def _taken_counts(postings: Postings, place: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return how many postings of each term are of entries that are taken."""
    starts = postings.starts.astype(np.int64)
    if (place >= 0).all():
        return np.diff(starts)
    counts = np.zeros(len(starts) - 1, np.int64)
    for terms in _ranges(starts):
        begin, end = int(starts[terms.start]), int(starts[terms.stop])
        sums = np.concatenate([[0], np.cumsum(place[postings.rows[begin:end]] >= 0)])
        counts[terms] = np.diff(sums[starts[terms.start : terms.stop + 1] - begin])
    return counts


def _append(
    merged: Postings,
    free: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    entries: Entries,
    field: int,
    place: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Put a part's postings of a field behind those of its terms that are there already."""
    postings = entries.fields[field]
    starts = postings.starts.astype(np.int64)
    for terms in _ranges(starts):
        begin, end = int(starts[terms.start]), int(starts[terms.stop])
        new = place[postings.rows[begin:end]]
        is_taken = new >= 0
        has_some = counts[terms] > 0
        own, each = np.searchsorted(hashes, entries.hashes[terms][has_some]), counts[terms][has_some]
        to = np.arange(each.sum()) + np.repeat(free[own] - (np.cumsum(each) - each), each)
        merged.rows[to] = new[is_taken]
        merged.frequencies[to] = postings.frequencies[begin:end][is_taken]
        free[own] += each


def _fill_impacts(merged: Postings, lengths: NDArray[np.int64], mean: float) -> None:
    assert merged.impacts is not None
    for begin in range(0, len(merged.rows), _BLOCK_POSTINGS):
        block = slice(begin, begin + _BLOCK_POSTINGS)
        merged.impacts[block] = saturated(merged.frequencies[block], lengths[merged.rows[block]], mean)


def _ranges(starts: NDArray[np.int64]) -> Iterator[slice]:
    """Yield ranges of terms that have few postings together, or are one term."""
    first, last = 0, len(starts) - 1
    while first < last:
        stop = int(np.searchsorted(starts, int(starts[first]) + _BLOCK_POSTINGS, "right")) - 1
        stop = min(last, max(first + 1, stop))
        yield slice(first, stop)
        first = stop


def _joined_texts(
    chosen: Sequence[tuple[Entries, NDArray[np.int64]]], order: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Iterator[NDArray[np.uint8]]]:
    """Return where texts begin in a new segment, and the texts, block after block."""
    begins = np.concatenate([entries.text_starts[:-1][taken] for entries, taken in chosen])[order]
    ends = np.concatenate([entries.text_starts[1:][taken] for entries, taken in chosen])[order]
    of = np.repeat(np.arange(len(chosen)), [len(taken) for _, taken in chosen])[order]
    starts = np.concatenate([[0], np.cumsum(np.maximum(ends - begins, 0))])

    def blocks() -> Iterator[NDArray[np.uint8]]:
        # neighbours in one part are neighbours here, but for those that have gone: runs are copied whole
        breaks = np.flatnonzero((of[1:] != of[:-1]) | (begins[1:] != ends[:-1])) + 1
        for first, last in zip(np.r_[0, breaks].tolist(), np.r_[breaks, len(of)].tolist(), strict=True):
            if first < last:
                yield from _blocks([chosen[of[first]][0].texts[begins[first] : ends[last - 1]]], iter(()))

    return starts, blocks()
