"""The vectors of one commit: segments side by side, the codes by which they are found, and what is gone of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from askalike.index.checked_file import CheckedFile, FileEntry, damage, read_file, write_file
from askalike.index.product_codes import Codes
from askalike.index.segments import Commit, Manifest, Part
from askalike.index.vector_codes import inverse_norms

SEGMENT: Final = "segment"
"""The kind of file that a segment is."""
CHECKED_BYTES: Final = 16 * 1024 * 1024
"""Segments of up to this size (20,000 vectors of 400 numbers) are compared with their sums when opened, in 15 ms."""

_BLOCK: Final = 4096
_Kind = TypeVar("_Kind", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Entries side by side.

    Args:
        nums: (N,) int64, the store's numbers.
        codes: (N, D) int16.
    """

    nums: NDArray[np.int64]
    codes: NDArray[np.int16]


@dataclass(frozen=True, slots=True, eq=False)
class VectorSegment:
    """A segment as it is on disk; ``factors`` (N,) float32 are ``1 / ‖codes‖``, 0 for a vector of zeros."""

    rows: Rows
    factors: NDArray[np.float32]
    stored: CheckedFile

    @property
    def nums(self) -> NDArray[np.int64]:
        """Return the numbers of the entries, ascending.  # (N,)"""
        return self.rows.nums

    def check(self) -> None:
        """Read all of it; raises as ``CheckedFile.check_payload``."""
        self.stored.check_payload()

    @classmethod
    def read(cls, folder: Path, entry: FileEntry, dimensions: int) -> VectorSegment:
        """Open a segment that the manifest names.

        Raises:
            FileNotFoundError: it is not there.
            DamagedForumError: it is not what was written.
        """
        stored = read_file(folder / entry.name, SEGMENT, entry)
        count = entry.rows
        if stored.dimensions != dimensions:
            raise damage(stored.path, f"has {stored.dimensions} dimensions, expected {dimensions}")
        if len(stored.front) != 12 * count or len(stored.payload) != 2 * count * dimensions or count == 0:
            raise damage(stored.path, f"does not have the size of {count} rows of {dimensions} numbers")
        nums = np.frombuffer(stored.front, "<i8", count)
        factors = np.frombuffer(stored.front, "<f4", count, 8 * count)
        if (nums[1:] <= nums[:-1]).any():
            raise damage(stored.path, "holds numbers that do not ascend")
        if not np.isfinite(factors).all():
            raise damage(stored.path, "holds lengths that are not numbers")
        if len(stored.payload) <= CHECKED_BYTES:
            stored.check_payload()
        return cls(Rows(nums, stored.payload.view("<i2").reshape(count, dimensions)), factors, stored)


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

    def blocks() -> Iterator[NDArray[np.int16]]:
        for start in range(0, len(order), _BLOCK):
            where, which = part[start : start + _BLOCK], position[start : start + _BLOCK]
            block = np.empty((len(where), dimensions), "<i2")
            for number, (rows, _) in enumerate(parts):
                is_here = where == number
                block[is_here] = rows.codes[which[is_here]]
            yield block

    factors = np.concatenate([inverse_norms(block) for block in blocks()]).astype("<f4")
    front = (nums[order].astype("<i8"), factors)
    return write_file(path, SEGMENT, dimensions, len(order), front, blocks())


@dataclass(frozen=True, eq=False)
class VectorPart(Part[VectorSegment]):
    """A segment of vectors in one commit; ``codes`` is None where it is small, or has not got any yet."""

    codes: Codes | None = None

    @cached_property
    def is_found(self) -> NDArray[np.bool_]:
        """Whether each row (size,) can be found: an entry whose vector is not zeros."""
        mask: NDArray[np.bool_] = self.is_alive & (self.segment.factors != 0)
        return mask

    @cached_property
    def open(self) -> int:
        """How many rows can be found."""
        return int(np.count_nonzero(self.is_found))


class VectorCommit(Commit[VectorPart]):
    """The vectors of one commit."""

    @property
    def dimensions(self) -> int:
        """Return D."""
        return self.manifest.dimensions

    @classmethod
    def read(cls, folder: Path, manifest: Manifest, content: bytes | None, before: Self | None) -> Self:
        """Open what the manifest names; see ``Commit.read``.

        Raises:
            ValueError: the manifest is not of vectors.
        """
        if manifest.dimensions < 1:
            raise ValueError(f"its manifest says {manifest.dimensions} dimensions, expected at least 1")
        commit = super().read(folder, manifest, content, before)
        known: dict[FileEntry | None, Codes | None] = {}
        if before is not None:
            known = {old.codes: part.codes for old, part in zip(before.manifest.segments, before.parts, strict=True)}
        parts = []
        for entry, part in zip(manifest.segments, commit.parts, strict=True):
            codes = known.get(entry.codes)
            if entry.codes is not None and codes is None:
                codes = Codes.read(folder, entry.codes, entry.file.rows, manifest.dimensions)
            parts.append(part if part.codes is codes else replace(part, codes=codes))
        commit.parts = tuple(parts)
        return commit

    @classmethod
    def _segment(cls, folder: Path, entry: FileEntry, manifest: Manifest) -> VectorSegment:
        return VectorSegment.read(folder, entry, manifest.dimensions)

    @classmethod
    def _part(cls, segment: VectorSegment, dead: NDArray[np.int64], start: int) -> VectorPart:
        return VectorPart(segment, dead, start)

    def nums(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of these rows, in their order."""
        return self._filled(np.empty(len(rows), np.int64), rows, lambda part: part.segment.nums)

    def codes(self, rows: NDArray[np.int64]) -> NDArray[np.int16]:
        """Return the codes (n, D) of these rows, in their order."""
        codes = np.empty((len(rows), self.dimensions), np.int16)
        return self._filled(codes, rows, lambda part: part.segment.rows.codes)

    def factors(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return ``1 / ‖codes‖`` of these rows, in their order."""
        return self._filled(np.empty(len(rows), np.float32), rows, lambda part: part.segment.factors)

    def is_found(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether each of these rows can be found, in their order."""
        return self._filled(np.empty(len(rows), np.bool_), rows, lambda part: part.is_found)

    def _filled(
        self, values: NDArray[_Kind], rows: NDArray[np.int64], column: Callable[[VectorPart], NDArray[_Kind]]
    ) -> NDArray[_Kind]:
        if len(self.parts) == 1:
            return column(self.parts[0]).take(rows, axis=0, out=values, mode="clip")  # else it is copied once more
        for part in self.parts:
            is_here = (rows >= part.start) & (rows < part.start + part.size)
            if is_here.any():
                values[is_here] = column(part)[rows[is_here] - part.start]
        return values

    def blocks(
        self, size: int, rows: NDArray[np.int64] | None
    ) -> Iterator[tuple[slice, VectorPart, NDArray[np.int64] | slice]]:
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
