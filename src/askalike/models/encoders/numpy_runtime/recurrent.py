"""The recurrences in NumPy: RCNN and CNN, LSTM, GRU.

::

    CNN    h_t  = tanh(W [x_{t-n+1} … x_t] + b),   words before the text are zero

    RCNN   λ_t  = σ(W^λ x_t + U^λ h_{t-1} + b^λ)
           c¹_t = λ_t ⊙ c¹_{t-1} + (1 - λ_t) ⊙ (W_1 x_t)
           cᵏ_t = λ_t ⊙ cᵏ_{t-1} + (1 - λ_t) ⊙ (cᵏ⁻¹_{t-1} + W_k x_t)        k = 2 … n
           h_t  = tanh(cⁿ_t + b)

    with the gate constant
           c_t  = Σ_{t' < t} λ^(t - t' - 1) (W_1 x_t' + W_2 x_t),   h_t = tanh(c_t + b)     and so on for more words

Source: Lei et al. 2016 (NAACL), section 4.1; the RCNN with λ = 0 is the CNN; the constant decay is that of Lei et al.
2015 (EMNLP), with which the section begins.

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
class Patterns:
    """The patterns of n words with a constant decay; the recurrence stands at the network that is trained.

    Args:
        bias: b (D,).
        decay: λ.
    """

    projection: Projection
    bias: NDArray[np.float32]
    decay: np.float32

    def run(self, words: BatchWords) -> Iterator[Step]:
        """Yield the states of each step."""
        order, _, size = self.projection.stacks[0].weights.shape
        sums = np.zeros((order - 1, len(words.packing.order), size), dtype=np.float32)  # s of each k
        weights = np.zeros(order - 1, dtype=np.float32)  # p of each k
        for (shares,) in words.steps():  # (n, b, D)
            found, count = shares[0], np.float32(1)
            for k in range(order - 1):
                own, passed = sums[k, : len(found)], weights[k]
                later = own + passed * shares[k + 1]
                own *= self.decay
                own += found
                weights[k] = passed * self.decay + count
                found, count = later, passed
            yield Step(np.tanh(found + self.bias))


@dataclass(frozen=True, slots=True)
class Rcnn:
    """A gated convolution of order n.

    Args:
        recurrent: half of U^λ, transposed (D, G), or None for gates that are not computed.
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


def gated(config: EncoderConfig, arrays: Mapping[str, NDArray[np.float32]]) -> Rcnn | Patterns:
    """Return the network of a gate."""
    if config.gate != "constant":
        return Rcnn.of(config, arrays)
    none = np.zeros(config.order * config.hidden_size, dtype=np.float32)
    projection = Projection((Stack.of(arrays["input"], config.order, none),))
    return Patterns(projection, arrays["output_bias"], np.float32(config.decay))


_HALVED_LSTM = np.array([0.5, 0.5, 1.0, 0.5], dtype=np.float32)  # i, f, g, o: σ(z) = (1 + tanh(z/2))/2


@dataclass(frozen=True, slots=True)
class Lstm:
    """An LSTM.

    ::

        i, f, o = σ(W x_t + U h_{t-1} + b)      each with its own W, U, b
        g       = tanh(W x_t + U h_{t-1} + b)
        c_t     = f ⊙ c_{t-1} + i ⊙ g
        h_t     = o ⊙ tanh(c_t)

    Source: Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000.

    Args:
        recurrent: W_hh of i, f, g, o, transposed (4, D, D), halved where σ follows.
    """

    projection: Projection
    recurrent: NDArray[np.float32]

    @classmethod
    def of(cls, config: EncoderConfig, arrays: Mapping[str, NDArray[np.float32]]) -> Lstm:
        """Return the network of ``weight_ih`` (4D, D_in), ``weight_hh`` (4D, D), ``bias_ih``, ``bias_hh`` (4D,)."""
        size = config.hidden_size
        halved = np.repeat(_HALVED_LSTM, size)
        bias = halved * (arrays["bias_ih"] + arrays["bias_hh"])
        stack = Stack.of(halved[:, None] * arrays["weight_ih"], 4, bias)
        recurrent = (halved[:, None] * arrays["weight_hh"]).reshape(4, size, size).transpose(0, 2, 1)
        return cls(Projection((stack,)), np.ascontiguousarray(recurrent))

    def run(self, words: BatchWords) -> Iterator[Step]:
        """Yield the states of each step."""
        shape = len(words.packing.order), self.recurrent.shape[-1]
        all_states, all_cells = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32)
        buffer = np.empty(shape, dtype=np.float32)
        for (gates,) in words.steps():  # (4, b, D)
            count = gates.shape[1]
            states, cells, product = all_states[:count], all_cells[:count], buffer[:count]
            for gate, weights in zip(gates, self.recurrent, strict=True):
                np.matmul(states, weights, out=product)
                gate += product
            np.tanh(gates, out=gates)
            for place in (0, 1, 3):
                gates[place] *= _HALF
                gates[place] += _HALF
            keep_in, keep_old, new, show = gates
            cells *= keep_old
            new *= keep_in
            cells += new
            np.tanh(cells, out=states)
            states *= show
            yield Step(states)


