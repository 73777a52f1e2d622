"""What ranking asks of whatever holds a forum: candidates, their scores, document frequencies, records.

One machine's SQLite, tantivy and vectors are one engine; a distributed one has to give no more than this.
May import: types.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.types import Answer, Filters, Question

__all__ = ["Candidate", "Engine"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One question found by a candidate search, by the engine's own key."""

    key: int
    score: float


class Engine(Protocol):
    """A forum as the search pipeline sees it. Every candidate satisfies the filters, ``exclude_ids`` among them."""

    def size(self) -> int:
        """Return how many questions can be found."""

    def document_frequency(self, term: str) -> int:
        """Return in how many questions the term occurs."""

    def document_frequencies(self, terms: Collection[str]) -> Mapping[str, int]:
        """Return the terms that occur → in how many questions; most of these terms may be no words at all."""

    def lexical(self, weights: Mapping[str, float], limit: int, filters: Filters) -> list[Candidate]:
        """Return the questions that match weighted terms best, by score descending; fewer than ``limit``: no more."""

    def misspelt(self, terms: Sequence[str], limit: int, filters: Filters) -> list[Candidate]:
        """Return the questions with terms spelled nearly as these, most first; fewer than ``limit``: no more."""

    def lexical_scores(self, weights: Mapping[str, float], keys: Sequence[int]) -> dict[int, float]:
        """Return the scores that ``lexical`` gives to these questions; those that match no term are left out."""

    def nearest(self, vector: NDArray[np.float32], limit: int, filters: Filters) -> list[Candidate]:
        """Return the questions of the greatest cosine to ``vector`` (D,), descending; fewer than ``limit``: no more."""

    def cosines(self, vector: NDArray[np.float32], keys: Sequence[int]) -> dict[int, float]:
        """Return the cosines to ``vector`` (D,) of these questions; those without a vector are left out."""

    def questions(self, keys: Sequence[int]) -> dict[int, Question]:
        """Return the questions with these keys; those that have gone meanwhile are left out."""

    def questions_by_id(self, ids: Sequence[str]) -> dict[str, Question]:
        """Return the questions with these ids; those that are not there are left out."""

    def answers(self, question_id: str) -> list[Answer]:
        """Return a question's answers, best first."""

    def originals(self, question_id: str) -> tuple[str, ...]:
        """Return the ids of the questions that this one is marked a duplicate of."""
