"""Postings with impacts: what each term adds to each question's score, added up for a whole query at once.

::

    saturated(f, l) = f (k₁ + 1) / (f + k₁ (1 − b + b · l / mean))
    impact(t, d)    = saturated(f_text, l_text) + w · idf_title(t) / idf_text(t) · saturated(f_title, l_title)
    score(q, d)     = Σ_t weight(t) · idf_text(t) · impact(t, d)

with k₁ = 1.2, b = .75, w = the title's weight over the text's, and lengths as tantivy keeps them, in one byte: the
scores are tantivy's but for the rounding of 32 bits. A query's sums are one sparse product, exact and without pruning,
and hold the score of every question; the best are found by the maxima of blocks.

tantivy holds every entry, and answers alone where there are no postings, where few entries make them not worth it, and
for filters. What was written since the postings were made is tagged in tantivy's index and asked for there, and its
rows here are dead; when that is a fifth, new postings are made of the old and of what was written since.

Source: Robertson and Zaragoza 2009, The probabilistic relevance framework: BM25 and beyond; Anh, de Kretser and Moffat
2001, Vector-space ranking with effective early termination (impacts); lengths in a byte as Lucene's SmallFloat.

In a file of postings, one after the other: numbers i64 (N), hashes of terms u64 (T), where a term's postings begin
u32 (T + 1), lengths of title and text u32 (2, N), rows i32 (P), impacts f32 (P) or none, frequencies in the text u16
(P), in the title u8 (P).
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import zlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from askalike.errors import AskalikeError, DamagedForumError
from askalike.files import replace_whole
from askalike.index.checked_file import (
    FILE,
    POSTINGS,
    REBUILD,
    CheckedFile,
    FileEntry,
    damage,
    file_name,
    read_file,
    write_file,
)
from askalike.index.words.texts import Texts, TextWriter

K1: Final = 1.2
B: Final = 0.75
TITLE_WEIGHT: Final = 0.25
"""The title's weight over the text's by which impacts are made; searches that weigh otherwise ask tantivy."""

MANIFEST_FILE: Final = "postings.json"
MANIFEST_FORMAT: Final = 1

LEAST: Final = 20_000
"""Fewer entries have no postings: there tantivy takes less than a tenth of a search."""
FIRST: Final = 20
"""So often a process asks tantivy, twice for each search, until it loads SciPy, which takes a quarter of a second."""
SHARE: Final = 0.2
LEAST_WRITTEN: Final = 5_000
"""New postings are made when so many entries, and this share of all, were written since."""
MOST_TOKENS: Final = 6_000_000
"""So many terms are sorted at a time, in 250 MB."""
CHECKED_BYTES: Final = 16 * 1024 * 1024
MOST_POSTINGS: Final = 2**31 - 1
_AT_ONCE: Final = 1 << 22
_BLOCK: Final = 64
_FEW: Final = 8
_ABOVE_NOTHING: Final = np.finfo(np.float32).smallest_subnormal
_EXACT_LENGTHS: Final = 24
_MOST_HASHES: Final = 1 << 17


@lru_cache(_MOST_HASHES)
def hash_of(term: str) -> int:
    """Return the hash of a term, 64 bits: among ten million terms two are alike once in 400,000 forums."""
    return int.from_bytes(blake2b(term.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


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


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Postings of some entries; without impacts, which need all of them.

    Args:
        nums: (N,) int64 ascending.
        hashes: (T,) uint64 ascending, of the terms.
        starts: (T + 1,) of each term's postings.
        lengths: (2, N) of titles and texts, in terms.
        rows: (P,) int32, each posting's place in ``nums``.
        in_text, in_title: (P,) frequencies there; the text is title and body.
    """

    nums: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    starts: NDArray[np.uint32]
    lengths: NDArray[np.uint32]
    rows: NDArray[np.int32]
    in_text: NDArray[np.uint16]
    in_title: NDArray[np.uint8]


