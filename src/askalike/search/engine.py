"""What a search asks of whatever holds a forum: candidates with scores, records, a query's vector. Calls take batches.

One machine's SQLite, words and vectors are one engine; a distributed one gives no more than this. A search makes at
most twelve calls, however many terms and hits it has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.search.texts import Text
from askalike.types import Answer, Filters, Query, Question

Floats = NDArray[np.float64]


class Encoder(Protocol):
    """What makes vectors, as the search pipeline sees it."""

    def encode(self, queries: Sequence[Query]) -> NDArray[np.float32]:
        """Return the queries' vectors (N, D) of length 1; zeros where no informative word of one is known.

        Raises:
            EncoderError: it cannot be had now; words answer alone.
        """

    def reads(self, query: Query) -> bool:
        """Return whether it knows the language of a query, as far as that can be told."""


Candidate = tuple[int, float]
"""One question found by a candidate search: the engine's own key, and the score."""


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """Counts of one state of a forum.

    Args:
        size: how many questions can be found.
        frequencies: of the terms that were asked for, those that occur → in how many questions.
    """

    size: int
    frequencies: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DuplicateLinks:
    """Duplicate links of some questions, and of all that these lead to.

    Args:
        targets: id → the ids of what it is a duplicate of, ascending; without those that are no duplicates.
        questions: id → the question, for every target.
    """

    targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    questions: Mapping[str, Question] = field(default_factory=dict)


class Engine(Protocol):
    """A forum as the search pipeline sees it. Every candidate satisfies the filters, ``exclude_ids`` among them."""

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        """Return the number of questions, and how many of them have each of these terms."""

    def lexical(self, weights: Mapping[str, float], limit: int, filters: Filters) -> list[Candidate]:
        """Return the questions that match weighted terms best, by score descending; fewer than ``limit``: no more."""

    def without_answers(self) -> Engine:
        """Return what finds questions by their titles and bodies alone."""

    def count(self, filters: Filters) -> int:
        """Return how many questions satisfy the filters."""

    def nearest(self, vectors: NDArray[np.float32], limit: int, filters: Filters) -> Sequence[Sequence[Candidate]]:
        """Return the questions of the greatest cosine to each of ``vectors`` (Q, D), descending, at most ``limit``."""

    def lexical_scores(self, weights: Mapping[str, float], keys: Sequence[int]) -> dict[int, float]:
        """Return what ``lexical`` gives to these questions; those that match no term are left out."""

    def cosines(self, vector: NDArray[np.float32], keys: Sequence[int]) -> dict[int, float]:
        """Return the cosines that ``nearest`` gives to these questions; those without a vector are left out."""

    def texts(self, keys: Sequence[int]) -> Mapping[int, Text]:
        """Return those of these questions that are kept as they are compared; others are read from their records."""

    def stored_vectors(self, keys: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        """Return those of these questions that have a vector, and the vectors (n, D); None where none are at hand."""

    def questions(self, keys: Sequence[int]) -> dict[int, Question]:
        """Return the questions with these keys; those that have gone meanwhile are left out."""

    def answers(self, ids: Sequence[str]) -> Mapping[str, Sequence[Answer]]:
        """Return the answers of each of these questions, best first; those without an answer are left out."""

    def duplicate_links(self, ids: Sequence[str]) -> DuplicateLinks:
        """Return the duplicate links of these questions, and of all that they lead to."""
