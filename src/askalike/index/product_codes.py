"""Approximate cosines of many vectors: product quantisation at four bits, read by FAISS's fast scan.

A vector is cut into parts of four numbers; of each part only the nearest of 16 centroids is kept, so that 300 numbers
take 38 bytes, and a table of a query's 16 products with each part's centroids lies in the processor's registers while
the codes are read. What the codes propose is scored again by the vectors themselves (``nearest.py``).

Source: Jégou, Douze and Schmid 2011, Product quantization for nearest neighbor search; André, Kermarrec and Le
Scouarnec 2017, Accelerated nearest neighbor search with Quick ADC.

FAISS reads no file: centroids and codes lie in files of ours, and it is given arrays whose sums and sizes were checked.

Codes that no longer fit the processor's caches are read from memory, and that takes longer than comparing them does.
So the vectors of a very large segment are divided by whichever of ``CELLS`` directions is the nearest (the inverted
file of the first source, here without residuals, so that the codes are those of any other segment), and only the codes
of the cells nearest to a query are read: a quarter of all, where no more are wanted. In the front of a file of codes:
how many cells there are i64, their directions f32 (C, D), the cell of each vector u16.
"""

from __future__ import annotations

import importlib
import math
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askalike.index.checked_file import CheckedFile, FileEntry, damage, read_file, write_file
from askalike.index.vector_codes import decode

CENTROIDS: Final = 16
SAMPLE: Final = 8_192
"""So many vectors train the centroids: twice as many found as much in the real ones of Reddit, half as many less."""
PASSES: Final = 6
"""Of k-means: with FAISS's 25, no more was found in 4,900 and in 60,000 of Reddit's vectors, for 4 times the work."""
_SEED: Final = 1234
_ENCODED_AT_ONCE: Final = 16_384


CELLS: Final = 1_024
DIVIDED: Final = 500_000
"""Segments of more vectors than this have cells."""
PROBED: Final = 0.25
"""The share of the cells that is read. Of the ten nearest of 300 among a million real and perturbed vectors .989 are
found so, .995 by reading all; with an eighth .976, with a half .993."""
ROOM: Final = 8
"""The cells that are read hold so many times as many vectors as are wanted."""
VECTORS_FOR_CELL: Final = 32
"""Vectors for each cell by which directions are learned."""
_CELL_PASSES: Final = 6
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
    rows = said[np.linspace(0, len(said) - 1, min(VECTORS_FOR_CELL * CELLS, len(said))).astype(np.int64)]
    with one_thread():
        means = faiss().Kmeans(
            stored.shape[1], CELLS, niter=_CELL_PASSES, seed=_SEED, spherical=True, min_points_per_centroid=1
        )
        means.train(decode(stored[rows]))
    turned = np.ascontiguousarray(means.centroids.T)
    of = np.empty(len(stored), np.uint16)
    for start in range(0, len(stored), _AT_ONCE):
        block = slice(start, start + _AT_ONCE)
        of[block] = (decode(stored[block]) @ turned).argmax(axis=1)
    return Cells(means.centroids, of)


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


def part_width(dimensions: int) -> int:
    """Return how many numbers share a code: fewer in short vectors, of which too few parts would tell too little.

    >>> [part_width(dimensions) for dimensions in (8, 64, 300)]
    [1, 2, 4]
    """
    return 4 if dimensions >= 128 else 2 if dimensions >= 64 else 1


