"""The vector index: entries known by the store's number, found by the cosine to a query."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from askalike.errors import SettingError
from askalike.index.checked_file import FileEntry, damage, file_name
from askalike.index.cursor import Cursor
from askalike.index.nearest import Neighbour, best, directions, is_large, search, search_exactly
from askalike.index.product_codes import write_codes
from askalike.index.segments import (
    Chosen,
    Manifest,
    SegmentedIndex,
    SegmentWriter,
    alone,
    clear_orphaned_files,
    read_manifest_file,
    whole_numbers,
    writing,
)
from askalike.index.vector_codes import decode, encode, finite_vectors
from askalike.index.vector_segments import SEGMENT, Rows, VectorCommit, VectorSegment, write_segment

_Numbers = Collection[int] | NDArray[np.int64]


class VectorSnapshot:
    """Nearest entries by cosine, in one state of the index."""

    def __init__(self, folder: Path, commit: VectorCommit) -> None:
        self.folder = folder
        self._now = commit

    @property
    def cursor(self) -> Cursor:
        """Return how far the index had come."""
        return self._now.manifest.cursor

    @property
    def dimensions(self) -> int:
        """Return how many numbers a vector has."""
        return self._now.manifest.dimensions

    @property
    def entries(self) -> int:
        """Return how many entries are in the index."""
        return self._now.entries

    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of all entries, ascending."""
        return self._now.numbers()

    def search(
        self,
        queries: ArrayLike,
        limit: int,
        allowed: _Numbers | None = None,
        excluded: _Numbers = (),
    ) -> list[list[Neighbour]]:
        """Return the entries with the greatest cosine, ``cos(q, v) = q · v / (‖q‖ ‖v‖)``; now and then one is missed.

        Every cosine is exact; up to some thousand entries, or where a filter leaves no more, so is the answer.

        Args:
            queries: (Q, D); their lengths do not matter, and a query of zeros finds nothing.
            limit: at most this many for each query, ≥ 1.
            allowed: only these numbers; None for all.
            excluded: never these numbers.

        Returns:
            for each query (number, cosine), by cosine descending, then number ascending.

        Raises:
            SettingError: a shape does not fit, or a value is NaN or infinite.
            DamagedForumError: what is read for the first time is not what was written.
        """
        commit = self._now
        return search(commit, *_aims_and_rows(commit, queries, limit, allowed, excluded))

    def search_exactly(
        self,
        queries: ArrayLike,
        limit: int,
        allowed: _Numbers | None = None,
        excluded: _Numbers = (),
    ) -> list[list[Neighbour]]:
        """Return what ``search`` approximates, after looking at every entry."""
        commit = self._now
        return search_exactly(commit, *_aims_and_rows(commit, queries, limit, allowed, excluded))

    def cosines(self, query: ArrayLike, nums: ArrayLike) -> list[Neighbour]:
        """Return those of the numbers that can be found, with their cosines to a query (D,), as ``search`` does."""
        commit = self._now
        [aim] = directions(finite_vectors(np.asarray(query)[None], commit.dimensions, "query"))
        rows = np.array(sorted({*commit.locate(whole_numbers(nums)).tolist()}), np.int64)  # np.unique loads much
        rows = rows[rows >= 0]
        rows = rows[commit.is_found(rows)]
        return best(commit.nums(rows), commit.codes(rows), aim, len(rows)) if aim.any() else []

    def vectors(self, nums: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return those of the numbers that are held, in the order given, and their vectors (n, D) of length 1."""
        commit = self._now
        wanted = whole_numbers(nums)
        rows = commit.locate(wanted)
        return wanted[rows >= 0], decode(commit.codes(rows[rows >= 0]))


def _aims_and_rows(
    commit: VectorCommit,
    queries: ArrayLike,
    limit: int,
    allowed: _Numbers | None,
    excluded: _Numbers,
) -> tuple[NDArray[np.float64], int, NDArray[np.int64] | None, NDArray[np.int64]]:
    """Return directions, the limit, the rows to look at (None for all), and the rows that must not be found."""
    if limit < 1:
        raise SettingError(f"limit {limit}, expected at least 1")
    aims = directions(finite_vectors(queries, commit.dimensions, "query"))
    refused = commit.locate(whole_numbers(excluded))
    excluded = refused[refused >= 0]
    if allowed is None:
        return aims, limit, None, excluded
    located = commit.locate(whole_numbers(allowed))
    is_allowed = np.zeros(commit.size, np.bool_)
    is_allowed[located[located >= 0]] = True
    return aims, limit, np.flatnonzero(is_allowed), excluded


class VectorWriter(SegmentWriter[VectorCommit]):
    """Adds, replaces and removes entries; nothing is seen or kept before ``commit``."""

    kind = "vector"
    suffix = SEGMENT

    def __init__(self, folder: Path, commit: VectorCommit) -> None:
        super().__init__(folder, commit)
        self._batches: list[NDArray[np.int16]] = []
        self._places: dict[int, tuple[int, int]] = {}  # number → (batch, position in it)

    def put(self, nums: ArrayLike, vectors: ArrayLike, questions: object = None) -> None:
        """Add entries, or replace those with their numbers.

        Args:
            nums: (n,) whole numbers, each once.
            vectors: (n, D); only their directions are kept. A vector of zeros is kept and never found.
            questions: not needed: the word index knows what filters ask of them.

        Raises:
            SettingError: counts or dimensions do not fit, a number is given twice, a value is NaN or infinite.
        """
        numbers = whole_numbers(nums)
        array = finite_vectors(vectors, self._now.dimensions, "vector")
        if len(numbers) != len(array):
            raise SettingError(f"{len(numbers)} numbers but {len(array)} vectors, expected as many")
        if len(np.unique(numbers)) != len(numbers):
            raise SettingError("a number is given twice in one put, expected each once")
        batch = len(self._batches)
        self._batches.append(encode(array))
        self._places.update((num, (batch, position)) for position, num in enumerate(numbers.tolist()))

    def _drop(self, num: int) -> None:
        self._places.pop(num, None)

    def _forget(self) -> None:
        self._batches, self._places = [], {}

    def _arriving(self) -> list[Chosen[Any]]:
        if not self._places:
            return []
        nums = np.fromiter(self._places, np.int64, len(self._places))
        starts = np.cumsum([0, *map(len, self._batches)])
        taken = np.array([starts[batch] + position for batch, position in self._places.values()], np.int64)
        return [(Rows(nums, np.concatenate(self._batches)[taken]), np.arange(len(nums)))]

    def _write_segment(self, path: Path, chosen: Sequence[Chosen[Any]], manifest: Manifest) -> FileEntry:
        parts = [(rows.rows if isinstance(rows, VectorSegment) else rows, taken) for rows, taken in chosen]
        return write_segment(path, manifest.dimensions, parts)

    def _completed(self, manifest: Manifest) -> Manifest:
        """Write the codes of large segments that have none, with the centroids of the largest where they suit.

        While an index is filled nobody asks it: codes are made at the end.
        """
        if not manifest.cursor.is_complete:
            return manifest
        parts = VectorCommit.read(self._folder, manifest, None, self._now).parts
        if not any(is_large(part) and part.codes is None for part in parts):
            return manifest
        coded = [part for part in self._now.parts if part.codes is not None]
        like = max(coded, key=lambda part: part.size).codes if coded else None
        generation = manifest.generation + 1
        segments = []
        for entry, part in zip(manifest.segments, parts, strict=True):
            if is_large(part) and part.codes is None:
                path = self._folder / file_name(generation, "codes")
                codes = write_codes(path, part.segment.rows.codes, np.flatnonzero(part.is_found), like)
                segments.append(replace(entry, codes=codes))
            else:
                segments.append(entry)
        return replace(manifest, generation=generation, segments=tuple(segments))


class VectorIndex(SegmentedIndex[VectorCommit, VectorWriter], VectorSnapshot):
    """Nearest entries by cosine; one process writes, any number search.

    Args:
        folder: where an index was made.

    Raises:
        DamagedForumError: it cannot be read.
    """

    kind = "vector"
    followed: Sequence[Literal["question"]] = ("question",)
    _commits = VectorCommit
    _writers = VectorWriter

    @classmethod
    def create(cls, folder: Path, dimensions: int, *, applied: int, fingerprint: str) -> VectorIndex:
        """Make an empty index in place of whatever index is at ``folder``.

        Args:
            dimensions: of each vector, ≥ 1.
            applied: the store's last change when the scan that fills the index begins.
            fingerprint: of whatever makes the vectors.

        Raises:
            BusyForumError: another process writes the index that is there.
        """
        if dimensions < 1:
            raise SettingError(f"{dimensions} dimensions, expected at least 1")
        return cls._create(folder, applied=applied, fingerprint=fingerprint, dimensions=dimensions)

    def snapshot(self) -> VectorSnapshot:
        """Return the commit of the last look; what is committed after it is not seen there."""
        return VectorSnapshot(self.folder, self._now)

    @staticmethod
    def renew_codes(folder: Path) -> None:
        """Make all codes anew, of vectors that are sound; where they cannot be written, any later commit makes them.

        Raises:
            DamagedForumError: more than codes cannot be read; nothing is changed.
            BusyForumError, ForumError: another process writes the index, or it cannot be written.
        """
        with alone(folder, VectorIndex.kind), writing(folder):
            try:
                manifest = Manifest.parse(read_manifest_file(folder))
                segments = tuple(replace(entry, codes=None) for entry in manifest.segments)
                bare = replace(manifest, segments=segments)
                VectorCommit.read(folder, bare, None, None)
            except (ValueError, FileNotFoundError) as error:
                raise damage(folder, f"cannot be read: {error}") from error
            bare.write(folder)
            clear_orphaned_files(folder, bare.names())
        index = VectorIndex(folder)
        with index.writing() as writer:
            writer.commit(index.cursor)

    def check(self) -> None:
        """Read every vector and compare the sums; opening an index checks all but the vectors of large segments.

        Raises:
            DamagedForumError: a file does not hold what was written, or two entries have one number.
        """
        for part in self._now.parts:
            part.segment.check()
            if part.codes is not None:
                part.codes.check()
        numbers = self.numbers()
        if (numbers[1:] == numbers[:-1]).any():
            raise damage(self.folder, "holds a number twice")
