"""The word translation model: a query's word may also come from another word of the candidate.

::

    P(w|D) = (1 - s_D) · [σ · P_ml(w|D) + (1 - σ) · Σ_{u ∈ D} t(w|u) · P_ml(u|D)] + s_D · P(w|C)

s_D is λ under Jelinek-Mercer smoothing, the paper's. σ = 0 is the model as it is written: how well a word matches
itself is then what t(w|w) was learned to be.

Enters: counts, translations, terms of candidates. Leaves: P(w|D). May import: errors, its neighbours in language.

Source: Jeon, Croft and Lee 2005 (CIKM), the query's likelihood by word translation, after Berger and Lafferty 1999.
Reading: the paper's section is told from memory. A language is translated into itself here, and how likely a word stays
itself decides much (Jeon et al. 2005; Xue et al. 2008): learned from questions and answers t(w|w) is small, since an
answer repeats few words of its question. σ adds a share of words that stay as they are, so that each u still has
probabilities that sum to what they summed to; Xue et al.'s model does the same by its weights.
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

__all__ = ["TranslationModel"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TranslationModel:
    """A ``QueryModel`` of the words of candidates and of what they translate into.

    Args:
        collection: gives P(w|C).
        translations: t(w|u).
        smoothing: s_D.
        kept: σ in [0, 1), the share of words that stay as they are.

    Raises:
        SettingError: ``kept`` is out of range.

    Example:
        The word 1 and a text of the words 2, 3; t(1|2) = 0.5; a collection of 10 words, 1 of them 1; λ = 0.2:
        P(1|D) = 0.8 · (0.5 · 1/2) + 0.2 · 0.1 = 0.22.

        >>> learned = Translations.of(np.array([1]), np.array([2]), np.array([0.5]), 4)
        >>> counted = Collection(np.array([0, 1, 4, 5]))
        >>> model = TranslationModel(counted, learned, Smoothing("jelinek-mercer", 0.2))
        >>> model.word_probabilities(np.array([1]), TermLists.of([[2, 3]])).round(3).tolist()
        [[0.22]]
    """

    collection: Collection
    translations: Translations
    smoothing: Smoothing = field(default_factory=lambda: Smoothing("jelinek-mercer", 0.2))
    kept: float = 0.0

    def __post_init__(self) -> None:
        if not (isfinite(self.kept) and 0 <= self.kept < 1):
            raise SettingError(f"kept is {self.kept}, but expected 0 ≤ kept < 1", "set kept")

    def word_probabilities(self, words: Ids, candidates: TermLists, answers: TermLists | None = None) -> Floats:
        """Return P(w|D); answers are not read.  # (T, N)"""
        own = (1 - self.kept) * self.translations.shares(words, candidates)
        if self.kept:
            own += self.kept * shares(words, candidates)
        return self.smoothing.mixed(own, self.background(words), candidates.lengths())

    def background(self, words: Ids) -> Floats:
        """Return P(w|C).  # (T,)"""
        return self.collection.probabilities(words)
