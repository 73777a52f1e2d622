"""The translation models of Jeon et al. and of Xue et al.: a query's word may also come from another word.

::

    P_mx(w|q,a) = α · P_ml(w|q) + β · Σ_{u ∈ q} t(w|u) · P_ml(u|q) + γ · P_ml(w|a),        α + β + γ = 1
    P(w|q,a)    = (1 - s) · P_mx(w|q,a) + s · P(w|C)

s is μ / (|q,a| + μ) under Dirichlet smoothing, the paper's of TransLM, |q,a| being the number of terms of question and
answer together; it is λ under Jelinek-Mercer, the paper's of the word translation model. That is γ = 0, and α = σ the
share of words that stay as they are; with σ = 0, as it is written, how well a word matches itself is what t(w|w) was
learned to be. It can be 1 in place of that, so that a word of the query that a text has counts as in the text's own
language model, and translations are added; the sums over w are above 1 then.

Source: Jeon, Croft and Lee 2005 (CIKM), the query's likelihood by word translation, after Berger and Lafferty 1999;
Xue, Jeon and Croft 2008 (SIGIR), TransLM, the model of question and answer. t(w|u) is IBM's model 1, trained on all
pairs (q, a) and (a, q) together, P_pool there.
Reading: the equations are from memory. A language is translated into itself here, and how likely a word stays itself
decides much: learned from questions and answers t(w|w) is small, since an answer repeats few words of its question. A
candidate without an answer is one whose terms are those of its question: α and β are brought to sum to 1 there, as γ is
beside a question without terms. That Jeon et al. have t(w|w) = 1 is from memory too, and could not be looked up: both
are offered, and both stand in the table of Das et al. 2016 (docs/papers/readings.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.query_likelihood.likelihood import QueryModel, Smoothing
from askalike.models.query_likelihood.terms import Collection, TermLists, shares
from askalike.models.translation.ibm1 import Translations

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

WORD_SMOOTHING: Final = Smoothing("jelinek-mercer", 0.2)
"""Of the word translation model, where nothing else is said."""


SelfTranslation = Literal["learned", "certain"]
"""What t(w|w) is: as it was learned, or 1."""


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
class TransLM(QueryModel):
    """The words of questions, what they translate into, and the words of their answers.

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
    self_translation: SelfTranslation = "learned"

    def word_probabilities(
        self, words: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return P(w|q,a).  # (T, N)"""
        weights, lengths = self.mixture, candidates.lengths()
        own = weights.translations * self.translations.shares(words, candidates)
        if self.self_translation == "certain":
            missing = 1 - self.translations.of_themselves(words)
            own += weights.translations * missing[:, None] * shares(words, candidates)
        if weights.words:
            own += weights.words * shares(words, candidates)
        known = weights.words + weights.translations
        if answers is not None and weights.answer:
            own += weights.answer * shares(words, answers)
            there = known * (lengths > 0) + weights.answer * (answers.lengths() > 0)
            own /= np.where(there > 0, there, 1)
            lengths = lengths + answers.lengths()
        elif known != 1:
            own /= known
        return self.smoothing.mixed(own, self.background(words), lengths)

    def background(self, words: Ids) -> Floats:
        """Return P(w|C).  # (T,)"""
        return self.collection.probabilities(words)


def word_translation(
    collection: Collection,
    translations: Translations,
    smoothing: Smoothing = WORD_SMOOTHING,
    kept: float = 0.0,
    self_translation: SelfTranslation = "learned",
) -> TransLM:
    """Return the word translation model; it reads no answers.

    Args:
        kept: σ in [0, 1), the share of words that stay as they are.
        self_translation: ``learned`` or ``certain``: what t(w|w) is.

    Raises:
        SettingError: ``kept`` is out of range, or ``self_translation`` not listed.

    Example:
        The word 1 and a text of the words 2, 3; t(1|2) = 0.5; a collection of 10 words, 1 of them 1; λ = 0.2:
        P(1|D) = 0.8 · (0.5 · 1/2) + 0.2 · 0.1 = 0.22.

        >>> learned = Translations.of(np.array([1]), np.array([2]), np.array([0.5]), 4)
        >>> model = word_translation(Collection(np.array([0, 1, 4, 5])), learned)
        >>> model.word_probabilities(np.array([1]), TermLists.of([[2, 3]])).round(3).tolist()
        [[0.22]]

        With t(2|2) = 1, which was not learned, P(2|D) = 0.8 · (1 · 1/2) + 0.2 · 0.4 = 0.48 in place of 0.08.

        >>> certain = word_translation(Collection(np.array([0, 1, 4, 5])), learned, self_translation="certain")
        >>> certain.word_probabilities(np.array([1, 2]), TermLists.of([[2, 3]])).round(3).tolist()
        [[0.22], [0.48]]
    """
    if not (isfinite(kept) and 0 <= kept < 1):
        raise SettingError(f"kept is {kept}, but expected 0 ≤ kept < 1", "set kept")
    if self_translation not in get_args(SelfTranslation):
        choices = ", ".join(get_args(SelfTranslation))
        raise SettingError(f"self_translation is {self_translation!r}, but expected one of: {choices}")
    return TransLM(collection, translations, smoothing, Mixture(kept, 1 - kept), self_translation)
