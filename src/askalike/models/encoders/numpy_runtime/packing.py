"""The order in which texts of a batch are worked through, so that padding costs nothing.

The texts are taken longest first. Those that still have a word at a step are then the first rows of every buffer, and
a step works on that prefix alone.

Enters: lengths in words. Leaves: an order and the number of rows at each step. May import: nothing of askalike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Packing", "by_length"]


@dataclass(frozen=True, slots=True)
class Packing:
    """Which rows of a batch are worked on at each step.

    Args:
        order: rows of the batch, longest text first, equal lengths in their own order.  # (B,) int
        counts: texts with a word at step t: the first ``counts[t]`` of ``order``; never grows, and every count is ≥ 1.
    """

    order: NDArray[np.intp]
    counts: tuple[int, ...]

    def lengths(self) -> NDArray[np.intp]:
        """Return the words of each text of ``order``.  # (B,) int

        >>> Packing(np.array([2, 0, 1]), (2, 1, 1)).lengths().tolist()
        [3, 1, 0]
        """
        found = np.zeros(len(self.order), dtype=np.intp)
        for count in self.counts:
            found[:count] += 1
        return found

    def restored(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return ``rows`` of the packed order, (B, …), in the order of the batch."""
        found = np.empty_like(rows)
        found[self.order] = rows
        return found


def by_length(lengths: NDArray[np.integer]) -> Packing:
    """Return the packing of texts of these lengths, (B,) int ≥ 0.

    >>> packing = by_length(np.array([1, 0, 3]))
    >>> packing.order.tolist(), packing.counts
    ([2, 0, 1], (2, 1, 1))
    """
    order = np.argsort(-lengths, kind="stable")
    ended = np.bincount(lengths) if lengths.size else np.zeros(1, dtype=np.intp)  # texts of length 0, 1, …
    counts = lengths.size - np.cumsum(ended[:-1])
    return Packing(order, tuple(int(count) for count in counts))
