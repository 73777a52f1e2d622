"""Approximate cosines of many vectors: product quantisation at four bits, read by FAISS's fast scan.

A vector is cut into parts of four numbers; of each part only the nearest of 16 centroids is kept, so that 300 numbers
take 38 bytes, and a table of a query's 16 products with each part's centroids lies in the processor's registers while
the codes are read. What the codes propose is scored again by the vectors themselves (``nearest.py``).

Source: Jégou, Douze and Schmid 2011, Product quantization for nearest neighbor search; André, Kermarrec and Le
Scouarnec 2017, Accelerated nearest neighbor search with Quick ADC.

Codes that no longer fit the processor's caches are read from memory, and that takes longer than comparing them does.
So the vectors of a very large segment are divided by whichever of ``CELLS`` directions is the nearest (the inverted
file of the first source, here without residuals), and only the codes of the cells nearest to a query are read: a
quarter of all, where no more are wanted.

The payload of a file of codes is FAISS's index as FAISS writes it; the front is how many vectors its centroids were
learned from, i64. FAISS takes damaged numbers as they are, so it reads nothing before the sum was compared.
"""

from __future__ import annotations

import importlib
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

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


KINDS: Final = (b"IPfs", b"IwPf")
"""How FAISS names what is written here: codes in one list, and in the lists of cells."""
OUTGROWN: Final = 4
"""Centroids are learned anew for a segment of more than so many times as many vectors as they were learned from."""


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


