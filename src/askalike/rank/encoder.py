"""What ranking asks of whatever turns a question into a vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.rank.interaction import WeighedStates
from askalike.rank.query import Query
from askalike.types import Question


class Encoder(Protocol):
    """A model as the search pipeline sees it."""

    def encode(self, query: Query) -> NDArray[np.float32]:
        """Return the query's vector (D,) of length 1, or zeros where no informative word of it is known."""

    def states(self, query: Query) -> WeighedStates:
        """Return the query word by word."""

    def states_of(self, questions: Sequence[tuple[int, Question]]) -> Sequence[WeighedStates]:
        """Return the forum's questions word by word, given with their keys, in their order."""

    def word_weights(self, text: str) -> list[tuple[str, float]]:
        """Return how much of each word of a plain text is let in, in [0, 1]; nothing where the model cannot say."""
