"""Questions and answers as letter trigrams, and as sparse vectors over a vocabulary of them.

Reading: a question's title and description are joined to one text: the paper says that its questions have both, and
feeds one vector of a question to the network. Repetitions count, so that the order of the two does not matter.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.vocabulary import Vocabulary
from askalike.models.siamese.config import SiameseReads
from askalike.text.markup import readable
from askalike.text.settings import TextSettings
from askalike.text.trigrams import TrigramReader, trigrams
from askalike.types import Answer, Question


@dataclass(frozen=True, slots=True)
class TrigramTexts:
    """Texts over V trigrams, each as the places that are not zero and the numbers there.

    Args:
        places: of the trigrams that occur, rising within a text; place i is the vocabulary's word of id i + 1.  # (M,)
        counts: how often each occurs.  # (M,)
        starts: where each text begins; the last number is M.  # (N + 1,)

    >>> texts = TrigramTexts.of([["#ab", "ab#", "#ab"], ["#zz"], ["ab#"]], Vocabulary(["ab#", "#ab"]))
    >>> texts.places.tolist(), texts.counts.tolist(), texts.starts.tolist()
    ([0, 1, 0], [1.0, 2.0, 1.0], [0, 2, 2, 3])
    >>> texts.keys(np.array([2, 0]), 2).tolist()  # text 2 first: place 0; then text 0, 2 places on
    [0, 2, 3]
    """

    places: NDArray[np.int32]
    counts: NDArray[np.float32]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def sizes(self) -> NDArray[np.int64]:
        """Return how many trigrams of each text are known, each counted once.  # (N,)"""
        return np.diff(self.starts)

    @classmethod
    def of(cls, texts: Iterable[Iterable[str]], vocabulary: Vocabulary) -> TrigramTexts:
        """Return texts given by their trigrams; those outside the vocabulary are dropped."""
        ids, starts = array("i"), array("q", [0])
        for text in texts:
            ids.extend(vocabulary.ids(text))
            starts.append(len(ids))
        return cls.counted(np.array(ids, np.int32), np.array(starts, np.int64), len(vocabulary))

    @classmethod
    def counted(cls, ids: NDArray[np.int32], starts: NDArray[np.int64], size: int) -> TrigramTexts:
        """Return texts given by ids of a vocabulary, with repetitions, one text after the other; 0 is dropped.

        Args:
            ids: below ``size``.  # (W,)
            starts: where each text begins; the last number is W.  # (N + 1,)
            size: ids that there are, the one for unknown trigrams included.
        """
        keys = np.repeat(np.arange(len(starts) - 1), np.diff(starts)) * size + ids
        distinct, counts = np.unique(keys[ids > 0], return_counts=True)
        begins = np.searchsorted(distinct, np.arange(len(starts)) * size)
        places = distinct % size - 1
        return cls(places.astype(np.int32), counts.astype(np.float32), begins.astype(np.int64))

    def some(self, rows: NDArray[np.int64]) -> TrigramTexts:
        """Return some of the texts, in the order of ``rows``."""
        entries = self.entries(rows)
        starts = np.concatenate([[0], np.cumsum(self.sizes()[rows])])
        return TrigramTexts(self.places[entries], self.counts[entries], starts.astype(np.int64))

    def entries(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where in ``places`` and ``counts`` the numbers of some texts stand, one text after the other."""
        lengths = self.starts[rows + 1] - self.starts[rows]
        before = np.cumsum(lengths) - lengths
        found: NDArray[np.int64] = np.repeat(self.starts[rows] - before, lengths)
        found += np.arange(len(found))
        return found

    def keys(self, rows: NDArray[np.int64], length: int) -> NDArray[np.int64]:
        """Return the places of some texts laid end to end, each ``length`` long; rising."""
        lengths = self.starts[rows + 1] - self.starts[rows]
        keys: NDArray[np.int64] = np.repeat(np.arange(len(rows)) * length, lengths)
        keys += self.places[self.entries(rows)]
        return keys


class SiameseReader:
    """Trigrams of questions and answers.

    Args:
        text: language, stop words, stems, code.
        reads: what of a question is read.

    >>> question = Question("1", "Slow wifi", "On trains")
    >>> len(SiameseReader(TextSettings(), "joined").question(question))  # slow, wifi, train
    13
    >>> SiameseReader(TextSettings(), "title").question(question)
    ['#sl', 'slo', 'low', 'ow#', '#wi', 'wif', 'ifi', 'fi#']
    """

    def __init__(self, text: TextSettings, reads: SiameseReads) -> None:
        self._settings: Final = text
        self._reads: Final = reads
        self._reader: Final = TrigramReader(text)

    def text(self, plain: str) -> list[str]:
        """Return the trigrams of a plain text."""
        return self._reader.trigrams(plain)

    def trigrams(self, words: Iterable[str]) -> list[str]:
        """Return the trigrams of words, as they are read of a text."""
        return list(chain.from_iterable(map(trigrams, words)))

    def question(self, question: Question) -> list[str]:
        """Return the trigrams of a question."""
        return self.trigrams(self.question_words(question))

    def question_words(self, question: Question) -> list[str]:
        """Return the words whose trigrams are read of a question."""
        title = self._reader.words(question.title)
        if self._reads == "title":
            return title
        body = readable(question.body, question.markup, with_code=self._settings.with_code)
        return title + self._reader.words(body)

    def answer(self, answer: Answer) -> list[str]:
        """Return the trigrams of an answer."""
        return self.text(readable(answer.body, answer.markup, with_code=self._settings.with_code))
