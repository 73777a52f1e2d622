"""The vectors as an index that follows the archive: questions become vectors through the set's model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from askalike.index.catchup import Steps
from askalike.index.cursor import Mark
from askalike.index.vector_set import VectorSet
from askalike.index.vectors import VectorWriter
from askalike.types import Question

STEPS = Steps(batch=1_024, scan=8_192, changes=1_024)
"""About a second, and six seconds, of encoding on one core."""

STEPS_OF_TEXTS = Steps(batch=64, scan=512, changes=64)
"""The same for text encoders, which take some ten times as long."""

PATIENCE_S = 10.0
"""How long to wait for who puts a new graph in place, which takes milliseconds."""


class VectorIndexer:
    """A set of vectors, and what makes them."""

    phase = "encoding"

    def __init__(self, vectors: VectorSet, steps: Steps | None = None) -> None:
        self.vectors = vectors
        self.steps = steps or (STEPS if vectors.settings is None else STEPS_OF_TEXTS)

    @property
    def mark(self) -> Mark:
        """Return how far the index has come."""
        return self.vectors.index.mark

    def reopen(self) -> None:
        """Take the index as it is on disk now."""
        self.vectors.index.reopen()

    @contextmanager
    def writing(self) -> Iterator[_VectorWriter]:
        """Give the writer.

        Raises:
            BusyForumError: another writer is open, in this process or another.
            ModelError: the set's model cannot be read.
        """
        with self.vectors.index.writing(PATIENCE_S) as writer:
            yield _VectorWriter(writer, self.vectors)


class _VectorWriter:
    def __init__(self, writer: VectorWriter, vectors: VectorSet) -> None:
        self._writer = writer
        self._vectors = vectors

    def put(self, questions: Sequence[tuple[int, Question]]) -> None:
        if questions:
            encoded = self._vectors.encode([question for _, question in questions])
            self._writer.put([num for num, _ in questions], encoded)

    def remove(self, num: int) -> None:
        self._writer.remove([num])

    def commit(self, mark: Mark) -> None:
        self._writer.commit(mark)
