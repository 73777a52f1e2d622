"""All entries of one commit: segments, which never change, side by side, less their dead rows.

The numbers of a segment ascend, so that a number is found by halving.

A *row* is a position in the segments laid end to end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from askalike.index.checked_file import CheckedFile, FileEntry, damage, read_file, write_file
from askalike.index.vectors.codes import inverse_norms
from askalike.index.vectors.folder import Manifest, SegmentEntry
from askalike.index.vectors.scan import Codes, Quantiser

_Kind = TypeVar("_Kind", bound=np.generic)

_BLOCK = 4096

CHECKED_BYTES = 16 * 1024 * 1024
"""Segments of up to this size (20,000 vectors of 400 numbers) are compared with their sums when opened, in 15 ms."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Entries side by side.

    Args:
        nums: (N,) int64, the store's numbers.
        codes: (N, D) int16, of whole questions.
        titles: (N, D) int8, of their titles.
    """

    nums: NDArray[np.int64]
    codes: NDArray[np.int16]
    titles: NDArray[np.int8]


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A segment as it is on disk; ``factors`` (N,) float32 are ``1 / ‖codes‖``, 0 for a vector of zeros."""

    entry: FileEntry
    rows: Rows
    factors: NDArray[np.float32]
    stored: CheckedFile

    @classmethod
    def read(cls, folder: Path, entry: FileEntry, dimensions: int) -> Segment:
        """Open a segment that the manifest names.

        Raises:
            FileNotFoundError: it is not there.
            DamagedForumError: it is not what was written.
        """
        stored = read_file(folder / entry.name, "segment", entry)
        count = entry.rows
        if stored.dimensions != dimensions:
            raise damage(stored.path, f"has {stored.dimensions} dimensions, expected {dimensions}")
        if len(stored.front) != 12 * count or len(stored.payload) != 3 * count * dimensions or count == 0:
            raise damage(stored.path, f"does not have the size of {count} rows of {dimensions} numbers")
        nums = np.frombuffer(stored.front, "<i8", count)
        factors = np.frombuffer(stored.front, "<f4", count, 8 * count)
        if (nums[1:] <= nums[:-1]).any():
            raise damage(stored.path, "holds numbers that do not ascend")
        if not np.isfinite(factors).all():
            raise damage(stored.path, "holds lengths that are not numbers")
        if len(stored.payload) <= CHECKED_BYTES:
            stored.check_payload()
        codes = stored.payload[: 2 * count * dimensions].view("<i2").reshape(count, dimensions)
        titles = stored.payload[2 * count * dimensions :].view(np.int8).reshape(count, dimensions)
        return cls(entry, Rows(nums, codes, titles), factors, stored)


def write_segment(path: Path, dimensions: int, parts: Sequence[tuple[Rows, NDArray[np.int64]]]) -> FileEntry:
    """Write the chosen rows of all parts as one new segment, ordered by number.

    Args:
        parts: (rows, (n,) int64 positions of those that are taken); no number is taken twice.
    """
    nums = np.concatenate([rows.nums[taken] for rows, taken in parts])
    part = np.repeat(np.arange(len(parts)), [len(taken) for _, taken in parts])
    position = np.concatenate([taken for _, taken in parts])
    order = np.argsort(nums)
    part, position = part[order], position[order]

    def blocks(columns: Sequence[NDArray[_Kind]], kind: str) -> Iterator[NDArray[_Kind]]:
        for start in range(0, len(order), _BLOCK):
            where, which = part[start : start + _BLOCK], position[start : start + _BLOCK]
            block = np.empty((len(where), dimensions), kind)
            for number, column in enumerate(columns):
                is_here = where == number
                block[is_here] = column[which[is_here]]
            yield block

    codes, titles = [rows.codes for rows, _ in parts], [rows.titles for rows, _ in parts]
    factors = np.concatenate([inverse_norms(block) for block in blocks(codes, "<i2")]).astype("<f4")
    front = (nums[order].astype("<i8"), factors)
    return write_file(path, "segment", dimensions, len(order), front, chain(blocks(codes, "<i2"), blocks(titles, "i1")))


def write_dead(path: Path, dead: NDArray[np.int64]) -> FileEntry:
    """Write the positions (ascending) of a segment's dead rows."""
    return write_file(path, "dead", 0, len(dead), [dead.astype("<i8")], [])


def read_dead(folder: Path, entry: FileEntry | None, rows: int) -> NDArray[np.int64]:
    """Return the positions of a segment's dead rows, ascending.

    Raises:
        FileNotFoundError: the file is not there.
        DamagedForumError: it is not what was written.
    """
    if entry is None:
        return np.zeros(0, np.int64)
    stored = read_file(folder / entry.name, "dead", entry)
    if len(stored.front) != 8 * entry.rows or len(stored.payload):
        raise damage(stored.path, f"does not have the size of {entry.rows} rows")
    dead: NDArray[np.int64] = np.frombuffer(stored.front, "<i8")
    if (dead[1:] <= dead[:-1]).any() or dead[:1].min(initial=0) < 0 or dead[-1:].max(initial=0) >= rows:
        raise damage(stored.path, f"holds positions outside 0 … {rows - 1} or out of order")
    return dead


