"""Reciprocal rank: how early the first relevant document comes.

Enters: gains in rank order. Leaves: a number in [0, 1]. May import: nothing of askalike.

Source: Voorhees, "The TREC-8 Question Answering Track Report", TREC 1999.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["reciprocal_rank"]


def reciprocal_rank(gains: Sequence[int]) -> float:
    """Return one over the rank of the first relevant document.

    ``RR = 1 / min {i : gains_i > 0}``, and 0 when no document of the list is relevant.

    Args:
        gains: gain of the document at rank 1, 2, …; relevant when > 0.

    Example:
        >>> reciprocal_rank([0, 0, 0, 1, 1]), reciprocal_rank([0, 0])
        (0.25, 0.0)
    """
    for rank, gain in enumerate(gains, start=1):
        if gain > 0:
            return 1 / rank
    return 0.0
