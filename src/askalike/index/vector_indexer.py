"""The vectors as an index that follows a store: questions become vectors through the set's model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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
from askalike.text.settings import TextSettings

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

    def __init__(self, vectors: VectorSet, text: TextSettings | None = None, steps: Steps | None = None) -> None:
        self.vectors = vectors
        self._text = text or TextSettings()
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
        order = [str(self.vectors.folder.resolve()), self.vectors.languages, self._text.to_json()]
        return Remote(__name__, json.dumps(order), self._unpacked)

    def prepare(self, questions: Numbered) -> Vectors:
        """Return the numbers and vectors of questions.

        Raises:
            ModelError: the set's model cannot be read.
        """
        read = encoded(questions, self._text, self.vectors.languages)
        if not read:  # no encoder is called for nothing
            return [], np.empty((0, 0), np.float32)
        return [num for num, _ in read], self.vectors.encode([question for _, question in read])

    def put(self, writer: Writer, questions: Numbered, entries: Vectors) -> None:
        """Write vectors, to an engine with what filters ask of their questions; what has none loses one it had."""
        if gone := {num for num, _ in questions}.difference(entries[0]):
            writer.remove(sorted(gone))
        if not entries[0]:
            return
        if isinstance(writer, MilvusVectorWriter):
            writer.put(*entries, dict(questions))
        else:
            writer.put(*entries)

    def _unpacked(self, packed: bytes) -> Vectors:
        nums, vectors = _DECODER.decode(packed)
        return nums, np.frombuffer(vectors, "<f4").reshape(len(nums), self.vectors.dimensions)


def encoded(questions: Numbered, text: TextSettings, by: Sequence[str]) -> Numbered:
    """Return those of the questions that an encoder of some languages encodes."""
    return [one for one in questions if text.is_encoded(one[1].language, by)]


def preparing(order: str) -> Callable[[Numbered], bytes]:
    """Return what makes packed vectors by the model of a set, as a worker of ``index.workers`` is told to.

    Raises:
        DamagedModelError: the model cannot be read.
    """
    folder, by, stored = json.loads(order)
    model, text = model_in(Path(folder)), TextSettings.from_json(stored)

    def packed(questions: Numbered) -> bytes:
        read = encoded(questions, text, by)
        vectors = model.encode([question for _, question in read])
        return msgspec.msgpack.encode(([num for num, _ in read], vectors.astype("<f4").tobytes()))

    return packed
