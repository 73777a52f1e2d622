"""Recall at k: how many of the relevant documents are in the top of the list.

Enters: gains in rank order. Leaves: a number in [0, 1]. May import: nothing of askalike.

Source: Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 2008, section 8.3.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["recall_at"]


def recall_at(gains: Sequence[int], k: int, relevant: int) -> float:
    """Return the share of the relevant documents that are among the first k.

    ``recall@k = |{i ≤ k : gains_i > 0}| / R``

    Args:
        gains: gain of the document at rank 1, 2, …; relevant when > 0.
        k: ≥ 1.
        relevant: R ≥ the number of relevant documents in ``gains``.

    Returns:
        A number in [0, 1]; 0 when R is 0.

    Example:
        >>> recall_at([1, 0, 1, 1], 3, relevant=4)
        0.5
    """
    return sum(gain > 0 for gain in gains[:k]) / relevant if relevant else 0.0