class Collector:
    """Takes entries' terms, and gives their postings."""

    def __init__(self) -> None:
        self._ids: defaultdict[str, int] = defaultdict(count().__next__)
        self._nums: dict[int, int] = {}  # number → the last place that it was put at
        self._tokens = (array("I"), array("I"))  # of titles, and of bodies
        self._lengths = (array("I"), array("I"))

    def __len__(self) -> int:
        return len(self._nums)

    @property
    def tokens(self) -> int:
        """Return how many terms were taken, repeated ones too: four bytes each until ``part`` sorts them."""
        return len(self._tokens[0]) + len(self._tokens[1])

    def put(self, num: int, title: Sequence[str], body: Sequence[str]) -> None:
        """Take an entry, in place of the one with its number."""
        self._nums[num] = len(self._lengths[0])
        for field, terms in enumerate((title, body)):
            self._tokens[field].extend(map(self._ids.__getitem__, terms))
            self._lengths[field].append(len(terms))

    def part(self) -> Part:
        """Return the postings of what was taken."""
        names = np.array([hash_of.__wrapped__(term) for term in self._ids], np.uint64)
        hashes, places = np.unique(names, return_inverse=True)
        nums = np.fromiter(sorted(self._nums), np.int64, len(self._nums))
        taken = np.array([self._nums[num] for num in nums.tolist()], np.int64)
        lengths = np.array(self._lengths, np.uint32).reshape(2, -1)
        rows = np.full(lengths.shape[1], -1, np.int64)
        rows[taken] = np.arange(len(taken))
        keys = []
        for tokens, each in zip(self._tokens, lengths, strict=True):
            row = np.repeat(rows, each)
            key = (places[np.frombuffer(tokens, np.uint32)].astype(np.int64) << 32) | row
            keys.append(key[row >= 0])
        title, in_title = np.unique(keys[0], return_counts=True)
        text, in_text = np.unique(np.concatenate(keys), return_counts=True)
        titled = np.zeros(len(text), np.uint8)
        titled[np.searchsorted(text, title)] = np.minimum(in_title, 255)
        starts = np.searchsorted(text >> 32, np.arange(len(hashes) + 1)).astype(np.uint32)
        chosen = lengths[:, taken]
        chosen[1] += chosen[0]
        capped = np.minimum(in_text, 65_535).astype(np.uint16)
        return Part(nums, hashes, starts, chosen, (text & 0xFFFFFFFF).astype(np.int32), capped, titled)


def write_part(path: Path, part: Part) -> FileEntry:
    """Write postings without impacts as a new file."""
    return _write(path, part, [])


def _write(path: Path, part: Part, impacts: Sequence[NDArray[np.float32]]) -> FileEntry:
    front = np.array([len(part.hashes), len(part.rows), bool(impacts)], "<i8")
    fixed = (part.nums.astype("<i8"), part.hashes.astype("<u8"), part.starts.astype("<u4"), part.lengths.ravel())
    arrays: list[NDArray[Any]] = [*fixed, part.rows, *impacts, part.in_text, part.in_title]
    blocks = (one[start : start + _AT_ONCE] for one in arrays for start in range(0, len(one), _AT_ONCE))
    return write_file(path, POSTINGS, 0, len(part.nums), [front], blocks)


