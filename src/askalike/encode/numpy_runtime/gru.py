"""The GRU in NumPy, with PyTorch's layout of parameters.

Enters: parameters, projected words. Leaves: states. May import: config, projection, walk, words.

::

    r, z = σ(W x_t + b_ih + U h_{t-1} + b_hh)      each with its own W, U and biases
    n    = tanh(W x_t + b_ih + r ⊙ (U h_{t-1} + b_hh))
    h_t  = (1 - z) ⊙ n + z ⊙ h_{t-1}

Source: Cho et al. 2014 (EMNLP).
Differs: r is applied after the product with U, as PyTorch and cuDNN do, so that all of U h is one product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.encode.config import EncoderConfig
from askalike.encode.numpy_runtime.projection import Parts, Projection, Stack
from askalike.encode.numpy_runtime.walk import Step, walked
from askalike.encode.numpy_runtime.words import Words

__all__ = ["Gru"]

_HALF = np.float32(0.5)
_HALVED = np.array([0.5, 0.5, 1.0], dtype=np.float32)  # r, z, n: σ(z) = (1 + tanh(z/2))/2


@dataclass(frozen=True, slots=True)
class Gru:
    """A GRU.

    Args:
        recurrent: W_hh of r, z, n, transposed (3, D, D), halved where σ follows.
        new_bias: b_hh of n (D,): inside the reset, so it cannot be added beforehand.
    """

    projection: Projection
    recurrent: NDArray[np.float32]
    new_bias: NDArray[np.float32]

    @classmethod
    def of(cls, config: EncoderConfig, arrays: Mapping[str, NDArray[np.float32]]) -> Gru:
        """Return the network of ``weight_ih`` (3D, D_in), ``weight_hh`` (3D, D), ``bias_ih``, ``bias_hh`` (3D,)."""
        size = config.hidden_size
        halved = np.repeat(_HALVED, size)
        bias = arrays["bias_ih"].astype(np.float32, copy=True)
        bias[: 2 * size] += arrays["bias_hh"][: 2 * size]
        stack = Stack.of(halved[:, None] * arrays["weight_ih"], 3, halved * bias)
        recurrent = (halved[:, None] * arrays["weight_hh"]).reshape(3, size, size).transpose(0, 2, 1)
        return cls(Projection((stack,)), np.ascontiguousarray(recurrent), arrays["bias_hh"][2 * size :])

    def start(self, rows: int) -> GruWalk:
        """Return a walk over ``rows`` texts."""
        return GruWalk(rows, self.recurrent, self.new_bias)

    def run(self, words: Words) -> Iterator[Step]:
        """Yield the states of each step."""
        return walked(self.start(len(words.packing.order)), words)


class GruWalk:
    """A walk: the state of each row.

    Args:
        recurrent: (3, D, D), see ``Gru``.
        new_bias: (D,), see ``Gru``.
    """

    def __init__(self, rows: int, recurrent: NDArray[np.float32], new_bias: NDArray[np.float32]) -> None:
        size = recurrent.shape[-1]
        self._recurrent = recurrent
        self._new_bias = new_bias
        self._states = np.zeros((rows, size), dtype=np.float32)
        self._product = np.empty((rows, size), dtype=np.float32)

    def step(self, parts: Parts) -> NDArray[np.float32]:
        """Return h_t.  # (b, D)"""
        reset, keep, new = parts[0]  # (b, D) each
        count = len(reset)
        states, product = self._states[:count], self._product[:count]
        for gate, weights in ((reset, self._recurrent[0]), (keep, self._recurrent[1])):
            np.matmul(states, weights, out=product)
            gate += product
        gates = parts[0][:2]
        np.tanh(gates, out=gates)
        gates *= _HALF
        gates += _HALF
        np.matmul(states, self._recurrent[2], out=product)
        product += self._new_bias
        product *= reset
        new += product
        np.tanh(new, out=new)
        states -= new
        states *= keep
        states += new
        return states

    def gates(self) -> NDArray[np.float32]:
        """Return no gates: the GRU's do not say how much of one word is kept.  # (B, 0)"""
        return np.empty((len(self._states), 0), dtype=np.float32)
