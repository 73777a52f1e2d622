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

from askalike.errors import SettingError
from askalike.models.encoders.numpy_runtime.attention import Attention
from askalike.models.encoders.numpy_runtime.rcnn import Cnn, Rcnn
from askalike.models.encoders.numpy_runtime.recurrent import Gru, Lstm
from askalike.models.encoders.numpy_runtime.words import (
    BatchWords,
    GatheredWords,
    Network,
    Packing,
    PaddedWords,
    Step,
    by_length,
)
from askalike.models.encoders.settings import EncoderConfig, Kind, Pooling

_TINY = np.float32(1e-12)


def last(steps: Iterator[Step], packing: Packing, size: int) -> NDArray[np.float32]:
    """Return h_T: the state after the last word.

    >>> steps = [Step(np.array([[1.0], [2.0]], np.float32)), Step(np.array([[3.0]], np.float32))]
    >>> packing = Packing(np.arange(2), (2, 1))
    >>> last(iter(steps), packing, 1).tolist(), mean(iter(steps), packing, 1).tolist()
    ([[3.0], [2.0]], [[2.0], [2.0]])
    """
    found = np.zeros((len(packing.order), size), dtype=np.float32)
    for (states, _), remaining in zip(steps, (*packing.counts[1:], 0), strict=False):
        found[remaining : len(states)] = states[remaining:]
    return found


def mean(steps: Iterator[Step], packing: Packing, size: int) -> NDArray[np.float32]:
    """Return (1/T) Σ_t h_t."""
    found = np.zeros((len(packing.order), size), dtype=np.float32)
    for states, _ in steps:
        found[: len(states)] += states
    found /= np.maximum(packing.lengths(), 1).astype(np.float32)[:, None]
    return found


def normalised_mean(steps: Iterator[Step], packing: Packing, size: int) -> NDArray[np.float32]:
    """Return (1/T) Σ_t h_t / |h_t|: every word counts the same, however large its state.

    >>> steps = [Step(np.array([[3.0, 4.0]], np.float32)), Step(np.array([[0.0, 0.5]], np.float32))]
    >>> [round(float(value), 2) for value in normalised_mean(iter(steps), Packing(np.arange(1), (1, 1)), 2)[0]]
    [0.3, 0.9]
    """
    buffer = np.empty((len(packing.order), size), dtype=np.float32)

    def units() -> Iterator[Step]:
        for states, _ in steps:
            norms = np.sqrt(np.einsum("bd,bd->b", states, states))
            np.maximum(norms, _TINY, out=norms)
            yield Step(np.divide(states, norms[:, None], out=buffer[: len(states)]))

    return mean(units(), packing, size)


def largest(steps: Iterator[Step], packing: Packing, size: int) -> NDArray[np.float32]:
    """Return max_t h_t in each dimension.

    >>> steps = [Step(np.array([[-1.0], [2.0]], np.float32)), Step(np.array([[-3.0]], np.float32))]
    >>> largest(iter(steps), Packing(np.arange(2), (2, 1)), 1).tolist()
    [[-1.0], [2.0]]
    """
    found = np.full((len(packing.order), size), -np.inf, dtype=np.float32)
    for states, _ in steps:
        np.maximum(found[: len(states)], states, out=found[: len(states)])
    found[packing.counts[0] if packing.counts else 0 :] = 0
    return found


POOLS: Final[dict[Pooling, Callable[[Iterator[Step], Packing, int], NDArray[np.float32]]]] = {
    "last": last,
    "mean": mean,
    "normalised-mean": normalised_mean,
    "max": largest,
}
"""Pooling → its function of (steps, packing, D), which returns (B, D) in the packing's order."""

NETWORKS: Final[dict[Kind, Callable[[EncoderConfig, Mapping[str, NDArray[np.float32]]], Network]]] = {
    "rcnn": Rcnn.of,
    "lstm": Lstm.of,
    "gru": Gru.of,
    "cnn": Cnn.of,
    "attention": Attention.of,
}
"""Kind → its network, made with (config, parameters)."""


