"""TransLM, the translation-based language model: a question's words, what they translate into, and its answer's words.

::

    P_mx(w|q,a) = α · P_ml(w|q) + β · Σ_{u ∈ q} t(w|u) · P_ml(u|q) + γ · P_ml(w|a),        α + β + γ = 1
    P(w|q,a)    = |q,a| / (|q,a| + μ) · P_mx(w|q,a) + μ / (|q,a| + μ) · P(w|C)

|q,a| is the number of terms of question and answer together.

Enters: counts, translations, terms of candidates and of their answers. Leaves: P(w|q,a). May import: errors, its
neighbours in language.

Source: Xue, Jeon and Croft 2008 (SIGIR), the model of question and answer. t(w|u) is IBM's model 1, trained on all
pairs (q, a) and (a, q) together, P_pool there. How likely a word stays itself is set by α beside β, whatever t(w|w) is.
Reading: the equations are from memory. A candidate without an answer is one whose terms are those of its question: α
and β are brought to sum to 1 there, as γ is beside a question without terms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.query_likelihood.collection import Collection
from askalike.models.query_likelihood.lists import TermLists, shares
from askalike.models.query_likelihood.smoothing import Smoothing
from askalike.models.translation.translations import Translations

__all__ = ["Mixture", "TransLM"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Mixture:
    """The weights of the three parts, which are brought to sum to 1.

    Args:
        words: α ≥ 0, of the question's own words.
        translations: β ≥ 0, of what they translate into.
        answer: γ ≥ 0, of the answer's words; 0 reads no answers.

    Raises:
        SettingError: a weight below 0, or no weight for the question.
    """

    words: float = 0.6
    translations: float = 0.4
    answer: float = 0.0

    def __post_init__(self) -> None:
        weights = (self.words, self.translations, self.answer)
        if not (all(map(isfinite, weights)) and min(weights) >= 0 and self.words + self.translations > 0):
            raise SettingError(
                f"the weights are words {self.words}, translations {self.translations} and answer {self.answer}",
                "expected finite numbers ≥ 0, and one of the first two above 0",
            )


@dataclass(frozen=True, slots=True)
class TransLM:
    """A ``QueryModel`` of candidates with their answers.

    Example:
        The word 1; a question of the words 1, 2 and an answer of the words 1, 3, 3, 3; t(1|2) = 0.5; a collection of 10
        words, 1 of them 1; α = 0.5, β = 0.3, γ = 0.2, μ = 6 so that the collection has a half:
        P(1|q,a) = 0.5 · (0.5 · 1/2 + 0.3 · 0.5 · 1/2 + 0.2 · 1/4) + 0.5 · 0.1 = 0.2375. Without the answer, with
        |q| = 2 and the weights 5/8 and 3/8, it is 1/4 · (5/8 · 1/2 + 3/8 · 1/4) + 3/4 · 0.1 = 0.1766.

        >>> learned = Translations.of(np.array([1]), np.array([2]), np.array([0.5]), 4)
        >>> counted, weights = Collection(np.array([0, 1, 4, 5])), Mixture(0.5, 0.3, 0.2)
        >>> model = TransLM(counted, learned, Smoothing("dirichlet", 6.0), weights)
        >>> asked = TermLists.of([[1, 2], [1, 2]])
        >>> model.word_probabilities(np.array([1]), asked, TermLists.of([[1, 3, 3, 3], []])).round(4).tolist()
        [[0.2375, 0.1766]]
    """

    collection: Collection
    translations: Translations
    smoothing: Smoothing = field(default_factory=Smoothing)
    mixture: Mixture = field(default_factory=Mixture)

    def word_probabilities(self, words: Ids, candidates: TermLists, answers: TermLists | None = None) -> Floats:
        """Return P(w|q,a).  # (T, N)"""
        weights, lengths = self.mixture, candidates.lengths()
        own = weights.words * shares(words, candidates)
        own += weights.translations * self.translations.shares(words, candidates)
        there = (weights.words + weights.translations) * (lengths > 0)
        if answers is not None and weights.answer:
            own += weights.answer * shares(words, answers)
            there = there + weights.answer * (answers.lengths() > 0)
            lengths = lengths + answers.lengths()
        own /= np.where(there > 0, there, 1)
        return self.smoothing.mixed(own, self.background(words), lengths)

    def background(self, words: Ids) -> Floats:
        """Return P(w|C).  # (T,)"""
        return self.collection.probabilities(words)
