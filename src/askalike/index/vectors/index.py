"""The vector index: entries known by the archive's internal number, found by the cosine to a query.

The index remembers the last change of the archive that it has seen (its mark), so that a gap after a crash is found and
replayed. Applying a change twice does no harm.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from askalike.errors import DamagedForumError, SettingError
from askalike.index.cursor import Mark
from askalike.index.vectors.folder import BUILDING, alone, clear_orphaned_files, file_name
from askalike.index.vectors.graph import Graph, GraphSearch, GraphSettings, build_graph
from askalike.index.vectors.mark import MARK_FILE, REBUILD, Contents, damage, read_state, writing
from askalike.index.vectors.snapshot import Snapshot
from askalike.index.vectors.state import State, VectorSnapshot
from askalike.index.vectors.writer import VectorWriter

PATIENCE_S = 600.0
"""How long a graph that took minutes to build waits for the writer before it is thrown away."""


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
            applied: the archive's last change when the scan that fills the index begins.
            fingerprint: of whatever makes the vectors.

        Raises:
            BusyForumError: another process writes the index that is there.
        """
        if dimensions < 1:
            raise SettingError(f"{dimensions} dimensions, expected at least 1")
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with alone(folder, "write"), writing(folder):
            mark = Mark(applied=applied, scanned=0, is_complete=False, fingerprint=fingerprint)
            contents = Contents(mark, dimensions, secrets.token_hex(8))
            contents.write(folder)
            clear_orphaned_files(folder, named=contents.names())
        return cls(folder)

    @staticmethod
    def exists(folder: Path) -> bool:
        """Return whether an index was begun at ``folder``."""
        return (folder / MARK_FILE).exists()

    @property
    def dimensions(self) -> int:
        """Return D."""
        return self._now.contents.dimensions

    def snapshot(self) -> VectorSnapshot:
        """Return the state of the last look; what is committed after it is not seen there."""
        return VectorSnapshot(self.folder, self._now)

    def refresh(self) -> None:
        """See what another process (or this one) has committed since; cheap when nothing was.

        While another process builds the index anew, the complete one that was open before goes on answering.
        """
        state = read_state(self.folder)
        if state == self._now.state:
            return
        with self._refreshing:
            if read_state(self.folder) in (self._now.state, None):  # another thread may have taken it
                return
            opened = self._open(self._now)
            if not self.mark.is_complete or opened.contents.mark.is_complete:
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
            clear_orphaned_files(self.folder, named=self._now.contents.names())
            try:
                yield VectorWriter(self.folder, self._now.contents, self._now.snapshot)
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
            before = self._now.contents
            path = self.folder / file_name(before.generation, "building")  # what no writer takes for orphaned_files
            entry = build_graph(self._now.snapshot, settings, path, on_linked)
            with alone(self.folder, "write", PATIENCE_S):
                contents = Contents.parse(read_state(self.folder))
                if contents.identity == before.identity:  # else it was made anew meanwhile, with other entries
                    entry = replace(entry, name=path.with_suffix(".graph").name)
                    path.replace(self.folder / entry.name)
                    contents = replace(contents, graph=entry, graph_covers=before.generation)
                    contents.write(self.folder)
                    clear_orphaned_files(self.folder, named=contents.names())
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
        """Open what the mark names; look again where a writer has replaced it under our eyes."""
        known = {} if before is None else {part.entry.digest: part for part in before.snapshot.segments}
        while True:
            state = read_state(self.folder)
            try:
                contents = Contents.parse(state)
                snapshot = Snapshot.read(self.folder, contents, known)
                old = None if before is None or before.graph is None else before.graph.graph
                graph = Graph.read(self.folder, contents, old)
                search = None if graph is None else GraphSearch(graph, snapshot)
                return State(state, contents, snapshot, search)
            except FileNotFoundError as error:
                if read_state(self.folder) == state:
                    raise damage(Path(str(error.filename)), "is not there, and the mark names it") from error
            except (ValueError, KeyError, TypeError, OSError) as error:
                raise DamagedForumError(
                    f"the vector index in {self.folder} cannot be read: {error}", REBUILD
                ) from error
