"""The distances between two sequences that rapidfuzz computes, as similarities.

Enters: the name of a distance, strings or lists. Leaves: similarities in [0, 1]. May import: errors.

rapidfuzz is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askalike.errors import MissingExtraError

__all__ = ["compare", "normalized"]


def normalized(
    distance: str, query: Sequence[Hashable], candidates: Sequence[Sequence[Hashable]]
) -> NDArray[np.float64]:
    """Return the similarity of one sequence with N others, 0 where one of the two is empty.  # (N,)

    Args:
        distance: a module of ``rapidfuzz.distance``; its distance is divided by the most that it can be.

    Raises:
        MissingExtraError: rapidfuzz is not installed.
    """
    if not query or not candidates:
        return np.zeros(len(candidates))
    found: NDArray[np.float64] = compare(distance, [query], candidates)[0]
    found[[not candidate for candidate in candidates]] = 0.0
    return found


def compare(
    distance: str, these: Sequence[Sequence[Hashable]], those: Sequence[Sequence[Hashable]]
) -> NDArray[np.float64]:
    """Return the similarity of each of ``these`` with each of ``those``.  # (len(these), len(those))

    Raises:
        MissingExtraError: rapidfuzz is not installed.
    """
    process = _module("rapidfuzz.process")
    scorer = getattr(_module("rapidfuzz.distance"), distance).normalized_similarity
    return np.asarray(process.cdist(these, those, scorer=scorer, dtype=np.float64), dtype=np.float64)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError("distances between strings need rapidfuzz, which is not installed", "train") from error
