"""One query's ranked list as the measures see it.

Enters: nothing. Leaves: `Ranked`, what a protocol makes of one query's judgements and ranked documents. May import:
nothing of askalike.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Ranked"]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The gains of one ranked list, with what they are compared to.

    Args:
        gains: gain of the document at rank 1, 2, …, after the protocol's cut; 0 where it is not relevant.
        ideal: gains (> 0) of all documents that the protocol counts as relevant, highest first; its length is R, the
            number that average precision and recall divide by.
        candidates: how many documents the list had before the cut where precision@k may not divide by more than
            that; None where precision@k always divides by k.
    """

    gains: tuple[int, ...]
    ideal: tuple[int, ...]
    candidates: int | None = None