@dataclass(frozen=True, eq=False)
class Part:
    """A segment in one commit.

    Args:
        dead: (n,) int64 ascending positions of its dead rows.
        codes: None where it is small, or has not got any yet.
        start: its first row.
    """

    segment: Segment
    dead: NDArray[np.int64]
    codes: Codes | None
    start: int

    @property
    def size(self) -> int:
        """Return how many rows it has, dead ones too."""
        return self.segment.entry.rows

    @cached_property
    def is_alive(self) -> NDArray[np.bool_]:
        """Whether each row (size,) is an entry."""
        alive = np.ones(self.size, np.bool_)
        alive[self.dead] = False
        return alive

    @cached_property
    def is_found(self) -> NDArray[np.bool_]:
        """Whether each row (size,) can be found: an entry whose vector is not zeros."""
        found: NDArray[np.bool_] = self.is_alive & (self.segment.factors != 0)
        return found

    @cached_property
    def open(self) -> int:
        """How many rows can be found."""
        return int(np.count_nonzero(self.is_found))


class Snapshot:
    """The entries of one commit.

    Args:
        parts: in the order of their rows.
        manifest: that names them.
        quantiser: by which their codes are made, None where there are none.
    """

    def __init__(self, parts: Mapping[SegmentEntry, Part], manifest: Manifest, quantiser: Quantiser | None) -> None:
        self.known = parts
        self.parts = tuple(parts.values())
        self.manifest = manifest
        self.quantiser = quantiser
        self.dimensions = manifest.dimensions
        self.size = sum(part.size for part in self.parts)
        self.entries = self.size - sum(len(part.dead) for part in self.parts)

    @classmethod
    def read(cls, folder: Path, manifest: Manifest, before: Snapshot | None) -> Snapshot:
        """Open what the manifest names; what ``before`` holds already is not opened again.

        Raises:
            FileNotFoundError: a file is not there.
            DamagedForumError: a file is not what was written.
        """
        centres = manifest.centres
        known: Mapping[SegmentEntry, Part] = {} if before is None else before.known
        quantiser = None if before is None or before.manifest.centres != centres else before.quantiser
        if centres is not None and quantiser is None:
            quantiser = Quantiser.read(folder, centres, manifest.dimensions)
        segments = {entry.file: part for entry, part in known.items()}
        parts: dict[SegmentEntry, Part] = {}
        start = 0
        for entry in manifest.segments:
            same = known.get(entry)
            if same is None:
                held = segments.get(entry.file)
                segment = Segment.read(folder, entry.file, manifest.dimensions) if held is None else held.segment
                codes = None
                if entry.codes is not None and quantiser is not None:
                    old = [part.codes for one, part in known.items() if one.codes == entry.codes]
                    codes = old[0] if old else Codes.read(folder, entry.codes, entry.file.rows, quantiser)
                same = Part(segment, read_dead(folder, entry.dead, entry.file.rows), codes, start)
            parts[entry] = same if same.start == start else replace(same, start=start)
            start += entry.file.rows
        return cls(parts, manifest, quantiser)

    def locate(self, nums: ArrayLike) -> NDArray[np.int64]:
        """Return the row of the entry with each number, -1 where there is none.

        Args:
            nums: (n,) whole numbers, in any order.
        """
        wanted = np.asarray(nums, np.int64)
        found = np.full(len(wanted), -1, np.int64)
        for part in self.parts:
            held, dead = part.segment.rows.nums, part.dead
            at = np.searchsorted(held, wanted)
            np.minimum(at, len(held) - 1, out=at)
            is_here = held[at] == wanted
            if len(dead):
                is_here &= dead[np.minimum(np.searchsorted(dead, at), len(dead) - 1)] != at
            found[is_here] = at[is_here] + part.start
        return found

    def nums(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of these rows, in their order."""
        return self._filled(np.empty(len(rows), np.int64), rows, lambda part: part.segment.rows.nums)

    def codes(self, rows: NDArray[np.int64]) -> NDArray[np.int16]:
        """Return the codes (n, D) of these rows, in their order."""
        found = np.empty((len(rows), self.dimensions), np.int16)
        return self._filled(found, rows, lambda part: part.segment.rows.codes)

    def titles(self, rows: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return the codes (n, D) of the titles of these rows, in their order."""
        codes = np.empty((len(rows), self.dimensions), np.int8)
        return self._filled(codes, rows, lambda part: part.segment.rows.titles)

    def factors(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return ``1 / ‖codes‖`` of these rows, in their order."""
        return self._filled(np.empty(len(rows), np.float32), rows, lambda part: part.segment.factors)

    def is_found(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether each of these rows can be found, in their order."""
        return self._filled(np.empty(len(rows), np.bool_), rows, lambda part: part.is_found)

    def _filled(
        self, found: NDArray[_Kind], rows: NDArray[np.int64], column: Callable[[Part], NDArray[_Kind]]
    ) -> NDArray[_Kind]:
        if len(self.parts) == 1:
            return column(self.parts[0]).take(rows, axis=0, out=found, mode="clip")  # else it is copied once more
        for part in self.parts:
            is_here = (rows >= part.start) & (rows < part.start + part.size)
            if is_here.any():
                found[is_here] = column(part)[rows[is_here] - part.start]
        return found

    def blocks(
        self, size: int, rows: NDArray[np.int64] | None
    ) -> Iterator[tuple[slice, Part, NDArray[np.int64] | slice]]:
        """Give rows in blocks of at most ``size``: where each lies in the answer, its part, and its positions there.

        Args:
            rows: ascending; None for all rows.
        """
        for part in self.parts:
            start, stop = part.start, part.start + part.size
            low, high = (start, stop) if rows is None else np.searchsorted(rows, (start, stop)).tolist()
            for first in range(low, high, size):
                last = min(first + size, high)
                taken = slice(first - start, last - start) if rows is None else rows[first:last] - start
                yield slice(first, last), part, taken
