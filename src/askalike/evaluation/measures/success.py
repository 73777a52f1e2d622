"""Success at k: whether there is anything relevant in the top of the list.

Enters: gains in rank order. Leaves: 0 or 1. May import: nothing of askalike.

Source: the measure ``success`` of trec_eval; the mean over queries is also known as hit rate.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["success_at"]


def success_at(gains: Sequence[int], k: int) -> float:
    """Return 1 when a relevant document is among the first k, else 0.

    ``success@k = 1 if max_{i ≤ k} gains_i > 0 else 0``

    Args:
        gains: gain of the document at rank 1, 2, …; relevant when > 0.
        k: ≥ 1.

    Example:
        >>> success_at([0, 0, 1], 3), success_at([0, 0, 1], 2)
        (1.0, 0.0)
    """
    return float(any(gain > 0 for gain in gains[:k]))
