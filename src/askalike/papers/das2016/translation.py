"""IBM's model 1: which term translates into which, learned from pairs of texts by expectation and maximisation.

::

    P(target|source) ∝ Π_{w ∈ target} (1/l) Σ_{u ∈ source} t(w|u)         l: terms of the source, one more with NULL

    E   c(w|u) = Σ over pairs, over w's and u's occurrences, of t(w|u) / Σ_{u' ∈ source} t(w|u')
    M   t(w|u) = c(w|u) / Σ_w c(w|u)

It begins with every t(w|u) alike, and each step makes the pairs likelier or leaves them as they are. NULL is a term
that every source has beside its own, so that a word need not come from any of them.

A pair of texts with L and M terms has L·M cells; of each, 5 bytes are kept: the number of its (w, u) in a sparse matrix
whose rows are the words of targets.

Source: Brown, Della Pietra, Della Pietra and Mercer 1993 (Computational Linguistics 19:2), section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from scipy.sparse import csr_array

from askalike.papers.das2016.terms import Floats, Ids, Parallel

ITERATIONS: Final = 10
LEAST: Final = 1e-3
_CELLS_AT_ONCE: Final = 1 << 21
"""How many cells are worked on at once; it bounds the memory."""
_TINIEST: Final = float(np.finfo(np.float32).tiny)


def learn_translations(
    pairs: Parallel,
    size: int,
    iterations: int = ITERATIONS,
    least: float = LEAST,
    on_progress: Callable[[int, float], None] = lambda *_: None,
) -> csr_array:
    """Return t(w|u) as it was learned from pairs, rows w and columns u; the same from the same.  # (V, V) float32

    Args:
        size: V, ids of the vocabulary with 0.
        iterations: of expectation and maximisation, ≥ 1.
        least: a t(w|u) below it is not kept in the end, in [0, 1); those that are stay as they are, so that what is
            left of a term's translations may sum to less than 1.
        on_progress: called after each iteration with how many are done, and the log likelihood per target term before.
    """
    model = ModelOne(pairs, size, has_null=True)
    terms = max(1, len(pairs.targets.ids))
    for done in range(1, iterations + 1):
        on_progress(done, model.step() / terms)
    return model.translations(least)


class ModelOne:
    """The state of a training: t(w|u) for every w and u that meet in a pair.

    Args:
        size: V, ids of the vocabulary with 0; NULL has the id V while it is learned.

    Example:
        "das Haus / the house", "das Buch / the book", "ein Buch / a book": das 1, Haus 2, Buch 3, ein 4; the 5, house
        6, book 7, a 8. After two steps "the" is 7/11 of "das", and "a" 4/7 of "ein".

        >>> pairs = Parallel.of([([1, 2], [5, 6]), ([1, 3], [5, 7]), ([4, 3], [8, 7])])
        >>> model = ModelOne(pairs, 9, has_null=False)
        >>> before, after = model.step(), model.step()
        >>> learned = model.translations()
        >>> round(float(learned[5, 1]), 4), round(float(learned[8, 4]), 4), after > before
        (0.6364, 0.5714, True)
    """

    def __init__(self, pairs: Parallel, size: int, *, has_null: bool = False) -> None:
        self._size = size
        self._base = size + 1  # a pair of terms is the number u · base + w
        blocks = list(_blocks(pairs, self._base, has_null=has_null))
        self._pairs = np.unique(np.concatenate([np.zeros(0, np.int64), *(numbers for numbers, _ in blocks)]))  # (K,)
        self._blocks = [(np.searchsorted(self._pairs, numbers).astype(np.int32), cells) for numbers, cells in blocks]
        self._source_of = (self._pairs // self._base).astype(np.int32)
        self._values: Floats = np.full(len(self._pairs), 1 / max(1, len(np.unique(pairs.targets.ids))))

    def step(self) -> float:
        """Make t(w|u) anew, and return the log likelihood of the pairs under what it was before."""
        counts, likelihood = np.zeros(len(self._pairs)), 0.0
        for numbers, cells in self._blocks:
            values = self._values[numbers]
            sums = cells @ values  # Σ_u t(w|u) of each target word
            counts[numbers] += values * (cells.T @ (1 / sums))
            likelihood += float(np.log(sums / np.diff(cells.indptr)).sum())
        totals = np.bincount(self._source_of, weights=counts, minlength=self._base)
        self._values = counts / np.maximum(totals, _TINIEST)[self._source_of]
        return likelihood

    def translations(self, least: float = 0.0) -> csr_array:
        """Return every t(w|u) ≥ ``least`` and > 0, without those of NULL.  # (V, V)"""
        is_kept = (self._values >= max(least, _TINIEST)) & (self._source_of < self._size)
        words, sources = self._pairs[is_kept] % self._base, self._source_of[is_kept]
        values = self._values[is_kept].astype(np.float32)
        return csr_array((values, (words, sources)), shape=(self._size, self._size))


def _blocks(pairs: Parallel, base: int, *, has_null: bool) -> Iterator[tuple[Ids, csr_array]]:
    """Yield the distinct (w, u) of some pairs, and a row for each of their target words: the (w, u) it could be of."""
    sources, targets = pairs.sources, pairs.targets
    keys: list[Ids] = []
    sizes: list[Ids] = []
    cells = 0
    for row in range(len(pairs)):
        source = np.append(base - 1, sources[row]) if has_null else sources[row]
        keys.append((source * base + targets[row][:, None]).ravel())
        sizes.append(np.full(len(targets[row]), len(source)))
        cells += len(keys[-1])
        if cells >= _CELLS_AT_ONCE or row == len(pairs) - 1:
            distinct, places = np.unique(np.concatenate(keys), return_inverse=True)
            bounds = np.append(0, np.cumsum(np.concatenate(sizes)))
            ones = np.ones(len(places), np.int8)
            yield distinct, csr_array((ones, places.astype(np.int32), bounds), shape=(len(bounds) - 1, len(distinct)))
            keys, sizes, cells = [], [], 0
