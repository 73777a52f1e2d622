"""Sums over texts of what each term counts for each word of a query: the inner loop of the models that translate.

::

    S[w, D] = Σ_{u ∈ D} tf(u, D) · t(w|u)

A row is sparse: the u from which w can come. One with many is laid over all places of the texts; of those with few, the
places that any of them reaches are found first, and each is laid over these alone. Which of the two a row goes hangs on
the row alone, so that a text has the same sums among others as alone.

Enters: rows, texts. Leaves: sums. May import: lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from askalike.models.query_likelihood.lists import TermLists

__all__ = ["Row", "row_sums"]

Floats = NDArray[np.float64]
Row = tuple[NDArray[Any], NDArray[Any]]
"""Distinct ids, and the number of each.  # (K,) integers, (K,) floats"""

_FEW: Final = 1000


def row_sums(rows: Sequence[Row], texts: TermLists, size: int) -> Floats:
    """Return the sum of each row over the terms of each text.  # (R, N)

    Args:
        rows: R rows of ids in [0, size).
        texts: N texts of ids in [0, size).
        size: how many ids there are.

    >>> rows = [(np.array([1, 2]), np.array([0.5, 0.25])), (np.array([], int), np.array([]))]
    >>> row_sums(rows, TermLists.of([[1, 1, 2], [3], []]), 4).tolist()
    [[1.25, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    found = np.zeros((len(rows), len(texts)))
    laid = np.zeros(size)
    few = []
    for place, (ids, values) in enumerate(rows):
        if 0 < len(ids) < _FEW:
            few.append(place)
        elif len(ids):
            laid[ids] = values
            found[place] = texts.sums(laid[texts.ids])
            laid[:] = 0
    if few:
        is_reached = np.zeros(size, np.bool_)
        for place in few:
            is_reached[rows[place][0]] = True
        places = np.flatnonzero(is_reached[texts.ids])
        reached = TermLists(texts.ids[places], np.searchsorted(places, texts.starts))
        for place in few:
            ids, values = rows[place]
            laid[ids] = values
            found[place] = reached.sums(laid[reached.ids])
            laid[ids] = 0
    return found
