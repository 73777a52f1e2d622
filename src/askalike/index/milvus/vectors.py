"""Vectors of questions in Milvus: what ``index.vectors`` gives on one machine, with the conditions of filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from askalike.index.cursor import Cursor
from askalike.index.milvus.client import Alone, Milvus, MilvusIndex, add_conditions, add_vector, fields_of
from askalike.store.rows import to_microseconds
from askalike.store.values import STORED_KINDS
from askalike.types import Question

READ_TOGETHER: Final = 2_000
"""Vectors that are read in one call."""


class MilvusVectors(MilvusIndex):
    """The vectors of a forum by one model, with the tags that filters ask for."""

    followed = STORED_KINDS

    @property
    def dimensions(self) -> int:
        """Return D."""
        return int(self._content["dimensions"])

    def check(self) -> None:
        """Do nothing: what an engine holds is its own to check."""

    def snapshot(self) -> MilvusVectors:
        """Return itself: what another machine commits is seen at once."""
        return self

    def refresh(self) -> None:
        """See what another machine (or this one) has committed, as of a second ago, and note that it is in use."""
        super().refresh()
        if self._row is not None:
            self.milvus.touch(self.name)

    def begin(self, dimensions: int, applied: int) -> None:
        """Make an empty collection, in place of whatever was there."""
        self.milvus.touch(self.name)
        schema, index = self.milvus.schema("num", "INT64")
        add_conditions(schema)
        add_vector(schema, index, "vector", dimensions)
        self._begin(applied, {self.name: (schema, index)}, dimensions=dimensions)

    @contextmanager
    def writing(self, patience_s: float = 0) -> Iterator[MilvusVectorWriter]:
        """Give the writer, while no other machine has it."""
        with self._alone(self.name):
            self.reopen()
            yield MilvusVectorWriter(self)

    def vectors(self, nums: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return those of the numbers that are there, in the order given, and their vectors (n, D) of length 1."""
        wanted = [int(num) for num in np.asarray(nums).tolist()]
        vectors: dict[int, Any] = {}
        for start in range(0, len(wanted) if self.entries else 0, READ_TOGETHER):
            rows = self.milvus.get(self.collection, wanted[start : start + READ_TOGETHER], ["vector"])
            vectors.update((int(row["num"]), row["vector"]) for row in rows)
        present = [num for num in wanted if num in vectors]
        matrix = np.array([vectors[num] for num in present], np.float32)
        return np.array(present, np.int64), matrix.reshape(len(present), self.dimensions)

    def nearest(self, queries: NDArray[np.float32], limit: int, expression: str) -> list[list[tuple[int, float]]]:
        """Return the questions of the greatest cosine to each query (Q, D), descending."""
        return self.milvus.search(self.collection, "vector", queries.tolist(), limit, expression)


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
        rows = (
            {"num": int(num), "vector": vector, **fields_of(question.tags, to_microseconds(question.created))}
            for num, vector in zip(nums, np.asarray(vectors, np.float32), strict=True)
            for question in [questions[int(num)]]
        )
        self._index.milvus.upsert(self._index.collection, rows)

    def remove(self, nums: Sequence[int]) -> None:
        """Remove the vectors with these numbers."""
        self._index.milvus.delete(self._index.collection, nums)

    def commit(self, cursor: Cursor) -> None:
        """Write the cursor."""
        self._index.commit(cursor)


class MilvusSets:
    """``index.vector_set.VectorIndexes`` in Milvus: a set's index is found by the name of the set's folder."""

    is_shared = True

    def __init__(self, milvus: Milvus, alone: Alone) -> None:
        self._milvus = milvus
        self._alone = alone

    def sweep(self, kept: Sequence[str]) -> None:
        """Drop the vectors that no machine has followed for an hour, but those of these sets."""
        self._milvus.sweep([f"vectors_{fingerprint}" for fingerprint in kept])

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
