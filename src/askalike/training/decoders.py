"""Objectives that write texts: titles from a context, to pre-train an encoder, and autoencoders.

**Output.** What a decoder reads and is to write, its words shifted by one, and the layer that scores the next word.

::

    reads    0  w_1  w_2 … w_T          a zero vector first
    writes  w_1 w_2  w_3 … end

The output layer is an adaptive softmax: frequent words are scored with all of a state's numbers, rare ones in clusters
with fewer; its probabilities are normalised, so that perplexity is exact:

::

    perplexity = exp( - (1/T) Σ_t log P(w_t | w_<t, context) ),   over the words and ends of texts

Source: adaptive softmax: Grave et al. 2017 (ICML), as ``torch.nn.AdaptiveLogSoftmaxWithLoss``.

**Pre-training.** An encoder-decoder writes a question's title from a context.

::

    maximise log P(title | context) = Σ_t log P(w_t | w_<t, carry of the encoder over the context)

A context is the title itself, the body, or the title or body of a question labelled as its duplicate. The decoder is a
network of the same kind with weights of its own; it begins with what the encoder's run left after the context's last
word. Both share the word vectors.

Source: Lei et al. 2016 (NAACL), section 4.2.
Differs: the paper normalises over all words at once, which here takes most of the time of a step.

**Autoencoder.** An encoder reads a text, a decoder writes the same text again.

::

    J = Σ_i log P(w_i | w_1 … w_{i-1}, states of the encoder over the text),   the end of the text being a word too

The loss is -log P of a word, the mean over the words and ends of a batch. Which decoder writes follows from the
encoder's kind.

A GRU that writes a text from one vector::

    c      = (1/T) Σ_t h_t                      the encoder's states of the text that was read
    s^l_0  = tanh(W^l c + b^l)                  the first state of layer l
    s¹_t   = GRU([x'_t ; c], s¹_{t-1})          x' the words shifted by one
    s^l_t  = GRU(s^{l-1}_t, s^l_{t-1})          l > 1

Reading: the paper says "a two-layer decoder with conditional GRU … the sentence representation is fed to the decoder",
and no more. Here the vector is an input of the first layer at every step, and starts every layer.

Layers of attention that write it from all states::

    Attention(Q, K, V) = softmax(Q Kᵀ / √D) V
    a_d  = LayerNorm(Attention(x' Wq, x' Wk, x' Wv) + x')              a step sees itself and the steps before it
    a_ed = LayerNorm(Attention(a_d Wq', h_e Wk', h_e Wv') + a_d)       h_e the states of the encoder's last layer
    h_d  = LayerNorm(ReLU(a_ed W1 + b1) W2 + b2 + a_ed)                what the next layer reads in place of x'

Texts are padded to the longest of the batch: products of whole batches are much faster than those of texts of their own
lengths, as long as the texts are about as long.

Source: Zhang and Wu 2018 (AAAI), equations 1 to 9 and the analysis on attention autoencoders; the masked layer: Vaswani
et al. 2017 (NIPS), section 3.2.3.
Differs: the paper normalises over all words at once, which here takes most of the time of a step. Batches are shuffled,
but hold texts of like length, sorted within pools of 50 batches: with random ones a step waits for its longest text.
Texts have no punctuation, and their end is one more target: the texts that the paper prints have punctuation, and it
says nothing of ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import exp, inf, sqrt
from typing import Final, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from askalike.errors import SettingError
from askalike.models.encoders.networks.attention import EPSILON, attend
from askalike.models.encoders.networks.encoder import build, mean
from askalike.models.encoders.networks.packing import Packing
from askalike.models.encoders.settings import EncoderConfig, Kind
from askalike.training.corpus import Corpus, Texts
from askalike.training.objectives import Objective, TextNetwork, held_out_questions, in_batches, random_stream
from askalike.training.recipe import DecodingOptions, ReconstructionOptions

END: Final = 0
"""The number of the end of a text; word i is number i + 1: the most frequent come first."""

_HEAD: Final = (2_000, 10_000, 30_000)  # words of the head and of the clusters; more make them smaller, not faster


class Shifted(NamedTuple):
    """What a decoder reads of texts and is to write.

    Args:
        inputs: a zero vector, then the text's words.  # (N, D_in)
        targets: the numbers of the words, then ``END``.  # (N,)
        packing: where they lie; a text has one step more than words.
    """

    inputs: Tensor
    targets: Tensor
    packing: Packing


def shifted(network: TextNetwork, texts: Texts, rows: NDArray[np.int64]) -> Shifted:
    """Return what a decoder reads of the texts in ``rows``, and what follows each."""
    starts = texts.starts[rows]
    lengths = torch.from_numpy(texts.starts[rows + 1] - starts)
    packing = Packing.of(lengths + 1)
    owner = packing.order[packing.place]
    places = torch.from_numpy(starts)[owner] + packing.step
    is_end = packing.step == lengths[owner]
    known = torch.from_numpy(texts.ids)
    targets = torch.where(is_end, END, known[places.clamp_max(len(known) - 1)].long() + 1)
    is_first = packing.step == 0
    inputs = network.words(known[(places - 1).clamp_min(0)].long().to(network.device))
    inputs = inputs.masked_fill(is_first.to(network.device)[:, None], 0.0)
    return Shifted(inputs, targets.to(network.device), packing.to(network.device))


def output_layer(size: int, words: int, seed: int) -> nn.AdaptiveLogSoftmaxWithLoss:
    """Return a layer from states of ``size`` numbers to ``words`` ids and the end; the same seed gives the same one."""
    bounds = cutoffs(words)
    narrower = min(4.0, 0.99 * size ** (1 / len(bounds)))  # at least one number in the last cluster
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.AdaptiveLogSoftmaxWithLoss(size, words + 1, bounds, div_value=narrower)


def cutoffs(words: int) -> list[int]:
    """Return where the clusters of the output layer begin; few words are all in the head but for the last.

    >>> cutoffs(12_000), cutoffs(50)
    ([2000, 10000], [50])
    """
    return [size for size in _HEAD if size < words] or [words]


def perplexity(output: nn.AdaptiveLogSoftmaxWithLoss, written: Iterable[tuple[Tensor, Tensor]]) -> float | None:
    """Return how perplexed the layer is by what follows each state; None where there is nothing.

    Args:
        written: states (N, D) and what follows each (N,), a part at a time.
    """
    total, words = 0.0, 0
    for states, targets in written:
        log_likelihoods = output(states, targets).output
        total -= float(log_likelihoods.double().sum())
        words += len(log_likelihoods)
    return exp(min(total / words, 700.0)) if words else None


class Decoding(Objective):
    """An encoder-decoder over the corpus' titles.

    Args:
        seed: of the decoder's first values and of the choice of held-out questions.

    Raises:
        SettingError: a network without a state, or no title with such a context.
    """

    def __init__(self, network: TextNetwork, corpus: Corpus, options: DecodingOptions, *, seed: int = 0) -> None:
        super().__init__(network, corpus)
        config = network.encoder.config
        if config.kind in ("cnn", "attention"):
            raise SettingError(
                f"the encoder {config.kind} has no state to start a decoder from", "leave pre-training out for it"
            )
        self._options: Final = options
        self.kept_out: Final = held_out_questions(corpus, options.held_out, seed)
        items = {name: _items(corpus, name) for name in options.contexts}
        is_judged = {name: np.isin(rows[:, 2], self.kept_out) for name, rows in items.items()}
        is_read = {name: np.isin(rows[:, 0] // 2, self.kept_out) for name, rows in items.items()}
        self._held_out = {name: rows[is_judged[name]] for name, rows in items.items()}
        self._items = {name: rows[~is_judged[name] & ~is_read[name]] for name, rows in items.items()}
        if not sum(map(len, self._items.values())):
            raise SettingError(
                f"no title has a context of the kinds {', '.join(options.contexts)}", "train on other data"
            )
        self.decoder = build(config, seed + 1)
        self.output = output_layer(config.hidden_size, len(network.embedding), seed)

    def batches(self, epoch: int, seed: int) -> Sequence[NDArray[np.int64]]:
        """Return arrays of rows (context text, title text, question); a batch holds one kind of context."""
        random = random_stream(seed, epoch)
        batches: list[NDArray[np.int64]] = []
        for items in self._items.values():
            batches += in_batches(items[random.permutation(len(items))], self._options.batch_size)
        return [batches[place] for place in random.permutation(len(batches))]

    def forward(self, batch: NDArray[np.int64]) -> Tensor:
        """Return -log P of a word, the mean over the words and ends of a batch of titles."""
        loss: Tensor = self.output(*self._decoded(batch)).loss
        return loss

    @torch.no_grad()
    def held_out(self) -> dict[str, float]:
        """Return the perplexity of held-out titles, from each kind of context."""
        was_training = self.training
        self.eval()
        losses = {}
        for name, items in self._held_out.items():
            value = perplexity(self.output, (self._decoded(batch) for batch in self._alike(items)))
            if value is not None:
                losses[f"perplexity from {name}"] = value
        self.train(was_training)
        return losses

    def _alike(self, items: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        yield from in_batches(items[np.argsort(self.corpus.texts.lengths()[items[:, 0]], kind="stable")], 256)

    def _decoded(self, batch: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Return the decoder's states (N, D) and the words that are to follow each (N,)."""
        texts, network = self.corpus.texts, self.network
        ids, packing = network.packed(texts, batch[:, 0])
        _, carry = network.encoder.go_on(network.words(ids), packing)
        inputs, targets, unrolled = shifted(network, texts, batch[:, 1])
        states, _ = self.decoder.go_on(inputs, unrolled, carry)
        return functional.dropout(states, network.dropout, self.training), targets


