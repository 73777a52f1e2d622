"""The vectors as an index that follows a store: questions become vectors through the set's model."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from askalike.index.catchup import Steps
from askalike.index.milvus.vectors import MilvusVectorWriter
from askalike.index.vector_set import VectorSet, model_in
from askalike.index.vectors import VectorWriter
from askalike.index.workers import Numbered, Remote

Vectors = tuple[list[int], NDArray[np.float32]]
"""Numbers of questions, and a row for each.  # (N,), (N, D)"""

Writer = VectorWriter | MilvusVectorWriter

STEPS = Steps(batch=1_024, scan=8_192, changes=1_024)
"""About a second, and six seconds, of encoding on one core."""

STEPS_OF_TEXTS = Steps(batch=64, scan=512, changes=64)
"""The same for text encoders, which take some ten times as long."""

PATIENCE_S = 10.0
"""How long to wait for another writer."""

_DECODER = msgspec.msgpack.Decoder(tuple[list[int], bytes])


class VectorIndexer:
    """A set of vectors, and what makes them."""

    phase = "encoding"

    def __init__(self, vectors: VectorSet, steps: Steps | None = None) -> None:
        self.vectors = vectors
        self.index = vectors.index
        self.steps = steps or (STEPS if vectors.settings is None else STEPS_OF_TEXTS)

    def writing(self) -> AbstractContextManager[Writer]:
        """Give the index's writer; raise BusyForumError where another is open for longer than a moment."""
        return self.index.writing(PATIENCE_S)

    @property
    def remote(self) -> Remote[Vectors] | None:
        """Return how another process makes the same vectors; None for a text encoder, which has threads of its own."""
        if self.vectors.settings is not None:
            return None
        return Remote(__name__, str(self.vectors.folder.resolve()), self._unpacked)

    def prepare(self, questions: Numbered) -> Vectors:
        """Return the numbers and vectors of questions.

        Raises:
            ModelError: the set's model cannot be read.
        """
        if not questions:  # no encoder is called for nothing
            return [], np.empty((0, 0), np.float32)
        return [num for num, _ in questions], self.vectors.encode([question for _, question in questions])

    def put(self, writer: Writer, questions: Numbered, entries: Vectors) -> None:
        """Write vectors, to an engine with what filters ask of their questions."""
        if isinstance(writer, MilvusVectorWriter):
            writer.put(*entries, dict(questions))
        else:
            writer.put(*entries)

    def _unpacked(self, packed: bytes) -> Vectors:
        nums, vectors = _DECODER.decode(packed)
        return nums, np.frombuffer(vectors, "<f4").reshape(len(nums), self.vectors.dimensions)


def preparing(order: str) -> Callable[[Numbered], bytes]:
    """Return what makes packed vectors by the model of a set, as a worker of ``index.workers`` is told to.

    Raises:
        DamagedModelError: the model cannot be read.
    """
    model = model_in(Path(order))

    def packed(questions: Numbered) -> bytes:
        vectors = model.encode([question for _, question in questions])
        return msgspec.msgpack.encode(([num for num, _ in questions], vectors.astype("<f4").tobytes()))

    return packed
