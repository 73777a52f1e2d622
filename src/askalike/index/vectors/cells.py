"""Cells: which codes of a very large segment are read at all.

Codes that no longer fit the processor's caches are read from memory, and that takes longer than comparing them does.
So the vectors of a very large segment are divided by whichever of ``CELLS`` directions is the nearest, and only the
codes of the cells nearest to a query are read: a quarter of all, where no more are wanted.

Source: Jégou, Douze and Schmid 2011, Product quantization for nearest neighbor search (the inverted file, here without
residuals, so that the codes are those of any other segment).

In the front of a file of codes: how many cells there are i64, their directions f32 (C, D), the cell of each vector u16.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askalike.index.vectors.codes import decode

CELLS: Final = 1_024
DIVIDED: Final = 500_000
"""Segments of more vectors than this have cells."""
PROBED: Final = 0.25
"""The share of the cells that is read. Of the ten nearest of 300 among a million real and perturbed vectors .989 are
found so, .995 by reading all; with an eighth .976, with a half .993."""
ROOM: Final = 8
"""The cells that are read hold so many times as many vectors as are wanted."""
SAMPLE: Final = 32
"""Vectors for each cell by which directions are learned."""
_PASSES: Final = 6
_SEED: Final = 1234
_AT_ONCE: Final = 512


class Cells(NamedTuple):
    """How the vectors of a segment are divided.

    Args:
        centres: (C, D) float32.
        of: (N,) uint16, the cell of each vector.
    """

    centres: NDArray[np.float32]
    of: NDArray[np.uint16]

    def probed(self, count: int) -> int:
        """Return how many cells are read for so many vectors.

        >>> cells = Cells(np.zeros((1_024, 2), np.float32), np.zeros(1_000_000, np.uint16))
        >>> cells.probed(600), cells.probed(100_000)
        (256, 820)
        """
        most = len(self.centres)
        return min(most, max(math.ceil(PROBED * most), math.ceil(ROOM * most * count / len(self.of))))

    def front(self) -> Iterable[NDArray[Any]]:
        """Return what a file keeps."""
        return np.array([len(self.centres)], "<i8"), self.centres.astype("<f4"), self.of.astype("<u2")


def read_cells(front: bytes, rows: int, dimensions: int) -> Cells | None:
    """Return the cells that the front of a file holds, None where it is empty.

    Raises:
        ValueError: they are not those of so many vectors, or none that were written.
    """
    if not front:
        return None
    count = int.from_bytes(front[:8], "little")
    if not 0 < count <= 1 << 16 or len(front) != 8 + 4 * count * dimensions + 2 * rows:
        raise ValueError(f"does not have the size of the cells of {rows:,} vectors")
    centres = np.frombuffer(front, "<f4", count * dimensions, 8).reshape(count, dimensions)
    of = np.frombuffer(front, "<u2", rows, 8 + 4 * count * dimensions)
    if not (np.abs(centres) < 2).all() or (of >= count).any():  # not of NaN either
        raise ValueError("holds cells that nobody wrote")
    return Cells(centres.astype(np.float32, copy=False), of.astype(np.uint16, copy=False))


def divided(stored: NDArray[np.int16]) -> Cells | None:
    """Return the cells of a segment's vectors (N, D), None where they are too few; the same vectors give the same.

    Args:
        stored: at least ``CELLS`` are not of zeros.
    """
    if len(stored) <= DIVIDED:
        return None
    said = np.flatnonzero(stored.any(axis=1))  # no direction is learned from zeros
    rows = said[np.linspace(0, len(said) - 1, min(SAMPLE * CELLS, len(said))).astype(np.int64)]
    with one_thread():
        found = faiss().Kmeans(
            stored.shape[1], CELLS, niter=_PASSES, seed=_SEED, spherical=True, min_points_per_centroid=1
        )
        found.train(decode(stored[rows]))
    turned = np.ascontiguousarray(found.centroids.T)
    of = np.empty(len(stored), np.uint16)
    for start in range(0, len(stored), _AT_ONCE):
        block = slice(start, start + _AT_ONCE)
        of[block] = (decode(stored[block]) @ turned).argmax(axis=1)
    return Cells(found.centroids, of)


def faiss() -> Any:
    """Return FAISS, loaded when it is first needed: that takes a fifth of a second, and small forums never need it."""
    return importlib.import_module("faiss")


@contextmanager
def one_thread() -> Iterator[None]:
    """Let FAISS compute on this thread alone, inside: threads that share so little work wait for each other, spinning.

    Measured beside other processes on two cores: centroids in 46 s with two threads, in 3 s with one.
    """
    before = faiss().omp_get_max_threads()
    faiss().omp_set_num_threads(1)  # of this thread's own work
    try:
        yield
    finally:
        faiss().omp_set_num_threads(before)