def _items(corpus: Corpus, context: str) -> NDArray[np.int64]:
    """Return rows (context text, title text, question), those with words on both sides."""
    questions = np.arange(corpus.size)
    titles = 2 * questions
    if context == "similar":
        pairs = np.concatenate([corpus.pairs, corpus.pairs[:, ::-1]])
        questions_at, others = np.repeat(pairs[:, 0], 2), pairs[:, 1]
        items = np.stack(
            [np.stack([2 * others, 2 * others + 1], axis=1).ravel(), 2 * questions_at, questions_at], axis=1
        )
    else:
        items = np.stack([titles if context == "title" else titles + 1, titles, questions], axis=1)
    lengths = corpus.texts.lengths()
    return np.asarray(items[(lengths[items[:, 0]] > 0) & (lengths[items[:, 1]] > 0)])


class EncodedTexts(NamedTuple):
    """What an encoder has read.

    Args:
        states: of the last layer, packed.  # (N, D)
        packing: where they lie; every text of the batch has words.
    """

    states: Tensor
    packing: Packing


class Decoder(nn.Module):
    """A network that writes a text, word after word, from what was read."""

    def forward(self, words: Tensor, packing: Packing, read: EncodedTexts) -> Tensor:
        """Return the states (M, D) of texts that are known already, all at once.

        Args:
            words: what was written before each state, a zero vector before the first; packed.  # (M, D_in)
            packing: where they lie; texts in the order of the batch that was read.
            read: what the texts are written from.
        """
        raise NotImplementedError


