"""Trained RCNNs without torch: word vectors in, vectors out, in float32; the equations stand in ``networks.rcnn``.

Texts that still have a word at a step are the first rows of every buffer, and a step works on that prefix alone:
padding costs nothing. All that depends on a word and not on a state is computed before the recurrence, once for each
distinct word, and rows of that are gathered. States are pooled as they come, none is kept. A text without words has the
zero vector under every pooling, and in ``normalised-mean`` a zero state stays zero.

Differs: in how it is computed, not in what. σ(z) is taken as (1 + tanh(z/2))/2, the halving being done once in the
weights; b is added to W_n x and to cⁿ_0, which adds it to every cⁿ_t, as λ and 1 - λ sum to one.

Encoders of other kinds run in torch (``networks.encoder``): they are those that RCNNs were compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.settings import EncoderConfig, Pooling


@dataclass(frozen=True, slots=True)
class BatchOrder:
    """Which rows of a batch are worked on at each step.

    Args:
        order: rows of the batch, longest text first, equal lengths in their own order.  # (B,) int
        counts: texts with a word at step t: the first ``counts[t]`` of ``order``; never grows, and every count is ≥ 1.
    """

    order: NDArray[np.intp]
    counts: tuple[int, ...]

    def lengths(self) -> NDArray[np.intp]:
        """Return the words of each text of ``order``.  # (B,) int

        >>> BatchOrder(np.array([2, 0, 1]), (2, 1, 1)).lengths().tolist()
        [3, 1, 0]
        """
        found = np.zeros(len(self.order), dtype=np.intp)
        for count in self.counts:
            found[:count] += 1
        return found

    def restored(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return ``rows`` of the packed order, (B, …), in the order of the batch."""
        found = np.empty_like(rows)
        found[self.order] = rows
        return found


def by_length(lengths: NDArray[np.integer]) -> BatchOrder:
    """Return the packing of texts of these lengths, (B,) int ≥ 0.

    >>> packing = by_length(np.array([1, 0, 3]))
    >>> packing.order.tolist(), packing.counts
    ([2, 0, 1], (2, 1, 1))
    """
    order = np.argsort(-lengths, kind="stable")
    ended = np.bincount(lengths) if lengths.size else np.zeros(1, dtype=np.intp)  # texts of length 0, 1, …
    counts = lengths.size - np.cumsum(ended[:-1])
    return BatchOrder(order, tuple(int(count) for count in counts))


Parts = tuple[NDArray[np.float32], ...]
"""The projected rows of some words, an array (P, words, width) for each stack; who gets them may write over them."""


@dataclass(frozen=True, slots=True)
class Stack:
    """P input matrices of one width, applied together.

    Args:
        weights: (P, D_in, width) float32, contiguous.
        biases: (P, 1, width) float32, added to every row.
    """

    weights: NDArray[np.float32]
    biases: NDArray[np.float32]

    @classmethod
    def of(cls, rows: NDArray[np.float32], parts: int, bias: NDArray[np.float32] | None = None) -> Stack:
        """Return the matrices that lie one below the other in ``rows`` (P·width, D_in), with ``bias`` (P·width,)."""
        width = rows.shape[0] // parts
        weights = rows.reshape(parts, width, rows.shape[1]).transpose(0, 2, 1)
        biases = np.zeros(rows.shape[0], dtype=np.float32) if bias is None else bias
        return cls(np.ascontiguousarray(weights), np.array(biases.reshape(parts, 1, width), dtype=np.float32))


@dataclass(frozen=True, slots=True)
class Projection:
    """All input weights of an encoder.

    >>> double_and_square = Stack(np.array([[[2.0]], [[3.0]]], dtype=np.float32), np.zeros((2, 1, 1), np.float32))
    >>> Projection((double_and_square,)).of(np.array([[1.0], [5.0]], dtype=np.float32))[0].tolist()
    [[[2.0], [10.0]], [[3.0], [15.0]]]
    """

    stacks: tuple[Stack, ...]

    def of(self, vectors: NDArray[np.float32]) -> Parts:
        """Return the projections of ``vectors`` (N, D_in): for each stack (P, N, width) float32."""
        found = tuple(np.matmul(vectors[None], stack.weights) for stack in self.stacks)
        for part, stack in zip(found, self.stacks, strict=True):
            part += stack.biases
        return found


