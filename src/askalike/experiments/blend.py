"""The hybrid's rule: a cosine and a BM25 score in one number, and the weight between them.

Enters: cosines and BM25 scores of the same candidates. Leaves: blended scores; the weight that is best on a task.
May import: nothing of askalike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["WEIGHTS", "best_weight", "blend"]

WEIGHTS: Final = tuple(round(0.05 * step, 2) for step in range(21))
"""What is tried for w: 0 is BM25 alone, 1 the cosine alone."""


def blend(cosines: NDArray[np.floating], lexical: NDArray[np.floating], weight: float) -> NDArray[np.float64]:
    """Return ``w · cos + (1 - w) · bm25 / max bm25`` over one query's candidates.

    Where no candidate shares a term with the query, the second summand is 0.

    Args:
        cosines: (N,), in [-1, 1].
        lexical: (N,), ≥ 0.
        weight: w, in [0, 1].

    Example:
        0.5 · 0.8 + 0.5 · 10/10 and 0.5 · 0.9 + 0.5 · 5/10:

        >>> blend(np.array([0.8, 0.9]), np.array([10.0, 5.0]), 0.5).round(4).tolist()
        [0.9, 0.7]
    """
    highest = float(lexical.max(initial=0.0))
    scaled = lexical / highest if highest > 0 else np.zeros(len(lexical))
    return np.asarray(weight * cosines + (1 - weight) * scaled, dtype=np.float64)


def best_weight(value: Callable[[float], float]) -> tuple[float, Mapping[float, float]]:
    """Return the weight of the highest value, the smallest one of equals, and every value that was seen.

    Args:
        value: weight → what is to be high, in [0, 1].

    Example:
        >>> best_weight(lambda weight: 1 - abs(weight - 0.3))[0]
        0.3
    """
    seen = {weight: value(weight) for weight in WEIGHTS}
    return max(seen, key=lambda weight: (seen[weight], -weight)), seen
