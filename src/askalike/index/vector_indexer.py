"""The vectors as an index that follows a store: questions become vectors through the set's model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from askalike.errors import EncoderError
from askalike.executors import Executor, Numbered, Task
from askalike.executors.processes import Processes
from askalike.index.catchup import Steps
from askalike.index.encoder_settings import EncoderSettings
from askalike.index.milvus.vectors import MilvusVectorWriter
from askalike.index.text_questions import TextQuestions, taken
from askalike.index.vector_set import VectorSet, model_in
from askalike.index.vectors import VectorWriter
from askalike.text.settings import TextSettings
from askalike.types import Question

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

    def __init__(
        self,
        vectors: VectorSet,
        text: TextSettings | None = None,
        executor: Executor | None = None,
        steps: Steps | None = None,
    ) -> None:
        self.vectors = vectors
        self.executor = executor or Processes()
        self._text = text or TextSettings()
        self.index = vectors.index
        self.steps = steps or (STEPS if vectors.settings is None else STEPS_OF_TEXTS)

    def writing(self) -> AbstractContextManager[Writer]:
        """Give the index's writer; raise BusyForumError where another is open for longer than a moment."""
        return self.index.writing(PATIENCE_S)

    @property
    def task(self) -> Task[Vectors]:
        """Return what makes the vectors; an encoder that only this process has makes them here."""
        settings = self.vectors.settings
        is_here = settings is not None and (settings.kind == "python" or settings.pca is not None)
        encoder = "" if settings is None else settings.to_bytes().decode()
        order = [str(self.vectors.folder.resolve()), encoder, self.vectors.languages, self._text.to_json()]
        module = "" if is_here else __name__
        return Task(self._encode, module, json.dumps(order), self._unpacked, has_threads=settings is not None)

    def _encode(self, questions: Numbered) -> Vectors:
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
        if entries[0]:
            writer.put(*entries, dict(questions))

    def _unpacked(self, packed: bytes) -> Vectors:
        nums, vectors = _DECODER.decode(packed)
        return nums, np.frombuffer(vectors, "<f4").reshape(len(nums), self.vectors.dimensions)


def encoded(questions: Numbered, text: TextSettings, by: Sequence[str]) -> Numbered:
    """Return those of the questions that an encoder of some languages encodes."""
    return [one for one in questions if text.is_encoded(one[1].language, by)]


def preparing(order: str) -> Callable[[Numbered], bytes]:
    """Return what makes packed vectors as a set has them, as ``executors.Task`` asks for it.

    Raises:
        DamagedModelError, EncoderError: the encoder cannot be had, or is another one here.
    """
    folder, encoder, by, stored = json.loads(order)
    text = TextSettings.from_json(stored)
    encode = _encoder_of(EncoderSettings.from_bytes(encoder.encode())) if encoder else model_in(Path(folder)).encode

    def packed(questions: Numbered) -> bytes:
        read = encoded(questions, text, by)
        vectors = encode([question for _, question in read]) if read else np.empty((0, 0), np.float32)
        return msgspec.msgpack.encode(([num for num, _ in read], vectors.astype("<f4").tobytes()))

    return packed


def _encoder_of(settings: EncoderSettings) -> Callable[[Sequence[Question]], NDArray[np.float32]]:
    """Return what encodes as the set's text encoder does."""
    encoder, here = taken(settings)
    if here.fingerprint != settings.fingerprint:
        raise EncoderError(
            f"{settings.written} is {here.name} on this machine, and the vectors are by {settings.name}",
            "put the same model on every machine",
        )
    return TextQuestions(encoder, settings).encode
