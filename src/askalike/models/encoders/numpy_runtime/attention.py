"""Attention among the words of a text in NumPy: every state is made of all words of its text at once.

::

    Attention(Q, K, V) = softmax(Q Kᵀ / √D) V
    a  = LayerNorm(Attention(x W^q, x W^k, x W^v) + x)         within each text
    h  = LayerNorm(ReLU(a W_1 + b_1) W_2 + b_2 + a)            the x of the next layer

    LayerNorm(y) = g ⊙ (y - mean y) / √(var y + 10⁻⁵) + b      mean and variance of a word's D numbers

Source: Zhang and Wu 2018 (AAAI), "Attention Autoencoders", equations 1 to 5.

Differs: in how it is computed, not in what. Q is divided by √D once, in its weights. Whole texts are taken through all
layers some at a time, words text after text, so that what is worked on stays in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.numpy_runtime.words import BatchOrder, BatchWords, Parts, Projection, Stack, Step
from askalike.models.encoders.settings import EncoderConfig

_EPSILON: Final = np.float32(1e-5)
_ROWS_AT_ONCE: Final = 1024  # of a block, some ten matrices of which are to stay in the cache


@dataclass(frozen=True, slots=True)
class AttentionLayer:
    """One layer.

    Args:
        attention: W^q / √D, W^k and W^v.
        attention_norm: gain and bias (2, D).
        inner: W_1 (D, D), a row for each output.
        inner_bias: b_1 (D,).
        outer: W_2 (D, D), likewise.
        outer_bias: b_2 (D,).
        outer_norm: gain and bias (2, D).
    """

    attention: Stack
    attention_norm: NDArray[np.float32]
    inner: NDArray[np.float32]
    inner_bias: NDArray[np.float32]
    outer: NDArray[np.float32]
    outer_bias: NDArray[np.float32]
    outer_norm: NDArray[np.float32]

    @classmethod
    def of(cls, number: int, arrays: Mapping[str, NDArray[np.float32]]) -> AttentionLayer:
        """Return layer ``number`` ≥ 1 of these parameters, whose names are those of the fields."""
        weights, *others = (arrays[f"{field.name}_{number}"] for field in fields(cls))
        size = weights.shape[1]
        scales = np.repeat(np.array([size**-0.5, 1, 1], dtype=np.float32), size)
        return cls(Stack.of(scales[:, None] * weights, 3), *others)

    def states(
        self, words: NDArray[np.float32], joint: NDArray[np.float32], alike: Sequence[tuple[int, int]]
    ) -> NDArray[np.float32]:
        """Return h of words that lie text after text.  # (N, D)

        Args:
            words: x (N, D).
            joint: Q / √D, K and V of these words (3, N, D).
            alike: how many texts follow each other with the same number of words, and that number.
        """
        seen = attended(joint, alike)
        seen += words
        _normalise(seen, self.attention_norm)
        inner = np.matmul(seen, self.inner.T)
        inner += self.inner_bias
        np.maximum(inner, 0, out=inner)
        found: NDArray[np.float32] = np.matmul(inner, self.outer.T)
        found += self.outer_bias
        found += seen
        _normalise(found, self.outer_norm)
        return found


@dataclass(frozen=True, slots=True)
class Attention:
    """A stack of layers; the first one's Q, K and V are what a word gives by itself."""

    projection: Projection
    layers: tuple[AttentionLayer, ...]

    @classmethod
    def of(cls, config: EncoderConfig, arrays: Mapping[str, NDArray[np.float32]]) -> Attention:
        """Return the network of ``attention_1`` (3D, D) and so on: see ``EncoderConfig.shapes``."""
        layers = tuple(AttentionLayer.of(number, arrays) for number in range(1, config.layers + 1))
        return cls(Projection((layers[0].attention,), has_vectors=True), layers)

    def run(self, words: BatchWords) -> Iterator[Step]:
        """Yield the states of each step, all of which are computed before the first."""
        packing, size = words.packing, len(self.layers[0].inner_bias)
        states = np.empty((sum(packing.counts), size), dtype=np.float32)
        counts = np.array(packing.counts, dtype=np.intp)
        tops = np.cumsum(counts) - counts
        for lengths, steps, places in _blocks(packing):
            states[tops[steps] + places] = self._states(words.at(steps, places), lengths)
        for top, count in zip(tops.tolist(), packing.counts, strict=True):
            yield Step(states[top : top + count])

    def _states(self, parts: Parts, lengths: NDArray[np.intp]) -> NDArray[np.float32]:
        joint, vectors = parts
        states: NDArray[np.float32] = vectors[0]
        alike = [(len(list(same)), length) for length, same in groupby(lengths.tolist())]
        for number, layer in enumerate(self.layers):
            if number:
                joint = Projection((layer.attention,)).of(states)[0]
            states = layer.states(states, joint, alike)
        return states


def attended(joint: NDArray[np.float32], alike: Sequence[tuple[int, int]]) -> NDArray[np.float32]:
    """Return softmax(Q Kᵀ / √D) V within each text.

    Args:
        joint: Q / √D, K and V of each word, words text after text.  # (3, N, D)
        alike: how many texts follow each other with the same number of words, and that number.

    Returns:
        (N, D), in the same order.

    >>> joint = np.array([[[0], [0], [1]], [[5], [7], [1]], [[2], [4], [9]]], dtype=np.float32)
    >>> attended(joint, [(1, 2), (1, 1)]).tolist()
    [[3.0], [3.0], [9.0]]
    """
    found = np.empty(joint.shape[1:], dtype=np.float32)
    end = 0
    for texts, length in alike:
        begin, end = end, end + texts * length
        queries, keys, values = joint[:, begin:end].reshape(3, texts, length, -1)
        scores = queries @ keys.swapaxes(1, 2)  # (texts, length, length)
        scores -= scores.max(axis=2, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=2, keepdims=True)
        np.matmul(scores, values, out=found[begin:end].reshape(texts, length, -1))
    return found


def _normalise(rows: NDArray[np.float32], gain_and_bias: NDArray[np.float32]) -> None:
    """Bring each row (N, D) to mean 0 and variance 1, then apply gain and bias (2, D), in place."""
    gain, bias = gain_and_bias
    rows -= rows.mean(axis=1, keepdims=True)
    variances = np.einsum("nd,nd->n", rows, rows) / np.float32(rows.shape[1])
    rows *= (1 / np.sqrt(variances + _EPSILON))[:, None]
    rows *= gain
    rows += bias


def _blocks(packing: BatchOrder) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]]:
    """Yield texts that follow each other, at most ``_ROWS_AT_ONCE`` words of them but at least one text.

    Yields:
        their lengths; step and place (N,) of their words, text after text.

    >>> [[part.tolist() for part in block] for block in _blocks(BatchOrder(np.arange(3), (2, 2, 1)))]
    [[[3, 2], [0, 1, 2, 0, 1], [0, 0, 0, 1, 1]]]
    """
    lengths = packing.lengths()[: packing.counts[0] if packing.counts else 0]
    ends = np.cumsum(lengths)
    first = 0
    while first < len(lengths):
        before = ends[first] - lengths[first]
        last = max(first + 1, int(np.searchsorted(ends, before + _ROWS_AT_ONCE, side="right")))
        own = lengths[first:last]
        places = np.repeat(np.arange(first, last), own)
        yield own, np.arange(len(places)) - np.repeat(ends[first:last] - own - before, own), places
        first = last
