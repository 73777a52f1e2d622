"""The vector index: entries known by the store's number, found by the cosine to a query.

The index remembers the last change of the store that it has seen (its cursor), so that a gap after a crash is found and
replayed. Applying a change twice does no harm.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from askalike.errors import DamagedForumError, SettingError
from askalike.index.checked_file import REBUILD, damage
from askalike.index.cursor import Cursor, has_cursor
from askalike.index.vectors.codes import decode, finite_vectors
from askalike.index.vectors.folder import (
    Manifest,
    alone,
    clear_orphaned_files,
    read_manifest_file,
    writing,
)
from askalike.index.vectors.nearest import Neighbour, best, directions, search, search_exactly
from askalike.index.vectors.snapshot import Snapshot
from askalike.index.vectors.writer import VectorWriter, whole_numbers

_Numbers = Collection[int] | NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class State:
    """What belongs together; ``state`` are the bytes of the manifest's file, ``snapshot`` the entries of one commit."""

    state: bytes | None
    manifest: Manifest
    snapshot: Snapshot


class VectorSnapshot:
    """Nearest entries by cosine, in one state of the index."""

    def __init__(self, folder: Path, state: State) -> None:
        self.folder = folder
        self._now = state

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
        return self._now.snapshot.entries

    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of all entries, ascending."""
        snapshot = self._now.snapshot
        held = [part.segment.rows.nums[part.is_alive] for part in snapshot.parts]
        return np.sort(np.concatenate([*held, np.zeros(0, np.int64)]))

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
        snapshot = self._now.snapshot
        return search(snapshot, *_asked(snapshot, queries, limit, allowed, excluded))

    def search_exactly(
        self,
        queries: ArrayLike,
        limit: int,
        allowed: _Numbers | None = None,
        excluded: _Numbers = (),
    ) -> list[list[Neighbour]]:
        """Return what ``search`` approximates, after looking at every entry."""
        snapshot = self._now.snapshot
        return search_exactly(snapshot, *_asked(snapshot, queries, limit, allowed, excluded))

    def cosines(self, query: ArrayLike, nums: ArrayLike) -> list[Neighbour]:
        """Return those of the numbers that can be found, with their cosines to a query (D,), as ``search`` does."""
        snapshot = self._now.snapshot
        [aim] = directions(finite_vectors(np.asarray(query)[None], snapshot.dimensions, "query"))
        rows = np.unique(snapshot.locate(whole_numbers(nums)))
        rows = rows[rows >= 0]
        rows = rows[snapshot.is_found(rows)]
        return best(snapshot.nums(rows), snapshot.codes(rows), aim, len(rows)) if aim.any() else []

    def vectors(self, nums: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return those of the numbers that are held, in the order given, and their vectors (n, D) of length 1."""
        snapshot = self._now.snapshot
        wanted = whole_numbers(nums)
        rows = snapshot.locate(wanted)
        return wanted[rows >= 0], decode(snapshot.codes(rows[rows >= 0]))

    def title_vectors(self, nums: ArrayLike) -> NDArray[np.float32]:
        """Return the vectors (n, D) of the titles of these entries, each of length 1; zeros for one that is not held.

        They are kept in 8 bits: a cosine to one is within .01 of that to the vector that was put.
        """
        snapshot = self._now.snapshot
        rows = snapshot.locate(whole_numbers(nums))
        vectors = np.zeros((len(rows), snapshot.dimensions), np.float32)
        vectors[rows >= 0] = decode(snapshot.titles(rows[rows >= 0]))
        return vectors


def _asked(
    snapshot: Snapshot,
    queries: ArrayLike,
    limit: int,
    allowed: _Numbers | None,
    excluded: _Numbers,
) -> tuple[NDArray[np.float64], int, NDArray[np.int64] | None, NDArray[np.int64]]:
    """Return directions, the limit, the rows to look at (None for all), and the rows that must not be found."""
    if limit < 1:
        raise SettingError(f"limit {limit}, expected at least 1")
    aims = directions(finite_vectors(queries, snapshot.dimensions, "query"))
    refused = snapshot.locate(whole_numbers(excluded))
    excluded = refused[refused >= 0]
    if allowed is None:
        return aims, limit, None, excluded
    located = snapshot.locate(whole_numbers(allowed))
    is_allowed = np.zeros(snapshot.size, np.bool_)
    is_allowed[located[located >= 0]] = True
    return aims, limit, np.flatnonzero(is_allowed), excluded


