"""What every kind of encoder gives the runtime: its input weights, and the states of a batch, step by step.

A recurrent kind does it by a walk, one word of every text at a time; attention needs the words of a text at once.

Enters: the words of a batch. Leaves: two protocols, and the states of a walk. May import: projection, words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.numpy_runtime.projection import Parts, Projection
from askalike.models.encoders.numpy_runtime.words import Words

__all__ = ["Network", "Step", "Walk", "walked"]


class Step(NamedTuple):
    """What comes out at one step, for the texts that have a word there; the next step may write over it.

    Args:
        states: h_t.  # (b, D) float32
        gates: λ_t.  # (b, G) float32, G = 0 for a kind without gates that say what is kept
    """

    states: NDArray[np.float32]
    gates: NDArray[np.float32]


class Network(Protocol):
    """The parameters of one encoder, made ready."""

    @property
    def projection(self) -> Projection:
        """Return the input weights."""
        ...

    def run(self, words: Words) -> Iterator[Step]:
        """Yield the states and gates of each step, rows in the order of the packing."""
        ...


class Walk(Protocol):
    """One pass of a recurrence over a batch: it keeps the state of every row in buffers made at the start."""

    def step(self, parts: Parts) -> NDArray[np.float32]:
        """Take one word of each of the first b rows and return their states h_t.  # (b, D) float32

        Args:
            parts: the projected words, for each stack (P, b, width); b never grows. They are written over.

        Returns:
            A view that the next step writes over.
        """
        ...

    def gates(self) -> NDArray[np.float32]:
        """Return λ of the last step, of at least its b rows.  # (B, G) float32"""
        ...


def walked(walk: Walk, words: Words) -> Iterator[Step]:
    """Yield the states and gates of each step of a walk over these words."""
    for parts in words.steps():
        states = walk.step(parts)
        yield Step(states, walk.gates()[: len(states)])
