"""The vector index: entries known by the store's number, found by the cosine to a query.

The index remembers the last change of the store that it has seen (its cursor), so that a gap after a crash is found and
replayed. Applying a change twice does no harm.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from askalike.errors import DamagedForumError, SettingError
from askalike.index.cursor import Cursor, has_cursor
from askalike.index.vectors.codes import decode, finite_vectors
from askalike.index.vectors.exact import Neighbour, directions, search_exactly
from askalike.index.vectors.folder import (
    BUILDING,
    REBUILD,
    Manifest,
    alone,
    clear_orphaned_files,
    damage,
    file_name,
    read_manifest_file,
    writing,
)
from askalike.index.vectors.graph import Graph, GraphSearch, GraphSettings, build_graph
from askalike.index.vectors.snapshot import Snapshot
from askalike.index.vectors.writer import VectorWriter, whole_numbers

PATIENCE_S = 600.0
"""How long a graph that took minutes to build waits for the writer before it is thrown away."""

_Numbers = Collection[int] | NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class State:
    """What belongs together; ``state`` are the bytes of the manifest's file, ``snapshot`` the entries of one commit."""

    state: bytes | None
    manifest: Manifest
    snapshot: Snapshot
    graph: GraphSearch | None


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
        return np.sort(snapshot.nums[snapshot.is_alive])

    def search(
        self,
        queries: ArrayLike,
        limit: int,
        allowed: _Numbers | None = None,
        excluded: _Numbers = (),
    ) -> list[list[Neighbour]]:
        """Return the entries with the greatest cosine, ``cos(q, v) = q · v / (‖q‖ ‖v‖)``; exact.

        Args:
            queries: (Q, D); their lengths do not matter, and a query of zeros finds nothing.
            limit: at most this many for each query, ≥ 1.
            allowed: only these numbers; None for all.
            excluded: never these numbers.

        Returns:
            for each query (number, cosine), by cosine descending, then number ascending.

        Raises:
            SettingError: a shape does not fit, or a value is NaN or infinite.
        """
        now = self._now
        aims, rows, excluded = _asked(now.snapshot, queries, limit, allowed, excluded)
        return search_exactly(now.snapshot, aims, limit, rows, excluded)

    def search_graph(
        self,
        queries: ArrayLike,
        limit: int,
        allowed: _Numbers | None = None,
        excluded: _Numbers = (),
    ) -> list[list[Neighbour]]:
        """Return near entries as ``search`` does, through the neighbour graph: faster, and now and then misses one.

        What was written after the graph was built is searched exactly, deleted entries are never found, every
        cosine is exact, and a filter that leaves little is answered exactly.

        Raises:
            SettingError: as ``search``; or no graph was built.
            MissingExtraError: FAISS is not installed.
        """
        now = self._now
        if now.graph is None:
            raise SettingError(f"the vector index in {self.folder} has no neighbour graph, expected one to be built")
        aims, rows, excluded = _asked(now.snapshot, queries, limit, allowed, excluded)
        return now.graph.search(aims, limit, rows, excluded)

    @property
    def has_graph(self) -> bool:
        """Return whether ``search_graph`` can be used."""
        return self._now.graph is not None

    def vectors(self, nums: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return those of the numbers that are held, in the order given, and their vectors (n, D) of length 1."""
        snapshot = self._now.snapshot
        wanted = whole_numbers(nums)
        rows = snapshot.locate(wanted)
        return wanted[rows >= 0], decode(snapshot.codes(rows[rows >= 0]))


def _asked(
    snapshot: Snapshot,
    queries: ArrayLike,
    limit: int,
    allowed: _Numbers | None,
    excluded: _Numbers,
) -> tuple[NDArray[np.float64], NDArray[np.int64] | None, NDArray[np.int64]]:
    """Return directions, the rows to look at (None for all), and the rows that must not be found."""
    if limit < 1:
        raise SettingError(f"limit {limit}, expected at least 1")
    aims = directions(finite_vectors(queries, snapshot.dimensions, "query"))
    refused = snapshot.locate(whole_numbers(excluded))
    excluded = refused[refused >= 0]
    if allowed is None:
        return aims, None, excluded
    located = snapshot.locate(whole_numbers(allowed))
    is_allowed = np.zeros(snapshot.size, np.bool_)
    is_allowed[located[located >= 0]] = True
    return aims, np.flatnonzero(is_allowed), excluded


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
        with alone(folder, "write"), writing(folder):
            cursor = Cursor(applied=applied, scanned=0, is_complete=False, fingerprint=fingerprint)
            manifest = Manifest(cursor, dimensions, secrets.token_hex(8))
            manifest.write(folder)
            clear_orphaned_files(folder, named=manifest.names())
        return cls(folder)

    @staticmethod
    def exists(folder: Path) -> bool:
        """Return whether an index was begun at ``folder``."""
        return has_cursor(folder)

    @property
    def dimensions(self) -> int:
        """Return D."""
        return self._now.manifest.dimensions

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
            patience_s: how long to wait for another writer, such as one who puts a new graph in place.

        Raises:
            BusyForumError: another writer is open, in this process or another.
        """
        with alone(self.folder, "write", patience_s):
            self.reopen()
            clear_orphaned_files(self.folder, named=self._now.manifest.names())
            try:
                yield VectorWriter(self.folder, self._now.manifest, self._now.snapshot)
            finally:
                self.reopen()

    def wants_graph(self, settings: GraphSettings) -> bool:
        """Return whether a graph should be built now: the index is large, and has none or a worn one."""
        now = self._now
        if now.snapshot.entries < settings.above:
            return False
        return now.graph is None or now.graph.wear() > settings.worn_share

    def build_graph(self, settings: GraphSettings, on_linked: Callable[[int], None] = lambda _: None) -> None:
        """Build the neighbour graph of the entries as they are on disk now, and keep it with the index.

        Writers go on meanwhile; only putting the result in place needs them to wait. It takes minutes for
        hundreds of thousands of entries.

        Args:
            on_linked: told some times a second how many more entries are linked; what it raises ends the building, and
                leaves the index as it was.

        Raises:
            MissingExtraError: FAISS is not installed.
            BusyForumError: another process builds a graph, or a writer was open when the graph was ready.
            ForumError: it cannot be written.
        """
        with alone(self.folder, "build"), writing(self.folder):
            clear_orphaned_files(self.folder, BUILDING)
            self.reopen()
            before = self._now.manifest
            path = self.folder / file_name(before.generation, "building")  # what no writer takes for orphaned_files
            entry = build_graph(self._now.snapshot, settings, path, on_linked)
            with alone(self.folder, "write", PATIENCE_S):
                manifest = Manifest.parse(read_manifest_file(self.folder))
                if manifest.identity == before.identity:  # else it was made anew meanwhile, with other entries
                    entry = replace(entry, name=path.with_suffix(".graph").name)
                    path.replace(self.folder / entry.name)
                    manifest = replace(manifest, graph=entry, graph_covers=before.generation)
                    manifest.write(self.folder)
                    clear_orphaned_files(self.folder, named=manifest.names())
            path.unlink(missing_ok=True)
        self.reopen()

    def check(self) -> None:
        """Read every vector and compare the sums; opening an index checks all but the vectors of large segments.

        Raises:
            DamagedForumError: a file does not hold what was written, or two entries have one number.
        """
        snapshot = self._now.snapshot
        for segment in snapshot.segments:
            segment.stored.check_payload()
        if self._now.graph is not None:
            self._now.graph.graph.check()
            if missed := self._now.graph.missed():
                raise damage(self.folder, f"has {missed:,} entries that its neighbour graph does not know")
        numbers = self.numbers()
        if (numbers[1:] == numbers[:-1]).any():
            raise damage(self.folder, "holds a number twice")

    def _open(self, before: State | None) -> State:
        """Open what the manifest names; look again where a writer has replaced it under our eyes."""
        known = {} if before is None else {part.entry.digest: part for part in before.snapshot.segments}
        while True:
            state = read_manifest_file(self.folder)
            try:
                manifest = Manifest.parse(state)
                snapshot = Snapshot.read(self.folder, manifest, known)
                old = None if before is None or before.graph is None else before.graph.graph
                graph = Graph.read(self.folder, manifest, old)
                search = None if graph is None else GraphSearch(graph, snapshot)
                return State(state, manifest, snapshot, search)
            except FileNotFoundError as error:
                if read_manifest_file(self.folder) == state:
                    raise damage(Path(str(error.filename)), "is not there, and the manifest names it") from error
            except (ValueError, KeyError, TypeError, OSError) as error:
                raise DamagedForumError(
                    f"the vector index in {self.folder} cannot be read: {error}", REBUILD
                ) from error
