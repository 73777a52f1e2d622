"""The words of a batch as a network takes them, longest text first, projected; and what a network gives for them.

Those texts that still have a word at a step are the first rows of every buffer, and a step works on that prefix alone:
padding costs nothing. All that depends on a word and not on a state is computed before a recurrence, once for each
distinct word, and rows of that are gathered. A recurrent kind takes one word of every text at a time; attention needs
the words of a text at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class BatchOrder:
    """Which rows of a batch are worked on at each step.

    Args:
        order: rows of the batch, longest text first, equal lengths in their own order.  # (B,) int
        counts: texts with a word at step t: the first ``counts[t]`` of ``order``; never grows, and every count is ≥ 1.
    """

    order: NDArray[np.intp]
    counts: tuple[int, ...]

    def lengths(self) -> NDArray[np.intp]:
        """Return the words of each text of ``order``.  # (B,) int

        >>> BatchOrder(np.array([2, 0, 1]), (2, 1, 1)).lengths().tolist()
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


def by_length(lengths: NDArray[np.integer]) -> BatchOrder:
    """Return the packing of texts of these lengths, (B,) int ≥ 0.

    >>> packing = by_length(np.array([1, 0, 3]))
    >>> packing.order.tolist(), packing.counts
    ([2, 0, 1], (2, 1, 1))
    """
    order = np.argsort(-lengths, kind="stable")
    ended = np.bincount(lengths) if lengths.size else np.zeros(1, dtype=np.intp)  # texts of length 0, 1, …
    counts = lengths.size - np.cumsum(ended[:-1])
    return BatchOrder(order, tuple(int(count) for count in counts))


Parts = tuple[NDArray[np.float32], ...]
"""The projected rows of some words, an array (P, words, width) for each stack, and (1, words, D_in) where the
projection has the vectors too; who gets them may write over them."""


@dataclass(frozen=True, slots=True)
class Stack:
    """P input matrices of one width, applied together.

    Args:
        weights: (P, D_in, width) float32, contiguous.
        biases: (P, 1, width) float32, added to every row.
    """

    weights: NDArray[np.float32]
    biases: NDArray[np.float32]

    @classmethod
    def of(cls, rows: NDArray[np.float32], parts: int, bias: NDArray[np.float32] | None = None) -> Stack:
        """Return the matrices that lie one below the other in ``rows`` (P·width, D_in), with ``bias`` (P·width,)."""
        width = rows.shape[0] // parts
        weights = rows.reshape(parts, width, rows.shape[1]).transpose(0, 2, 1)
        biases = np.zeros(rows.shape[0], dtype=np.float32) if bias is None else bias
        return cls(np.ascontiguousarray(weights), np.array(biases.reshape(parts, 1, width), dtype=np.float32))


@dataclass(frozen=True, slots=True)
class Projection:
    """All input weights of an encoder; where it ``has_vectors``, the last part is the vectors as they are.

    >>> double_and_square = Stack(np.array([[[2.0]], [[3.0]]], dtype=np.float32), np.zeros((2, 1, 1), np.float32))
    >>> Projection((double_and_square,)).of(np.array([[1.0], [5.0]], dtype=np.float32))[0].tolist()
    [[[2.0], [10.0]], [[3.0], [15.0]]]
    """

    stacks: tuple[Stack, ...]
    has_vectors: bool = False

    def of(self, vectors: NDArray[np.float32]) -> Parts:
        """Return the projections of ``vectors`` (N, D_in): for each stack (P, N, width) float32; then the vectors."""
        found = tuple(np.matmul(vectors[None], stack.weights) for stack in self.stacks)
        for part, stack in zip(found, self.stacks, strict=True):
            part += stack.biases
        return (*found, vectors[None]) if self.has_vectors else found


class BatchWords:
    """The words of a batch, as rows of a table of its distinct words: each is projected once, however often it occurs.

    Args:
        table: projections of the distinct words, for each stack (P, U, width).
        rows: the row of the table for the word of each text at each step (T, B), texts in the order of the batch.
        packing: of the batch.
    """

    def __init__(self, table: Parts, rows: NDArray[np.intp], packing: BatchOrder) -> None:
        self.packing: Final = packing
        self._table = table
        self._rows = np.ascontiguousarray(rows[:, packing.order])

    def steps(self) -> Iterator[Parts]:
        """Yield the rows of each step, in buffers that the next one fills again."""
        batch = self._rows.shape[1]
        buffers = [np.empty(part.shape[0] * batch * part.shape[2], dtype=np.float32) for part in self._table]
        outs: Parts = ()
        shown = 0
        for step, count in enumerate(self.packing.counts):
            if count != shown:
                outs = tuple(
                    buffer[: part.shape[0] * count * part.shape[2]].reshape(part.shape[0], count, part.shape[2])
                    for buffer, part in zip(buffers, self._table, strict=True)
                )
                shown = count
            for part, out in zip(self._table, outs, strict=True):
                np.take(part, self._rows[step, :count], axis=1, out=out, mode="clip")
            yield outs

    def at(self, steps: NDArray[np.intp], places: NDArray[np.intp]) -> Parts:
        """Return copies of the rows of these words."""
        rows = self._rows[steps, places]
        return tuple(np.take(part, rows, axis=1) for part in self._table)


_NO_GATES: Final = np.empty((0, 0), dtype=np.float32)


class Step(NamedTuple):
    """What comes out at one step, for the texts that have a word there; the next step may write over it.

    Args:
        states: h_t.  # (b, D) float32
        gates: λ_t; of no text for a kind without gates that say how much of one word is kept.  # (b, G) float32
    """

    states: NDArray[np.float32]
    gates: NDArray[np.float32] = _NO_GATES


class Network(Protocol):
    """The parameters of one encoder, made ready."""

    @property
    def projection(self) -> Projection:
        """Return the input weights."""
        ...

    def run(self, words: BatchWords) -> Iterator[Step]:
        """Yield the states and gates of each step, rows in the order of the packing."""
        ...
