"""The states of the words of a forum's questions, as a model gives them; kept in memory as they are asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError
from askalike.forum.blas import one_blas_thread
from askalike.forum.lru_cache import LruCache
from askalike.models.encoders.model import Model, WordStates
from askalike.rank import Query
from askalike.types import Question

CACHE_BYTES = 256 * 1024**2
"""Of states that are kept, those asked for last: some 4,000 questions of 80 words and 200 dimensions."""


class KeptStates:
    """The states of a model's words; any number of threads may ask.

    Args:
        size_bytes: states that are kept.
    """

    def __init__(self, model: Model, size_bytes: int = CACHE_BYTES) -> None:
        self.model = model
        self._kept = LruCache(self._states, lambda one: one.states.nbytes, size_bytes)

    @property
    def kept_bytes(self) -> int:
        """Return the size of the states that are kept."""
        return self._kept.kept_bytes

    def of_query(self, query: Query) -> WordStates:
        """Return the words and states of a query, read as a question of the forum is."""
        return self._states([Question("", query.title, query.body, query.markup)])[0]

    def of_questions(self, questions: Sequence[tuple[int, Question]]) -> list[WordStates]:
        """Return the words and states of questions, given with their keys; an edited one is read anew."""
        return self._kept.of_questions(questions)

    def _states(self, questions: list[Question]) -> list[WordStates]:
        with one_blas_thread():
            return self.model.states(questions)


class ModelStates(KeptStates):
    """``rank.ramn``'s source of states and frequencies.

    Args:
        model: knows how often each word occurred in what it was trained on.
        size_bytes: states that are kept.

    Raises:
        DamagedModelError: the model knows no frequencies.
    """

    def __init__(self, model: Model, size_bytes: int = CACHE_BYTES) -> None:
        if model.counts is None:
            raise DamagedModelError(
                "the ranker's model does not say how often its words occur",
                'train it again with "askalike train FORUM --recipe ramn"',
            )
        super().__init__(model, size_bytes)
        self._counts = model.counts

    def frequencies(self, words: Sequence[str]) -> NDArray[np.integer]:
        """Return how often each word occurred in the texts that were learned from, 0 for one that did not.  # (T,)"""
        ids = np.array(self.model.vocabulary.ids(words), dtype=np.intp)
        return np.where(ids > 0, self._counts[ids], 0)
