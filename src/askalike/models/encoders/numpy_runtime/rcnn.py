"""The convolutions in NumPy: CNN, and RCNN, a convolution over words that may lie apart with a learned decay.

::

    CNN    h_t  = tanh(W [x_{t-n+1} … x_t] + b),   words before the text are zero

    RCNN   λ_t  = σ(W^λ x_t + U^λ h_{t-1} + b^λ)
           c¹_t = λ_t ⊙ c¹_{t-1} + (1 - λ_t) ⊙ (W_1 x_t)
           cᵏ_t = λ_t ⊙ cᵏ_{t-1} + (1 - λ_t) ⊙ (cᵏ⁻¹_{t-1} + W_k x_t)        k = 2 … n
           h_t  = tanh(cⁿ_t + b)

Source: Lei et al. 2016 (NAACL), section 3; the RCNN with λ = 0 is the CNN.

Differs: in how it is computed, not in what. Each word adds its share to the sums of the windows that it is in. σ(z) is
taken as (1 + tanh(z/2))/2, the halving being done once in the weights; b is added to W_n x and to cⁿ_0, which adds it
to every cⁿ_t, as the two weights sum to one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.numpy_runtime.words import Parts, Projection, Recurrent, Stack, Ungated
from askalike.models.encoders.settings import EncoderConfig


@dataclass(frozen=True, slots=True)
class Cnn(Recurrent):
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


class Windows(Ungated):
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


_HALF = np.float32(0.5)


@dataclass(frozen=True, slots=True)
class Rcnn(Recurrent):
    """A gated convolution of order n.

    Args:
        recurrent: half of U^λ, transposed (D, G), or None for the gates ``fixed`` and ``none``.
        bias: b (D,).
        decay: λ of the gate ``fixed``, None for the other gates.
    """

    projection: Projection
    recurrent: NDArray[np.float32] | None
    bias: NDArray[np.float32]
    decay: float | None

    @classmethod
    def of(cls, config: EncoderConfig, arrays: Mapping[str, NDArray[np.float32]]) -> Rcnn:
        """Return the network of ``input`` (n·D + G, D_in), ``recurrent`` (G, D), ``gate_bias`` and ``output_bias``."""
        size, order = config.hidden_size, config.order
        biases = np.zeros((order, size), dtype=np.float32)
        biases[-1] = arrays["output_bias"]
        stacks = [Stack.of(arrays["input"][: order * size], order, biases.reshape(-1))]
        recurrent = None
        if config.gate_size:
            stacks.append(Stack.of(_HALF * arrays["input"][order * size :], 1, _HALF * arrays["gate_bias"]))
            recurrent = np.ascontiguousarray(_HALF * arrays["recurrent"].T)
        decay = config.decay if config.gate == "fixed" else None
        return cls(Projection(tuple(stacks)), recurrent, arrays["output_bias"], decay)

    def start(self, rows: int) -> Windows | FixedWalk | GatedWalk:
        """Return a walk over ``rows`` texts."""
        order, _, size = self.projection.stacks[0].weights.shape
        if self.recurrent is not None:
            return GatedWalk(_first_sums(rows, order, self.bias), self.recurrent)
        if self.decay is not None:
            return FixedWalk(_first_sums(rows, order, self.bias), self.decay)
        return Windows(rows, order, size)


def _first_sums(rows: int, order: int, bias: NDArray[np.float32]) -> NDArray[np.float32]:
    sums = np.zeros((order, rows, bias.shape[0]), dtype=np.float32)
    sums[-1] = bias
    return sums  # (n, B, D)


class FixedWalk(Ungated):
    """A walk with the same λ for every word and dimension.

    Args:
        sums: cᵏ_0, (n, B, D) float32; written over.
        decay: λ in [0, 1).
    """

    def __init__(self, sums: NDArray[np.float32], decay: float) -> None:
        self._sums = sums
        self._decay = np.float32(decay)
        self._states = np.empty(sums.shape[1:], dtype=np.float32)

    def step(self, parts: Parts) -> NDArray[np.float32]:
        """Return h_t.  # (b, D)"""
        shares = parts[0]  # (n, b, D)
        count = shares.shape[1]
        sums = self._sums[:, :count]
        _mix(sums, shares, self._decay)
        states = self._states[:count]
        np.tanh(sums[-1], out=states)
        return states


class GatedWalk:
    """A walk whose λ_t depends on the word and on the state before it.

    Args:
        sums: cᵏ_0, (n, B, D) float32; written over.
        recurrent: half of U^λ, transposed (D, G).
    """

    def __init__(self, sums: NDArray[np.float32], recurrent: NDArray[np.float32]) -> None:
        _, rows, size = sums.shape
        self._recurrent = recurrent
        self._all = (sums, np.zeros((rows, size), np.float32), np.empty((rows, recurrent.shape[1]), np.float32))
        self._sums, self._states, self._gates = self._all

    def step(self, parts: Parts) -> NDArray[np.float32]:
        """Return h_t.  # (b, D)"""
        shares, gate_share = parts  # (n, b, D), (1, b, G)
        if shares.shape[1] != len(self._states):
            self._narrow(shares.shape[1])
        states, gates = self._states, self._gates
        np.matmul(states, self._recurrent, out=gates)
        gates += gate_share[0]
        np.tanh(gates, out=gates)
        gates *= _HALF
        gates += _HALF
        _mix(self._sums, shares, gates)
        np.tanh(self._sums[-1], out=states)
        return states

    def gates(self) -> NDArray[np.float32]:
        """Return λ_t.  # (b, G)"""
        return self._gates

    def _narrow(self, count: int) -> None:
        sums, states, gates = self._all
        self._sums, self._states, self._gates = sums[:, :count], states[:count], gates[:count]


def _mix(sums: NDArray[np.float32], shares: NDArray[np.float32], gates: NDArray[np.float32] | np.float32) -> None:
    """Set cᵏ to λ cᵏ + (1 - λ)(cᵏ⁻¹ + share), computed as a + λ (cᵏ - a) with a the parenthesis.

    Args:
        sums: cᵏ_{t-1}, (n, b, D), becomes cᵏ_t.
        shares: W_k x_t, (n, b, D), written over.
        gates: λ_t: (b, D), (b, 1) or one number.
    """
    if len(shares) > 1:
        shares[1:] += sums[:-1]
    sums -= shares
    sums *= gates
    sums += shares
