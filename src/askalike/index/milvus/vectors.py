"""Vectors of questions in Milvus: what ``index.vectors`` gives on one machine, with the conditions of filters.

Beside each vector lies its code: a bit for each of ``BITS`` directions, set where the vector points along it. Of
vectors at an angle θ a share θ / π of the bits differs on average, so that the codes which differ least from a query's
propose candidates, whose cosines are then asked for. That reads a tenth of what comparing every vector reads.

Source: Charikar 2002, "Similarity Estimation Techniques from Rounding Algorithms", section 3; directions at right
angles as in Ji et al. 2012, "Super-Bit Locality-Sensitive Hashing".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from askalike.index.cursor import Cursor
from askalike.index.milvus.client import (
    FORMAT,
    MOST_FOUND,
    Alone,
    Milvus,
    MilvusIndex,
    bits,
    conditions_of,
    dense,
    generation,
    number_field,
    text_field,
)
from askalike.types import Question

MOST_ROWS = 2_000
"""Of vectors that are read together."""
BITS = 1_024
CODED = 50_000
"""From so many vectors on their codes are looked at first; below, comparing every vector takes no longer."""
PROPOSED, PROPOSED_LEAST = 6, 128
"""So many candidates are proposed for each vector that is asked for, and so many at least."""


class MilvusVectors(MilvusIndex):
    """The vectors of a forum by one model."""

    @property
    def is_coded(self) -> bool:
        """Return whether codes are looked at first: there are many vectors."""
        return int(self._held()["entries"]) >= CODED

    @property
    def dimensions(self) -> int:
        """Return D."""
        return int(self._held()["dimensions"])

    def check(self) -> None:
        """Do nothing: what an engine holds is its own to check."""

    def snapshot(self) -> MilvusVectors:
        """Return itself: what another machine commits is seen at once."""
        return self

    def _coded(self) -> str:
        """Return the name of a new collection of codes."""
        name = generation("codes", self._fingerprint)
        self.milvus.create(name, [], bits("code", BITS))
        return name

    def _put_codes(self, name: str, nums: Iterable[int], vectors: NDArray[np.float32]) -> None:
        codes = codes_of(vectors)
        self.milvus.upsert(
            name, ({"num": int(num), "code": row.tobytes()} for num, row in zip(nums, codes, strict=True))
        )

    def refresh(self) -> None:
        """See what another machine (or this one) has committed, as of a second ago, and note that it is in use."""
        super().refresh()
        if self._row is not None:
            self.milvus.touch(self.name)

    def begin(self, dimensions: int, applied: int) -> None:
        """Make an empty collection, in place of whatever was there."""
        self.milvus.touch(self.name)
        name = generation("vectors", self._fingerprint)
        self.milvus.create(name, [text_field("tags"), number_field("created_us")], dense("vector", dimensions))
        self._begin(applied, [name, self._coded()], dimensions=dimensions)

    @contextmanager
    def writing(self, patience_s: float = 0) -> Iterator[MilvusVectorWriter]:
        """Give the writer, while no other machine has it."""
        with self._alone(self.name):
            self.reopen()
            yield MilvusVectorWriter(self)

    def commit(self, cursor: Cursor) -> None:
        """Write the cursor, after everything that it covers."""
        if cursor.is_complete and not self.cursor.is_complete:
            for name in self._held()["collections"]:
                self.milvus.flush(name)
        self._keep(cursor=cursor.to_json(FORMAT), entries=self.count())

    def vectors(self, nums: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return those of the numbers that are held, in the order given, and their vectors (n, D) of length 1."""
        wanted = [int(num) for num in np.asarray(nums).tolist()]
        vectors: dict[int, Any] = {}
        for start in range(0, len(wanted) if self.count() else 0, MOST_ROWS):
            rows = self.milvus.get(self.collection, wanted[start : start + MOST_ROWS], ["vector"])
            vectors.update((int(row["num"]), row["vector"]) for row in rows)
        present = [num for num in wanted if num in vectors]
        matrix = np.array([vectors[num] for num in present], np.float32).reshape(
            len(present), -1 if present else self.dimensions
        )
        return np.array(present, np.int64), matrix[:, : self.dimensions]

    def begin_proposing(self, query: NDArray[np.float32], limit: int) -> Callable[[], list[int]]:
        """Begin to look for the entries whose codes differ least from a query's (D,); return what waits for them."""
        codes = [row.tobytes() for row in codes_of(query[None])]
        wanted = min(max(PROPOSED_LEAST, PROPOSED * limit), MOST_FOUND)
        rows_of_query = self.milvus.begin_search(self._held()["collections"][1], codes, wanted, metric="HAMMING")
        return lambda: list(rows_of_query()[0].nums)


