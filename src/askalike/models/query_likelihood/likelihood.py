"""The likelihood of a query under a model of each candidate, and the simplest such model, query likelihood (LMIR).

::

    P(q|D) = Π_{w ∈ q} P(w|D)^tf(w, q)

    P(w|D) = (1 - s_D) · P_ml(w|D) + s_D · P(w|C)
    s_D    = λ                    Jelinek-Mercer
    s_D    = μ / (|D| + μ)        Dirichlet: long texts are trusted more

What P(w|D) is makes the difference between most of the models.

Source: Zhai and Lafferty 2004 (ACM TOIS 22:2), sections 2 and 3, table I.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.query_likelihood.terms import Collection, TermLists, shares

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Method = Literal["dirichlet", "jelinek-mercer"]


class QueryModel:
    """A language model of candidates, by what it has learned; any number of threads may ask it.

    A model says what P(w|D) and P(w|C) are; one without a P(w|D) of single words says what P(q|D) is.
    """

    __slots__ = ()

    def word_probabilities(
        self, words: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return P(w|D) of each word under each candidate, > 0.  # (T, N)

        Args:
            words: distinct and ascending.  # (T,)
            candidates: N texts.
            answers: one to each candidate, empty where there is none; models that read no answers ignore them.
            mixtures: θ of each candidate where it is known before; models without topics ignore it.  # (N, K)
        """
        raise NotImplementedError

    def background(self, words: Ids) -> Floats:
        """Return P(w|C), > 0.  # (T,)"""
        raise NotImplementedError

    def log_likelihoods(
        self, query: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return log P(q|D) of each candidate; 0 for a query without terms.  # (N,)

        Args:
            query: its terms in order, with repetitions.  # (L,)
            candidates, answers, mixtures: as in ``word_probabilities``.
        """
        words, times = np.unique(query, return_counts=True)
        return np.asarray(times @ np.log(self.word_probabilities(words, candidates, answers, mixtures)))

    def mean_ratios(
        self, query: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return how much likelier a word of the query is under each candidate than in the collection.  # (N,)

        ::

            (P(q|D) / P(q|C))^(1/|q|)

        It orders the candidates of a query as P(q|D) does, and is a number that can be shown: > 0, and above 1 where
        the candidate makes the query likelier. It is 1 for a query without terms.
        """
        words, times = np.unique(query, return_counts=True)
        found = self.log_likelihoods(query, candidates, answers, mixtures) - times @ np.log(self.background(words))
        return np.asarray(np.exp(found / max(1, len(query))))


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
class QueryLikelihood(QueryModel):
    """The words of candidates alone; answers are not read.

    Example:
        A text of the words 1, 1, 2 and a collection of 10 words, 4 of them 1; μ = 1, so that s_D = 1/4:
        P(1|D) = 3/4 · 2/3 + 1/4 · 4/10 = 0.6.

        >>> model = QueryLikelihood(Collection(np.array([0, 4, 6])), Smoothing("dirichlet", 1.0))
        >>> model.word_probabilities(np.array([1]), TermLists.of([[1, 1, 2]])).round(3).tolist()
        [[0.6]]
    """

    collection: Collection
    smoothing: Smoothing = field(default_factory=Smoothing)

    def word_probabilities(
        self, words: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return P(w|D).  # (T, N)"""
        return self.smoothing.mixed(shares(words, candidates), self.background(words), candidates.lengths())

    def background(self, words: Ids) -> Floats:
        """Return P(w|C).  # (T,)"""
        return self.collection.probabilities(words)
