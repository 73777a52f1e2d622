"""States to one vector for a text, as they come: none is kept.

Enters: the states of each step. Leaves: pooled vectors. May import: packing.

A text without words has the zero vector under every pooling. In ``normalised-mean`` a zero state stays zero.

Source: Lei et al. 2016 (NAACL), section 3 (last and mean); Joshi's thesis 2016, section 7 (states normalised first).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.config import Pooling
from askalike.models.encoders.numpy_runtime.packing import Packing

__all__ = ["POOLS", "Pool"]

_TINY = np.float32(1e-12)


class Pool(Protocol):
    """One pass of pooling over a batch."""

    def add(self, states: NDArray[np.float32], remaining: int) -> None:
        """Take the states of a step.

        Args:
            states: (b, D), the rows that have a word at this step; not kept, not changed.
            remaining: how many of them, the first ones, have another word.
        """
        ...

    def result(self, packing: Packing) -> NDArray[np.float32]:
        """Return the pooled vectors in the packing's order.  # (B, D) float32"""
        ...


class LastPool:
    """h_T: the state after the last word.

    >>> pool = LastPool(2, 1)
    >>> pool.add(np.array([[1.0], [2.0]], dtype=np.float32), 1)
    >>> pool.add(np.array([[3.0]], dtype=np.float32), 0)
    >>> pool.result(Packing(np.arange(2), (2, 1))).tolist()
    [[3.0], [2.0]]
    """

    def __init__(self, rows: int, size: int) -> None:
        self._found = np.zeros((rows, size), dtype=np.float32)

    def add(self, states: NDArray[np.float32], remaining: int) -> None:
        """Keep the states of the rows that end here."""
        self._found[remaining : len(states)] = states[remaining:]

    def result(self, packing: Packing) -> NDArray[np.float32]:
        """Return the last states.  # (B, D)"""
        return self._found


class MeanPool:
    """(1/T) Σ_t h_t.

    >>> pool = MeanPool(2, 1)
    >>> pool.add(np.array([[1.0], [2.0]], dtype=np.float32), 1)
    >>> pool.add(np.array([[3.0]], dtype=np.float32), 0)
    >>> pool.result(Packing(np.arange(2), (2, 1))).tolist()
    [[2.0], [2.0]]
    """

    def __init__(self, rows: int, size: int) -> None:
        self._sum = np.zeros((rows, size), dtype=np.float32)

    def add(self, states: NDArray[np.float32], remaining: int) -> None:
        """Add the states."""
        self._sum[: len(states)] += states

    def result(self, packing: Packing) -> NDArray[np.float32]:
        """Return the means.  # (B, D)"""
        self._sum /= np.maximum(packing.lengths(), 1).astype(np.float32)[:, None]
        return self._sum


class NormalisedMeanPool(MeanPool):
    """(1/T) Σ_t h_t / |h_t|: every word counts the same, however large its state.

    >>> pool = NormalisedMeanPool(1, 2)
    >>> pool.add(np.array([[3.0, 4.0]], dtype=np.float32), 1)
    >>> pool.add(np.array([[0.0, 0.5]], dtype=np.float32), 0)
    >>> [round(float(value), 2) for value in pool.result(Packing(np.arange(1), (1, 1)))[0]]
    [0.3, 0.9]
    """

    def __init__(self, rows: int, size: int) -> None:
        super().__init__(rows, size)
        self._unit = np.empty((rows, size), dtype=np.float32)

    def add(self, states: NDArray[np.float32], remaining: int) -> None:
        """Add the states, each brought to length 1."""
        norms = np.sqrt(np.einsum("bd,bd->b", states, states))
        np.maximum(norms, _TINY, out=norms)
        super().add(np.divide(states, norms[:, None], out=self._unit[: len(states)]), remaining)


class MaxPool:
    """max_t h_t in each dimension.

    >>> pool = MaxPool(2, 1)
    >>> pool.add(np.array([[-1.0], [2.0]], dtype=np.float32), 1)
    >>> pool.add(np.array([[-3.0]], dtype=np.float32), 0)
    >>> pool.result(Packing(np.arange(2), (2, 1))).tolist()
    [[-1.0], [2.0]]
    """

    def __init__(self, rows: int, size: int) -> None:
        self._found = np.full((rows, size), -np.inf, dtype=np.float32)

    def add(self, states: NDArray[np.float32], remaining: int) -> None:
        """Keep what is larger."""
        found = self._found[: len(states)]
        np.maximum(found, states, out=found)

    def result(self, packing: Packing) -> NDArray[np.float32]:
        """Return the largest values.  # (B, D)"""
        self._found[packing.counts[0] if packing.counts else 0 :] = 0
        return self._found


POOLS: Final[dict[Pooling, Callable[[int, int], Pool]]] = {
    "last": LastPool,
    "mean": MeanPool,
    "normalised-mean": NormalisedMeanPool,
    "max": MaxPool,
}
"""Pooling → its pass, made with (rows B, dimensions D)."""
