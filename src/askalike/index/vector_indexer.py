"""The vectors as an index that follows a store: questions become vectors through the set's model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from askalike.index.catchup import Steps
from askalike.index.vector_set import VectorSet
from askalike.index.vectors import VectorWriter
from askalike.processes import one_blas_thread
from askalike.types import Question

STEPS = Steps(batch=1_024, scan=8_192, changes=1_024)
"""About a second, and six seconds, of encoding on one core."""

PATIENCE_S = 10.0
"""How long to wait for who puts a new graph in place, which takes milliseconds."""


class VectorIndexer:
    """A set of vectors and its model."""

    phase = "encoding"

    def __init__(self, vectors: VectorSet, steps: Steps = STEPS) -> None:
        self.vectors = vectors
        self.index = vectors.index
        self.steps = steps

    def writing(self) -> AbstractContextManager[VectorWriter]:
        """Give the index's writer; raise BusyForumError where another is open for longer than a moment."""
        return self.index.writing(PATIENCE_S)

    def put(self, writer: VectorWriter, questions: Sequence[tuple[int, Question]]) -> None:
        """Write the vectors of questions.

        Raises:
            ModelError: the set's model cannot be read.
        """
        if questions:
            model = self.vectors.model  # read at the first question: who only deletes needs none
            with one_blas_thread():
                encoded = model.encode([question for _, question in questions])
            writer.put([num for num, _ in questions], encoded)
