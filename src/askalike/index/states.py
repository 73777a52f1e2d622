"""What was read of a forum's questions, kept in memory as it is asked for, up to a size: the states of their words."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError
from askalike.models.encoders.model import Model, WordStates
from askalike.processes import one_blas_thread
from askalike.search import Query
from askalike.types import Question

ENTRY_BYTES = 200
"""What an entry takes besides its value."""

_Item = TypeVar("_Item")
_Value = TypeVar("_Value")


class LruCache(Generic[_Item, _Value]):
    """One value for each question, those asked for last; any number of threads may ask.

    An item is a question, or it with all else that its value is made of; of the item itself only the hash is kept, by
    which a changed one is told.

    Args:
        read: makes the values of items, in their order.
        size_of: bytes of a value.
        most_bytes: of all that are kept.
    """

    def __init__(
        self, read: Callable[[list[_Item]], Sequence[_Value]], size_of: Callable[[_Value], int], most_bytes: int
    ) -> None:
        self._read = read
        self._size_of = size_of
        self._most_bytes = most_bytes
        self._held: OrderedDict[int, tuple[int, _Value]] = OrderedDict()
        self._held_bytes = 0
        self._guard = threading.Lock()

    @property
    def kept_bytes(self) -> int:
        """Return the size of what is kept."""
        return self._held_bytes

    def of_questions(self, questions: Sequence[tuple[int, _Item]]) -> list[_Value]:
        """Return the values of items, given with the keys of questions; one that has changed is read anew."""
        with self._guard:
            known = {key: self._held[key] for key, _ in questions if key in self._held}
            for key in known:
                self._held.move_to_end(key)
        new = [(key, question) for key, question in questions if key not in known or known[key][0] != hash(question)]
        if new:
            found = self._read([question for _, question in new])
            made = {key: (hash(question), value) for (key, question), value in zip(new, found, strict=True)}
            known |= made
            self._keep(made)
        return [known[key][1] for key, _ in questions]

    def _keep(self, made: dict[int, tuple[int, _Value]]) -> None:
        with self._guard:
            for key, one in made.items():
                before = self._held.pop(key, None)
                self._held_bytes += self._size(one[1]) - (self._size(before[1]) if before else 0)
                self._held[key] = one
            while self._held_bytes > self._most_bytes:
                _, (_, value) = self._held.popitem(last=False)
                self._held_bytes -= self._size(value)

    def _size(self, value: _Value) -> int:
        return self._size_of(value) + ENTRY_BYTES


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
    """``search.networks``'s source of states and frequencies.

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
