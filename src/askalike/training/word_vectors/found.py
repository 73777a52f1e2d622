"""Word vectors that were found, whatever they come from, and the gathering of them out of a file.

Enters: words with their numbers, one by one. Leaves: ``FoundVectors``. May import: encode.vocabulary, errors.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedInputError, InputError, SettingError
from askalike.models.encoders.vocabulary import Vocabulary

__all__ = ["MOST_DIMENSIONS", "FoundVectors", "Gathering"]

MOST_DIMENSIONS = 4096
"""Numbers of a vector that are believed; a header that says more is taken as damage."""


@dataclass(frozen=True, slots=True)
class FoundVectors:
    """Words and a vector for each.

    Args:
        words: each once, in the order of the file.
        vectors: (n, D) float32, finite.
        record_count: records that were read to find them, unwanted ones included.

    Raises:
        SettingError: words and vectors are not equally many, a word occurs twice, or a number is not finite.
    """

    words: tuple[str, ...]
    vectors: NDArray[np.float32]
    record_count: int = 0

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.words) != len(self.vectors) or len(set(self.words)) != len(self.words):
            raise SettingError(
                f"{len(self.words)} words ({len(set(self.words))} different) and vectors of shape {self.vectors.shape}",
                "give each word once, and one row a word",
            )
        if not np.isfinite(self.vectors).all():
            raise SettingError("word vectors that are not finite", "train them with a lower learning rate")

    @classmethod
    def trained(cls, vocabulary: Vocabulary, vectors: NDArray[np.float32]) -> FoundVectors:
        """Return what ``train_word2vec`` gave; a row of zeros is none found.

        Args:
            vectors: (V, D), row 0 for unknown words, which is left out.
        """
        if len(vocabulary) != len(vectors):
            raise SettingError(f"{len(vocabulary)} ids but {len(vectors)} vectors", "give one row an id")
        rows = np.flatnonzero(vectors[1:].any(axis=1))
        return cls(tuple(vocabulary.words[row] for row in rows), vectors[1:][rows])


class Gathering:
    """Keeps the wanted words of a file as they come by.

    Args:
        name: the file's, for messages.
        unit: what its records are called there: "line" or "record".
        wanted: the words to keep; None for all.
        limit: at most this many are kept.
    """

    def __init__(self, name: str, unit: str, wanted: Container[str] | None, limit: int) -> None:
        self._name, self._unit, self._wanted, self._limit = name, unit, wanted, limit
        self._places: dict[str, int] = {}
        self._numbers = bytearray()
        self.record_count = 0

    def is_full(self) -> bool:
        """Return whether nothing more will be kept."""
        return len(self._places) >= self._limit

    def wants(self, place: int, raw_word: bytes) -> str | None:
        """Return the word where its numbers are wanted; every record of the file is shown here once.

        Raises:
            InputError: it is not UTF-8, empty, or a wanted word for the second time.
        """
        self.record_count += 1
        try:
            word = raw_word.decode()
        except UnicodeDecodeError as error:
            raise self.fault(place, f"a word that is not UTF-8: {raw_word[:40]!r}", "convert the file") from error
        if not word:
            raise self.fault(place, "no word before the numbers", "take the file from where it came")
        if self._wanted is not None and word not in self._wanted:
            return None
        if word in self._places:
            raise self.fault(
                place, f"the word {word[:40]!r} again, after {self._unit} {self._places[word]}", "remove one of them"
            )
        return word

    def keep(self, place: int, word: str, vector: NDArray[np.float32]) -> None:
        """Keep a wanted word's vector, (D,) float32.

        Raises:
            DamagedInputError: a number is not finite.
        """
        if not np.isfinite(vector).all():
            raise self.damage(place, f"the vector of {word[:40]!r} has a number that is not finite")
        self._places[word] = place
        self._numbers += vector.tobytes()

    def found(self, dimensions: int) -> FoundVectors:
        """Return what was kept."""
        vectors = np.frombuffer(self._numbers, np.float32).reshape(-1, dimensions)
        return FoundVectors(tuple(self._places), vectors, self.record_count)

    def fault(self, place: int, what: str, hint: str) -> InputError:
        """Return the error for a record that cannot be used."""
        return InputError(f"{self._name}, {self._unit} {place}: {what}", hint)

    def damage(self, place: int, what: str) -> DamagedInputError:
        """Return the error for a record that is damaged."""
        return DamagedInputError(
            f"{self._name}, {self._unit} {place}: {what}", "take the file from where it came, or name another format"
        )
