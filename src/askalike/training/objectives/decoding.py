"""Pre-training: an encoder-decoder that writes a question's title from a context.

::

    maximise log P(title | context) = Σ_t log P(w_t | w_<t, carry of the encoder over the context)

A context is the title itself, the body, or the title or body of a question labelled as its duplicate. The decoder is a
network of the same kind with weights of its own; it begins with what the encoder's run left after the context's last
word. Both share the word vectors.

What the decoder reads, the output layer and perplexity: ``output_layer``.

Source: Lei et al. 2016 (NAACL), section 4.2.
Differs: the paper normalises over all words at once, which here takes most of the time of a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from askalike.errors import SettingError
from askalike.models.encoders.networks.encoder import build
from askalike.training.corpus import Corpus
from askalike.training.network import TextNetwork
from askalike.training.objectives import Objective, held_out_questions, in_batches, random_stream
from askalike.training.objectives.output_layer import adaptive_loss, output_layer, perplexity, shifted
from askalike.training.recipe import DecodingOptions


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
        found: list[NDArray[np.int64]] = []
        for items in self._items.values():
            found += in_batches(items[random.permutation(len(items))], self._options.batch_size)
        return [found[place] for place in random.permutation(len(found))]

    def forward(self, batch: NDArray[np.int64]) -> Tensor:
        """Return -log P of a word, the mean over the words and ends of a batch of titles."""
        return adaptive_loss(self.output, *self._decoded(batch))

    @torch.no_grad()
    def held_out(self) -> dict[str, float]:
        """Return the perplexity of held-out titles, from each kind of context."""
        was_training = self.training
        self.eval()
        found = {}
        for name, items in self._held_out.items():
            value = perplexity(self.output, (self._decoded(batch) for batch in self._alike(items)))
            if value is not None:
                found[f"perplexity from {name}"] = value
        self.train(was_training)
        return found

    def _alike(self, items: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        yield from in_batches(items[np.argsort(self.corpus.texts.lengths()[items[:, 0]], kind="stable")], 256)

    def _decoded(self, batch: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Return the decoder's states (N, D) and the words that are to follow each (N,)."""
        texts, network = self.corpus.texts, self.network
        ids, packing = network.packed(texts, batch[:, 0])
        _, carry = network.encoder.go_on(network.words(ids), packing)
        inputs, targets, unrolled = shifted(network, texts, batch[:, 1], self.decoder.packing)
        states, _ = self.decoder.go_on(inputs, unrolled, carry)
        return functional.dropout(states, network.dropout, self.training), targets


def _items(corpus: Corpus, context: str) -> NDArray[np.int64]:
    """Return rows (context text, title text, question), those with words on both sides."""
    questions = np.arange(corpus.size)
    titles = 2 * questions
    if context == "similar":
        pairs = np.concatenate([corpus.pairs, corpus.pairs[:, ::-1]])
        asked, others = np.repeat(pairs[:, 0], 2), pairs[:, 1]
        found = np.stack([np.stack([2 * others, 2 * others + 1], axis=1).ravel(), 2 * asked, asked], axis=1)
    else:
        found = np.stack([titles if context == "title" else titles + 1, titles, questions], axis=1)
    lengths = corpus.texts.lengths()
    return np.asarray(found[(lengths[found[:, 0]] > 0) & (lengths[found[:, 1]] > 0)])
