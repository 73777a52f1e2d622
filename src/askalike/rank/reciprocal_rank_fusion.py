"""Joining words and meaning by places alone: reciprocal rank fusion, the measured alternative to the weighted sum."""

from __future__ import annotations

from collections.abc import Iterable


def reciprocal_rank_fusion(ranks: Iterable[int], constant: float) -> float:
    """Return ``Σ_r 1 / (constant + rank_r(p))`` over the rankings that have the candidate, places from 1.

    >>> round(reciprocal_rank_fusion([1, 3], constant=60), 6)  # 1/61 + 1/63
    0.032266
    """
    return sum(1.0 / (constant + rank) for rank in ranks)
