"""What every kind of encoder gives the runtime: its input weights, and a walk along a batch of texts.

Enters: nothing. Leaves: two protocols. May import: projection.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.encode.numpy_runtime.projection import Parts, Projection

__all__ = ["Network", "Walk"]


class Walk(Protocol):
    """One pass over a batch: it keeps the state of every row in buffers made at the start."""

    def step(self, parts: Parts) -> NDArray[np.float32]:
        """Take one word of each of the first b rows and return their states h_t.  # (b, D) float32

        Args:
            parts: the projected words, for each stack (P, b, width); b never grows. They are written over.

        Returns:
            A view that the next step writes over.
        """
        ...

    def gates(self) -> NDArray[np.float32]:
        """Return λ of the last step.  # (b, G) float32, G = 0 for a kind without gates that say what is kept"""
        ...


class Network(Protocol):
    """The parameters of one encoder, made ready."""

    @property
    def projection(self) -> Projection:
        """Return the input weights."""
        ...

    def start(self, rows: int) -> Walk:
        """Return a walk over ``rows`` texts, all states zero."""
        ...
