"""What a step takes from its words alone: their vectors times the input weights, in few large products.

All that depends on a word and not on a state is computed before the recurrence: for a padded batch in blocks of steps,
one product each; for words of a vocabulary once for each distinct word, and every step gathers its rows.

Enters: vectors, or distinct words and where they stand; the packing. Leaves: projected rows, step by step.
May import: packing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.encode.numpy_runtime.packing import Packing

__all__ = ["Parts", "Projection", "Stack", "gathered_steps", "projected_steps"]

Parts = tuple[NDArray[np.float32], ...]
"""The projected rows of one step, an array (P, b, width) for each stack; a step may write over them."""

_ROWS_AT_ONCE = 2048  # of a block: large enough for a fast product, small enough to stay in the cache


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
        """Return the stack of the matrices that ``rows`` (P·width, D_in) holds one below the other.

        Args:
            bias: (P·width,) float32; zeros when absent.
        """
        width = rows.shape[0] // parts
        weights = rows.reshape(parts, width, rows.shape[1]).transpose(0, 2, 1)
        biases = np.zeros(rows.shape[0], dtype=np.float32) if bias is None else bias
        return cls(np.ascontiguousarray(weights), np.array(biases.reshape(parts, 1, width), dtype=np.float32))


@dataclass(frozen=True, slots=True)
class Projection:
    """All input weights of an encoder.

    >>> double_and_square = Stack(np.array([[[2.0]], [[3.0]]], dtype=np.float32), np.zeros((2, 1, 1), np.float32))
    >>> Projection((double_and_square,)).of(np.array([[1.0], [5.0]], dtype=np.float32))[0].tolist()
    [[[2.0], [10.0]], [[3.0], [15.0]]]
    """

    stacks: tuple[Stack, ...]

    def of(self, vectors: NDArray[np.float32]) -> Parts:
        """Return the projections of ``vectors`` (N, D_in): for each stack (P, N, width) float32."""
        found = tuple(np.matmul(vectors[None], stack.weights) for stack in self.stacks)
        for part, stack in zip(found, self.stacks, strict=True):
            part += stack.biases
        return found


def projected_steps(projection: Projection, inputs: NDArray[np.float32], packing: Packing) -> Iterator[Parts]:
    """Yield the projected rows of each step of a padded batch.

    Args:
        inputs: (T, B, D_in) float32; what stands after a text's end is not read.

    Yields:
        For each stack (P, counts[t], width), rows in the order of the packing.
    """
    _, batch, d_in = inputs.shape
    flat = inputs.reshape(-1, d_in)
    step = 0
    while step < len(packing.counts):
        last = min(len(packing.counts), step + max(1, _ROWS_AT_ONCE // packing.counts[step]))
        counts = packing.counts[step:last]
        places = np.concatenate([(step + i) * batch + packing.order[:count] for i, count in enumerate(counts)])
        block = projection.of(flat[places])
        end = 0
        for count in counts:
            begin, end = end, end + count
            yield tuple(part[:, begin:end] for part in block)
        step = last


def gathered_steps(table: Parts, places: NDArray[np.intp], packing: Packing) -> Iterator[Parts]:
    """Yield the projected rows of each step, taken from those of the distinct words.

    Args:
        table: projections of the distinct words, for each stack (P, U, width).
        places: (T, B): the row of the table for the word of each text at each step; columns in the packing's order.

    Yields:
        For each stack (P, counts[t], width), in buffers that the next step fills again.
    """
    batch = places.shape[1]
    buffers = [np.empty(part.shape[0] * batch * part.shape[2], dtype=np.float32) for part in table]
    outs: Parts = ()
    shown = 0
    for step, count in enumerate(packing.counts):
        if count != shown:
            outs = tuple(
                buffer[: part.shape[0] * count * part.shape[2]].reshape(part.shape[0], count, part.shape[2])
                for buffer, part in zip(buffers, table, strict=True)
            )
            shown = count
        for part, out in zip(table, outs, strict=True):
            np.take(part, places[step, :count], axis=1, out=out, mode="clip")
        yield outs
