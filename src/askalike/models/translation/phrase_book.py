"""Phrases as numbers: every phrase is the phrase without its last term, and that term.

::

    key(t_1 … t_l) = (number(t_1 … t_{l-1}) + 1) · V + t_l,        number(nothing) = -1

The number of a phrase is the place of its key in one sorted array, so that finding the phrases at all places of many
texts is a few binary searches over arrays, and the whole book is stored as that array.

Enters: texts. Leaves: a ``PhraseBook``, numbers of phrases. May import: lists.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.models.query_likelihood.lists import TermLists

__all__ = ["PhraseBook", "reaches"]

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]


def reaches(owners: Ids, length: int) -> Flags:
    """Return whether a phrase of that length that starts at a place ends in the same text.  # (M,)

    Args:
        owners: of which text the term at each place is, as ``TermLists.owners`` has it.  # (M,)

    >>> reaches(np.array([0, 0, 1]), 2).tolist()
    [True, False, False]
    """
    inside = np.zeros(len(owners), np.bool_)
    count = len(owners) - length + 1
    if count > 0:
        inside[:count] = owners[:count] == owners[length - 1 :]
    return inside


@dataclass(frozen=True, slots=True, eq=False)
class PhraseBook:
    """P phrases of up to ``longest`` terms, ordered by length and then by their terms; with each its beginnings.

    Args:
        keys: one for each phrase, ascending.  # (P,) int64
        size: V, ids of the vocabulary with 0; what the vocabulary lacks is in no phrase.
        longest: L ≥ 1, terms of the longest phrase.
    """

    keys: Ids
    size: int
    longest: int

    def __len__(self) -> int:
        """Return P."""
        return len(self.keys)

    @classmethod
    def of(cls, texts: TermLists, wanted: Ids, size: int, longest: int) -> PhraseBook:
        """Number the phrases that start at the places of texts.

        Args:
            wanted: how long the longest phrase is that is wanted at each place, 0 for none.  # (M,)

        Example:
            Up to two terms from the first place of 5 7 9: the phrases 5 and 5 7, with V = 10.

            >>> PhraseBook.of(TermLists.of([[5, 7, 9]]), np.array([2, 0, 0]), 10, 2).keys.tolist()
            [5, 17]
        """
        book = cls(np.zeros(0, np.int64), size, longest)
        owners = texts.owners()
        before = np.full(len(owners), -1, np.int64)
        for length in range(1, longest + 1):
            starts = np.flatnonzero((wanted >= length) & book._can_start(texts.ids, owners, before, length))
            new = np.unique(book._keys(texts.ids, before, starts, length))
            book = cls(np.concatenate([book.keys, new]), size, longest)
            before = book._longer(texts.ids, owners, before, length)
        return book

    def numbers(self, texts: TermLists) -> Ids:
        """Return the number of the phrase of each length that starts at each place, -1 where the book lacks it.

        Returns:
            One row for each length from 1 to L.  # (L, M)

        >>> book = PhraseBook(np.array([5, 17]), 10, 2)  # 5 and 5 7
        >>> book.numbers(TermLists.of([[5, 7], [7, 5], [5]])).tolist()
        [[0, -1, -1, 0, 0], [1, -1, -1, -1, -1]]
        """
        owners = texts.owners()
        found = np.full((self.longest, len(owners)), -1, np.int64)
        before = found[0]  # of length 0: -1 everywhere
        for length in range(1, self.longest + 1):
            before = found[length - 1] = self._longer(texts.ids, owners, before, length)
        return found

    def occurrences(self, texts: TermLists, wanted: Ids) -> TermLists:
        """Return where some phrases start in texts: of each text the places of its phrases in ``wanted``.

        Only beginnings of these phrases are looked for, so that it takes a fraction of the time of ``numbers``.

        Args:
            wanted: numbers of phrases, ascending.  # (W,)

        Returns:
            N lists of places in [0, W), shorter phrases first.

        >>> book = PhraseBook(np.array([5, 7, 17]), 10, 2)  # 5, 7 and 5 7
        >>> found = book.occurrences(TermLists.of([[5, 7], [7, 5, 7]]), np.array([1, 2]))  # 7 and 5 7
        >>> found.ids.tolist(), found.starts.tolist()
        ([0, 1, 0, 0, 1], [0, 2, 5])
        """
        needed = self._with_beginnings(wanted)
        keys, place_of = self.keys[needed], np.full(len(needed), -1, np.int64)
        place_of[np.searchsorted(needed, wanted)] = np.arange(len(wanted))
        owners = texts.owners()
        singles = np.full(self.size, -1, np.int64)
        count = int(np.searchsorted(keys, self.size))
        singles[keys[:count]] = np.arange(count)
        found = singles.take(np.where(texts.ids < self.size, texts.ids, 0), mode="clip")  # no phrase begins with 0
        starts = np.flatnonzero(found >= 0)
        reached = found[starts]
        pieces = [(place_of[reached], owners[starts])]
        goes_on = np.zeros(len(needed), np.bool_)
        goes_on[np.searchsorted(needed, keys[count:] // self.size - 1)] = True
        for length in range(2, self.longest + 1):
            inside = goes_on[reached] & (starts + length <= len(owners))
            starts, reached = starts[inside], reached[inside]
            following = texts.ids[starts + length - 1]
            is_one = (owners[starts] == owners[starts + length - 1]) & (following > 0) & (following < self.size)
            starts, asked = starts[is_one], (needed[reached[is_one]] + 1) * self.size + following[is_one]
            near = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)  # keys are there: something goes on
            is_known = keys[near] == asked
            starts, reached = starts[is_known], near[is_known]
            pieces.append((place_of[reached], owners[starts]))
        places, of = (np.concatenate(part) for part in zip(*pieces, strict=True))
        is_wanted = places >= 0
        places, of = places[is_wanted], of[is_wanted]
        bounds = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.bincount(of, minlength=len(texts)), out=bounds[1:])
        return TermLists(places[np.argsort(of, kind="stable")], bounds)

    def _with_beginnings(self, numbers: Ids) -> Ids:
        """Return phrases and what they begin with, ascending."""
        needed = [numbers]
        while len(needed[-1]):
            before = self.keys[needed[-1]] // self.size - 1
            needed.append(np.unique(before[before >= 0]))
        return np.unique(np.concatenate(needed))

    def restrict(self, wanted: Flags) -> tuple[PhraseBook, Ids]:
        """Return the book of some phrases with their beginnings, and the number that each of them has here.

        >>> book = PhraseBook(np.array([4, 5, 27]), 10, 2)  # 4, 5 and 5 7
        >>> smaller, old = book.restrict(np.array([False, False, True]))
        >>> smaller.keys.tolist(), old.tolist()  # 5 and 5 7
        ([5, 17], [1, 2])
        """
        parents = self.keys // self.size - 1  # (P,)
        kept = wanted.copy()
        for _ in range(self.longest - 1):
            kept[parents[kept & (parents >= 0)]] = True
        numbers = np.concatenate([np.cumsum(kept) - 1, [-1]])  # the last is that of nothing
        keys = (numbers[parents[kept]] + 1) * self.size + self.keys[kept] % self.size
        return PhraseBook(keys, self.size, self.longest), np.flatnonzero(kept)

    def terms(self, number: int) -> list[int]:
        """Return the terms of a phrase.

        >>> PhraseBook(np.array([5, 17]), 10, 2).terms(1)
        [5, 7]
        """
        found: list[int] = []
        while number >= 0:
            before, last = divmod(int(self.keys[number]), self.size)
            found.append(last)
            number = before - 1
        return found[::-1]

    def _can_start(self, ids: Ids, owners: Ids, before: Ids, length: int) -> Flags:
        """Return where a phrase of a length can start: the one before it is known, and so is its last term."""
        inside = reaches(owners, length)
        if length > 1:
            inside &= before >= 0
        count = max(0, len(ids) - length + 1)
        inside[:count] &= (ids[length - 1 :] > 0) & (ids[length - 1 :] < self.size)
        return inside

    def _keys(self, ids: Ids, before: Ids, starts: Ids, length: int) -> Ids:
        return np.asarray((before[starts] + 1) * self.size + ids[starts + length - 1])

    def _longer(self, ids: Ids, owners: Ids, before: Ids, length: int) -> Ids:
        """Return the phrases of a length at all places, given those that are one term shorter.  # (M,)"""
        found = np.full(len(ids), -1, np.int64)
        if len(self.keys):
            starts = np.flatnonzero(self._can_start(ids, owners, before, length))
            keys = self._keys(ids, before, starts, length)
            places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            found[starts] = np.where(self.keys[places] == keys, places, -1)
        return found
