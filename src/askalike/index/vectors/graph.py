"""The neighbour graph: FAISS's HNSW over one byte a number, built from one commit, searched in step with the index.

It only proposes candidates; ``approximate.py`` scores them exactly and keeps them in step with later commits.

Source: Malkov and Yashunin 2018, Efficient and robust approximate nearest neighbor search using hierarchical navigable
small world graphs.

The graph knows one commit. What was put later has a later generation and is searched exactly beside it; what was
removed or replaced since is kept out. All candidates are scored exactly, so an answer differs from the exact one only
by what the graph misses.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askalike.errors import MissingExtraError
from askalike.index.vectors.checked_file import CheckedFile, read_file, write_file
from askalike.index.vectors.codes import decode
from askalike.index.vectors.exact import Neighbour, best, search_exactly, shortlists
from askalike.index.vectors.folder import FileEntry, Manifest, damage
from askalike.index.vectors.segment import Segment
from askalike.index.vectors.snapshot import Snapshot

_SAMPLE = 16_384
_AT_ONCE = 1024
"""Entries are linked in blocks of half a second at most, between which the building can be ended."""


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """How the neighbour graph is built and used.

    Args:
        above: entries from which on it is worth building; below, exact search is fast enough.
        neighbours: M, links of an entry on each level.
        build_breadth: efConstruction, candidates kept while an entry is linked.
        search_breadth: efSearch, candidates kept while a query is answered.
        worn_share: rebuilt when more than this share of its entries has changed since.
    """

    above: int = 300_000
    neighbours: int = 16
    build_breadth: int = 80
    search_breadth: int = 80
    worn_share: float = 0.2


def faiss() -> Any:
    """Return the module FAISS.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return importlib.import_module("faiss")
    except ImportError as error:
        raise MissingExtraError("the neighbour graph needs FAISS, which is not installed", "faiss") from error


Places = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Nodes (n,) of a graph, and the positions (n,) of their entries in a segment."""


class Graph:
    """A graph that was read; FAISS itself is loaded at the first search.

    Args:
        nums: (n,) the number of each node.
        covers: the generation of the commit that it was built from.
    """

    def __init__(self, stored: CheckedFile, entry: FileEntry, covers: int) -> None:
        self.digest = entry.digest
        self.covers = covers
        self.nums = np.frombuffer(stored.front, "<i8").astype(np.int64)
        self._stored = stored
        self._loading = threading.Lock()
        self._loaded: Any = None
        self._places: dict[str, Places] = {}

    @classmethod
    def read(cls, folder: Path, manifest: Manifest, before: Graph | None) -> Graph | None:
        """Open the graph that the manifest names, if any; ``before`` is kept where it is the same.

        Raises:
            FileNotFoundError: its file is not there.
            DamagedForumError: its file is not what was written.
        """
        entry = manifest.graph
        if entry is None or (before is not None and before.digest == entry.digest):
            return None if entry is None else before
        stored = read_file(folder / entry.name, "graph", entry)
        if stored.dimensions != manifest.dimensions or len(stored.front) != 8 * entry.rows:
            raise damage(stored.path, f"does not fit {entry.rows} rows of {manifest.dimensions} numbers")
        return cls(stored, entry, manifest.graph_covers)

    def places(self, segments: Sequence[Segment]) -> list[Places]:
        """Return for each segment which nodes have an entry there, dead ones too, and at which positions.

        Segments never change, so that after a write only the new one is looked through: a moment instead of 40 ms for
        200,000 nodes.
        """
        known = self._places
        found = {one.entry.digest: known.get(one.entry.digest) or _places_in(one, self.nums) for one in segments}
        self._places = found
        return [found[one.entry.digest] for one in segments]

    def candidates(self, aims: NDArray[np.float64], count: int, is_open: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return nodes near each direction (Q, count), -1 where there are no more.

        Args:
            is_open: (n,) the nodes that may be returned; the others still lead to their neighbours.

        Raises:
            MissingExtraError: FAISS is not installed.
        """
        library, inner = faiss(), self._inner()
        breadth = max(inner.hnsw.efSearch, count)
        if is_open.all():
            parameters = library.SearchParametersHNSW(efSearch=breadth)
        else:
            bits = np.packbits(is_open, bitorder="little")
            parameters = library.SearchParametersHNSW(efSearch=breadth, sel=library.IDSelectorBitmap(bits))
        _, nodes = inner.search(np.ascontiguousarray(aims, np.float32), count, params=parameters)
        return np.asarray(nodes, np.int64)

    def check(self) -> None:
        """Read the whole file and compare its sum.

        Raises:
            DamagedForumError: it does not hold what was written.
        """
        self._stored.check_payload()

    def _inner(self) -> Any:
        with self._loading:
            if self._loaded is None:
                library = faiss()
                self._stored.check_payload()  # FAISS is given only what this index wrote
                loaded = library.deserialize_index(np.array(self._stored.payload))
                if loaded.ntotal != len(self.nums):
                    raise damage(self._stored.path, f"has {loaded.ntotal} nodes, expected {len(self.nums)}")
                self._loaded = loaded
            return self._loaded


def _places_in(segment: Segment, nums: NDArray[np.int64]) -> Places:
    held = segment.rows.nums
    nodes = np.flatnonzero((nums >= held[0]) & (nums <= held[-1]))
    wanted = nums[nodes]
    positions = np.searchsorted(held, wanted)  # none is beyond the last
    is_here = held[positions] == wanted
    return nodes[is_here], positions[is_here]