class Codes:
    """The codes of one segment; they are read and checked when they are first searched.

    Args:
        trained_at: how many vectors there were when the centroids were learned.
    """

    def __init__(self, stored: CheckedFile, rows: int) -> None:
        self.trained_at = int.from_bytes(stored.front, "little")
        self._stored = stored
        self._rows = rows
        self._loading = threading.Lock()
        self._loaded: Any = None

    @classmethod
    def read(cls, folder: Path, entry: FileEntry, rows: int, dimensions: int) -> Codes:
        """Open the codes that the manifest names for a segment.

        Raises:
            FileNotFoundError: they are not there.
            DamagedForumError: they are not what was written.
        """
        stored = read_file(folder / entry.name, "codes", entry)
        if entry.rows != rows or stored.dimensions != dimensions or len(stored.front) != 8:
            raise damage(stored.path, f"does not hold the codes of {rows} vectors of {dimensions} numbers")
        return cls(stored, rows)

    def near(self, aims: NDArray[np.float64], count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the squared distances (Q, count), ascending, and the positions of the vectors that seem nearest.

        Where the cells that are read hold fewer, the last positions are -1.

        Args:
            count: at most as many as there are codes.

        Raises:
            DamagedForumError: the file does not hold what was written.
        """
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
        index, parameters = self._loaded, None
        if isinstance(index, faiss().IndexIVF):
            parameters = faiss().SearchParametersIVF(nprobe=probed_cells(index.nlist, self._rows, count))
        distances, positions = index.search(_filled(aims.astype(np.float32), index.d), count, params=parameters)
        if (positions >= self._rows).any():
            raise damage(self._stored.path, f"holds positions outside 0 … {self._rows - 1}")
        return distances, positions

    def check(self) -> None:
        """Read all codes and compare their sum.

        Raises:
            DamagedForumError: they are not what was written.
        """
        self._stored.check_payload()

    def emptied(self, rows: int) -> Any:
        """Return an index with these centroids and without vectors, None where they do not suit so many rows.

        Raises:
            DamagedForumError: the file does not hold what was written.
        """
        if rows > OUTGROWN * self.trained_at or (rows > DIVIDED) != (self._rows > DIVIDED):
            return None
        index = self._load()
        index.reset()
        return index

    def _load(self) -> Any:
        self._stored.check_payload()
        library = faiss()
        if bytes(self._stored.payload[:4]) not in KINDS:  # of any other kind nothing is read
            raise damage(self._stored.path, f"does not hold the codes of {self._rows} vectors")
        try:
            index = library.deserialize_index(self._stored.payload)
        except (RuntimeError, MemoryError) as error:
            raise damage(self._stored.path, f"holds no codes that FAISS can read: {error}") from error
        is_known = type(index) is library.IndexPQFastScan
        if type(index) is library.IndexIVFPQFastScan:  # other lists may lie in other files
            is_known = type(library.downcast_InvertedLists(index.invlists)) is library.BlockInvertedLists
        if not is_known or (index.d, index.ntotal) != (_part_count(self._stored.dimensions)[1], self._rows):
            raise damage(self._stored.path, f"does not hold the codes of {self._rows} vectors")
        return index


def probed_cells(cells: int, rows: int, count: int) -> int:
    """Return how many cells are read for so many vectors.

    >>> probed_cells(1_024, 1_000_000, 600), probed_cells(1_024, 1_000_000, 100_000)
    (256, 820)
    """
    return min(cells, max(math.ceil(PROBED * cells), math.ceil(ROOM * cells * count / rows)))


def write_codes(path: Path, stored: NDArray[np.int16], rows: NDArray[np.int64], like: Codes | None) -> FileEntry:
    """Write the codes of a segment's vectors (n, D); the same vectors give the same.

    Args:
        rows: positions of at least 16 (for cells, ``CELLS``) that are not of zeros, from which centroids are learned.
        like: codes whose centroids are taken where they suit.
    """
    index = None if like is None else like.emptied(len(stored))
    trained_at = len(stored) if index is None or like is None else like.trained_at
    with one_thread():
        if index is None:
            index = _trained(stored, rows)
        for start in range(0, len(stored), _ENCODED_AT_ONCE):
            index.add(_filled(decode(stored[start : start + _ENCODED_AT_ONCE]), index.d))
    front = np.array([trained_at], "<i8")
    return write_file(path, "codes", stored.shape[1], len(stored), [front], [faiss().serialize_index(index)])


def _trained(stored: NDArray[np.int16], rows: NDArray[np.int64]) -> Any:
    """Return an empty index for vectors (n, D), whose centroids and cells are learned from some of these rows."""
    library, sample = faiss(), SAMPLE
    parts, width = _part_count(stored.shape[1])
    if len(stored) > DIVIDED:
        index = library.IndexIVFPQFastScan(library.IndexFlatL2(width), width, CELLS, parts, 4)
        index.by_residual = False
        _train_by(index.cp, _CELL_PASSES, VECTORS_FOR_CELL)
        index.cp.spherical = True
        sample = max(sample, VECTORS_FOR_CELL * CELLS)
    else:
        index = library.IndexPQFastScan(width, parts, 4)
    _train_by(index.pq.cp, PASSES, SAMPLE // CENTROIDS)
    chosen = rows[np.linspace(0, len(rows) - 1, min(sample, len(rows))).astype(np.int64)]
    index.train(_filled(decode(stored[chosen]), width))
    return index


def _train_by(means: Any, passes: int, most: int) -> None:
    """Set how k-means is done: how many passes, and from at most how many vectors for each centroid."""
    means.seed, means.niter, means.max_points_per_centroid = _SEED, passes, most
    means.min_points_per_centroid = 1  # say nothing of few


def _part_count(dimensions: int) -> tuple[int, int]:
    """Return into how many parts a vector is cut, and how many numbers they have together."""
    width = part_width(dimensions)
    parts = -(-dimensions // width)
    return parts, parts * width


def _filled(vectors: NDArray[np.float32], width: int) -> NDArray[np.float32]:
    """Return vectors with zeros up to ``width``, as FAISS takes them."""
    if vectors.shape[1] == width:
        return np.ascontiguousarray(vectors)
    filled = np.zeros((len(vectors), width), np.float32)
    filled[:, : vectors.shape[1]] = vectors
    return filled
