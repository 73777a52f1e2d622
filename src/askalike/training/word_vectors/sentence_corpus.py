"""The text that word vectors are trained on, as ids in one array: four bytes a word, whatever its length.

Enters: texts or lists of words, one after the other, so that a file can be streamed. Leaves: a ``SentenceCorpus``, to
be read any number of times. May import: encode.vocabulary, text, errors.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.encoders.vocabulary import UNKNOWN, Vocabulary
from askalike.text.tokens import words

__all__ = ["LONGEST", "SentenceCorpus"]

LONGEST = 10_000
"""Words of the longest piece that ``sentences`` gives; gensim would drop what goes beyond."""


class SentenceCorpus:
    """Sentences of word ids.

    Args:
        vocabulary: what the ids stand for.
        ids: (n,) int32, the sentences one after the other; 0 for words outside the vocabulary.
        ends: (s,) int64, where each sentence ends in ``ids``; rising, the last is n.

    Raises:
        SettingError: ids or ends that do not fit.

    >>> corpus = SentenceCorpus.from_texts(["My router is dead", "Router dead or alive"], min_count=2)
    >>> corpus.vocabulary.words, [list(map(int, ids)) for ids in corpus.sentences()], corpus.counts().tolist()
    (('dead', 'router'), [[0, 2, 0, 1], [2, 1, 0, 0]], [4, 2, 2])
    """

    def __init__(self, vocabulary: Vocabulary, ids: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
        self.vocabulary = vocabulary
        self.ids = np.asarray(ids, np.int32)
        self.ends = np.asarray(ends, np.int64)
        last = int(self.ends[-1]) if self.ends.size else 0
        if last != self.ids.size or (self.ends.size and (self.ends[0] < 0 or (np.diff(self.ends) < 0).any())):
            raise SettingError(
                f"sentences that end at {last} in {self.ids.size} ids", "give rising ends, the last is n"
            )
        if self.ids.size and not (self.ids.min() >= 0 and self.ids.max() < len(vocabulary)):
            raise SettingError(
                f"ids from {self.ids.min()} to {self.ids.max()}, but the vocabulary has 0 to {len(vocabulary) - 1}",
                "take ids from this vocabulary",
            )

    @classmethod
    def from_texts(cls, texts: Iterable[str], *, min_count: int = 1, max_size: int | None = None) -> SentenceCorpus:
        """Return plain texts as a corpus, a text being a sentence; see ``from_words``."""
        return cls.from_words(map(words, texts), min_count=min_count, max_size=max_size)

    @classmethod
    def from_words(
        cls, sentences: Iterable[Iterable[str]], *, min_count: int = 1, max_size: int | None = None
    ) -> SentenceCorpus:
        """Return lists of words as a corpus; they are read once and not kept.

        Args:
            min_count: a word must occur this often to be in the vocabulary, ≥ 1.
            max_size: the vocabulary holds at most this many words, the most frequent; None for all.

        Raises:
            SettingError: min_count or max_size is out of range.
        """
        met: defaultdict[str, int] = defaultdict()
        met.default_factory = met.__len__
        numbers, ends = array("i"), array("q")
        for sentence in sentences:
            numbers.extend([met[word] for word in sentence])
            ends.append(len(numbers))
        ids = np.frombuffer(numbers, np.int32) if numbers else np.zeros(0, np.int32)
        counts = np.bincount(ids, minlength=len(met))
        vocabulary = Vocabulary.from_counts(
            dict(zip(met, counts.tolist(), strict=True)), min_count=min_count, max_size=max_size
        )
        renumber = np.array(vocabulary.ids(met), np.int32)
        return cls(vocabulary, renumber[ids] if len(met) else ids, np.array(ends, np.int64))

    @classmethod
    def of(cls, vocabulary: Vocabulary, sentences: Iterable[Sequence[str]]) -> SentenceCorpus:
        """Return lists of words as a corpus of a vocabulary that is there already."""
        numbers, ends = array("i"), array("q")
        for sentence in sentences:
            numbers.extend(vocabulary.ids(sentence))
            ends.append(len(numbers))
        return cls(vocabulary, np.array(numbers, np.int32), np.array(ends, np.int64))

    def __len__(self) -> int:
        """Return how many words the sentences have, those outside the vocabulary included."""
        return int(self.ids.size)

    def counts(self) -> NDArray[np.int64]:
        """Return how often each id occurs: (V,) int64."""
        return np.bincount(self.ids, minlength=len(self.vocabulary)).astype(np.int64)

    def known_count(self) -> int:
        """Return how many words of the sentences are in the vocabulary."""
        return int(np.count_nonzero(self.ids != UNKNOWN))

    def sentences(self) -> Iterator[NDArray[np.int32]]:
        """Yield the ids of each sentence in order; one of more than ``LONGEST`` words in pieces."""
        start = 0
        for end in self.ends.tolist():
            for first in range(start, end, LONGEST):
                yield self.ids[first : min(first + LONGEST, end)]
            start = end