class ConditionalGruDecoder(Decoder):
    """As many layers of GRU as the encoder has, of the same sizes.

    Args:
        seed: of the first values: uniform in ±1/√D, as those of the encoder.
    """

    def __init__(self, config: EncoderConfig, seed: int) -> None:
        super().__init__()
        size = config.hidden_size
        self.network = build(replace(config, input_size=config.input_size + size), seed)
        self.first = nn.Linear(size, config.layers * size)
        generator = torch.Generator().manual_seed(seed)
        for value in self.first.parameters():
            nn.init.uniform_(value, -1 / sqrt(size), 1 / sqrt(size), generator)

    def forward(self, words: Tensor, packing: Packing, read: EncodedTexts) -> Tensor:
        """Return the states (M, D) of texts that are known already, all at once."""
        condition = mean(read.states, read.packing)  # (B, D)
        start = self.first(condition).tanh().view(len(condition), -1, condition.shape[1])  # (B, layers, D)
        inputs = torch.cat([words, condition[packing.order[packing.place]]], dim=1)
        return self.network.go_on(inputs, packing, start)[0]


_SPREAD: Final = 0.1  # position-wise weights begin uniform in ± this


class _Seen(NamedTuple):
    """What a layer of attention looks at.

    Args:
        keys: K.  # (B, T, D)
        values: V.  # (B, T, D)
        bars: added to the scores: 0, or -∞ where a step must not look.  # (B or 1, S or 1, T or 1)
    """

    keys: Tensor
    values: Tensor
    bars: Tensor


class _Attention(nn.Module):
    """One head of attention as wide as its input, with the residual connection and the normalisation around it."""

    def __init__(self, size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Parameter(torch.empty(size, size)) for _ in range(3))
        for weight in (self.query, self.key, self.value):
            nn.init.orthogonal_(weight, generator=generator)
        self.norm = nn.LayerNorm(size, EPSILON)

    def seen(self, states: Tensor, bars: Tensor) -> _Seen:
        """Return what can be looked at of states (B, T, D)."""
        return _Seen(functional.linear(states, self.key), functional.linear(states, self.value), bars)

    def forward(self, inputs: Tensor, seen: _Seen) -> Tensor:
        """Return LayerNorm(Attention(inputs Wq, K, V) + inputs).  # (B, S, D)"""
        query = functional.linear(inputs, self.query)
        attended: Tensor = self.norm(attend(query, seen.keys, seen.values, seen.bars) + inputs)
        return attended


