"""The likelihood of a query under a model of each candidate: what all language models of retrieval rank by.

::

    P(q|D) = Π_{w ∈ q} P(w|D)^tf(w, q)

What P(w|D) is makes the difference between most of the models, and is all that one of them has to say: a
``QueryModel``. What rankers ask for is less, a ``QueryScorer``, since a model of phrases has no P(w|D) of single words.

Enters: a query's terms, candidates', perhaps their answers'. Leaves: scores. May import: lists.

Source: Zhai and Lafferty 2004 (ACM TOIS 22:2), section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.models.query_likelihood.lists import TermLists

__all__ = ["ByWords", "QueryModel", "QueryScorer", "log_likelihoods", "mean_ratios"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


class QueryModel(Protocol):
    """A language model of candidates, by what it has learned; any number of threads may ask it."""

    def word_probabilities(self, words: Ids, candidates: TermLists, answers: TermLists | None = None) -> Floats:
        """Return P(w|D) of each word under each candidate, > 0.  # (T, N)

        Args:
            words: distinct and ascending.  # (T,)
            candidates: N texts.
            answers: one to each candidate, empty where there is none; models that read no answers ignore them.
        """

    def background(self, words: Ids) -> Floats:
        """Return P(w|C), > 0.  # (T,)"""


class QueryScorer(Protocol):
    """What orders the candidates of a query, by what it has learned; any number of threads may ask it."""

    def log_likelihoods(
        self, query: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return log P(q|D) of each candidate; 0 for a query without terms.  # (N,)

        Args:
            query: its terms in order, with repetitions.  # (L,)
            candidates: N texts.
            answers: one to each candidate, empty where there is none; models that read no answers ignore them.
            mixtures: θ of each candidate where it is known before; models without topics ignore it.  # (N, K)
        """

    def mean_ratios(
        self, query: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return ``(P(q|D) / P(q|C))^(1/|q|)`` > 0; 1 for a query without terms.  # (N,)"""


def log_likelihoods(model: QueryModel, query: Ids, candidates: TermLists, answers: TermLists | None = None) -> Floats:
    """Return log P(q|D) of each candidate; 0 for a query without terms.  # (N,)

    Args:
        query: its terms, in any order and with repetitions.  # (L,)
    """
    words, times = np.unique(query, return_counts=True)
    return np.asarray(times @ np.log(model.word_probabilities(words, candidates, answers)))


def mean_ratios(model: QueryModel, query: Ids, candidates: TermLists, answers: TermLists | None = None) -> Floats:
    """Return how much likelier a word of the query is under each candidate than in the collection.  # (N,)

    ::

        (P(q|D) / P(q|C))^(1/|q|)

    It orders the candidates of a query as P(q|D) does, and is a number that can be shown: > 0, and above 1 where the
    candidate makes the query likelier. It is 1 for a query without terms.
    """
    if not len(query):
        return np.ones(len(candidates))
    words, times = np.unique(query, return_counts=True)
    found = log_likelihoods(model, query, candidates, answers) - times @ np.log(model.background(words))
    return np.asarray(np.exp(found / len(query)))


@dataclass(frozen=True, slots=True)
class ByWords:
    """A ``QueryScorer`` by the words of a ``QueryModel``, each on its own."""

    model: QueryModel

    def log_likelihoods(
        self, query: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return log P(q|D), as the function of that name.  # (N,)"""
        return log_likelihoods(self.model, query, candidates, answers)

    def mean_ratios(
        self, query: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return ``(P(q|D) / P(q|C))^(1/|q|)``, as the function of that name.  # (N,)"""
        return mean_ratios(self.model, query, candidates, answers)
