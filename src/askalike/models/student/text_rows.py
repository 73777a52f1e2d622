"""A text as rows of a student's tables: its words, its frequent pairs of words, character n-grams of unknown words.

Source: Wieting et al. 2016 (EMNLP), "Charagram"; Bojanowski et al. 2017 (TACL), "Enriching word vectors with subword
information": character n-grams of ``<word>``.
Differs: only unknown words are read by their n-grams, and a word is their mean, not their sum.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.encoders.vocabulary import UNKNOWN, Vocabulary
from askalike.text.tokens import words

GRAM_SIZES: Final = (3, 4, 5)
LONGEST_WORD: Final = 40
"""Characters of an unknown word that is read; longer ones are addresses, keys and noise."""


def buckets_of(word: str, buckets: int) -> list[int]:
    """Return the bucket of each character n-gram of ``<word>``: CRC-32 of its UTF-8, modulo the number of buckets.

    >>> len(buckets_of("visa", 100))  # <vi vis isa sa> <vis visa isa> <visa visa>
    9
    """
    marked = f"<{word}>"
    grams = (marked[at : at + size] for size in GRAM_SIZES for at in range(len(marked) - size + 1))
    return [zlib.crc32(gram.encode("utf-8", "replace")) % buckets for gram in grams]


class TextRows(NamedTuple):
    """The places of a text's rows.

    Args:
        words: in the table of words, in order.
        pairs: in the table of pairs.
        unknown: for each unknown word the buckets of its n-grams.
    """

    words: list[int]
    pairs: list[int]
    unknown: list[list[int]]

    def __bool__(self) -> bool:
        """Return whether anything of the text is known."""
        return bool(self.words or self.unknown)


class RowReader:
    """Texts → places of rows.

    Args:
        vocabulary: the known words.
        pairs: ids of the two words of each known pair, first word first.  # (P, 2)
        buckets: how many rows n-grams share; 0 leaves unknown words out.
        word_limit: words of a text that are read.

    Raises:
        SettingError: a pair that occurs twice or has a word that is not in the vocabulary.

    >>> reader = RowReader(Vocabulary(["new", "york"]), np.array([[1, 2]]), buckets=0, word_limit=10)
    >>> reader.read("New York, new zealand")
    TextRows(words=[0, 1, 0], pairs=[0], unknown=[])
    """

    def __init__(self, vocabulary: Vocabulary, pairs: NDArray[np.int64], buckets: int, word_limit: int) -> None:
        if pairs.ndim != 2 or pairs.shape[1] != 2 or (len(pairs) and not _fits(pairs, len(vocabulary))):
            raise SettingError(
                f"pairs of words of the shape {pairs.shape}, but expected two ids from 1 to {len(vocabulary) - 1} each",
                "take pairs of known words",
            )
        first, second = pairs.T.tolist()
        self._pairs = {pair: place for place, pair in enumerate(zip(first, second, strict=True))}
        if len(self._pairs) != len(pairs):
            raise SettingError("a pair of words that occurs twice", "take each pair once")
        self._vocabulary = vocabulary
        self._buckets = buckets
        self._word_limit = word_limit

    def words(self, text: str) -> list[str]:
        """Return the words that are read of a text."""
        return words(text)[: self._word_limit]

    def read(self, text: str) -> TextRows:
        """Return the places of a text's rows."""
        return self.rows(self.words(text))

    def rows(self, read: Sequence[str]) -> TextRows:
        """Return the places of the rows of words that were read of a text."""
        ids = self._vocabulary.ids(read)
        known = [number - 1 for number in ids if number != UNKNOWN]
        find = self._pairs.get
        near = pairwise(ids)
        pairs = [place for pair in near if (place := find(pair)) is not None] if self._pairs else []
        unknown = [
            buckets_of(word, self._buckets)
            for word, number in zip(read, ids, strict=True)
            if self._buckets and number == UNKNOWN and len(word) <= LONGEST_WORD
        ]
        return TextRows(known, pairs, unknown)


def _fits(pairs: NDArray[np.int64], ids: int) -> bool:
    return bool(pairs.min() > UNKNOWN and pairs.max() < ids)
