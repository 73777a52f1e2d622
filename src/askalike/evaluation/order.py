"""The orders that ranked documents are put in.

Enters: [(document id, score), …] as a file or engine gave them. Leaves: the same, best first; ranks. May import:
nothing of askalike.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["by_score_then_given_order", "by_score_then_id_descending", "ranks_by_score"]


def by_score_then_given_order(entries: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return the entries, highest score first; equal scores stay in the order given.

    Example:
        >>> by_score_then_given_order([("b", 1.0), ("a", 1.0), ("c", 2.0)])
        [('c', 2.0), ('b', 1.0), ('a', 1.0)]
    """
    return sorted(entries, key=lambda entry: -entry[1])


def by_score_then_id_descending(entries: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return the entries, highest score first; equal scores with the greater document id first, by code points.

    Differs: trec_eval keeps scores in single precision, so that two scores that differ only after the seventh digit or
    so are a tie there; here they are compared as given, in double precision.

    Example:
        >>> by_score_then_id_descending([("a", 1.0), ("b", 1.0), ("c", 0.5)])
        [('b', 1.0), ('a', 1.0), ('c', 0.5)]
    """
    return sorted(entries, key=lambda entry: (entry[1], entry[0]), reverse=True)


def ranks_by_score(entries: Sequence[tuple[str, float]]) -> list[int]:
    """Return the rank of each entry, 1 for the best, in the order given; equal scores rank in the order given.

    Example:
        >>> ranks_by_score([("a", 0.1), ("b", 0.9), ("c", 0.9)])
        [3, 1, 2]
    """
    ranks = [0] * len(entries)
    for rank, position in enumerate(sorted(range(len(entries)), key=lambda at: -entries[at][1]), start=1):
        ranks[position] = rank
    return ranks
