"""Which words of a candidate each word of a query is matched with: what a ranker can say of its reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.models.query_likelihood.terms import TermLists
from askalike.models.topics.topics import Topics
from askalike.models.translation.ibm1 import Translations
from askalike.models.translation.phrases import PhraseTable

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

LEAST_ALIKE: Final = 0.5
"""Words that are less alike by their topics are not aligned."""


@dataclass(frozen=True, slots=True)
class WordAlignments:
    """For each of the T words of a query a piece of the candidate, and how well the two match.

    Args:
        starts, ends: first place of the piece in the candidate, and the place after its last.  # (T,)
        values: in [0, 1]; 0 where nothing is aligned with the word.  # (T,)
    """

    starts: Ids
    ends: Ids
    values: Floats

    @classmethod
    def none(cls, count: int) -> WordAlignments:
        """Return nothing for each of so many words."""
        return cls(np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count))

    @classmethod
    def best(cls, table: Floats) -> WordAlignments:
        """Return the single word with the largest number for each word of the query, the first of equal ones.

        Args:
            table: a row for each word of the query, a column for each place of the candidate.  # (T, U)

        >>> found = WordAlignments.best(np.array([[0.1, 0.5], [0.0, 0.0]]))
        >>> found.starts.tolist(), found.ends.tolist(), found.values.tolist()
        ([1, 0], [2, 1], [0.5, 0.0])
        """
        if not table.size:
            return cls.none(len(table))
        places = table.argmax(axis=1).astype(np.int64)
        return cls(places, places + 1, np.asarray(table.max(axis=1)))

    def or_else(self, other: WordAlignments) -> WordAlignments:
        """Return these, and another's where nothing is aligned with a word.

        >>> found = WordAlignments.best(np.array([[0.2], [0.0]])).or_else(WordAlignments.best(np.array([[0.9], [0.7]])))
        >>> found.values.tolist()
        [0.2, 0.7]
        """
        is_own = self.values > 0
        starts, ends = np.where(is_own, self.starts, other.starts), np.where(is_own, self.ends, other.ends)
        return WordAlignments(starts, ends, np.where(is_own, self.values, other.values))


def by_translations(translations: Translations, asked: Ids, theirs: Ids) -> WordAlignments:
    """Return for each word the one that translates into it best, by t(w|u)."""
    return WordAlignments.best(translations.table(asked, theirs))


def by_phrases(table: PhraseTable, asked: Ids, theirs: Ids) -> WordAlignments:
    """Return for each word the phrase of the candidate that best becomes a phrase of the query with the word in it.

    Args:
        asked: the query's terms in order.  # (T,)
        theirs: the candidate's.  # (U,)

    Example:
        P(1 2|3) = 0.5: 3 is aligned with 1 and with 2, and nothing with 4.

        >>> from askalike.models.translation.phrases import PhraseBook
        >>> book = PhraseBook(np.array([1, 3, 1 * 5 + 2]), 5, 2)  # 1, 3 and 1 2
        >>> table = PhraseTable(book, np.array([0, 0, 0, 1]), np.array([1]), np.array([0.5], np.float32))
        >>> found = by_phrases(table, np.array([1, 2, 4]), np.array([4, 3]))
        >>> found.starts.tolist(), found.ends.tolist(), found.values.tolist()
        ([1, 1, 0], [2, 2, 0], [0.5, 0.5, 0.0])
    """
    best = WordAlignments.none(len(asked))
    held = table.book.numbers(TermLists.of([theirs]))  # (L, U)
    lengths, places = np.nonzero(held >= 0)
    numbers = held[lengths, places]
    weights = np.zeros(len(table.book))
    for length, row in enumerate(table.book.numbers(TermLists.of([asked])).tolist(), start=1):
        for start, number in enumerate(row):
            if number < 0 or not len(numbers):
                continue
            sources, values = table.row(number)
            weights[sources] = values
            likely = weights[numbers]
            weights[sources] = 0
            place = int(likely.argmax())
            covered = np.arange(start, start + length)
            covered = covered[best.values[covered] < likely[place]]
            best.starts[covered] = places[place]
            best.ends[covered] = places[place] + lengths[place] + 1
            best.values[covered] = likely[place]
    return best


def by_topics(topics: Topics, asked: Ids, theirs: Ids) -> WordAlignments:
    """Return for each word the one most alike by topics, the cosine of φ_1w … φ_Kw; nothing below ``LEAST_ALIKE``.

    Example:
        1 and 2 are of one topic, 3 of another.

        >>> held = np.array([[0, 0], [0.5, 0], [0.5, 0], [0, 1]], np.float32)
        >>> found = by_topics(Topics(held, held, alpha=0.5), np.array([1, 3]), np.array([-9, 2]))
        >>> found.starts.tolist(), found.values.tolist()
        ([1, 0], [1.0, 0.0])
    """
    table = _directions(topics, asked) @ _directions(topics, theirs).T
    return WordAlignments.best(np.where(table < LEAST_ALIKE, 0.0, np.minimum(table, 1.0)))


def _directions(topics: Topics, words: Ids) -> Floats:
    """Return φ of words at length 1, 0 for one that was never learned.  # (T, K)"""
    is_known = (words > 0) & (words < len(topics.questions))
    held = topics.questions[np.where(is_known, words, 0)].astype(np.float64) * is_known[:, None]
    return np.asarray(held / np.maximum(np.linalg.norm(held, axis=1, keepdims=True), np.finfo(np.float64).tiny))