class Runtime:
    """An encoder that is ready to run.

    Batches are time-major: inputs (T, B, D_in), lengths (B,). What stands after a text's end is not read; a text of
    length 0 has the zero vector.

    Args:
        config: what the encoder is.
        arrays: its parameters, with the names and shapes of ``config.shapes()``.

    Raises:
        SettingError: a parameter is missing, unknown or of another shape.

    >>> config = EncoderConfig("rcnn", input_size=1, hidden_size=1, order=1, gate="fixed", decay=0.5)
    >>> runtime = Runtime(config, {"input": np.ones((1, 1)), "output_bias": np.zeros(1)})
    >>> pooled = runtime.pooled(np.array([[[2.0]], [[3.0]]]), np.array([2]))  # tanh(0.5·(0.5·2) + 0.5·3) = tanh(2)
    >>> round(float(np.arctanh(pooled[0, 0])), 3)
    2.0
    """

    def __init__(self, config: EncoderConfig, arrays: Mapping[str, NDArray[np.floating]]) -> None:
        config.check_shapes(arrays)
        self.config: Final = config
        exact = {name: np.asarray(array, dtype=np.float32) for name, array in arrays.items()}
        self._network = NETWORKS[config.kind](config, exact)

    def pooled(self, inputs: NDArray[np.floating], lengths: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return one vector for each text.

        Args:
            inputs: word vectors (T, B, D_in); taken as float32.
            lengths: words of each text (B,), 0 ≤ length ≤ T.

        Returns:
            (B, D) float32, rows in the order of the batch.

        Raises:
            SettingError: shapes or lengths that do not fit.
        """
        return self._pool(self._words(inputs, lengths))

    def pooled_words(
        self, vectors: NDArray[np.float32], places: NDArray[np.intp], lengths: NDArray[np.integer]
    ) -> NDArray[np.float32]:
        """Return one vector for each text, given its words as rows of a small table of word vectors.

        Each distinct word is multiplied with the input weights once, however often it occurs.

        Args:
            vectors: the distinct words' vectors (U, D_in) float32.
            places: row of ``vectors`` for each word (T, B); any valid row where a text has ended.
            lengths: words of each text (B,), 0 ≤ length ≤ T.

        Returns:
            (B, D) float32, rows in the order of the batch.
        """
        return self._pool(GatheredWords(self._network.projection.of(vectors), places, by_length(lengths)))

    def states(self, inputs: NDArray[np.floating], lengths: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return every state, zero after a text's end: arguments and errors as of ``pooled``.  # (T, B, D) float32"""
        found = np.zeros((len(inputs), len(lengths), self.config.hidden_size), dtype=np.float32)
        words = self._words(inputs, lengths)
        for step, (states, _) in enumerate(self._network.run(words)):
            found[step, words.packing.order[: len(states)]] = states
        return found

    def gates(self, inputs: NDArray[np.floating], lengths: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return λ_t of every word, zero after a text's end: 1 - λ is the share of the word that is let in.

        Arguments and errors as of ``pooled``.  # (T, B, G) float32, G = ``config.gate_size``
        """
        found = np.zeros((len(inputs), len(lengths), self.config.gate_size), dtype=np.float32)
        words = self._words(inputs, lengths)
        for step, (_, gates) in enumerate(self._network.run(words)):
            found[step, words.packing.order[: len(gates)]] = gates
        return found

    def _words(self, inputs: NDArray[np.floating], lengths: NDArray[np.integer]) -> BatchWords:
        if inputs.ndim != 3 or inputs.shape[1:] != (len(lengths), self.config.input_size):
            raise SettingError(
                f"inputs of shape {inputs.shape} with {len(lengths)} lengths, but expected "
                f"(words, {len(lengths)}, {self.config.input_size})",
                "give word vectors as (T, B, D_in)",
            )
        if lengths.size and not 0 <= lengths.min() <= lengths.max() <= len(inputs):
            raise SettingError(
                f"lengths from {lengths.min()} to {lengths.max()}, but expected 0 to {len(inputs)}",
                "give the number of words of each text",
            )
        exact = np.asarray(inputs, dtype=np.float32)
        return PaddedWords(self._network.projection, exact, by_length(lengths))

    def _pool(self, words: BatchWords) -> NDArray[np.float32]:
        packing = words.packing
        pool = POOLS[self.config.pooling]
        return packing.restored(pool(self._network.run(words), packing, self.config.hidden_size))
