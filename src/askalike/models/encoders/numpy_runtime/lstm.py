"""The LSTM in NumPy, with PyTorch's layout of parameters.

::

    i, f, o = σ(W x_t + U h_{t-1} + b)      each with its own W, U, b
    g       = tanh(W x_t + U h_{t-1} + b)
    c_t     = f ⊙ c_{t-1} + i ⊙ g
    h_t     = o ⊙ tanh(c_t)

Source: Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.numpy_runtime.words import BatchWords, Projection, Stack, Step
from askalike.models.encoders.settings import EncoderConfig

_HALF = np.float32(0.5)
_HALVED = np.array([0.5, 0.5, 1.0, 0.5], dtype=np.float32)  # i, f, g, o: σ(z) = (1 + tanh(z/2))/2


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
        halved = np.repeat(_HALVED, size)
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
