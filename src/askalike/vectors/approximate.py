"""Search through the neighbour graph, in step with the index.

The graph knows one commit. What was put later has a later generation and is searched exactly beside it; what was
removed or replaced since is kept out. All candidates are scored exactly, so an answer differs from the exact one only
by what the graph misses.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from askalike.vectors.exact import Neighbour, best, search_exactly, shortlists
from askalike.vectors.graph import Graph
from askalike.vectors.snapshot import Snapshot

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