class VectorIndex(VectorSnapshot):
    """Nearest entries by cosine; one process writes, any number search.

    Args:
        folder: where an index was made.

    Raises:
        DamagedForumError: it cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder  # which opening it needs
        self._refreshing = threading.Lock()
        super().__init__(folder, self._open(None))

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
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with alone(folder), writing(folder):
            cursor = Cursor(applied=applied, scanned=0, is_complete=False, fingerprint=fingerprint)
            manifest = Manifest(cursor, dimensions, secrets.token_hex(8))
            manifest.write(folder)
            clear_orphaned_files(folder, manifest.names())
        return cls(folder)

    @staticmethod
    def exists(folder: Path) -> bool:
        """Return whether an index was begun at ``folder``."""
        return has_cursor(folder)

    def snapshot(self) -> VectorSnapshot:
        """Return the state of the last look; what is committed after it is not seen there."""
        return VectorSnapshot(self.folder, self._now)

    def refresh(self) -> None:
        """See what another process (or this one) has committed since; cheap when nothing was.

        While another process builds the index anew, the complete one that was open before goes on answering.
        """
        state = read_manifest_file(self.folder)
        if state == self._now.state:
            return
        with self._refreshing:
            if read_manifest_file(self.folder) in (self._now.state, None):  # another thread may have taken it
                return
            opened = self._open(self._now)
            if not self.cursor.is_complete or opened.manifest.cursor.is_complete:
                self._now = opened

    def reopen(self) -> None:
        """Take the index as it is on disk now, complete or not: what its writer must know.

        Raises:
            DamagedForumError: it cannot be read, or has gone.
        """
        with self._refreshing:
            self._now = self._open(self._now)

    @contextmanager
    def writing(self, patience_s: float = 0) -> Iterator[VectorWriter]:
        """Give the writer; what it has committed stays, the rest is dropped at the end.

        Args:
            patience_s: how long to wait for another writer.

        Raises:
            BusyForumError: another writer is open, in this process or another.
        """
        with alone(self.folder, patience_s):
            self.reopen()
            clear_orphaned_files(self.folder, self._now.manifest.names())
            try:
                yield VectorWriter(self.folder, self._now.snapshot)
            finally:
                self.reopen()

    @staticmethod
    def renew_codes(folder: Path) -> None:
        """Make all codes anew, of vectors that are sound; where they cannot be written, any later commit makes them.

        Raises:
            DamagedForumError: more than codes cannot be read; nothing is changed.
            BusyForumError, ForumError: another process writes the index, or it cannot be written.
        """
        with alone(folder), writing(folder):
            try:
                found = Manifest.parse(read_manifest_file(folder))
                segments = tuple(replace(entry, codes=None) for entry in found.segments)
                bare = replace(found, segments=segments, centres=None, trained_at=0)
                Snapshot.read(folder, bare, None)
            except (ValueError, KeyError, TypeError, FileNotFoundError) as error:
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
        snapshot = self._now.snapshot
        for part in snapshot.parts:
            part.segment.stored.check_payload()
            if part.codes is not None:
                part.codes.check()
        numbers = self.numbers()
        if (numbers[1:] == numbers[:-1]).any():
            raise damage(self.folder, "holds a number twice")

    def _open(self, before: State | None) -> State:
        """Open what the manifest names; look again where a writer has replaced it under our eyes."""
        while True:
            state = read_manifest_file(self.folder)
            try:
                manifest = Manifest.parse(state)
                snapshot = Snapshot.read(self.folder, manifest, None if before is None else before.snapshot)
                return State(state, manifest, snapshot)
            except FileNotFoundError as error:
                if read_manifest_file(self.folder) == state:
                    raise damage(Path(str(error.filename)), "is not there, and the manifest names it") from error
            except (ValueError, KeyError, TypeError, OSError) as error:
                raise DamagedForumError(
                    f"the vector index in {self.folder} cannot be read: {error}", REBUILD
                ) from error