_HALVED_GRU = np.array([0.5, 0.5, 1.0], dtype=np.float32)  # r, z, n: σ(z) = (1 + tanh(z/2))/2


@dataclass(frozen=True, slots=True)
class GruLayer:
    """One layer of a GRU.

    Args:
        inputs: W_ih of r, z, n with the biases, halved where σ follows.
        recurrent: W_hh of r, z, n, transposed (3, D, D), halved likewise.
        new_bias: b_hh of n (D,): inside the reset, so it cannot be added beforehand.
    """

    inputs: Stack
    recurrent: NDArray[np.float32]
    new_bias: NDArray[np.float32]

    @classmethod
    def of(cls, size: int, arrays: Mapping[str, NDArray[np.float32]], number: str) -> GruLayer:
        """Return the layer of ``weight_ih`` (3D, D_in), ``weight_hh`` (3D, D), ``bias_ih``, ``bias_hh`` (3D,).

        Args:
            size: dimensions, D.
            arrays: parameters of the GRU.
            number: what the names of this layer's parameters end with.
        """
        inputs, hidden, bias, hidden_bias = (
            arrays[f"{name}{number}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        halved = np.repeat(_HALVED_GRU, size)
        bias = bias.astype(np.float32, copy=True)
        bias[: 2 * size] += hidden_bias[: 2 * size]
        recurrent = (halved[:, None] * hidden).reshape(3, size, size).transpose(0, 2, 1)
        stack = Stack.of(halved[:, None] * inputs, 3, halved * bias)
        return cls(stack, np.ascontiguousarray(recurrent), hidden_bias[2 * size :])


@dataclass(frozen=True, slots=True)
class Gru:
    """A GRU of one layer or several.

    ::

        r, z = σ(W x_t + b_ih + U h_{t-1} + b_hh)      each with its own W, U and biases
        n    = tanh(W x_t + b_ih + r ⊙ (U h_{t-1} + b_hh))
        h_t  = (1 - z) ⊙ n + z ⊙ h_{t-1}            in a layer after the first, x_t is h_t of the one before

    Source: Cho et al. 2014 (EMNLP).
    Differs: r is applied after the product with U, as PyTorch and cuDNN do, so that all of U h is one product.
    """

    projection: Projection
    layers: tuple[GruLayer, ...]

    @classmethod
    def of(cls, config: EncoderConfig, arrays: Mapping[str, NDArray[np.float32]]) -> Gru:
        """Return the network of the parameters of ``GruLayer.of``; those of later layers end with ``_2`` …"""
        numbers = ["", *(f"_{layer}" for layer in range(2, config.layers + 1))]
        layers = tuple(GruLayer.of(config.hidden_size, arrays, number) for number in numbers)
        return cls(Projection((layers[0].inputs,)), layers)

    def run(self, words: BatchWords) -> Iterator[Step]:
        """Yield the states of the last layer at each step."""
        first, *further = [_LayerStates(len(words.packing.order), layer) for layer in self.layers]
        for (inward,) in words.steps():
            states = first.step(inward)
            for layer in further:
                states = layer.step(Projection((layer.layer.inputs,)).of(states)[0])
            yield Step(states)


class _LayerStates:
    """The state of each row in one layer."""

    def __init__(self, rows: int, layer: GruLayer) -> None:
        size = len(layer.new_bias)
        self.layer = layer
        self._states = np.zeros((rows, size), dtype=np.float32)
        self._product = np.empty((rows, size), dtype=np.float32)

    def step(self, inward: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return h_t, given what enters r, z, n (3, b, D), which is written over.  # (b, D)"""
        reset, keep, new = inward
        count = len(reset)
        states, product = self._states[:count], self._product[:count]
        recurrent = self.layer.recurrent
        for gate, weights in ((reset, recurrent[0]), (keep, recurrent[1])):
            np.matmul(states, weights, out=product)
            gate += product
        gates = inward[:2]
        np.tanh(gates, out=gates)
        gates *= _HALF
        gates += _HALF
        np.matmul(states, recurrent[2], out=product)
        product += self.layer.new_bias
        product *= reset
        new += product
        np.tanh(new, out=new)
        states -= new
        states *= keep
        states += new
        return states
