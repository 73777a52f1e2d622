"""Any encoder as a scorer of questions: cosines of vectors that are made once.

Enters: an encoder and questions. Leaves: vectors and cosines. May import: types.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.types import Question

__all__ = ["Encoder", "VectorScorer"]


class Encoder(Protocol):
    """Whatever makes vectors of questions: ``askalike.models.encoders.model.Model`` is one."""

    def encode(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        """Return one vector of length 1 for each question, or of zeros for one without words.  # (N, D)"""


class VectorScorer:
    """Scores pairs of questions by the cosine of their vectors.

    Args:
        encoder: asked once for each distinct question.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[Question, NDArray[np.float32]] = {}

    def vectors(self, questions: Iterable[Question]) -> NDArray[np.float32]:
        """Return the vectors of questions, in their order.  # (N, D)"""
        asked = list(questions)
        new = list(dict.fromkeys(question for question in asked if question not in self._known))
        if new:
            self._known.update(zip(new, self._encoder.encode(new), strict=True))
        return np.stack([self._known[question] for question in asked])

    def scores(self, query: Question, candidates: Sequence[Question]) -> NDArray[np.float64]:
        """Return the cosines of one query with N candidates, in [-1, 1].  # (N,)"""
        found = self.vectors([query, *candidates])
        return np.asarray(found[1:] @ found[0], dtype=np.float64)
