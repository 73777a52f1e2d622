"""Texts as numbers: all words of all texts in one array, each text a slice of it.

Enters: lists of words. Leaves: ``WordList`` (texts over all words that occur), ``Texts`` (over a vocabulary).
May import: encode's vocabulary.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.vocabulary import Vocabulary

__all__ = ["Texts", "WordList"]


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts as ids of one vocabulary.

    Args:
        ids: the words of all texts, one text after the other.  # (W,) int32
        starts: where each text begins; the last number is W.  # (N + 1,) int64

    >>> texts = Texts(np.array([5, 6, 7], np.int32), np.array([0, 2, 2, 3]))
    >>> len(texts), texts[0].tolist(), texts.lengths().tolist(), texts.counts(9).tolist()
    (3, [5, 6], [2, 0, 1], [0, 0, 0, 0, 0, 1, 1, 1, 0])
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        return self.ids[self.starts[row] : self.starts[row + 1]]

    def lengths(self) -> NDArray[np.int64]:
        """Return the words of each text.  # (N,)"""
        return np.diff(self.starts)

    def counts(self, size: int) -> NDArray[np.int64]:
        """Return how often each id below ``size`` occurs; all are below it.  # (size,)"""
        return np.bincount(self.ids, minlength=size).astype(np.int64)


class WordList:
    """Texts over the words that occur in them, before there is a vocabulary: words are numbered as they come.

    >>> read = WordList([["wifi", "drops"], ["wifi"]])
    >>> read.words, read.texts.ids.tolist(), read.counts()
    (['wifi', 'drops'], [0, 1, 0], {'wifi': 2, 'drops': 1})
    """

    def __init__(self, texts: Iterable[list[str]]) -> None:
        numbers: dict[str, int] = {}
        ids, starts = array("i"), array("q", [0])
        for text in texts:
            ids.extend([numbers.setdefault(word, len(numbers)) for word in text])
            starts.append(len(ids))
        self.words = list(numbers)
        self.texts = Texts(np.array(ids, np.int32), np.array(starts, np.int64))

    def counts(self) -> dict[str, int]:
        """Return how often each word occurs."""
        found = np.bincount(self.texts.ids, minlength=len(self.words)).tolist()
        return dict(zip(self.words, found, strict=True))

    def over(self, vocabulary: Vocabulary) -> Texts:
        """Return the texts as ids of ``vocabulary``, 0 for words that it does not hold."""
        ids = np.array(vocabulary.ids(self.words), np.int32)
        return Texts(ids[self.texts.ids] if len(ids) else self.texts.ids, self.texts.starts)

    def sentences(self) -> Iterator[list[str]]:
        """Yield the words of each text again."""
        for row in range(len(self.texts)):
            yield [self.words[number] for number in self.texts[row].tolist()]
