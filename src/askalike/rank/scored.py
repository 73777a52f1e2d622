"""A candidate's score as every ranker gives it.

May import: nothing of askalike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Scored"]


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate's score, and what it was made of."""

    key: int
    score: float
    components: Mapping[str, float]
