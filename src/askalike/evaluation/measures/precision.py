"""Precision at k: how much of the top of the list is relevant.

Enters: gains in rank order. Leaves: a number in [0, 1]. May import: nothing of askalike.

Source: Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 2008, section 8.4.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["precision_at"]


def precision_at(gains: Sequence[int], k: int, candidates: int | None = None) -> float:
    """Return the share of relevant documents among the first k.

    ``P@k = |{i ≤ k : gains_i > 0}| / k``; with ``candidates`` given the divisor is ``min(k, candidates)``, so that a
    list of three documents can reach P@5 = 1.

    Args:
        gains: gain of the document at rank 1, 2, …; relevant when > 0.
        k: ≥ 1.
        candidates: number of documents there were to rank, or None to divide by k always.

    Returns:
        A number in [0, 1]; 0 for an empty list.

    Example:
        >>> precision_at([1, 0, 1], 5), round(precision_at([1, 0, 1], 5, candidates=3), 4)
        (0.4, 0.6667)
    """
    divisor = k if candidates is None else min(k, candidates)
    return sum(gain > 0 for gain in gains[:k]) / divisor if divisor else 0.0
