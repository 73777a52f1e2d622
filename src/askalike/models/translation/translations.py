"""Which term translates into which, and how likely: sparse probabilities t(w|u).

Enters: (w, u, t(w|u)). Leaves: ``Translations``, sums over texts. May import: lists, row_sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from askalike.models.query_likelihood.lists import TermLists
from askalike.models.query_likelihood.row_sums import row_sums

if TYPE_CHECKING:  # SciPy takes long to import, and no search needs it
    from scipy.sparse import csr_array

__all__ = ["Translations"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Translations:
    """t(w|u), the probability that the term u is translated into w; a row w holds every u that can be.

    Args:
        starts: where each row begins, and K.  # (V + 1,) int64
        sources: the u of each row, ascending.  # (K,) int32
        values: t(w|u) > 0.  # (K,) float32
    """

    starts: NDArray[np.int64]
    sources: NDArray[np.int32]
    values: NDArray[np.float32]

    @classmethod
    def of(cls, words: NDArray[Any], sources: NDArray[Any], values: NDArray[Any], size: int) -> Translations:
        """Return entries in any order, each pair of w and u once.

        Args:
            words, sources, values: w, u, t(w|u).  # (K,)
            size: V, ids of the vocabulary with 0.

        >>> made = Translations.of(np.array([2, 1]), np.array([1, 1]), np.array([0.25, 0.75]), 3)
        >>> made.starts.tolist(), made.sources.tolist(), made.values.tolist()
        ([0, 0, 1, 2], [1, 1], [0.75, 0.25])
        """
        order = np.lexsort((sources, words))
        starts = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(words, minlength=size), out=starts[1:])
        return cls(starts, sources[order].astype(np.int32), values[order].astype(np.float32))

    @classmethod
    def none(cls, size: int = 1) -> Translations:
        """Return no translation of any of the V terms."""
        return cls(np.zeros(size + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))

    def __len__(self) -> int:
        """Return K, how many probabilities are held."""
        return len(self.values)

    def table(self, words: Ids, sources: Ids) -> Floats:
        """Return t(w|u) of each word for each source; 0 for terms that were never learned.  # (T, U)

        >>> made = Translations.of(np.array([2, 1]), np.array([1, 1]), np.array([0.25, 0.75]), 3)
        >>> made.table(np.array([1, 2, -5]), np.array([1, 2])).tolist()
        [[0.75, 0.0], [0.25, 0.0], [0.0, 0.0]]
        """
        found = np.zeros((len(words), len(sources)))
        known, row_of = np.maximum(sources, 0), np.zeros(len(self.starts) - 1)
        for place, word in enumerate(words.tolist()):
            row = self._row(word)
            row_of[self.sources[row]] = self.values[row]
            found[place] = row_of[known]
            row_of[self.sources[row]] = 0
        return found

    def sums(self, words: Ids, texts: TermLists) -> Floats:
        """Return ``Σ_{u ∈ D} tf(u, D) · t(w|u)`` of each word over each text.  # (T, N)

        >>> made = Translations.of(np.array([2, 1]), np.array([1, 1]), np.array([0.25, 0.75]), 3)
        >>> made.sums(np.array([2]), TermLists.of([[1, 1], [2], []])).tolist()
        [[0.5, 0.0, 0.0]]
        """
        rows = [(self.sources[row], self.values[row]) for row in map(self._row, words.tolist())]
        known = TermLists(np.maximum(texts.ids, 0), texts.starts)  # nothing comes from what was never learned
        return row_sums(rows, known, len(self.starts) - 1)

    def shares(self, words: Ids, texts: TermLists) -> Floats:
        """Return ``Σ_{u ∈ D} t(w|u) · P_ml(u|D)``, 0 for a text without terms.  # (T, N)"""
        return self.sums(words, texts) / np.maximum(texts.lengths(), 1)

    def matrix(self) -> csr_array:
        """Return the same as SciPy has it, for sums over rows and columns.  # (V, V)"""
        from scipy.sparse import csr_array

        size = len(self.starts) - 1
        return csr_array((self.values, self.sources, self.starts), shape=(size, size))

    def _row(self, word: int) -> slice:
        return slice(int(self.starts[word]), int(self.starts[word + 1])) if word > 0 else slice(0, 0)
