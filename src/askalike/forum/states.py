"""The states of the words of a forum's questions, as a model gives them; kept in memory as they are asked for.

Enters: queries, questions. Leaves: ``WordStates``. May import: encode, errors, rank, types, ``forum.blas``.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from askalike.encode.model import Model
from askalike.encode.states import WordStates
from askalike.errors import DamagedModelError
from askalike.forum.blas import one_blas_thread
from askalike.rank import Query
from askalike.types import Question

__all__ = ["ModelStates"]

CACHE_BYTES = 256 * 1024**2
"""Of states that are kept, those asked for last: some 4,000 questions of 80 words and 200 dimensions."""


class ModelStates:
    """``rank.ramn``'s source of states and frequencies; any number of threads may ask.

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
        self._model = model
        self._counts = model.counts
        self._size_bytes = size_bytes
        self._held: OrderedDict[int, tuple[Question, WordStates]] = OrderedDict()
        self._held_bytes = 0
        self._guard = threading.Lock()

    @property
    def kept_bytes(self) -> int:
        """Return the size of the states that are kept."""
        return self._held_bytes

    def of_query(self, query: Query) -> WordStates:
        """Return the words and states of a query, read as a question of the forum is."""
        with one_blas_thread():
            return self._model.states([Question("", query.title, query.body, query.markup)])[0]

    def of_questions(self, questions: Sequence[tuple[int, Question]]) -> list[WordStates]:
        """Return the words and states of questions, given with their keys; an edited one is read anew."""
        with self._guard:
            known = {key: self._held[key] for key, _ in questions if key in self._held}
            for key in known:
                self._held.move_to_end(key)
        new = [(key, question) for key, question in questions if key not in known or known[key][0] != question]
        if new:
            with one_blas_thread():
                found = self._model.states([question for _, question in new])
            made = {key: (question, states) for (key, question), states in zip(new, found, strict=True)}
            known |= made
            self._keep(made)
        return [known[key][1] for key, _ in questions]

    def frequencies(self, words: Sequence[str]) -> NDArray[np.integer]:
        """Return how often each word occurred in the texts that were learned from, 0 for one that did not.  # (T,)"""
        ids = np.array(self._model.vocabulary.ids(words), dtype=np.intp)
        return np.where(ids > 0, self._counts[ids], 0)

    def _keep(self, made: dict[int, tuple[Question, WordStates]]) -> None:
        with self._guard:
            for key, one in made.items():
                before = self._held.pop(key, None)
                self._held_bytes += one[1].states.nbytes - (before[1].states.nbytes if before else 0)
                self._held[key] = one
            while self._held_bytes > self._size_bytes:
                _, (_, states) = self._held.popitem(last=False)
                self._held_bytes -= states.states.nbytes
