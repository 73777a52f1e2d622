"""What can be chosen of RAMN: which of its layers are on, and what the paper leaves open.

Enters: choices. Leaves: checked ``RamnSettings``. May import: errors, rank's word states.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal, get_args

from askalike.errors import SettingError
from askalike.rank.word_states import Similarity

__all__ = ["ALPHAS", "FORUM", "RamnSettings", "Repeats"]

Repeats = Literal["each", "once"]

ALPHAS: Final = tuple(round(0.01 + 0.005 * step, 3) for step in range(19))
"""The paper's grid for α: 0.01, 0.015, … 0.1."""

LEAST_FLOOR: Final = 1e-9
MOST_FLOOR: Final = 1
MOST_WEIGHT: Final = 10


@dataclass(frozen=True, slots=True)
class RamnSettings:
    """RAMN, but for the states and frequencies that it compares.

    Args:
        has_mismatch: the second layer, lexical mismatch; without it d_i = 1.
        alpha: α of the third layer, the rank factor 1 - α · rank, in [0, 0.1]; 0 leaves it out.
        similarity: s_ij: the ``dot`` product, the ``cosine``, or ``shifted-cosine``, (1 + cos) / 2.
        floor: what a similarity counts at least, in [10⁻⁹, 1]: its logarithm is taken.
        repeats: words that the query has more than once: ``each`` occurrence is a factor of the product, or the word
            ``once``, with the best match of its occurrences.
        mismatch_weight: γ in [0, 10]: d_i^γ stands for d_i; 1 is the paper's. With much more, scores would come to 0,
            which says that there is no hit.
        is_per_word: the geometric mean of the factors of all words stands for their product; the rank factor then
            counts as much beside a long query as beside a short one.
        is_both_ways: the candidate's words are matched in the query too, and the mean of both counts, so that a long
            candidate, which has something for every word, is not above a short one that says the same. It takes
            ``is_per_word`` and the words as often as they occur.

    Raises:
        SettingError: a value that is not listed or out of range, or values that do not go together.
    """

    has_mismatch: bool = True
    alpha: float = 0.035
    similarity: Similarity = "dot"
    floor: float = 1e-3
    repeats: Repeats = "each"
    mismatch_weight: float = 1.0
    is_per_word: bool = False
    is_both_ways: bool = False

    def __post_init__(self) -> None:
        for name, choices in (("similarity", get_args(Similarity)), ("repeats", get_args(Repeats))):
            if getattr(self, name) not in choices:
                raise SettingError(f"{name} is {getattr(self, name)!r}, but expected one of: {', '.join(choices)}")
        numbers = (self.alpha, self.floor, self.mismatch_weight)
        if not (
            all(map(isfinite, numbers))
            and 0 <= self.alpha <= 0.1
            and LEAST_FLOOR <= self.floor <= MOST_FLOOR
            and 0 <= self.mismatch_weight <= MOST_WEIGHT
        ):
            raise SettingError(
                f"alpha is {self.alpha}, floor {self.floor} and mismatch_weight {self.mismatch_weight}",
                f"expected alpha from 0 to 0.1, floor from {LEAST_FLOOR} to {MOST_FLOOR}, mismatch_weight from 0 to"
                f" {MOST_WEIGHT}",
            )
        if self.is_both_ways and not (self.is_per_word and self.repeats == "each"):
            raise SettingError(
                f"is_both_ways with is_per_word {self.is_per_word} and repeats {self.repeats!r}",
                'texts of different lengths can be joined per word only: set is_per_word, and repeats to "each"',
            )


FORUM: Final = RamnSettings(
    alpha=0.035, similarity="shifted-cosine", mismatch_weight=0.1, is_per_word=True, is_both_ways=True
)
"""What a forum's ranker has by default; see docs/decisions/0019. The paper's are ``RamnSettings()``."""
