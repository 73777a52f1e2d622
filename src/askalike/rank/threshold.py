"""Which of a search's candidates are shown at all, beside the best k.

Source: Das et al. 2016 (ACL), section 5: "The threshold is dynamically set to the average similarity score across
questions and we output only those which have a similarity greater than the average".
Differs: the average is that of the candidates, not of all questions of a forum; and one that has just the average is
shown, so that a candidate that is the only one, or as good as all the others, can be found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum, isclose
from typing import Final

from askalike.rank.scored import Scored

ALL: Final = "none"

_ROUNDING: Final = 1e-12
"""The average of equal scores may differ from them by so much."""


def above_average(scored: Sequence[Scored]) -> list[Scored]:
    """Return those whose score is not below the mean of all, in their order.

    >>> [one.score for one in above_average([Scored(key, score, {}) for key, score in enumerate((0.9, 0.2, 0.4))])]
    [0.9]
    """
    average = fsum(one.score for one in scored) / len(scored) if scored else 0.0
    return [one for one in scored if one.score >= average or isclose(one.score, average, rel_tol=_ROUNDING)]


THRESHOLDS: Final[Mapping[str, Callable[[Sequence[Scored]], list[Scored]]]] = {ALL: list, "average": above_average}
"""Name → what it leaves of the candidates."""
