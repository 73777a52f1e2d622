"""The vectors as an index that follows a store: questions become vectors through the set's model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from askalike.index.catchup import Steps
from askalike.index.vector_set import VectorSet
from askalike.index.vectors import VectorWriter
from askalike.types import Question

STEPS = Steps(batch=1_024, scan=8_192, changes=1_024)
"""About a second, and six seconds, of encoding on one core."""

STEPS_OF_TEXTS = Steps(batch=64, scan=512, changes=64)
"""The same for text encoders, which take some ten times as long."""

PATIENCE_S = 10.0
"""How long to wait for another writer."""


class VectorIndexer:
    """A set of vectors, and what makes them."""

    phase = "encoding"

    def __init__(self, vectors: VectorSet, steps: Steps | None = None) -> None:
        self.vectors = vectors
        self.index = vectors.index
        self.steps = steps or (STEPS if vectors.settings is None else STEPS_OF_TEXTS)

    def writing(self) -> AbstractContextManager[VectorWriter]:
        """Give the index's writer; raise BusyForumError where another is open for longer than a moment."""
        return self.index.writing(PATIENCE_S)

    def put(self, writer: VectorWriter, questions: Sequence[tuple[int, Question]]) -> None:
        """Write the vectors of questions.

        Raises:
            ModelError: the set's model cannot be read.
        """
        if questions:
            writer.put([num for num, _ in questions], self.vectors.encode([question for _, question in questions]))