def read_part(folder: Path, entry: FileEntry) -> tuple[Part, NDArray[np.float32] | None, CheckedFile]:
    """Open postings that the manifest names: these, their impacts if they have any, and the file.

    Raises:
        FileNotFoundError: they are not there.
        DamagedForumError: they are not what was written.
    """
    stored = read_file(folder / entry.name, POSTINGS, entry)
    if len(stored.front) != 24:
        raise damage(stored.path, "does not begin as postings do")
    terms, size, has_impacts = np.frombuffer(stored.front, "<i8").tolist()
    sizes = [8 * entry.rows, 8 * terms, 4 * (terms + 1), 8 * entry.rows, 4 * size, 4 * size * has_impacts]
    sizes += [2 * size, size]
    if min(sizes) < 0 or size > MOST_POSTINGS or len(stored.payload) != sum(sizes):
        raise damage(stored.path, f"does not have the size of {entry.rows:,} questions with {size:,} postings")
    ends = np.cumsum(sizes)
    pieces = [stored.payload[end - each : end] for end, each in zip(ends, sizes, strict=True)]
    nums, hashes, starts = pieces[0].view("<i8"), pieces[1].view("<u8"), pieces[2].view("<u4")
    if (nums[1:] <= nums[:-1]).any():
        raise damage(stored.path, "holds numbers that do not ascend")
    if starts[0] != 0 or starts[-1] != size or (starts[1:] < starts[:-1]).any():
        raise damage(stored.path, "holds terms whose postings do not follow each other")
    if len(stored.payload) <= CHECKED_BYTES:
        stored.check_payload()
    lengths = pieces[3].view("<u4").reshape(2, entry.rows)
    part = Part(nums, hashes, starts, lengths, pieces[4].view("<i4"), pieces[6].view("<u2"), pieces[7])
    return part, pieces[5].view("<f4") if has_impacts else None, stored


def write_postings(path: Path, parts: Sequence[Part], left_out: NDArray[np.int64]) -> FileEntry | None:
    """Write the postings of all parts with impacts as one new file; None where they are too many for 32 bits.

    Args:
        parts: of a number that several have the last counts.
        left_out: (n,) numbers that the first part holds and that are not taken.
    """
    kept, later = [], np.zeros(0, np.int64)
    for part in reversed(parts):
        gone = np.isin(part.nums, later) | (np.isin(part.nums, left_out) if part is parts[0] else False)
        kept.append(~gone)
        later = np.union1d(later, part.nums)
    kept.reverse()
    nums = np.sort(np.concatenate([part.nums[taken] for part, taken in zip(parts, kept, strict=True)]))
    lengths = np.zeros((2, len(nums)), np.uint32)
    places = []  # of each part's entries among all, -1 for those that are not taken
    for part, taken in zip(parts, kept, strict=True):
        place = np.where(taken, np.searchsorted(nums, part.nums), -1).astype(np.int32)
        lengths[:, place[taken]] = part.lengths[:, taken]
        places.append(place)
    counts = [_alive_counts(part, place) for part, place in zip(parts, places, strict=True)]
    hashes = np.unique(np.concatenate([part.hashes[of > 0] for part, of in zip(parts, counts, strict=True)]))
    totals = np.zeros(len(hashes), np.int64)
    for part, of in zip(parts, counts, strict=True):
        totals[np.searchsorted(hashes, part.hashes[of > 0])] += of[of > 0]
    starts = np.concatenate([[0], np.cumsum(totals)])
    size = int(starts[-1])
    if size > MOST_POSTINGS:
        return None
    with tempfile.TemporaryFile(dir=path.parent) as file:
        merged = np.memmap(file, np.uint8, "w+", shape=(max(1, 11 * size),)) if size else np.zeros(1, np.uint8)
        rows, impacts = merged[: 4 * size].view("<i4"), merged[4 * size : 8 * size].view("<f4")
        in_text, in_title = merged[8 * size : 10 * size].view("<u2"), merged[10 * size : 11 * size]
        free = starts[:-1].copy()  # where a term's next postings go
        for part, place, of in zip(parts, places, counts, strict=True):
            for some in _ranges(part.starts):
                begin, end = int(part.starts[some.start]), int(part.starts[some.stop])
                new = place[part.rows[begin:end]]
                alive = new >= 0
                has_some = of[some] > 0
                mine, each = np.searchsorted(hashes, part.hashes[some][has_some]), of[some][has_some]
                to = np.arange(each.sum()) + np.repeat(free[mine] - (np.cumsum(each) - each), each)
                rows[to] = new[alive]
                in_text[to], in_title[to] = part.in_text[begin:end][alive], part.in_title[begin:end][alive]
                free[mine] += each
        whole = Part(nums, hashes, starts.astype(np.uint32), lengths, rows, in_text, in_title)
        _fill_impacts(whole, impacts)
        return _write(path, whole, [impacts])


