"""All entries of one commit: segments side by side, less their dead rows. It never changes.

A *row* is a position in the segments laid end to end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from askalike.index.vectors.folder import Manifest
from askalike.index.vectors.segment import Segment, read_dead

_Number = TypeVar("_Number", np.int64, np.float32)


class Snapshot:
    """The entries of one commit.

    Args:
        segments: those that count.
        dead: for each segment, (n,) int64 ascending positions of its dead rows.
    """

    def __init__(self, segments: Sequence[Segment], dead: Sequence[NDArray[np.int64]], dimensions: int) -> None:
        self.segments = tuple(segments)
        self.dead = tuple(dead)
        self.dimensions = dimensions
        self.offsets = np.cumsum([0, *(segment.entry.rows for segment in segments)])
        self.size = int(self.offsets[-1])
        self.entries = self.size - sum(len(rows) for rows in dead)

    @classmethod
    def read(cls, folder: Path, manifest: Manifest, known: Mapping[str, Segment]) -> Snapshot:
        """Open what the manifest names; segments in ``known`` (by digest) are not opened again.

        Raises:
            FileNotFoundError: a file is not there.
            DamagedForumError: a file is not what was written.
        """
        segments = [
            known.get(entry.file.digest) or Segment.read(folder, entry.file, manifest.dimensions)
            for entry in manifest.segments
        ]
        dead = [read_dead(folder, entry.dead, entry.file.rows) for entry in manifest.segments]
        return cls(segments, dead, manifest.dimensions)

    @cached_property
    def nums(self) -> NDArray[np.int64]:
        """The number of each row (size,), dead ones too."""
        return _joined([segment.rows.nums for segment in self.segments], np.int64)

    @cached_property
    def born(self) -> NDArray[np.int64]:
        """The generation that brought each row (size,)."""
        return _joined([segment.rows.born for segment in self.segments], np.int64)

    @cached_property
    def factors(self) -> NDArray[np.float32]:
        """``1 / ‖codes‖`` of each row (size,), 0 for vectors of zeros."""
        return _joined([segment.factors for segment in self.segments], np.float32)

    @cached_property
    def is_alive(self) -> NDArray[np.bool_]:
        """Whether each row (size,) is an entry."""
        alive = np.ones(self.size, np.bool_)
        for dead, offset in zip(self.dead, self.offsets[:-1], strict=True):
            alive[dead + offset] = False
        return alive

    @cached_property
    def is_found(self) -> NDArray[np.bool_]:
        """Whether each row (size,) can be found: an entry whose vector is not zeros."""
        found: NDArray[np.bool_] = self.is_alive & (self.factors != 0)
        return found

    @cached_property
    def hidden(self) -> NDArray[np.int64]:
        """The rows that cannot be found, ascending."""
        return np.flatnonzero(~self.is_found)

    def locate(self, nums: ArrayLike) -> NDArray[np.int64]:
        """Return the row of the entry with each number, -1 where there is none.

        Args:
            nums: (n,) whole numbers, in any order.
        """
        wanted = np.asarray(nums, np.int64)
        found = np.full(len(wanted), -1, np.int64)
        for segment, dead, offset in zip(self.segments, self.dead, self.offsets[:-1], strict=True):
            held = segment.rows.nums
            at = np.searchsorted(held, wanted)
            np.minimum(at, len(held) - 1, out=at)
            is_here = held[at] == wanted
            if len(dead):
                is_here &= dead[np.minimum(np.searchsorted(dead, at), len(dead) - 1)] != at
            found[is_here] = at[is_here] + offset
        return found

    def codes(self, rows: NDArray[np.int64]) -> NDArray[np.int16]:
        """Return the codes (n, D) of these rows, in their order."""
        found = np.empty((len(rows), self.dimensions), np.int16)
        for segment, start, stop in zip(self.segments, self.offsets[:-1], self.offsets[1:], strict=True):
            is_here = (rows >= start) & (rows < stop)
            if is_here.any():
                found[is_here] = segment.rows.codes[rows[is_here] - start]
        return found

    def blocks(self, size: int, rows: NDArray[np.int64] | None = None) -> Iterator[tuple[slice, NDArray[np.int16]]]:
        """Give the codes in blocks of at most ``size``, with where each lies in the answer.

        Args:
            rows: ascending; None for all rows.
        """
        for segment, start, stop in zip(self.segments, self.offsets[:-1], self.offsets[1:], strict=True):
            low, high = (start, stop) if rows is None else np.searchsorted(rows, (start, stop))
            take = _taker(segment.rows.codes, None if rows is None else rows[low:high] - start)
            for first in range(0, int(high - low), size):
                last = min(first + size, int(high - low))
                yield slice(int(low) + first, int(low) + last), take(first, last)


def _taker(codes: NDArray[np.int16], rows: NDArray[np.int64] | None) -> Callable[[int, int], NDArray[np.int16]]:
    if rows is None:
        return lambda first, last: codes[first:last]
    return lambda first, last: codes[rows[first:last]]


def _joined(arrays: Sequence[NDArray[_Number]], kind: type[_Number]) -> NDArray[_Number]:
    return np.concatenate(arrays) if arrays else np.zeros(0, kind)
