"""The vectors of a forum's questions, as a siamese model gives them; kept in memory as they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.forum.blas import one_blas_thread
from askalike.forum.lru_cache import LruCache
from askalike.forum.terms import as_question
from askalike.models.siamese.model import SiameseModel
from askalike.rank import Query
from askalike.types import Question

CACHE_BYTES: Final = 64 * 1024**2
"""Of vectors that are kept, those asked for last: some 90,000 of 128 dimensions."""

Vector = NDArray[np.float32]


class ModelVectors:
    """``rank.siamese``'s source of vectors; any number of threads may ask.

    Args:
        size_bytes: vectors that are kept.
    """

    def __init__(self, model: SiameseModel, size_bytes: int = CACHE_BYTES) -> None:
        self._model = model
        self._kept: LruCache[Question, Vector] = LruCache(self._vectors, lambda vector: vector.nbytes, size_bytes)

    @property
    def kept_bytes(self) -> int:
        """Return the size of the vectors that are kept."""
        return self._kept.kept_bytes

    def of_query(self, query: Query) -> Vector:
        """Return the vector of a query, read as a question of the forum is.  # (D,)"""
        return self._vectors([as_question(query)])[0]

    def of_questions(self, questions: Sequence[tuple[int, Question]]) -> list[Vector]:
        """Return the vectors of questions, given with their keys; an edited one is read anew."""
        return self._kept.of_questions(questions)

    def without_words(self, query: Query) -> tuple[list[str], Vector]:
        """Return the first distinct words of a query as they are read, its vector without each.  # W words, (W, D)"""
        with one_blas_thread():
            return self._model.without_words(as_question(query))

    def _vectors(self, questions: list[Question]) -> list[Vector]:
        with one_blas_thread():
            return [row.copy() for row in self._model.encode(questions)]  # so that none keeps the others alive
