"""The convolution over words, step by step: each word adds its share to the sums of the windows that it is in.

Enters: parameters, projected words. Leaves: states. May import: config, projection, walk, words.

::

    h_t = tanh(W [x_{t-n+1} … x_t] + b),   words before the text are zero

Source: systems of Lei et al. 2016 (NAACL), section 3: the RCNN with λ = 0 is this network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.config import EncoderConfig
from askalike.models.encoders.numpy_runtime.projection import Parts, Projection, Stack
from askalike.models.encoders.numpy_runtime.walk import Step, walked
from askalike.models.encoders.numpy_runtime.words import Words

__all__ = ["Cnn", "Windows"]


@dataclass(frozen=True, slots=True)
class Cnn:
    """A convolution of width n.

    >>> config = EncoderConfig("cnn", input_size=1, hidden_size=1, order=2)
    >>> weight, bias = np.array([[0.5, 2.0]], np.float32), np.array([1.0], np.float32)
    >>> walk = Cnn.of(config, {"weight": weight, "bias": bias}).start(1)
    >>> [round(float(np.arctanh(walk.step((x * np.array([[[0.5]], [[2.0]]], np.float32)
    ...     + np.array([[[0.0]], [[1.0]]], np.float32),))[0, 0])), 3) for x in (0.5, -0.25)]  # 2/2 + 1, 1/4 - 2/4 + 1
    [2.0, 0.75]
    """

    projection: Projection
    size: int

    @classmethod
    def of(cls, config: EncoderConfig, arrays: Mapping[str, NDArray[np.float32]]) -> Cnn:
        """Return the network of ``weight`` (D, n·D_in), oldest word first, and ``bias`` (D,)."""
        size, order = config.hidden_size, config.order
        blocks = arrays["weight"].reshape(size, order, config.input_size).transpose(1, 0, 2)
        biases = np.zeros((order, size), dtype=np.float32)
        biases[-1] = arrays["bias"]
        rows = np.ascontiguousarray(blocks).reshape(order * size, config.input_size)
        return cls(Projection((Stack.of(rows, order, biases.reshape(-1)),)), size)

    def start(self, rows: int) -> Windows:
        """Return a walk over ``rows`` texts."""
        return Windows(rows, self.projection.stacks[0].weights.shape[0], self.size)

    def run(self, words: Words) -> Iterator[Step]:
        """Yield the states of each step."""
        return walked(self.start(len(words.packing.order)), words)


class Windows:
    """The open windows of each row: the one that began k words ago holds the shares of k words.

    Args:
        rows: texts, B.
        order: width n.
        size: dimensions, D.
    """

    def __init__(self, rows: int, order: int, size: int) -> None:
        self._sums = np.zeros((order, rows, size), dtype=np.float32)
        self._states = np.empty((rows, size), dtype=np.float32)

    def step(self, parts: Parts) -> NDArray[np.float32]:
        """Return tanh of the windows that this word closes.  # (b, D)"""
        shares = parts[0]  # (n, b, D)
        count = shares.shape[1]
        sums = self._sums[:, :count]
        shares[1:] += sums[:-1]
        sums[...] = shares
        states = self._states[:count]
        np.tanh(sums[-1], out=states)
        return states

    def gates(self) -> NDArray[np.float32]:
        """Return no gates.  # (B, 0)"""
        return np.empty((len(self._states), 0), dtype=np.float32)
