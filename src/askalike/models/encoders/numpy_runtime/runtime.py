"""A trained encoder without torch: word vectors in, vectors out, in float32.

States are pooled as they come, none is kept. A text without words has the zero vector under every pooling. In
``normalised-mean`` a zero state stays zero.

Source: poolings: Lei et al. 2016 (NAACL), section 4.1 (last and mean); Joshi's thesis 2016, chapter 7 (states
normalised first).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.numpy_runtime.attention import Attention
from askalike.models.encoders.numpy_runtime.recurrent import Cnn, Gru, Lstm, gated
from askalike.models.encoders.numpy_runtime.words import (
    BatchOrder,
    BatchWords,
    Network,
    Step,
    by_length,
)
from askalike.models.encoders.settings import EncoderConfig, Kind, Pooling

_TINY = np.float32(1e-12)


def last(steps: Iterator[Step], packing: BatchOrder, size: int) -> NDArray[np.float32]:
    """Return h_T: the state after the last word.

    >>> steps = [Step(np.array([[1.0], [2.0]], np.float32)), Step(np.array([[3.0]], np.float32))]
    >>> packing = BatchOrder(np.arange(2), (2, 1))
    >>> last(iter(steps), packing, 1).tolist(), mean(iter(steps), packing, 1).tolist()
    ([[3.0], [2.0]], [[2.0], [2.0]])
    """
    found = np.zeros((len(packing.order), size), dtype=np.float32)
    for (states, _), remaining in zip(steps, (*packing.counts[1:], 0), strict=False):
        found[remaining : len(states)] = states[remaining:]
    return found


def normalised_last(steps: Iterator[Step], packing: BatchOrder, size: int) -> NDArray[np.float32]:
    """Return h_T / |h_T|."""
    found = last(steps, packing, size)
    found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), _TINY)
    return found


def mean(steps: Iterator[Step], packing: BatchOrder, size: int) -> NDArray[np.float32]:
    """Return (1/T) Σ_t h_t."""
    found = np.zeros((len(packing.order), size), dtype=np.float32)
    for states, _ in steps:
        found[: len(states)] += states
    found /= np.maximum(packing.lengths(), 1).astype(np.float32)[:, None]
    return found


def normalised_mean(steps: Iterator[Step], packing: BatchOrder, size: int) -> NDArray[np.float32]:
    """Return (1/T) Σ_t h_t / |h_t|: every word counts the same, however large its state.

    >>> steps = [Step(np.array([[3.0, 4.0]], np.float32)), Step(np.array([[0.0, 0.5]], np.float32))]
    >>> [round(float(value), 2) for value in normalised_mean(iter(steps), BatchOrder(np.arange(1), (1, 1)), 2)[0]]
    [0.3, 0.9]
    """
    buffer = np.empty((len(packing.order), size), dtype=np.float32)

    def units() -> Iterator[Step]:
        for states, _ in steps:
            norms = np.sqrt(np.einsum("bd,bd->b", states, states))
            np.maximum(norms, _TINY, out=norms)
            yield Step(np.divide(states, norms[:, None], out=buffer[: len(states)]))

    return mean(units(), packing, size)


def largest(steps: Iterator[Step], packing: BatchOrder, size: int) -> NDArray[np.float32]:
    """Return max_t h_t in each dimension.

    >>> steps = [Step(np.array([[-1.0], [2.0]], np.float32)), Step(np.array([[-3.0]], np.float32))]
    >>> largest(iter(steps), BatchOrder(np.arange(2), (2, 1)), 1).tolist()
    [[-1.0], [2.0]]
    """
    found = np.full((len(packing.order), size), -np.inf, dtype=np.float32)
    for states, _ in steps:
        np.maximum(found[: len(states)], states, out=found[: len(states)])
    found[packing.counts[0] if packing.counts else 0 :] = 0
    return found


POOLS: Final[dict[Pooling, Callable[[Iterator[Step], BatchOrder, int], NDArray[np.float32]]]] = {
    "last": last,
    "normalised-last": normalised_last,
    "mean": mean,
    "normalised-mean": normalised_mean,
    "max": largest,
}
"""Pooling → its function of (steps, packing, D), which returns (B, D) in the packing's order."""

