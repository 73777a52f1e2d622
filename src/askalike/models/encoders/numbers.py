"""A model's numbers: word vectors, the encoder's parameters, and how often its words occurred where it was trained.

Enters: arrays, from training or from a file. Leaves: ``Numbers`` that fit settings and vocabulary.
May import: precision, settings, vocabulary, errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, SettingError
from askalike.models.encoders.precision import Packed
from askalike.models.encoders.settings import ModelSettings
from askalike.models.encoders.vocabulary import UNKNOWN, Vocabulary

__all__ = ["Numbers"]

_EMBEDDING: Final = "embedding"
_COUNTS: Final = "counts"
_AGAIN: Final = "take the files of one model from where they came"


@dataclass(frozen=True, slots=True)
class Numbers:
    """What was learned, and counted.

    Args:
        embedding: word vectors (V, D_in), row 0 for unknown words, in the settings' precision.
        parameters: the encoder's, with the names and shapes of ``EncoderConfig.shapes()``, in the settings' precision.
        counts: how often each word occurred in the texts that were learned from, or None where that is not known; at 0
            all words outside the vocabulary together.  # (V,) int64
    """

    embedding: Packed
    parameters: Mapping[str, Packed]
    counts: NDArray[np.int64] | None = None

    @classmethod
    def rounded(
        cls,
        settings: ModelSettings,
        vocabulary: Vocabulary,
        embedding: NDArray[np.floating],
        parameters: Mapping[str, NDArray[np.floating]],
        counts: NDArray[np.int64] | None,
    ) -> Numbers:
        """Return trained numbers, rounded to the settings' precision.

        Raises:
            SettingError: shapes or numbers that do not fit.
        """
        expected = (len(vocabulary), settings.encoder.input_size)
        if embedding.shape != expected:
            raise SettingError(
                f"embedding of shape {embedding.shape}, but expected {expected}",
                "give one row for unknown words, then one for each word",
            )
        if settings.unknown == "zero" and embedding[UNKNOWN].any():
            raise SettingError("unknown words are to be zero, but row 0 of the embedding is not", "set it to zero")
        if fault := _fault_of_counts(counts, vocabulary):
            raise SettingError(fault, "give one number for unknown words, then one for each word")
        packed = {name: Packed.of(array, settings.encoder_precision) for name, array in parameters.items()}
        return cls(
            Packed.of(embedding, settings.embedding_precision), packed, None if counts is None else counts.copy()
        )

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what goes into the file."""
        packed = {**self.parameters, _EMBEDDING: self.embedding}
        found = {key: array for name in packed for key, array in packed[name].arrays(name).items()}
        return found if self.counts is None else {**found, _COUNTS: self.counts}

    @classmethod
    def taken_from(
        cls, arrays: Mapping[str, NDArray[np.generic]], settings: ModelSettings, vocabulary: Vocabulary
    ) -> Numbers:
        """Return the numbers of a file.

        Raises:
            DamagedModelError: an array is absent, too many, or does not fit settings and vocabulary.
        """
        stored = arrays.get(_EMBEDDING)
        if stored is not None and stored.ndim == 2 and len(stored) != len(vocabulary):
            raise DamagedModelError(
                f"{len(vocabulary.words)} words in vocabulary.txt but {len(stored) - 1} vectors of words in "
                "weights.safetensors",
                _AGAIN,
            )
        shape = (len(vocabulary), settings.encoder.input_size)
        embedding = Packed.taken_from(arrays, _EMBEDDING, shape, settings.embedding_precision)
        parameters = {
            name: Packed.taken_from(arrays, name, wanted, settings.encoder_precision)
            for name, wanted in settings.encoder.shapes().items()
        }
        counts = arrays.get(_COUNTS)
        if fault := _fault_of_counts(counts, vocabulary):
            raise DamagedModelError(f"weights hold {fault}", _AGAIN)
        found = cls(embedding, parameters, None if counts is None else counts.astype(np.int64))
        if extra := set(arrays) - set(found.arrays()):
            raise DamagedModelError(
                f"weights.safetensors holds more than the model needs: {', '.join(sorted(extra))[:200]}", _AGAIN
            )
        if settings.unknown == "zero" and embedding.rows(np.array([UNKNOWN])).any():
            raise DamagedModelError("unknown words are to be zero, but their vector is not", "train the model again")
        return found


def _fault_of_counts(counts: NDArray[np.generic] | None, vocabulary: Vocabulary) -> str:
    """Return what is wrong with the counts of words, or nothing."""
    if counts is None:
        return ""
    if counts.dtype != np.int64 or counts.shape != (len(vocabulary),):
        return f"counts of words {counts.dtype.name} {counts.shape}, but expected int64 ({len(vocabulary)},)"
    if counts.min() < 0:
        return f"counts of words down to {counts.min()}, but expected numbers ≥ 0"
    return ""
