"""A candidate's score as every ranker gives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate's score, and what it was made of."""

    key: int
    score: float
    components: Mapping[str, float]
