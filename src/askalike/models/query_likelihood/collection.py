"""How often each term occurs in a collection C: what every language model is smoothed with.

Enters: texts as ids. Leaves: ``Collection``. May import: lists.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.models.query_likelihood.lists import TermLists

__all__ = ["Collection"]


@dataclass(frozen=True, slots=True)
class Collection:
    """Counts over a collection.

    Args:
        counts: how often each term occurs; at 0 all together that the vocabulary lacks.  # (V,) int64
    """

    counts: NDArray[np.int64]

    @classmethod
    def count(cls, texts: TermLists, size: int) -> Collection:
        """Count texts.

        Args:
            size: V, ids of the vocabulary with 0.

        >>> Collection.count(TermLists.of([[1, 2, 1], [2, -9]]), 4).counts.tolist()
        [1, 2, 2, 0]
        """
        return cls(np.bincount(np.maximum(texts.ids, 0), minlength=size).astype(np.int64))

    @classmethod
    def none(cls) -> Collection:
        """Return the counts of no text over no term."""
        return cls(np.zeros(1, np.int64))

    def probabilities(self, words: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return ``P(w|C) = tf(w, C) / |C|``, where a term that the collection lacks counts as one.  # (T,)

        Differs: a term that was never seen would have the probability 0, and every text that lacks it the score -inf.

        >>> Collection(np.array([1, 2, 2, 0])).probabilities(np.array([-9, 1, 3])).tolist()
        [0.2, 0.4, 0.2]
        """
        held = np.where(words > 0, self.counts[np.maximum(words, 0)], 1)
        return np.asarray(np.maximum(held, 1) / max(1, int(self.counts.sum())))
