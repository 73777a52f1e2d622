"""What a network takes from its words alone: their vectors times the input weights, in few large products.

Enters: vectors. Leaves: their projections. May import: nothing of askalike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Parts", "Projection", "Stack"]

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

    Args:
        stacks: the weights.
        has_vectors: whether the network takes the vectors too, as they are: they are then the last part.

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
