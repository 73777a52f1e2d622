"""Texts as term ids in one array: what the language models count, align and learn from.

An id above 0 is a term of a vocabulary, one below 0 a term that the vocabulary lacks; 0 is no term.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from askalike.models.vocabulary import Vocabulary
from askalike.text.analyzer import Analyzer
from askalike.text.settings import SNOWBALL
from askalike.types import Answer, Question

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TermLists:
    """N texts of M terms in all.

    Args:
        ids: of all texts, in order and with repetitions.  # (M,) int64
        starts: where each text begins in ``ids``, and M.  # (N + 1,) int64
    """

    ids: Ids
    starts: Ids

    @classmethod
    def of(cls, texts: Iterable[Sequence[int] | Ids]) -> TermLists:
        """Return texts given one by one.

        >>> lists = TermLists.of([[5, 7], [], [5]])
        >>> lists.ids.tolist(), lists.starts.tolist(), lists.lengths().tolist()
        ([5, 7, 5], [0, 2, 2, 3], [2, 0, 1])
        """
        arrays = [np.asarray(text, np.int64) for text in texts]
        starts = np.zeros(len(arrays) + 1, np.int64)
        np.cumsum([len(text) for text in arrays], out=starts[1:])
        return cls(np.concatenate([np.zeros(0, np.int64), *arrays]), starts)

    def __len__(self) -> int:
        """Return N."""
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> Ids:
        """Return the terms of one text."""
        return self.ids[self.starts[row] : self.starts[row + 1]]

    def lengths(self) -> Ids:
        """Return how many terms each text has.  # (N,)"""
        return np.diff(self.starts)

    def owners(self) -> Ids:
        """Return of which text each term is.  # (M,)"""
        return np.repeat(np.arange(len(self)), self.lengths())

    def counts(self, size: int, weights: Floats | None = None) -> csr_array:
        """Return how often each term of a vocabulary occurs in each text.  # (N, V)

        Args:
            size: V, ids of the vocabulary with 0.
            weights: how much each term counts; None for 1.  # (M,)

        >>> TermLists.of([[1, 2, 1], [2, -9]]).counts(4).toarray().tolist()
        [[0.0, 2.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
        """
        is_known = self.ids > 0
        values = np.ones(len(self.ids)) if weights is None else weights
        rows, columns = self.owners()[is_known], self.ids[is_known]
        return coo_array((values[is_known], (rows, columns)), shape=(len(self), size)).tocsr()

    def frequencies(self, words: Ids) -> Floats:
        """Return tf(w, D), how often each word occurs in each text; words may be unknown ones.  # (T, N)

        >>> TermLists.of([[5, -7, 5], [8], []]).frequencies(np.array([5, -7])).tolist()
        [[2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
        """
        owners = self.owners()
        rows = [np.bincount(owners[self.ids == word], minlength=len(self)) for word in words.tolist()]
        return np.array(rows, np.float64).reshape(len(words), len(self))


def term_ids(vocabulary: Vocabulary, terms: Sequence[str]) -> Ids:
    """Return the id of each term, in order; a term that the vocabulary lacks has one below 0, made of its letters.

    So a term that was never learned still matches itself; two of them share an id once in 4,000 million times.

    >>> term_ids(Vocabulary(["router", "modem"]), ["modem", "router"]).tolist()
    [2, 1]
    >>> first, second, again = term_ids(Vocabulary(["router"]), ["wlan", "wifi", "wlan"]).tolist()
    >>> first == again, first == second, first < 0
    (True, False, True)
    """
    known = vocabulary.ids(terms)
    unknown = (-1 - zlib.crc32(term.encode(errors="surrogatepass")) for term in terms)
    return np.array([number or other for number, other in zip(known, unknown, strict=True)], np.int64)


class TermReader:
    """Questions and answers as terms: title and body, lower case, stems, no stop words."""

    def __init__(self) -> None:
        self._analyzer = Analyzer(SNOWBALL)

    def question(self, question: Question) -> list[str]:
        """Return the terms of title and body, one after the other."""
        prepared = self._analyzer.prepare(question.title, question.body, question.markup)
        return prepared.title + prepared.body

    def answer(self, answer: Answer) -> list[str]:
        """Return the terms of an answer."""
        return self._analyzer.prepare("", answer.body, answer.markup).body


@dataclass(frozen=True, slots=True)
class Parallel:
    """P pairs of texts that translate into each other, text i of the sources into text i of the targets; none is empty.

    Args:
        sources: their terms u.
        targets: their terms w.
    """

    sources: TermLists
    targets: TermLists

    @classmethod
    def of(cls, pairs: Iterable[tuple[Sequence[int] | Ids, Sequence[int] | Ids]], most: int | None = None) -> Parallel:
        """Return pairs without the terms that no vocabulary has, and without pairs of which nothing is left then.

        Args:
            most: of each text only so many terms are taken, the first, ≥ 1; None takes all.

        >>> pairs = Parallel.of([([1, -7, 2], [3, 1]), ([-7], [3])], most=1)
        >>> pairs.sources.ids.tolist(), pairs.targets.ids.tolist()
        ([1], [3])
        """
        known = [(_known_ids(source, most), _known_ids(target, most)) for source, target in pairs]
        kept = [(source, target) for source, target in known if len(source) and len(target)]
        return cls(TermLists.of(source for source, _ in kept), TermLists.of(target for _, target in kept))

    def __len__(self) -> int:
        """Return P."""
        return len(self.sources)

    def both_ways(self) -> Parallel:
        """Return every pair and the same turned round, 2P in all.

        Source: Xue, Jeon and Croft 2008 (SIGIR), P_pool: questions with answers and answers with questions are one set.

        >>> pairs = Parallel.of([([1], [2, 3])]).both_ways()
        >>> pairs.sources.ids.tolist(), pairs.targets.ids.tolist(), pairs.targets.starts.tolist()
        ([1, 2, 3], [2, 3, 1], [0, 2, 3])
        """
        return Parallel(joined(self.sources, self.targets), joined(self.targets, self.sources))


def _known_ids(text: Sequence[int] | Ids, most: int | None) -> Ids:
    ids = np.asarray(text, np.int64)
    return ids[ids > 0][:most]


def joined(first: TermLists, second: TermLists) -> TermLists:
    """Return the texts of both, one list after the other."""
    starts = np.concatenate([first.starts, first.starts[-1] + second.starts[1:]])
    return TermLists(np.concatenate([first.ids, second.ids]), starts)
