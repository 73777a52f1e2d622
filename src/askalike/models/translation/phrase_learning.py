"""How phrases are learned from pairs of texts, once it is known which word translates into which.

Enters: ``Parallel``, ``Translations``, choices. Leaves: ``PhraseTable``. May import: errors, its neighbours in
language.

Source: Zhou, Cai, Zhao and Liu 2011 (ACL), section 3.2: pairs (q, a) and (a, q) together, words linked in both
directions, links joined by heuristics, consistent phrases counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, get_args

from askalike.errors import SettingError
from askalike.models.query_likelihood.parallel import Parallel
from askalike.models.translation.phrase_table import PhraseTable
from askalike.models.translation.translations import Translations
from askalike.models.translation.word_links import Heuristic, align

__all__ = ["MOST_TERMS", "PhraseLearning"]

MOST_TERMS: Final = 10
"""Of the longest phrase that can be asked for."""


@dataclass(frozen=True, slots=True)
class PhraseLearning:
    """How phrases are learned.

    Args:
        heuristic: how the links of both directions are joined: ``intersection``, ``grow-diag``, ``grow-diag-final`` or
            ``union``.
        longest: L, terms of the longest phrase, from 1 to ``MOST_TERMS``.
        least: how often a pair of phrases must have been seen, ≥ 1.

    Raises:
        SettingError: a value that is not listed or out of range.
    """

    heuristic: Heuristic = "grow-diag-final"
    longest: int = 3
    least: int = 2

    def __post_init__(self) -> None:
        if self.heuristic not in get_args(Heuristic):
            choices = ", ".join(get_args(Heuristic))
            raise SettingError(f"heuristic is {self.heuristic!r}, but expected one of: {choices}", "set heuristic")
        if not (1 <= self.longest <= MOST_TERMS and self.least >= 1):
            raise SettingError(
                f"longest is {self.longest} and least {self.least}",
                f"expected 1 ≤ longest ≤ {MOST_TERMS} and least ≥ 1",
            )

    def learned(self, pairs: Parallel, translations: Translations, size: int) -> PhraseTable:
        """Return the phrases of pairs, each counted in both directions; the same from the same.

        Args:
            pairs: questions with their answers, each once.
            translations: t(w|u), learned from these pairs in both directions.
            size: V, ids of the vocabulary with 0.
        """
        links = align(pairs, translations, translations, self.heuristic)
        return PhraseTable.learn(links, size, longest=self.longest, least=self.least)
