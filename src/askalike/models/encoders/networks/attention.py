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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from math import inf, sqrt
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from askalike.models.encoders.networks.packing import Packing
from askalike.models.encoders.networks.recurrent import round_up
from askalike.models.encoders.settings import EncoderConfig

EPSILON: Final = 1e-5
"""Added to the variance in a norm."""

STEP: Final = 8
"""Texts are padded to a multiple of so many words."""

LEAST_SHARE: Final = 0.75
"""A text is padded to the longest of its group, of which it has at least this share."""

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
        padding = Padding.of(packing)
        states = words.index_select(0, padding.rows)
        for layer in range(1, self.layers + 1):
            states = self._layer(layer, states, padding)
        return states.index_select(0, padding.places)

    def _layer(self, layer: int, words: Tensor, padding: Padding) -> Tensor:
        """Return h of padded words.  # (M, D)"""
        own = {name: getattr(self, f"{name}_{layer}") for name in _PARAMETERS}
        queries, keys, values = (functional.linear(words, weight) for weight in own["attention"].chunk(3))
        mixed = _norm(attend(queries, keys, values, padding) + words, own["attention_norm"])
        inner = functional.linear(mixed, own["inner"], own["inner_bias"]).relu()
        return _norm(functional.linear(inner, own["outer"], own["outer_bias"]) + mixed, own["outer_norm"])


@dataclass(frozen=True, slots=True)
class Padding:
    """Where the words of a packing lie text after text, each text padded to a multiple of ``STEP`` words as others are.

    Args:
        rows: packed row for every padded row, any for those that pad.  # (M,), M a multiple of ``GRAIN``
        places: padded row of every packed row.  # (N,)
        groups: texts that follow each other, padded to the same number of words: how many, and that number.
        lengths: words of each text, in the order of the packing.  # (R,)
    """

    rows: Tensor
    places: Tensor
    groups: tuple[tuple[int, int], ...]
    lengths: Tensor

    @classmethod
    def of(cls, packing: Packing) -> Padding:
        """Return the padding of a packing.

        >>> padding = Padding.of(Packing.of(torch.tensor([1, 10, 0, 9])))
        >>> padding.groups, len(padding.rows), padding.places[:3].tolist()
        (((2, 16), (1, 8)), 64, [0, 16, 32])
        """
        groups: list[tuple[int, int]] = []
        for words in _lengths(packing.counts):
            length = -(-words // STEP) * STEP
            texts, longest = groups[-1] if groups else (0, 0)
            if length >= LEAST_SHARE * longest > 0:
                groups[-1] = (texts + 1, longest)
            else:
                groups.append((1, length))
        padded = torch.cat([packing.lengths.new_full((texts,), length) for texts, length in groups])
        starts = padded.cumsum(0) - padded
        places = starts[packing.place] + packing.step
        rows = places.new_zeros(round_up(sum(texts * length for texts, length in groups)))
        rows[places] = torch.arange(len(places), device=rows.device)
        return cls(rows, places, tuple(groups), packing.lengths)


def _lengths(counts: Sequence[int]) -> Iterator[int]:
    """Yield the words of each text, longest first, without a look at the packing's tensors, which may be elsewhere."""
    ended = [count - after for count, after in pairwise((*counts, 0))]  # texts of one word, of two, …
    for length in range(len(ended), 0, -1):
        yield from repeat(length, ended[length - 1])


def attend(queries: Tensor, keys: Tensor, values: Tensor, padding: Padding) -> Tensor:
    """Return softmax(Q Kᵀ / √D) V within each text; what pads is looked at by nothing.

    Texts of about one length are one batch of products. Few lengths mean few shapes, for each of which products in
    bfloat16 are prepared anew.

    Args:
        queries: Q, padded words text after text (M, D).
        keys: K of the same words (M, D).
        values: V of the same words (M, D).

    Returns:
        (M, D), in the same order; any numbers where words pad.

    >>> nothing, values = torch.zeros(16, 1), torch.tensor([[2.0], [4.0], *[[9.0]] * 14])
    >>> attend(nothing, nothing, values, Padding.of(Packing.of(torch.tensor([2, 1]))))[[0, 8]].tolist()
    [[3.0], [9.0]]
    """
    found: list[Tensor] = []
    first = text = 0
    for texts, length in padding.groups:
        own = slice(first, first + texts * length)
        asked, offered, taken = (rows[own].view(texts, length, -1) for rows in (queries, keys, values))
        is_padding = torch.arange(length, device=queries.device) >= padding.lengths[text : text + texts, None]
        bars = queries.new_zeros(texts, 1, length).masked_fill_(is_padding[:, None], -inf)
        scores = torch.baddbmm(bars, asked, offered.transpose(1, 2), alpha=1 / sqrt(queries.shape[1]))
        found.append(torch.bmm(scores.softmax(2), taken).flatten(0, 1))
        first, text = own.stop, text + texts
    return torch.cat([*found, queries.new_zeros(len(queries) - first, queries.shape[1])])


def _norm(rows: Tensor, gain_and_bias: Tensor) -> Tensor:
    gain, bias = gain_and_bias
    return functional.layer_norm(rows, (rows.shape[1],), gain, bias, EPSILON)
