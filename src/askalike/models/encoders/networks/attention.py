"""Attention among the words of a text as a module: every state is made of all words of its text at once.

::

    Attention(Q, K, V) = softmax(Q Kᵀ / √D) V            row by row                                           (1)
    a' = Attention(x W^q, x W^k, x W^v)                  within each text; x (T, D)                           (2)
    a  = LayerNorm(a' + x)                                                                                    (3)
    h' = ReLU(a W_1 + b_1) W_2 + b_2                                                                          (4)
    h  = LayerNorm(h' + a)                               the x of the next layer                              (5)

    LayerNorm(y) = g ⊙ (y - mean y) / √(var y + 10⁻⁵) + b                     mean and variance of a word's D numbers

One head; everything has D = D_in dimensions. Nothing says where in its text a word stands, as in the paper: the same
words in another order have the same states, in that order.

Source: Zhang and Wu 2018 (AAAI), "Attention Autoencoders", equations 1 to 5; Ba et al. 2016 for the norm.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from askalike.models.encoders.networks.packing import Packing
from askalike.models.encoders.settings import EncoderConfig

EPSILON: Final = 1e-5
"""Added to the variance in a norm."""

_PARAMETERS: Final = (
    "attention",
    "attention_norm",
    "inner",
    "inner_bias",
    "outer",
    "outer_bias",
    "outer_norm",
)


class Attention(nn.Module):
    """A stack of layers of attention.

    Args:
        values: for each layer l ``attention_l`` (3D, D), W^q, W^k and W^v one below the other; ``inner_l`` and
            ``outer_l`` (D, D), W_1 and W_2, with ``inner_bias_l`` and ``outer_bias_l`` (D,); ``attention_norm_l`` and
            ``outer_norm_l`` (2, D), gain and bias.
    """

    def __init__(self, config: EncoderConfig, values: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.layers = config.layers
        for name, value in values.items():
            self.register_parameter(name, nn.Parameter(value))

    def forward(self, words: Tensor, packing: Packing) -> Tensor:
        """Return the states (N, D) of packed words (N, D)."""
        if not len(words):
            return words
        states = packing.padded(words)
        for layer in range(1, self.layers + 1):
            states = self._layer(layer, states, packing)
        return packing.packed(states)

    def _layer(self, layer: int, words: Tensor, packing: Packing) -> Tensor:
        """Return h of padded words.  # (B, T, D)"""
        own = {name: getattr(self, f"{name}_{layer}") for name in _PARAMETERS}
        queries, keys, values = (functional.linear(words, weight) for weight in own["attention"].chunk(3))
        mixed = _norm(attend(queries, keys, values, packing.bars(words)) + words, own["attention_norm"])
        inner = functional.linear(mixed, own["inner"], own["inner_bias"]).relu()
        return _norm(functional.linear(inner, own["outer"], own["outer_bias"]) + mixed, own["outer_norm"])


def attend(queries: Tensor, keys: Tensor, values: Tensor, bars: Tensor) -> Tensor:
    """Return softmax(Q Kᵀ / √D + bars) V of each text.

    Args:
        queries: Q (B, S, D).
        keys, values: K and V (B, T, D).
        bars: 0, or -∞ where a query must not look.  # (B or 1, S or 1, T)

    >>> nothing, values = torch.zeros(1, 2, 1), torch.tensor([[[2.0], [4.0]]])
    >>> attend(nothing, nothing, values, torch.zeros(1, 1, 2)).flatten().tolist()
    [3.0, 3.0]
    """
    scores = torch.baddbmm(bars, queries, keys.transpose(1, 2), alpha=1 / sqrt(queries.shape[2]))
    return torch.bmm(scores.softmax(2), values)


def _norm(rows: Tensor, gain_and_bias: Tensor) -> Tensor:
    gain, bias = gain_and_bias
    return functional.layer_norm(rows, gain.shape, gain, bias, EPSILON)
