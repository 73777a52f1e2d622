"""Texts as lists of term ids, one after the other in one array: what is counted and scored in one pass.

Enters: lists of ids. Leaves: ``TermLists``, frequencies. May import: nothing of askalike.

An id above 0 is a term of a vocabulary, one below 0 a term that the vocabulary lacks (see ``terms``); 0 is no term.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["TermLists", "frequencies", "shares"]

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

        >>> made = TermLists.of([[5, 7], [], [5]])
        >>> made.ids.tolist(), made.starts.tolist(), made.lengths().tolist()
        ([5, 7, 5], [0, 2, 2, 3], [2, 0, 1])
        """
        held = [np.asarray(text, np.int64) for text in texts]
        starts = np.zeros(len(held) + 1, np.int64)
        np.cumsum([len(text) for text in held], out=starts[1:])
        return cls(np.concatenate(held) if held else np.zeros(0, np.int64), starts)

    def __len__(self) -> int:
        """Return N."""
        return len(self.starts) - 1

    def lengths(self) -> Ids:
        """Return how many terms each text has.  # (N,)"""
        return np.diff(self.starts)

    def owners(self) -> Ids:
        """Return of which text each term is.  # (M,)"""
        return np.repeat(np.arange(len(self)), self.lengths())

    def sums(self, values: Floats) -> Floats:
        """Return the sum of the values of each text's terms, 0 for a text without.  # (N,)

        Args:
            values: one for each term.  # (M,)
        """
        found = np.zeros(len(self))
        has_terms = self.lengths() > 0
        if has_terms.any():
            found[has_terms] = np.add.reduceat(values, self.starts[:-1][has_terms])
        return found


def frequencies(words: Ids, texts: TermLists) -> Floats:
    """Return tf(w, D), how often each word occurs in each text.  # (T, N)

    Args:
        words: distinct and ascending.  # (T,)

    >>> frequencies(np.array([5, 7]), TermLists.of([[5, 7, 5], [8], []])).tolist()
    [[2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    shape = (len(words), len(texts))
    if not len(words):
        return np.zeros(shape)
    places = _places(words, texts.ids)
    is_found = places >= 0
    cells = places[is_found] * len(texts) + texts.owners()[is_found]
    return np.bincount(cells, minlength=len(words) * len(texts)).reshape(shape).astype(np.float64)


def _places(words: Ids, ids: Ids) -> Ids:
    """Return where among the words each id is, -1 where it is not.  # (M,)

    Ids of a vocabulary are looked up in a table, which is faster than to search for them; the others, below 0, are as
    large as any number.
    """
    first = int(np.searchsorted(words, 1))  # of those above 0
    table = np.full(max(1, int(words[-1])) + 2, -1, np.int64)  # the last is that of all larger ids
    table[words[first:]] = np.arange(first, len(words))
    found = table.take(ids, mode="clip")
    if first:
        is_new = ids < 0
        new = ids[is_new]
        near = np.minimum(np.searchsorted(words[:first], new), first - 1)
        found[is_new] = np.where(words[near] == new, near, -1)
    return np.asarray(found)


def shares(words: Ids, texts: TermLists) -> Floats:
    """Return the maximum-likelihood estimate ``P_ml(w|D) = tf(w, D) / |D|``, 0 for a text without terms.  # (T, N)

    >>> shares(np.array([5]), TermLists.of([[5, 7, 5, 9], []])).tolist()
    [[0.5, 0.0]]
    """
    return frequencies(words, texts) / np.maximum(texts.lengths(), 1)
