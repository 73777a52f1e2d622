"""Joining words and meaning: a weighted sum of the cosine and of BM25 as a share of the best candidate's."""

from __future__ import annotations

from collections.abc import Sequence


def shares(scores: Sequence[float]) -> list[float]:
    """Return each score as a share of the greatest: ``s(p) / max_p' s(p')``; zeros where none is above 0.

    >>> shares([10.0, 5.0, 0.0])
    [1.0, 0.5, 0.0]
    """
    most = max(scores, default=0.0)
    return [score / most if most > 0 else 0.0 for score in scores]


def weighted_sum(cosine: float, bm25_share: float, weight: float) -> float:
    """Return ``w · cos(q, p) + (1 - w) · bm25(q, p) / max_p' bm25(q, p')``.

    Args:
        cosine: in [-1, 1].
        bm25_share: in [0, 1].
        weight: of the cosine, in [0, 1].

    >>> round(weighted_sum(cosine=0.8, bm25_share=0.5, weight=0.25), 3)  # 0.25 · 0.8 + 0.75 · 0.5
    0.575
    """
    return weight * cosine + (1.0 - weight) * bm25_share
