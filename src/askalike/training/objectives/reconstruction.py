"""An autoencoder: an encoder reads a text, a decoder writes the same text again.

::

    J = Σ_i log P(w_i | w_1 … w_{i-1}, states of the encoder over the text),   the end of the text being a word too

The loss is -log P of a word, the mean over the words and ends of a batch. Which decoder writes follows from the
encoder's kind. What the decoder reads, the output layer and perplexity: ``output_layer``.

Source: Zhang and Wu 2018 (AAAI), equations 8 and 9.
Differs: the paper normalises over all words at once, which here takes most of the time of a step. Batches are shuffled,
but hold texts of like length, sorted within pools of 50 batches: with random ones a step waits for its longest text.
Texts have no punctuation, and their end is one more target: the paper's outputs show punctuation, and it says nothing
of ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from askalike.errors import SettingError
from askalike.models.encoders.networks.packing import Packing
from askalike.models.encoders.settings import EncoderConfig, Kind
from askalike.training.corpus import Corpus
from askalike.training.decoders import AttentionDecoder, ConditionalGruDecoder, Decoder, EncodedTexts
from askalike.training.network import TextNetwork
from askalike.training.objectives.objective import Example, Objective, held_out_questions, in_batches, random_stream
from askalike.training.objectives.output_layer import END, adaptive_loss, output_layer, perplexity, shifted
from askalike.training.recipe import ReconstructionOptions

DECODERS: Final[Mapping[Kind, Callable[[EncoderConfig, int], Decoder]]] = {
    "attention": AttentionDecoder,
    "gru": ConditionalGruDecoder,
}
"""Kind of the encoder → its decoder, made with (the encoder's config, seed)."""

_POOL: Final = 50  # batches whose texts are sorted by length
_EXAMPLES: Final = 10


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
        found: list[NDArray[np.int64]] = []
        for pool in in_batches(drawn, _POOL * self._options.batch_size):
            found += self._alike(pool)
        return [found[place] for place in random.permutation(len(found))]

    def forward(self, batch: NDArray[np.int64]) -> Tensor:
        """Return -log P of a word, the mean over the words and ends of a batch of texts."""
        return adaptive_loss(self.output, *self._written(batch))

    @torch.no_grad()
    def held_out(self) -> dict[str, float]:
        """Return the perplexity of held-out texts."""
        was_training = self.training
        self.eval()
        value = perplexity(self.output, (self._written(batch) for batch in self._alike(self.kept_out)))
        self.train(was_training)
        return {} if value is None else {"perplexity": value}

    def examples(self) -> list[Example]:
        """Return the first held-out texts, and what is written of each."""
        rows = self.kept_out[:_EXAMPLES]
        read = [self.corpus.texts[row].tolist() for row in rows]
        return list(map(Example, read, self.reconstruct(rows)))

    @torch.no_grad()
    def reconstruct(self, rows: NDArray[np.int64]) -> list[list[int]]:
        """Return the ids that are written for each text: at every step the most probable word, until the end.

        What has no end is cut at 1.5 times the words of the text and five more.

        Args:
            rows: of texts that have words.
        """
        was_training = self.training
        self.eval()
        found = [text for batch in in_batches(rows, self._options.batch_size) for text in self._greedy(batch)]
        self.train(was_training)
        return found

    def _greedy(self, rows: NDArray[np.int64]) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in rows]
        lengths = self.corpus.texts.starts[rows + 1] - self.corpus.texts.starts[rows]
        most = lengths + lengths // 2 + 5
        left = np.arange(len(rows))
        memory = self.decoder.begin(self._read(rows))
        words = self.network.embedding.new_zeros(len(rows), self.network.embedding.shape[1])
        while len(left):
            states, memory = self.decoder.go_on(words, memory)
            numbers = self.output.predict(states).cpu().numpy()
            for place, number in zip(left, numbers, strict=True):
                if number != END:
                    found[place].append(int(number) - 1)
            is_going = (numbers != END) & (np.array([len(found[place]) for place in left]) < most[left])
            kept = torch.from_numpy(np.flatnonzero(is_going)).to(words.device)
            left, memory = left[is_going], tuple(part[kept] for part in memory)
            words = self.network.words(torch.from_numpy(numbers[is_going] - 1).to(words.device))
        return found

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
        inputs, targets, packing = shifted(network, self.corpus.texts, rows, Packing.of)
        states = self.decoder(inputs, packing, self._read(rows))
        return functional.dropout(states, network.dropout, self.training), targets
