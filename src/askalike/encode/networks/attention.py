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

Enters: packed word vectors. Leaves: packed states. May import: config, packing, torch.
Source: Zhang and Wu 2018 (AAAI), "Attention Autoencoders", equations 1 to 5; Ba et al. 2016 for the norm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from askalike.encode.config import EncoderConfig
from askalike.encode.networks.packing import Packing

__all__ = ["EPSILON", "Attention", "attend"]

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
        config: sizes and layers.
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
        rows, alike = packing.by_text(), packing.alike()
        states = words.index_select(0, rows)
        for layer in range(1, self.layers + 1):
            states = self._layer(layer, states, alike)
        return torch.empty_like(states).index_copy(0, rows, states)

    def _layer(self, layer: int, words: Tensor, alike: Sequence[tuple[int, int]]) -> Tensor:
        """Return h of words that lie text after text.  # (N, D)"""
        own = {name: getattr(self, f"{name}_{layer}") for name in _PARAMETERS}
        queries, keys, values = functional.linear(words, own["attention"]).chunk(3, dim=1)
        seen = attend(queries, keys, values, alike)
        mixed = _norm(seen + words, own["attention_norm"])
        inner = functional.linear(mixed, own["inner"], own["inner_bias"]).relu()
        return _norm(functional.linear(inner, own["outer"], own["outer_bias"]) + mixed, own["outer_norm"])


def attend(queries: Tensor, keys: Tensor, values: Tensor, alike: Sequence[tuple[int, int]]) -> Tensor:
    """Return softmax(Q Kᵀ / √D) V within each text.

    Texts of one length are one batch of products, so that nothing is padded or masked: though a training batch has
    some dozen lengths, that is faster on the CPU than padding them to few.

    Args:
        queries: Q, words text after text (N, D).
        keys: K of the same words (N, D).
        values: V of the same words (N, D).
        alike: how many texts follow each other with the same number of words, and that number.

    Returns:
        (N, D), in the same order.

    >>> nothing, values = torch.zeros(3, 1), torch.tensor([[2.0], [4.0], [9.0]])
    >>> attend(nothing, nothing, values, [(1, 2), (1, 1)]).tolist()
    [[3.0], [3.0], [9.0]]
    """
    sizes, scale = [texts * length for texts, length in alike], 1 / sqrt(queries.shape[1])
    found: list[Tensor] = []
    parts = (torch.split(rows, sizes) for rows in (queries, keys, values))
    for own, (texts, length) in zip(zip(*parts, strict=True), alike, strict=True):
        asked, offered, taken = (rows.view(texts, length, -1) for rows in own)
        shares = (torch.bmm(asked, offered.transpose(1, 2)) * scale).softmax(2)
        found.append(torch.bmm(shares, taken).flatten(0, 1))
    return torch.cat(found)


def _norm(rows: Tensor, gain_and_bias: Tensor) -> Tensor:
    gain, bias = gain_and_bias
    return functional.layer_norm(rows, (rows.shape[1],), gain, bias, EPSILON)