def _alive_counts(part: Part, place: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return how many postings of each term are of entries that are taken."""
    if (place >= 0).all():
        starts = part.starts.astype(np.int64)
        return starts[1:] - starts[:-1]
    found = np.zeros(len(part.hashes), np.int64)
    for some in _ranges(part.starts):
        begin, end = int(part.starts[some.start]), int(part.starts[some.stop])
        sums = np.concatenate([[0], np.cumsum(place[part.rows[begin:end]] >= 0)])
        inner = part.starts[some.start : some.stop + 1].astype(np.int64) - begin
        found[some] = sums[inner[1:]] - sums[inner[:-1]]
    return found


def _ranges(starts: NDArray[np.uint32]) -> Iterator[slice]:
    """Yield ranges of terms that have few postings together, or are one term."""
    first, last = 0, len(starts) - 1
    while first < last:
        stop = int(np.searchsorted(starts, int(starts[first]) + _AT_ONCE, "right")) - 1
        stop = min(last, max(first + 1, stop))
        yield slice(first, stop)
        first = stop


def _fill_impacts(whole: Part, impacts: NDArray[np.float32]) -> None:
    entries = len(whole.nums)
    means = [max(1.0, float(each.sum(dtype=np.int64))) / max(1, entries) for each in whole.lengths]
    titles, texts = (kept_lengths(each) for each in whole.lengths)
    for some in _ranges(whole.starts):
        begin, end = int(whole.starts[some.start]), int(whole.starts[some.stop])
        rows, in_title = whole.rows[begin:end], whole.in_title[begin:end]
        inner = whole.starts[some.start : some.stop + 1].astype(np.int64) - begin
        titled = np.add.reduceat(in_title > 0, inner[:-1], dtype=np.int64)
        ratio = TITLE_WEIGHT * idf(entries, titled) / idf(entries, np.diff(inner))
        found = saturated(whole.in_text[begin:end], texts[rows], means[1])
        has = np.flatnonzero(in_title)
        of = np.repeat(ratio, np.diff(inner))[has]
        found[has] += of * saturated(in_title[has], titles[rows[has]], means[0])
        impacts[begin:end] = found


_asked = count(1)


def is_worth_it() -> bool:
    """Return whether postings are to be asked: a command that searches once is done before SciPy would be loaded."""
    return "scipy.sparse" in sys.modules or next(_asked) > FIRST


def _scipy() -> Any:
    return importlib.import_module("scipy.sparse")


class Postings:
    """Postings with impacts, as they are on disk.

    Raises:
        DamagedForumError: they are not what was written.
    """

    def __init__(self, folder: Path, entry: FileEntry) -> None:
        self.entry = entry
        self.part, impacts, self.file = read_part(folder, entry)
        if impacts is None:
            raise damage(self.file.path, "has no impacts")
        self._impacts = impacts
        self._is_checked = np.zeros(len(self.part.hashes), np.bool_)
        self._matrices: dict[int, Any] = {}

    def places(self, nums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of entries, -1 for one that is not here."""
        mine = self.part.nums
        found = np.minimum(np.searchsorted(mine, nums), len(mine) - 1)
        return np.where(mine[found] == nums, found, -1)

    def sums(
        self, weights: Mapping[str, float], frequencies: Callable[[str], int], entries: int
    ) -> NDArray[np.float32]:
        """Return the score of every row (N,), at weight 1 of the text.

        Args:
            weights: term → weight > 0.
            frequencies, entries: of the whole index, as it is now.

        Raises:
            DamagedForumError: a posting is of a row that is not there.
        """
        part, terms = self.part, list(weights)
        asked = np.fromiter(map(hash_of, terms), np.uint64, len(terms))
        found = np.minimum(np.searchsorted(part.hashes, asked), len(part.hashes) - 1)
        kept = np.flatnonzero(part.hashes[found] == asked)
        kept = kept[np.argsort(-found[kept], kind="stable")]  # descending, see below
        places = found[kept]
        self._check(places)
        counts = np.array([frequencies(terms[place]) for place in kept], np.float64)
        factors = np.array([weights[terms[place]] for place in kept]) * idf(entries, counts)
        # A column of the matrix is what lies between two neighbours of its pointers. Terms are taken from the last to
        # the first, so that what would lie between one and the next runs backwards and is nothing: nothing is copied.
        pointers = np.empty(2 * len(places), np.int32)
        pointers[0::2], pointers[1::2] = part.starts[places], part.starts[places + 1]
        by_column = np.zeros(max(0, len(pointers) - 1), np.float32)
        by_column[0::2] = factors
        if not len(places):
            return np.zeros(len(part.nums), np.float32)
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
            known = _scipy().csc_matrix((len(self.part.nums), columns), dtype=np.float32)
            known.data, known.indices = self._impacts, self.part.rows
            self._matrices[columns] = known
        return known

    def _check(self, places: NDArray[np.int64]) -> None:
        """Look, once for each term, whether its postings are of rows that are there: the product does not."""
        for place in places[~self._is_checked[places]]:
            rows = self.part.rows[self.part.starts[place] : self.part.starts[place + 1]]
            if len(rows) and not (rows.min() >= 0 and rows.max() < len(self.part.nums)):
                raise damage(self.file.path, "holds a posting of a question that is not there")
            self._is_checked[place] = True


def best(sums: NDArray[np.float32], limit: int) -> NDArray[np.int64]:
    """Return the rows of the greatest sums above 0 (n,), n ≤ ``limit``, descending, then by row.

    >>> best(np.array([0.5, 0.0, 2.0, 0.5], np.float32), 2).tolist()
    [2, 0]
    """
    count = len(sums) // _BLOCK  # of blocks, whose rows lie that far apart, so that maxima are taken side by side
    least, near = _ABOVE_NOTHING, None
    if limit < count:
        tops = sums[: count * _BLOCK].reshape(_BLOCK, count).max(axis=0)
        # as many blocks hold one as good: none below is among the best
        least = max(least, np.partition(tops, -limit)[-limit])
        near = np.flatnonzero(tops >= least)
    if near is None or _FEW * len(near) > count:  # as where many sums are equal
        rows = np.flatnonzero(sums >= least)
    else:
        within = (np.arange(0, count * _BLOCK, count)[:, None] + near).ravel()  # ascending
        rows = np.concatenate([within, np.arange(count * _BLOCK, len(sums))])
        rows = rows[sums.take(rows) >= least]
    return rows[np.argsort(-sums[rows], kind="stable")[:limit]]


@dataclass(frozen=True, slots=True)
class PostingsManifest:
    """Which files of postings count.

    Args:
        base: the file with impacts.
        runs: files without, of the entries so far, while the index is filled.
    """

    base: FileEntry | None = None
    runs: tuple[FileEntry, ...] = ()

    @property
    def tag(self) -> str:
        """Return what entries bear in tantivy's index that are written from now on: the name of no other base."""
        return "" if self.base is None else self.base.name

    def names(self) -> set[str]:
        """Return the names of all files that count."""
        return {entry.name for entry in (*self.runs, self.base) if entry is not None}

    def write(self, folder: Path) -> None:
        """Make this manifest the index's, at once and for good."""
        replace_whole(folder / MANIFEST_FILE, json.dumps({"format": MANIFEST_FORMAT} | asdict(self)).encode())

    @classmethod
    def read(cls, folder: Path) -> PostingsManifest:
        """Return the manifest in a folder, one of nothing where there is none.

        Raises:
            DamagedForumError: it cannot be understood.
        """
        path = folder / MANIFEST_FILE
        try:
            found = json.loads(path.read_bytes())
            if found["format"] != MANIFEST_FORMAT:
                raise ValueError(f"format {found['format']}, expected {MANIFEST_FORMAT}")
            base = None if found["base"] is None else FileEntry(**found["base"])
            return cls(base, tuple(FileEntry(**entry) for entry in found["runs"]))
        except FileNotFoundError:
            return cls()
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise DamagedForumError(
                f"the word index cannot be read: {path} does not name files: {error}", REBUILD
            ) from error


class PostingsWriter:
    """Keeps postings in step with the entries of an index: makes them when it was filled, and anew when they are old.

    Args:
        texts: where the terms are kept of what was written since.
        is_filling: the index is being filled from nothing.
    """

    def __init__(self, folder: Path, texts: TextWriter, *, is_filling: bool) -> None:
        self._folder = folder
        self._texts = texts
        self._is_filling = is_filling
        self._collector = Collector()
        self._parts: list[Part] = []  # of entries that are not committed yet
        self._few: dict[int, bytes] = {}  # the first entries of an index that may stay too small for postings
        try:
            self._manifest = PostingsManifest.read(folder)
        except DamagedForumError:  # tantivy answers, until a fifth was written anew
            self._manifest = PostingsManifest()
        self._clear()

    @property
    def tag(self) -> str:
        """Return what entries bear that are written now."""
        return self._manifest.tag

    def put(self, num: int, title: Sequence[str], body: Sequence[str]) -> None:
        """Take an entry's terms, in place of those of its number."""
        if not self._is_filling:
            self._texts.note(num, self.tag, zlib.compress(_joined(title, body), 1))
            return
        self._collector.put(num, title, body)
        if self._collector.tokens >= MOST_TOKENS:
            self._sort()
        if len(self._few) < LEAST:
            self._few[num] = _joined(title, body)

    def _sort(self) -> None:
        """Make a part of what was collected."""
        if len(self._collector):
            self._parts.append(self._collector.part())
            self._collector = Collector()

    def remove(self, nums: Iterable[int]) -> None:
        """Take it that these entries have gone."""
        for num in nums:
            self._texts.note(num, self.tag, None)

    def before_entries(self, *, is_complete: bool) -> None:
        """Keep the terms of what is about to be committed."""
        if not self._is_filling:
            return
        if not is_complete:
            self._sort()
            for part in self._parts:
                entry = write_part(self._folder / file_name(len(self._manifest.runs), POSTINGS), part)
                self._manifest = replace(self._manifest, runs=(*self._manifest.runs, entry))
            self._manifest.write(self._folder)
            self._parts = []
        elif not self._manifest.runs and len(self._few) < LEAST:
            for num, joined in self._few.items():
                self._texts.note(num, "", zlib.compress(joined, 1))

    def after_entries(self, entries: Callable[[], int], *, is_complete: bool) -> None:
        """Make postings if it is time to.

        Args:
            entries: tells how many there are now.
        """
        if self._is_filling:
            if not is_complete:
                return
            if self._manifest.runs or len(self._few) >= LEAST:
                self._sort()
                self._make(self._manifest.runs, self._parts, (), entries())
            self._is_filling, self._parts, self._collector, self._few = False, [], Collector(), {}
            return
        base = self._manifest.base
        if self._texts.noted < (LEAST if base is None else max(LEAST_WRITTEN, SHARE * base.rows)):
            return
        written, gone = Collector(), []
        with suppress(DamagedForumError):  # then entries are missing
            for num, packed in self._texts.notes(self.tag):
                gone.append(num)
                if packed is not None:
                    written.put(num, *_unpacked(packed))
        self._make(() if base is None else (base,), [written.part()], () if base is None else gone, entries())

    def _make(self, files: Iterable[FileEntry], parts: Sequence[Part], left_out: Sequence[int], entries: int) -> None:
        """Make postings of those in files and of parts, or none where something is missing: then tantivy answers."""
        made = None
        with suppress(DamagedForumError, FileNotFoundError):
            held = [read_part(self._folder, entry)[0] for entry in files]
            path = self._folder / file_name(1, POSTINGS)
            made = write_postings(path, [*held, *parts], np.array(left_out, np.int64))
        if made is not None and made.rows != entries:
            made = None
        self._manifest = PostingsManifest(made)
        self._manifest.write(self._folder)
        self._texts.forget()
        self._clear()

    def _clear(self) -> None:
        """Delete the files that nothing names: of a killed writer, and those that were replaced."""
        for path in self._folder.glob(f"*.{POSTINGS}"):
            if path.name not in self._manifest.names() and FILE.fullmatch(path.name):
                with suppress(PermissionError, IsADirectoryError):  # Windows: a reader has it open
                    path.unlink(missing_ok=True)


def _joined(title: Sequence[str], body: Sequence[str]) -> bytes:
    return f"{' '.join(title)}\n{' '.join(body)}".encode(errors="surrogatepass")


def _unpacked(packed: bytes) -> tuple[list[str], list[str]]:
    try:
        title, _, body = zlib.decompress(packed).decode(errors="surrogatepass").partition("\n")
    except (zlib.error, UnicodeDecodeError) as error:
        raise DamagedForumError(f"the word index cannot be read: its notes of terms: {error}", REBUILD) from error
    return title.split(" ") if title else [], body.split(" ") if body else []


@dataclass(frozen=True, slots=True, eq=False)
class LivePostings:
    """Postings, and what was written since: in one state of the index.

    Args:
        dead: (n,) ascending rows of entries that were written anew or removed.
        since: ascending numbers that were written or removed; (n,) int64.
        last: the last note of them that was read.
        tail: how many entries tantivy holds that are not here.
    """

    postings: Postings
    dead: NDArray[np.int64]
    since: NDArray[np.int64]
    last: int
    tail: int = 0

    @property
    def tag(self) -> str:
        """Return what entries bear that were written since."""
        return self.postings.entry.name

    @property
    def alive(self) -> int:
        """Return how many entries are found here."""
        return len(self.postings.part.nums) - len(self.dead)


def live_postings(folder: Path, texts: Texts, known: LivePostings | None) -> LivePostings | None:
    """Return the postings in a folder as of now, None where there are none that can be read.

    Args:
        known: those of the last look.
    """
    try:
        base = PostingsManifest.read(folder).base
        if base is None:
            return None
        if known is None or known.tag != base.name:
            none = np.zeros(0, np.int64)
            known = LivePostings(Postings(folder, base), none, none, 0)
    except (AskalikeError, OSError):  # checking the forum tells what is wrong; tantivy answers
        return None
    nums, last = texts.noted_after(known.last, base.name)
    if not nums:
        return known
    since = np.union1d(known.since, np.array(nums, np.int64))
    rows = known.postings.places(since)
    return replace(known, dead=np.sort(rows[rows >= 0]), since=since, last=last)


def postings_faults(
    folder: Path, *, entries: int, is_in_step: bool, read: Callable[[int], None]
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the postings in a folder: the file, and why searches do without it or should.

    Args:
        entries: of the index.
        is_in_step: whether the index uses those that it has.
        read: told how many bytes were read.
    """
    name = MANIFEST_FILE
    try:
        manifest = PostingsManifest.read(folder)
        for entry in (*manifest.runs, *([manifest.base] if manifest.base else [])):
            name = entry.name
            part, _, stored = read_part(folder, entry)
            stored.check_payload()
            if len(part.rows) and not (part.rows.min() >= 0 and part.rows.max() < len(part.nums)):
                raise damage(stored.path, "holds a posting of a question that is not there")
            read(len(stored.payload))
    except (AskalikeError, OSError) as error:
        yield name, error.message if isinstance(error, AskalikeError) else f"cannot be read: {error}"
        return
    if manifest.base is not None and not is_in_step:
        yield name, "does not hold what the index holds: searches do without it"
    elif manifest.base is None and entries >= 2 * LEAST:
        yield name, f"names no postings of {entries:,} questions: searches take longer without them"
