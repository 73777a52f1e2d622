"""Query likelihood with smoothing (LMIR): how likely a candidate's words make the query.

::

    P(w|D) = (1 - s_D) · P_ml(w|D) + s_D · P(w|C)

    s_D = λ                    Jelinek-Mercer
    s_D = μ / (|D| + μ)        Dirichlet: long texts are trusted more

Enters: counts of a collection, terms of candidates. Leaves: P(w|D). May import: errors, collection, lists.

Source: Zhai and Lafferty 2004 (ACM TOIS 22:2), sections 2 and 3, table I.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.query_likelihood.collection import Collection
from askalike.models.query_likelihood.lists import TermLists, shares

__all__ = ["QueryLikelihood", "Smoothing"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Method = Literal["dirichlet", "jelinek-mercer"]


@dataclass(frozen=True, slots=True)
class Smoothing:
    """How much of the collection is in a text's model.

    Args:
        method: ``dirichlet`` or ``jelinek-mercer``.
        weight: μ > 0, in terms, of Dirichlet; λ in (0, 1] of Jelinek-Mercer.

    Raises:
        SettingError: a value that is not listed or out of range.
    """

    method: Method = "dirichlet"
    weight: float = 100.0

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            choices = ", ".join(get_args(Method))
            raise SettingError(f"smoothing is {self.method!r}, but expected one of: {choices}", "set smoothing")
        most = 1.0 if self.method == "jelinek-mercer" else np.inf
        if not (isfinite(self.weight) and 0 < self.weight <= most):
            expected = "0 < weight ≤ 1" if np.isfinite(most) else "a finite weight > 0"
            raise SettingError(f"the weight of {self.method} is {self.weight}, but expected {expected}", "set weight")

    def shares(self, lengths: Ids) -> Floats:
        """Return s_D, the collection's share in texts of these lengths.  # (N,)

        >>> Smoothing("dirichlet", 100.0).shares(np.array([0, 100, 300])).tolist()
        [1.0, 0.5, 0.25]
        >>> Smoothing("jelinek-mercer", 0.2).shares(np.array([0, 100])).tolist()
        [0.2, 0.2]
        """
        if self.method == "jelinek-mercer":
            return np.full(len(lengths), self.weight)
        return np.asarray(self.weight / (lengths + self.weight))

    def mixed(self, own: Floats, background: Floats, lengths: Ids) -> Floats:
        """Return ``(1 - s_D) · own + s_D · P(w|C)``.  # (T, N)

        Args:
            own: what the text itself makes of each word.  # (T, N)
            background: P(w|C).  # (T,)
            lengths: |D|.  # (N,)
        """
        share = self.shares(lengths)
        return np.asarray((1 - share) * own + share * background[:, None])


@dataclass(frozen=True, slots=True)
class QueryLikelihood:
    """A ``QueryModel`` of the words of candidates alone.

    Example:
        A text of the words 1, 1, 2 and a collection of 10 words, 4 of them 1; μ = 1, so that s_D = 1/4:
        P(1|D) = 3/4 · 2/3 + 1/4 · 4/10 = 0.6.

        >>> model = QueryLikelihood(Collection(np.array([0, 4, 6])), Smoothing("dirichlet", 1.0))
        >>> model.word_probabilities(np.array([1]), TermLists.of([[1, 1, 2]])).round(3).tolist()
        [[0.6]]
    """

    collection: Collection
    smoothing: Smoothing = field(default_factory=Smoothing)

    def word_probabilities(self, words: Ids, candidates: TermLists, answers: TermLists | None = None) -> Floats:
        """Return P(w|D); answers are not read.  # (T, N)"""
        return self.smoothing.mixed(shares(words, candidates), self.background(words), candidates.lengths())

    def background(self, words: Ids) -> Floats:
        """Return P(w|C).  # (T,)"""
        return self.collection.probabilities(words)
