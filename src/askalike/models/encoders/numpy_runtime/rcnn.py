"""The convolutions in NumPy: CNN, and RCNN, a convolution over words that may lie apart with a learned decay.

::

    CNN    h_t  = tanh(W [x_{t-n+1} … x_t] + b),   words before the text are zero

    RCNN   λ_t  = σ(W^λ x_t + U^λ h_{t-1} + b^λ)
           c¹_t = λ_t ⊙ c¹_{t-1} + (1 - λ_t) ⊙ (W_1 x_t)
           cᵏ_t = λ_t ⊙ cᵏ_{t-1} + (1 - λ_t) ⊙ (cᵏ⁻¹_{t-1} + W_k x_t)        k = 2 … n
           h_t  = tanh(cⁿ_t + b)

Source: Lei et al. 2016 (NAACL), section 4.1; the RCNN with λ = 0 is the CNN.

Differs: in how it is computed, not in what. Each word adds its share to the sums of the windows that it is in. σ(z) is
taken as (1 + tanh(z/2))/2, the halving being done once in the weights; b is added to W_n x and to cⁿ_0, which adds it
to every cⁿ_t, as the two weights sum to one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.numpy_runtime.words import BatchWords, Projection, Stack, Step
from askalike.models.encoders.settings import EncoderConfig

_HALF = np.float32(0.5)


@dataclass(frozen=True, slots=True)
class Cnn:
    """A convolution of width n."""

    projection: Projection

    @classmethod
    def of(cls, config: EncoderConfig, arrays: Mapping[str, NDArray[np.float32]]) -> Cnn:
        """Return the network of ``weight`` (D, n·D_in), oldest word first, and ``bias`` (D,)."""
        size, order = config.hidden_size, config.order
        blocks = arrays["weight"].reshape(size, order, config.input_size).transpose(1, 0, 2)
        biases = np.zeros((order, size), dtype=np.float32)
        biases[-1] = arrays["bias"]
        rows = np.ascontiguousarray(blocks).reshape(order * size, config.input_size)
        return cls(Projection((Stack.of(rows, order, biases.reshape(-1)),)))

    def run(self, words: BatchWords) -> Iterator[Step]:
        """Yield the states of each step: tanh of the windows that its words close."""
        order, _, size = self.projection.stacks[0].weights.shape
        rows = len(words.packing.order)
        all_sums = np.zeros((order, rows, size), dtype=np.float32)  # of the window that began k words ago, k shares
        all_states = np.empty((rows, size), dtype=np.float32)
        for (shares,) in words.steps():  # (n, b, D)
            count = shares.shape[1]
            sums, states = all_sums[:, :count], all_states[:count]
            shares[1:] += sums[:-1]
            sums[...] = shares
            np.tanh(sums[-1], out=states)
            yield Step(states)


@dataclass(frozen=True, slots=True)
class Rcnn:
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

    def run(self, words: BatchWords) -> Iterator[Step]:
        """Yield the states and gates of each step."""
        order, _, size = self.projection.stacks[0].weights.shape
        rows = len(words.packing.order)
        sums = np.zeros((order, rows, size), dtype=np.float32)  # cᵏ
        sums[-1] = self.bias
        states = np.zeros((rows, size), dtype=np.float32)
        if self.recurrent is not None:
            return self._gated(words, sums, states, self.recurrent)
        if self.decay is not None:
            return self._fixed(words, sums, states, np.float32(self.decay))
        return Cnn(self.projection).run(words)

    @staticmethod
    def _fixed(
        words: BatchWords, all_sums: NDArray[np.float32], all_states: NDArray[np.float32], decay: np.float32
    ) -> Iterator[Step]:
        """Run with the same λ for every word and dimension."""
        for (shares,) in words.steps():  # (n, b, D)
            count = shares.shape[1]
            sums, states = all_sums[:, :count], all_states[:count]
            _mix(sums, shares, decay)
            np.tanh(sums[-1], out=states)
            yield Step(states)

    @staticmethod
    def _gated(
        words: BatchWords,
        sums: NDArray[np.float32],
        states: NDArray[np.float32],
        recurrent: NDArray[np.float32],
    ) -> Iterator[Step]:
        """Run with a λ_t that depends on the word and on the state before it."""
        gates = np.empty((len(states), recurrent.shape[1]), np.float32)
        for shares, gate_share in words.steps():  # (n, b, D), (1, b, G)
            count = shares.shape[1]
            if count != len(states):
                sums, states, gates = sums[:, :count], states[:count], gates[:count]
            np.matmul(states, recurrent, out=gates)
            gates += gate_share[0]
            np.tanh(gates, out=gates)
            gates *= _HALF
            gates += _HALF
            _mix(sums, shares, gates)
            np.tanh(sums[-1], out=states)
            yield Step(states, gates)


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