NETWORKS: Final[dict[Kind, Callable[[EncoderConfig, Mapping[str, NDArray[np.float32]]], Network]]] = {
    "rcnn": gated,
    "lstm": Lstm.of,
    "gru": Gru.of,
    "cnn": Cnn.of,
    "attention": Attention.of,
}
"""Kind → its network, made with (config, parameters)."""


class Runtime:
    """An encoder that is ready to run.

    Batches are time-major: places (T, B), lengths (B,). What stands after a text's end is not read; a text of length 0
    has the zero vector.

    Args:
        config: what the encoder is.
        arrays: its parameters, with the names and shapes of ``config.shapes()``.

    Raises:
        SettingError: a parameter is missing, unknown or of another shape.

    >>> config = EncoderConfig("rcnn", input_size=1, hidden_size=1, order=1, gate="fixed", decay=0.5)
    >>> runtime = Runtime(config, {"input": np.ones((1, 1)), "output_bias": np.zeros(1)})
    >>> pooled = runtime.pooled(np.array([[2.0], [3.0]]), np.array([[0], [1]]), np.array([2]))
    >>> round(float(np.arctanh(pooled[0, 0])), 3)  # tanh(0.5·(0.5·2) + 0.5·3) = tanh(2)
    2.0
    """

    def __init__(self, config: EncoderConfig, arrays: Mapping[str, NDArray[np.floating]]) -> None:
        config.check_shapes(arrays)
        self.config: Final = config
        exact = {name: np.asarray(array, dtype=np.float32) for name, array in arrays.items()}
        self._network = NETWORKS[config.kind](config, exact)

    def pooled(
        self, vectors: NDArray[np.floating], places: NDArray[np.intp], lengths: NDArray[np.integer]
    ) -> NDArray[np.float32]:
        """Return one vector for each text, given its words as rows of a small table of word vectors.

        Args:
            vectors: the distinct words' vectors (U, D_in); taken as float32.
            places: row of ``vectors`` for each word (T, B); any valid row where a text has ended.
            lengths: words of each text (B,), 0 ≤ length ≤ T.

        Returns:
            (B, D) float32, rows in the order of the batch.
        """
        words = self._words(vectors, places, lengths)
        pool = POOLS[self.config.pooling]
        return words.packing.restored(pool(self._network.run(words), words.packing, self.config.hidden_size))

    def states(
        self, vectors: NDArray[np.floating], places: NDArray[np.intp], lengths: NDArray[np.integer]
    ) -> NDArray[np.float32]:
        """Return every state, zero after a text's end: arguments as of ``pooled``.  # (T, B, D) float32"""
        found = np.zeros((*places.shape, self.config.hidden_size), dtype=np.float32)
        words = self._words(vectors, places, lengths)
        for step, (states, _) in enumerate(self._network.run(words)):
            found[step, words.packing.order[: len(states)]] = states
        return found

    def gates(
        self, vectors: NDArray[np.floating], places: NDArray[np.intp], lengths: NDArray[np.integer]
    ) -> NDArray[np.float32]:
        """Return λ_t of every word, zero after a text's end: 1 - λ is the share of the word that is let in.

        Arguments as of ``pooled``.  # (T, B, G) float32, G = ``config.gate_size``
        """
        found = np.zeros((*places.shape, self.config.gate_size), dtype=np.float32)
        words = self._words(vectors, places, lengths)
        for step, (_, gates) in enumerate(self._network.run(words)):
            found[step, words.packing.order[: len(gates)]] = gates
        return found

    def _words(
        self, vectors: NDArray[np.floating], places: NDArray[np.intp], lengths: NDArray[np.integer]
    ) -> BatchWords:
        table = self._network.projection.of(np.asarray(vectors, dtype=np.float32))
        return BatchWords(table, places, by_length(lengths))