class _Layer(nn.Module):
    """Attention to what was written, attention to what was read, a position-wise network."""

    def __init__(self, size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.written, self.read = _Attention(size, generator), _Attention(size, generator)
        self.inner, self.outer = nn.Linear(size, size), nn.Linear(size, size)
        for value in (*self.inner.parameters(), *self.outer.parameters()):
            nn.init.uniform_(value, -_SPREAD, _SPREAD, generator)
        self.norm = nn.LayerNorm(size, EPSILON)

    def forward(self, inputs: Tensor, written: _Seen, read: _Seen) -> Tensor:
        """Return h_d (B, S, D) of x' (B, S, D)."""
        attended = self.read(self.written(inputs, written), read)
        states: Tensor = self.norm(self.outer(self.inner(attended).relu()) + attended)
        return states


class AttentionDecoder(Decoder):
    """As many layers of attention as the encoder has, as wide as its states.

    Args:
        seed: of the first values: weights of attention orthogonal, those of the position-wise network and its biases
            uniform in ±0.1; gains of norms 1 and their biases 0.
    """

    def __init__(self, config: EncoderConfig, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.layers = nn.ModuleList(_Layer(config.hidden_size, generator) for _ in range(config.layers))

    def forward(self, words: Tensor, packing: Packing, read: EncodedTexts) -> Tensor:
        """Return the states (M, D) of texts that are known already, all at once."""
        source = read.packing.padded(read.states)
        bars = read.packing.bars(source)
        states = packing.padded(words)
        later = words.new_full((states.shape[1], states.shape[1]), -inf).triu(1)[None]
        for layer in cast("list[_Layer]", list(self.layers)):
            states = layer(states, layer.written.seen(states, later), layer.read.seen(source, bars))
        return packing.packed(states)


DECODERS: Final[Mapping[Kind, Callable[[EncoderConfig, int], Decoder]]] = {
    "attention": AttentionDecoder,
    "gru": ConditionalGruDecoder,
}
"""Kind of the encoder → its decoder, made with (the encoder's config, seed)."""

_POOL: Final = 50  # batches whose texts are sorted by length


class Reconstruction(Objective):
    """An autoencoder over the titles and bodies of a corpus, or over both joined, that have words.

    Args:
        seed: of the decoder's first values and of the choice of held-out questions.

    Raises:
        SettingError: an encoder of a kind that has no decoder, or no text to learn from.
    """

    def __init__(self, network: TextNetwork, corpus: Corpus, options: ReconstructionOptions, *, seed: int = 0) -> None:
        super().__init__(network, corpus)
        config = network.encoder.config
        if config.kind not in DECODERS:
            raise SettingError(
                f"the encoder {config.kind} has no decoder that writes texts again",
                f"expected one of: {', '.join(DECODERS)}",
            )
        self._options: Final = options
        rows = np.flatnonzero(corpus.texts.lengths()[: 2 * corpus.size])
        is_kept_out = np.isin(rows // 2, held_out_questions(corpus, options.held_out, seed))
        self.kept_out: Final = rows[is_kept_out]
        self._rows: Final = rows[~is_kept_out]
        if not len(self._rows):
            raise SettingError(f"no text of {corpus.size} questions has words", "train on other data")
        self.decoder = DECODERS[config.kind](config, seed + 1)
        self.output = output_layer(config.hidden_size, len(network.embedding), seed)

    def batches(self, epoch: int, seed: int) -> Sequence[NDArray[np.int64]]:
        """Return arrays of rows of texts; those of a batch are of like length."""
        random = random_stream(seed, epoch)
        drawn = self._rows[random.permutation(len(self._rows))]
        batches: list[NDArray[np.int64]] = []
        for pool in in_batches(drawn, _POOL * self._options.batch_size):
            batches += self._alike(pool)
        return [batches[place] for place in random.permutation(len(batches))]

    def forward(self, batch: NDArray[np.int64]) -> Tensor:
        """Return -log P of a word, the mean over the words and ends of a batch of texts."""
        loss: Tensor = self.output(*self._written(batch)).loss
        return loss

    @torch.no_grad()
    def held_out(self) -> dict[str, float]:
        """Return the perplexity of held-out texts."""
        was_training = self.training
        self.eval()
        value = perplexity(self.output, (self._written(batch) for batch in self._alike(self.kept_out)))
        self.train(was_training)
        return {} if value is None else {"perplexity": value}

    def _alike(self, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return batches of texts of like length."""
        lengths = self.corpus.texts.starts[rows + 1] - self.corpus.texts.starts[rows]
        return in_batches(rows[np.argsort(lengths, kind="stable")], self._options.batch_size)

    def _read(self, rows: NDArray[np.int64]) -> EncodedTexts:
        """Return the encoder's states of texts."""
        ids, packing = self.network.packed(self.corpus.texts, rows)
        return EncodedTexts(self.network.encoder.network(self.network.words(ids), packing), packing)

    def _written(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Return the decoder's states (N, D) and the words that are to follow each (N,)."""
        network = self.network
        inputs, targets, packing = shifted(network, self.corpus.texts, rows)
        states = self.decoder(inputs, packing, self._read(rows))
        return functional.dropout(states, network.dropout, self.training), targets
