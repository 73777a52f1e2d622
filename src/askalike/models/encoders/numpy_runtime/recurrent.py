"""LSTM and GRU in NumPy, with PyTorch's layout of parameters.

::

    i, f, o = σ(W x_t + U h_{t-1} + b)      each with its own W, U, b
    g       = tanh(W x_t + U h_{t-1} + b)
    c_t     = f ⊙ c_{t-1} + i ⊙ g
    h_t     = o ⊙ tanh(c_t)

Source: Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000.

::

    r, z = σ(W x_t + b_ih + U h_{t-1} + b_hh)      each with its own W, U and biases
    n    = tanh(W x_t + b_ih + r ⊙ (U h_{t-1} + b_hh))
    h_t  = (1 - z) ⊙ n + z ⊙ h_{t-1}            in a layer after the first, x_t is h_t of the one before

Source: Cho et al. 2014 (EMNLP).
Differs: r is applied after the product with U, as PyTorch and cuDNN do, so that all of U h is one product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.numpy_runtime.words import BatchWords, Projection, Stack, Step
from askalike.models.encoders.settings import EncoderConfig

_HALF = np.float32(0.5)
_HALVED_LSTM = np.array([0.5, 0.5, 1.0, 0.5], dtype=np.float32)  # i, f, g, o: σ(z) = (1 + tanh(z/2))/2


@dataclass(frozen=True, slots=True)
class Lstm:
    """An LSTM.

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
    """A GRU of one layer or several."""

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