class MilvusVectorWriter:
    """Adds, replaces and removes vectors; each call is sent at once, and the cursor follows in ``commit``."""

    def __init__(self, index: MilvusVectors) -> None:
        self._index = index

    def put(
        self,
        nums: Sequence[int],
        vectors: NDArray[np.float32],
        questions: Mapping[int, Question],
    ) -> None:
        """Add vectors (n, D), or replace those with their numbers, with what filters ask of their questions."""
        if not len(nums):
            return
        rows = _directions(np.asarray(vectors, np.float32), max(2, self._index.dimensions))
        names = self._index._held()["collections"]
        self._index.milvus.upsert(
            names[0],
            ({"num": num, "vector": row, **conditions_of(questions[num])} for num, row in zip(nums, rows, strict=True)),
        )
        for name in names[1:]:
            self._index._put_codes(name, nums, rows[:, : self._index.dimensions])

    def remove(self, nums: Sequence[int]) -> None:
        """Remove the vectors with these numbers."""
        for name in self._index._held()["collections"] if nums else ():
            self._index.milvus.delete(name, nums)

    def commit(self, cursor: Cursor) -> None:
        """Write the cursor."""
        self._index.commit(cursor)


class MilvusSets:
    """``index.vector_set.Indexes`` of a forum whose vectors are in Milvus: a set's index by the name of its folder."""

    def __init__(self, milvus: Milvus, alone: Alone) -> None:
        self._milvus = milvus
        self._alone = alone

    def sweep(self, kept: Sequence[str]) -> None:
        """Drop the vectors that no machine has followed for an hour, but those of these sets."""
        self._milvus.sweep()
        self._milvus.sweep_vectors([f"vectors_{fingerprint}" for fingerprint in kept])

    def exists(self, place: Path) -> bool:
        """Return whether the set's index was begun."""
        return self._milvus.row(f"vectors_{place.name}", is_fresh=True) is not None

    def open(self, place: Path) -> MilvusVectors:
        """Return the set's index."""
        index = MilvusVectors(self._milvus, f"vectors_{place.name}", place.name, self._alone)
        index.reopen()
        return index

    def create(self, place: Path, dimensions: int, *, applied: int, fingerprint: str) -> None:
        """Begin the set's index."""
        self.open(place).begin(dimensions, applied)


def _directions(vectors: NDArray[np.float32], dimensions: int) -> NDArray[np.float32]:
    """Return vectors at length 1, as wide as the engine has them."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = np.zeros((len(vectors), dimensions), np.float32)
    np.divide(vectors, lengths, out=directions[:, : vectors.shape[1]], where=lengths > 0)
    return directions


def codes_of(vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return the codes of vectors.  # (N, D), (N, BITS / 8)"""
    return np.packbits(vectors @ _along(vectors.shape[1]) > 0, axis=1)


@lru_cache(maxsize=4)
def _along(dimensions: int) -> NDArray[np.float32]:
    """Return the directions of the bits, the same on every machine: D at a time stand at right angles.  # (D, BITS)"""
    parts = -(-BITS // dimensions)
    drawn = hashlib.shake_128(b"askalike").digest(-(-parts * dimensions**2 // 8))
    signs = np.unpackbits(np.frombuffer(drawn, np.uint8))[: parts * dimensions**2] * 2.0 - 1.0
    turned, upper = np.linalg.qr(signs.reshape(parts, dimensions, dimensions))
    turned *= np.sign(np.diagonal(upper, axis1=1, axis2=2))[:, None]  # else the sign is the library's choice
    return np.concatenate(list(turned), axis=1)[:, :BITS].astype(np.float32)
