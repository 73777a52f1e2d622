"""The state that an encoder has at each word of a text.

Enters: words, a model's word vectors and network. Leaves: ``WordStates``.
May import: batches, precision, vocabulary, numpy_runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.batches import of_like_length
from askalike.models.encoders.numpy_runtime import Runtime
from askalike.models.encoders.precision import Packed
from askalike.models.encoders.vocabulary import Vocabulary

__all__ = ["WordStates", "states_of"]


@dataclass(frozen=True, slots=True)
class WordStates:
    """Words as a model reads them, in their order, with the encoder's state at each.

    Args:
        words: the words, or their stems where the model reads stems.
        ids: of the words in the model's vocabulary, 0 for those outside.  # (T,) int64
        states: one row for each word.  # (T, D) float32
    """

    words: tuple[str, ...]
    ids: NDArray[np.int64]
    states: NDArray[np.float32]

    def followed_by(self, other: WordStates) -> WordStates:
        """Return these words and then those of another text, each with the states of its own text."""
        if not other.words:
            return self
        return WordStates(
            self.words + other.words,
            np.concatenate([self.ids, other.ids]),
            np.concatenate([self.states, other.states]),
        )


def states_of(
    texts: Sequence[Sequence[str]], vocabulary: Vocabulary, embedding: Packed, runtime: Runtime, batch_size: int
) -> list[WordStates]:
    """Return the words of each text with their states: each text is encoded on its own, texts of like length together.

    Args:
        texts: words as they are read.
        embedding: word vectors (V, D_in).
        batch_size: texts that are worked on at once, ≥ 1.
    """
    ids = [np.array(vocabulary.ids(text), dtype=np.int64) for text in texts]
    none = np.zeros((0, runtime.config.hidden_size), dtype=np.float32)
    found = [WordStates(tuple(text), of_text, none) for text, of_text in zip(texts, ids, strict=True)]
    for batch in of_like_length(ids, batch_size):
        vectors = embedding.rows(batch.distinct)[batch.places]  # (T, B, D_in)
        states = runtime.states(vectors, batch.lengths)  # (T, B, D)
        for column, row in enumerate(batch.texts.tolist()):
            own = states[: batch.lengths[column], column].copy()  # so that it does not hold the whole batch
            found[row] = WordStates(found[row].words, ids[row], own)
    return found