class Quantiser:
    """The centroids by which vectors of one index are coded.

    Args:
        centroids: (parts, 16, width) float32.
        dimensions: D of the vectors; zeros fill the last part.
    """

    def __init__(self, centroids: NDArray[np.float32], dimensions: int) -> None:
        self.centroids = centroids
        self.dimensions = dimensions

    @property
    def code_bytes(self) -> int:
        """Return how many bytes a vector takes."""
        return (len(self.centroids) + 1) // 2

    @classmethod
    def train(cls, vectors: NDArray[np.float32]) -> Quantiser:
        """Learn from a sample of vectors (n, D) of length 1, n ≥ 16; the same sample gives the same centroids."""
        dimensions = vectors.shape[1]
        width = part_width(dimensions)
        parts = -(-dimensions // width)
        inner = faiss().IndexPQ(parts * width, parts, 4)
        inner.pq.cp.seed = _SEED
        inner.pq.cp.niter = PASSES
        inner.pq.cp.max_points_per_centroid = max(1, len(vectors) // CENTROIDS)
        inner.pq.cp.min_points_per_centroid = 1  # say nothing of few
        with one_thread():
            inner.train(_filled(vectors, parts * width))
        centroids = faiss().vector_to_array(inner.pq.centroids).reshape(parts, CENTROIDS, width)
        return cls(centroids, dimensions)

    @classmethod
    def read(cls, folder: Path, entry: FileEntry, dimensions: int) -> Quantiser:
        """Open the centroids that the manifest names.

        Raises:
            FileNotFoundError: they are not there.
            DamagedForumError: they are not what was written.
        """
        stored = read_file(folder / entry.name, "centres", entry)
        width = part_width(dimensions)
        parts = -(-dimensions // width)
        if stored.dimensions != dimensions or len(stored.front) != 4 * parts * CENTROIDS * width:
            raise damage(stored.path, f"does not fit vectors of {dimensions} numbers")
        centroids = np.frombuffer(stored.front, "<f4").reshape(parts, CENTROIDS, width)
        if not (np.abs(centroids) < 2).all():  # not of NaN either
            raise damage(stored.path, "holds numbers that are no centroids of vectors of length 1")
        return cls(centroids.astype(np.float32), dimensions)

    def write(self, path: Path) -> FileEntry:
        """Write the centroids as a new file."""
        return write_file(path, "centres", self.dimensions, CENTROIDS, [self.centroids.astype("<f4")], [])

    def encode(self, vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Return the codes (n, ``code_bytes``) of vectors (n, D) of length 1."""
        inner = self._index()
        with one_thread():
            codes: NDArray[np.uint8] = inner.sa_encode(_filled(vectors, inner.d))
        return codes

    def filled(self, aims: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return directions (Q, D) as FAISS takes them."""
        parts, _, width = self.centroids.shape
        return _filled(aims.astype(np.float32), parts * width)

    def scanned(self, codes: NDArray[np.uint8]) -> Any:
        """Return FAISS's index over codes (n, ``code_bytes``)."""
        library, inner = faiss(), self._index()
        library.copy_array_to_vector(np.ascontiguousarray(codes).ravel(), inner.codes)
        inner.ntotal = len(codes)
        return library.IndexPQFastScan(inner)

    def divided(self, codes: NDArray[np.uint8], cells: Cells) -> Any:
        """Return FAISS's index over codes (n, ``code_bytes``) that are divided into cells."""
        library, flat = faiss(), self._index()
        centres = library.IndexFlatL2(flat.d)
        centres.add(_filled(cells.centres, flat.d))
        inner = library.IndexIVFPQ(centres, flat.d, len(cells.centres), flat.pq.M, 4)
        inner.by_residual = False
        inner.pq = flat.pq
        inner.is_trained = True
        order = np.argsort(cells.of, kind="stable")
        ends = np.cumsum(np.bincount(cells.of, minlength=len(cells.centres)))
        for cell, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
            if start < end:
                rows = order[start:end]
                of_cell = codes.take(rows, axis=0)
                inner.invlists.add_entries(cell, end - start, library.swig_ptr(rows), library.swig_ptr(of_cell))
        inner.ntotal = len(codes)
        scan = library.IndexIVFPQFastScan(inner)
        scan.referenced_objects = [centres]  # as FAISS itself notes what one object reads of another
        return scan

    def _index(self) -> Any:
        parts, _, width = self.centroids.shape
        inner = faiss().IndexPQ(parts * width, parts, 4)
        faiss().copy_array_to_vector(self.centroids.ravel(), inner.pq.centroids)
        inner.is_trained = True
        return inner


class Codes:
    """The codes of one segment; they are read and checked when they are first searched."""

    def __init__(self, stored: CheckedFile, rows: int, quantiser: Quantiser, cells: Cells | None) -> None:
        self._stored = stored
        self._rows = rows
        self._quantiser = quantiser
        self._cells = cells
        self._loading = threading.Lock()
        self._loaded: Any = None

    @classmethod
    def read(cls, folder: Path, entry: FileEntry, rows: int, quantiser: Quantiser) -> Codes:
        """Open the codes that the manifest names for a segment.

        Raises:
            FileNotFoundError: they are not there.
            DamagedForumError: they are not what was written.
        """
        stored = read_file(folder / entry.name, "codes", entry)
        if entry.rows != rows or len(stored.payload) != rows * quantiser.code_bytes:
            raise damage(stored.path, f"does not have the size of {rows} codes of {quantiser.code_bytes} bytes")
        try:
            return cls(stored, rows, quantiser, read_cells(stored.front, rows, quantiser.dimensions))
        except ValueError as error:
            raise damage(stored.path, str(error)) from error

    def near(self, aims: NDArray[np.float64], count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the squared distances (Q, count), ascending, and the positions of the vectors that seem nearest.

        Where the cells that are read hold fewer, the last positions are -1.

        Args:
            count: at most as many as there are codes.

        Raises:
            DamagedForumError: the file does not hold what was written.
        """
        wanted = None if self._cells is None else faiss().SearchParametersIVF(nprobe=self._cells.probed(count))
        distances, positions = self._index().search(self._quantiser.filled(aims), count, params=wanted)
        return distances, positions

    def check(self) -> None:
        """Read all codes and compare their sum.

        Raises:
            DamagedForumError: they are not what was written.
        """
        self._stored.check_payload()

    def _index(self) -> Any:
        with self._loading:
            if self._loaded is None:
                self._stored.check_payload()
                codes = self._stored.payload.reshape(self._rows, self._quantiser.code_bytes)
                whole, cells = self._quantiser, self._cells
                self._loaded = whole.scanned(codes) if cells is None else whole.divided(codes, cells)
            return self._loaded


def write_codes(path: Path, quantiser: Quantiser, stored: NDArray[np.int16]) -> FileEntry:
    """Write the codes of a segment's vectors (n, D)."""
    starts = range(0, len(stored), _ENCODED_AT_ONCE)
    blocks = (quantiser.encode(decode(stored[start : start + _ENCODED_AT_ONCE])) for start in starts)
    cells = divided(stored)
    return write_file(path, "codes", quantiser.dimensions, len(stored), cells.front() if cells else [], blocks)


def _filled(vectors: NDArray[np.float32], width: int) -> NDArray[np.float32]:
    if vectors.shape[1] == width:
        return np.ascontiguousarray(vectors)
    filled = np.zeros((len(vectors), width), np.float32)
    filled[:, : vectors.shape[1]] = vectors
    return filled