def build_graph(snapshot: Snapshot, settings: GraphSettings, path: Path, on_linked: Callable[[int], None]) -> FileEntry:
    """Build a graph over all entries but vectors of zeros, and write it.

    Args:
        on_linked: told how many more entries are linked.

    Raises:
        MissingExtraError: FAISS is not installed.
    """
    library = faiss()
    rows = np.setdiff1d(np.arange(snapshot.size), snapshot.hidden, assume_unique=True)
    kind = library.ScalarQuantizer.QT_8bit
    inner = library.IndexHNSWSQ(snapshot.dimensions, kind, settings.neighbours, library.METRIC_INNER_PRODUCT)
    inner.hnsw.efConstruction = settings.build_breadth
    inner.hnsw.efSearch = settings.search_breadth
    if len(rows):
        inner.train(decode(snapshot.codes(rows[:: max(1, len(rows) // _SAMPLE)])))
    for start in range(0, len(rows), _AT_ONCE):
        linked = rows[start : start + _AT_ONCE]
        inner.add(decode(snapshot.codes(linked)))
        on_linked(len(linked))
    nums = snapshot.nums[rows].astype("<i8")
    return write_file(path, "graph", snapshot.dimensions, [nums], [library.serialize_index(inner)])


OVERSAMPLE = 4
"""Candidates scored exactly for each one that is asked for: the graph itself knows one byte a number."""
LEAST_SHARE = 1 / 3
"""A filter that leaves less than this share of the nodes is answered exactly: the graph would lose its way."""


class GraphSearch:
    """A graph over the snapshot that it answers for."""

    def __init__(self, graph: Graph, snapshot: Snapshot) -> None:
        self.graph = graph
        self.snapshot = snapshot

    @cached_property
    def _node_rows(self) -> NDArray[np.int64]:
        """The row (n,) of each node, -1 where the entry was removed or replaced since."""
        snapshot = self.snapshot
        is_known = snapshot.is_alive & (snapshot.born <= self.graph.covers)
        found = np.full(len(self.graph.nums), -1, np.int64)
        for (nodes, positions), offset in zip(self.graph.places(snapshot.segments), snapshot.offsets[:-1], strict=True):
            rows = positions + offset
            kept = is_known[rows]
            found[nodes[kept]] = rows[kept]
        return found

    @cached_property
    def _later_rows(self) -> NDArray[np.int64]:
        """The rows put since the graph was built, ascending."""
        is_later = self.snapshot.is_alive & (self.snapshot.born > self.graph.covers)
        return np.flatnonzero(is_later)

    def missed(self) -> int:
        """Return how many entries are neither in the graph nor known to be later: no search would find them."""
        is_older = self.snapshot.is_found & (self.snapshot.born <= self.graph.covers)
        return int(np.count_nonzero(is_older & (self._row_nodes < 0)))

    @cached_property
    def _row_nodes(self) -> NDArray[np.int64]:
        """The node (size,) of each row, -1 where it has none."""
        found = np.full(self.snapshot.size, -1, np.int64)
        nodes = np.flatnonzero(self._node_rows >= 0)
        found[self._node_rows[nodes]] = nodes
        return found

    def _open_nodes(self, rows: NDArray[np.int64] | None, excluded: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which nodes (n,) may be found."""
        if rows is None:
            is_open = self._node_rows >= 0
        else:
            is_open = np.zeros(len(self._node_rows), np.bool_)
            allowed = self._row_nodes[rows]
            is_open[allowed[allowed >= 0]] = True
        refused = self._row_nodes[excluded]
        is_open[refused[refused >= 0]] = False
        return is_open

    def wear(self) -> float:
        """Return the share of the graph that has changed: entries put, replaced or removed since, over its nodes."""
        changed = int((self._node_rows < 0).sum()) + len(self._later_rows)
        return changed / max(1, len(self.graph.nums))

    def search(
        self, aims: NDArray[np.float64], limit: int, rows: NDArray[np.int64] | None, excluded: NDArray[np.int64]
    ) -> list[list[Neighbour]]:
        """Return near entries; arguments as in ``search_exactly``.

        Raises:
            MissingExtraError: FAISS is not installed.
        """
        snapshot, nodes = self.snapshot, self._node_rows
        is_open = self._open_nodes(rows, excluded)
        opened = int(is_open.sum())
        if opened < max(OVERSAMPLE * limit, LEAST_SHARE * len(nodes)):
            return search_exactly(snapshot, aims, limit, rows, excluded)
        found = self.graph.candidates(aims, min(OVERSAMPLE * limit, opened), is_open)
        later = self._later_rows if rows is None else np.intersect1d(self._later_rows, rows, assume_unique=True)
        beside = shortlists(snapshot, aims, limit, later, excluded) if len(later) else [later] * len(aims)
        answers: list[list[Neighbour]] = []
        for aim, near, also in zip(aims, found, beside, strict=True):
            if not aim.any():
                answers.append([])
                continue
            answer = best(snapshot, np.concatenate((nodes[near[near >= 0]], also)), aim, limit)
            if len(answer) < limit:  # the graph fell apart: more is there
                answer = search_exactly(snapshot, aim[None], limit, rows, excluded)[0]
            answers.append(answer)
        return answers
