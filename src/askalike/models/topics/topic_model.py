"""A language model of candidates by their words and by their topics.

::

    P(w|D) = λ · P_words(w|D) + (1 - λ) · Σ_z φ_zw θ_z(D)

P_words is any other ``QueryModel``, smoothed with the collection: query likelihood, or a translation model beside which
the topics are a second, coarser way from word to word. A candidate of which no word was learned has no topics; P(w|C)
stands for them.

Enters: a model of words, ``Topics``, terms of candidates and of their answers. Leaves: P(w|D). May import: errors, its
neighbours in language.

Source: Ji, Xu, Wang and He 2012 (CIKM), which adds topics to a translation-based language model; Zhang, Wu, Wu, Li and
Zhou 2014 (CIKM), a topic-based language model; Wei and Croft 2006 (SIGIR), for topics beside words in a query's
likelihood.
Reading: both papers of 2012 and 2014 are told from memory; the equation is that of Wei and Croft. Das et al. 2016 name
their two rows QATM-PR and TBLM_SQATM-V; what PR stands for is not in what could be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.query_likelihood.likelihood import QueryModel, log_likelihoods, mean_ratios
from askalike.models.query_likelihood.lists import TermLists
from askalike.models.topics.topics import Topics

__all__ = ["KnownTopics", "TopicModel", "TopicScorer"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TopicModel:
    """A ``QueryModel`` of the words of candidates and of their topics.

    Args:
        words: gives P_words(w|D) and P(w|C).
        topics: φ, and what θ is found with.
        share: λ in (0, 1], that of the model of words.

    Raises:
        SettingError: ``share`` is out of range.

    Example:
        The word 2, of which the candidate has none, in a collection of 10 words that has it once, half of P_words:
        P_words(2|D) = 0.05. In both topics together φ is 0.8 and 0, and a text of the word 1 is about the first by
        0.75. λ = 0.5: P(2|D) = 0.5 · 0.05 + 0.5 · 0.8 · 0.75 = 0.325.

        >>> from askalike.models.query_likelihood.collection import Collection
        >>> from askalike.models.query_likelihood.smoothing import QueryLikelihood, Smoothing
        >>> words = QueryLikelihood(Collection(np.array([0, 4, 1, 5])), Smoothing("jelinek-mercer", 0.5))
        >>> held = np.array([[0, 0], [0.2, 0], [0.8, 0], [0, 1]], np.float32)
        >>> model = TopicModel(words, Topics(held, held, alpha=0.5), share=0.5)
        >>> model.word_probabilities(np.array([2]), TermLists.of([[1]])).round(3).tolist()
        [[0.325]]
    """

    words: QueryModel
    topics: Topics
    share: float = 0.7

    def __post_init__(self) -> None:
        if not (isfinite(self.share) and 0 < self.share <= 1):
            raise SettingError(f"share is {self.share}, but expected 0 < share ≤ 1", "set share")

    def word_probabilities(self, words: Ids, candidates: TermLists, answers: TermLists | None = None) -> Floats:
        """Return P(w|D); the topics of a candidate are those of its answers too, where they are given.  # (T, N)"""
        return self.with_mixtures(words, candidates, answers, self.topics.mixtures(candidates, answers))

    def with_mixtures(self, words: Ids, candidates: TermLists, answers: TermLists | None, mixtures: Floats) -> Floats:
        """Return P(w|D) where θ is known, as it can be of questions that are there before a query is.  # (T, N)

        Args:
            mixtures: θ of each candidate, from ``Topics.mixtures``.  # (N, K)
        """
        about = self.topics.probabilities(words, mixtures)
        has_topics = self._known(candidates) > 0
        if answers is not None and self.topics.answer_weight:
            has_topics |= self._known(answers) > 0
        about = np.where(has_topics, about, self.background(words)[:, None])
        return np.asarray(
            self.share * self.words.word_probabilities(words, candidates, answers) + (1 - self.share) * about
        )

    def background(self, words: Ids) -> Floats:
        """Return P(w|C).  # (T,)"""
        return self.words.background(words)

    def _known(self, texts: TermLists) -> Floats:
        """Return how many words of each text were learned.  # (N,)"""
        return texts.sums(((texts.ids > 0) & (texts.ids < len(self.topics.questions))).astype(np.float64))


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """A ``QueryModel`` of some candidates whose topics are known.

    Args:
        model: what it is.
        mixtures: θ of each of the candidates.  # (N, K)
    """

    model: TopicModel
    mixtures: Floats

    def word_probabilities(self, words: Ids, candidates: TermLists, answers: TermLists | None = None) -> Floats:
        """Return P(w|D).  # (T, N)"""
        return self.model.with_mixtures(words, candidates, answers, self.mixtures)

    def background(self, words: Ids) -> Floats:
        """Return P(w|C).  # (T,)"""
        return self.model.background(words)


@dataclass(frozen=True, slots=True)
class TopicScorer:
    """A ``QueryScorer`` by the words and topics of candidates; those that are not known are inferred."""

    model: TopicModel

    def log_likelihoods(
        self, query: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return log P(q|D) of each candidate.  # (N,)"""
        return log_likelihoods(self._of(mixtures), query, candidates, answers)

    def mean_ratios(
        self, query: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return ``(P(q|D) / P(q|C))^(1/|q|)``.  # (N,)"""
        return mean_ratios(self._of(mixtures), query, candidates, answers)

    def _of(self, mixtures: Floats | None) -> QueryModel:
        return self.model if mixtures is None else KnownTopics(self.model, mixtures)
