"""One state of the vector index, as it was at one look: a search that began on it ends on it, whatever is committed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from askalike.errors import SettingError
from askalike.index.cursor import Mark
from askalike.index.vectors.codes import decode, finite_vectors
from askalike.index.vectors.exact import Neighbour, directions, search_exactly
from askalike.index.vectors.graph import GraphSearch
from askalike.index.vectors.mark import Contents
from askalike.index.vectors.snapshot import Snapshot
from askalike.index.vectors.writer import whole_numbers

_Numbers = Collection[int] | NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class State:
    """What belongs together; ``state`` holds the bytes of the mark's file, ``snapshot`` the entries of one commit."""

    state: bytes | None
    contents: Contents
    snapshot: Snapshot
    graph: GraphSearch | None


class VectorSnapshot:
    """Nearest entries by cosine, in one state of the index."""

    def __init__(self, folder: Path, state: State) -> None:
        self.folder = folder
        self._now = state

    @property
    def mark(self) -> Mark:
        """Return how far the index had come."""
        return self._now.contents.mark

    @property
    def dimensions(self) -> int:
        """Return how many numbers a vector has."""
        return self._now.contents.dimensions

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
