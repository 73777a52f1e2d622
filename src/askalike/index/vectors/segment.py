"""One segment: entries that were written together and never change; and the tombstones laid over it.

The numbers of a segment ascend, so that a number is found by halving.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from askalike.index.vectors.checked_file import CheckedFile, read_file, write_file
from askalike.index.vectors.codes import inverse_norms
from askalike.index.vectors.folder import FileEntry, damage

_BLOCK = 4096

CHECKED_BYTES = 16 * 1024 * 1024
"""Segments of up to this size (20,000 vectors of 400 numbers) are compared with their sums when opened, in 15 ms."""


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
        skipped = 8 * count if stored.form == 1 else 0  # which commit brought each row
        if len(stored.front) != 12 * count + skipped or len(stored.payload) != 2 * count * dimensions or count == 0:
            raise damage(stored.path, f"does not have the size of {count} rows of {dimensions} numbers")
        nums = np.frombuffer(stored.front, "<i8", count)
        factors = np.frombuffer(stored.front, "<f4", count, 8 * count + skipped)
        if (nums[1:] <= nums[:-1]).any():
            raise damage(stored.path, "holds numbers that do not ascend")
        if not np.isfinite(factors).all():
            raise damage(stored.path, "holds lengths that are not numbers")
        if len(stored.payload) <= CHECKED_BYTES:
            stored.check_payload()
        codes = stored.payload.view("<i2").reshape(count, dimensions)
        return cls(entry, Rows(nums, codes), factors, stored)


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
    return write_file(path, "segment", dimensions, len(order), front, blocks())


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
