"""Normalised discounted cumulative gain at k: graded relevance, worth less further down.

Enters: gains in rank order. Leaves: a number in [0, 1]. May import: nothing of askalike.

Source: Järvelin and Kekäläinen, "Cumulated Gain-Based Evaluation of IR Techniques", TOIS 20(4), 2002, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

__all__ = ["ndcg_at"]


def _discounted(gains: Sequence[int], k: int) -> float:
    return sum(max(gain, 0) / log2(rank + 1) for rank, gain in enumerate(gains[:k], start=1))


def ndcg_at(gains: Sequence[int], k: int, ideal: Sequence[int]) -> float:
    """Return the discounted gain of the first k documents over that of the best possible first k.

    ``DCG@k = Σ_{i ≤ k} gains_i / log2(i + 1)``, ``nDCG@k = DCG@k(gains) / DCG@k(ideal)``

    The gain is the grade itself (linear) and rank i is discounted by log2(i + 1), as trec_eval's ``ndcg_cut`` has it.

    Differs: the paper does not discount ranks below the base of the logarithm (2); the form above discounts every
    rank but the first, as is usual today.

    Args:
        gains: gain of the document at rank 1, 2, …; gains ≤ 0 add nothing.
        k: ≥ 1.
        ideal: gains of all relevant documents, highest first.

    Returns:
        A number in [0, 1]; 0 when nothing is relevant.

    Example:
        Grades 2 and 1 exist and only the 2 was found, at rank 2: (2 / log2 3) / (2 + 1 / log2 3):

        >>> round(ndcg_at([0, 2, 0], 10, ideal=[2, 1]), 4)
        0.4796
    """
    best = _discounted(ideal, k)
    return _discounted(gains, k) / best if best else 0.0