class BatchWords:
    """The words of a batch, as rows of a table of its distinct words: each is projected once, however often it occurs.

    Args:
        table: projections of the distinct words, for each stack (P, U, width).
        rows: the row of the table for the word of each text at each step (T, B), texts in the order of the batch.
    """

    def __init__(self, table: Parts, rows: NDArray[np.intp], packing: BatchOrder) -> None:
        self.packing: Final = packing
        self._table = table
        self._rows = np.ascontiguousarray(rows[:, packing.order])

    def steps(self) -> Iterator[Parts]:
        """Yield the rows of each step, in buffers that the next one fills again; those of few words at once."""
        batch = self._rows.shape[1]
        if self._rows.size <= _FEW_WORDS:
            all_rows = [part.take(self._rows, axis=1) for part in self._table]  # (P, T, B, width)
            for step, count in enumerate(self.packing.counts):
                yield tuple([rows[:, step, :count] for rows in all_rows])
            return
        buffers = [np.empty(part.shape[0] * batch * part.shape[2], dtype=np.float32) for part in self._table]
        outs: Parts = ()
        shown = 0
        for step, count in enumerate(self.packing.counts):
            if count != shown:
                outs = tuple(
                    buffer[: part.shape[0] * count * part.shape[2]].reshape(part.shape[0], count, part.shape[2])
                    for buffer, part in zip(buffers, self._table, strict=True)
                )
                shown = count
            for part, out in zip(self._table, outs, strict=True):
                np.take(part, self._rows[step, :count], axis=1, out=out, mode="clip")
            yield outs


_FEW_WORDS: Final = 256
"""So few are a query's: what is called for each step takes longer than what is computed."""
_NO_GATES: Final = np.empty((0, 0), dtype=np.float32)


class Step(NamedTuple):
    """What comes out at one step, for the texts that have a word there; the next step may write over it.

    Args:
        states: h_t.  # (b, D) float32
        gates: λ_t; of no text for a kind without gates that say how much of one word is kept.  # (b, G) float32
    """

    states: NDArray[np.float32]
    gates: NDArray[np.float32] = _NO_GATES


_HALF = np.float32(0.5)


@dataclass(frozen=True, slots=True)
class Rcnn:
    """A gated convolution of order n.

    Args:
        recurrent: half of U^λ, transposed (D, G), or None for gates that are not computed.
        bias: b (D,).
        decay: λ of the gate ``fixed``; 0 for the gate ``none``.
    """

    projection: Projection
    recurrent: NDArray[np.float32] | None
    bias: NDArray[np.float32]
    decay: float

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
        decay = config.decay if config.gate == "fixed" else 0.0
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
        return self._fixed(words, sums, states, np.float32(self.decay))

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
    if len(packing.order) * len(packing.counts) <= _FEW_WORDS:  # all states at once: the same sums, in less time
        each = np.zeros((len(packing.counts), len(packing.order), size), dtype=np.float32)
        for rows, (states, _) in zip(each, steps, strict=True):
            rows[: len(states)] = states
        norms = np.sqrt(np.einsum("tbd,tbd->tb", each, each))
        each /= np.maximum(norms, _TINY)[:, :, None]
        found: NDArray[np.float32] = each.sum(axis=0)
        found /= np.maximum(packing.lengths(), 1).astype(np.float32)[:, None]
        return found
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


class Runtime:
    """An RCNN that is ready to run, of any gate but ``constant``.

    Batches are time-major: places (T, B), lengths (B,). What stands after a text's end is not read; a text of length 0
    has the zero vector.

    Args:
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
        self._network = Rcnn.of(config, exact)

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
