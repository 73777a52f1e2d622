"""Trained encoders without torch: word vectors in, vectors out, in float32; the equations stand in ``networks``.

Texts that still have a word at a step are the first rows of every buffer, and a step works on that prefix alone:
padding costs nothing. All that depends on a word and not on a state is computed before a recurrence, once for each
distinct word, and rows of that are gathered. States are pooled as they come, none is kept. A text without words has the
zero vector under every pooling, and in ``normalised-mean`` a zero state stays zero.

Differs: in how it is computed, not in what. In a CNN each word adds its share to the sums of the windows that it is in.
σ(z) is taken as (1 + tanh(z/2))/2, the halving being done once in the weights; of the RCNN b is added to W_n x and to
cⁿ_0, which adds it to every cⁿ_t, as λ and 1 - λ sum to one. Attention takes whole texts through all layers some at a
time, words text after text, so that what is worked on stays in the cache; Q is divided by √D once, in its weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.settings import EncoderConfig, Kind, Pooling


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
"""The projected rows of some words, an array (P, words, width) for each stack, and (1, words, D_in) where the
projection has the vectors too; who gets them may write over them."""


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
    """All input weights of an encoder; where it ``has_vectors``, the last part is the vectors as they are.

    >>> double_and_square = Stack(np.array([[[2.0]], [[3.0]]], dtype=np.float32), np.zeros((2, 1, 1), np.float32))
    >>> Projection((double_and_square,)).of(np.array([[1.0], [5.0]], dtype=np.float32))[0].tolist()
    [[[2.0], [10.0]], [[3.0], [15.0]]]
    """

    stacks: tuple[Stack, ...]
    has_vectors: bool = False

    def of(self, vectors: NDArray[np.float32]) -> Parts:
        """Return the projections of ``vectors`` (N, D_in): for each stack (P, N, width) float32; then the vectors."""
        found = tuple(np.matmul(vectors[None], stack.weights) for stack in self.stacks)
        for part, stack in zip(found, self.stacks, strict=True):
            part += stack.biases
        return (*found, vectors[None]) if self.has_vectors else found


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

    def at(self, steps: NDArray[np.intp], places: NDArray[np.intp]) -> Parts:
        """Return copies of the rows of these words."""
        rows = self._rows[steps, places]
        return tuple(np.take(part, rows, axis=1) for part in self._table)


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


class Network(Protocol):
    """The parameters of one encoder, made ready."""

    @property
    def projection(self) -> Projection:
        """Return the input weights."""
        ...

    def run(self, words: BatchWords) -> Iterator[Step]:
        """Yield the states and gates of each step, rows in the order of the packing."""
        ...


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
