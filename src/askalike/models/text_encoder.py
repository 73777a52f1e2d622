"""What turns texts into vectors: its shape, the check of what it returns, and the models of fastembed.

An encoder is askalike's own model, a sentence transformer, an endpoint, or any object with the two methods; nothing
that it returns is trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.errors import EncoderError, optional_module
from askalike.text.markup import plain_text
from askalike.types import Question

Array = NDArray[np.float32]


READ_OF_PAIRS: Final = 4_000
"""Characters of a text that a reranker reads: more than most of them look at."""


def text_of(question: Question, max_characters: int) -> str:
    """Return what a model of texts reads of a question: its title, and its body on the next line."""
    body = plain_text(question.body[: 4 * max_characters], question.markup)  # markup takes more room than text
    return f"{question.title}\n{body}".strip()[:max_characters]


class TextEncoder(Protocol):
    """Texts → vectors, those of queries and those of documents of one space."""

    @property
    def name(self) -> str:
        """Return ``kind:model@revision``; another name means other vectors."""

    @property
    def dimensions(self) -> int:
        """Return D."""

    def encode_query(self, texts: Sequence[str]) -> Array:
        """Return the vectors of what is searched for, in the order of the texts.  # (N, D) float32"""

    def encode_document(self, texts: Sequence[str]) -> Array:
        """Return the vectors of what is searched, in the order of the texts.  # (N, D) float32"""


def query_vectors(encoder: TextEncoder, texts: Sequence[str]) -> Array:
    """Return the vectors of queries at length 1, checked; one without a direction stays zeros.  # (N, D) float32

    Raises:
        EncoderError: the encoder gave something else than one finite vector of D numbers for each text.
    """
    return checked(encoder.encode_query(texts), len(texts), encoder.dimensions, encoder.name)


def document_vectors(encoder: TextEncoder, texts: Sequence[str]) -> Array:
    """Return the vectors of documents, as ``query_vectors``.  # (N, D) float32

    Raises:
        EncoderError: as ``query_vectors``.
    """
    return checked(encoder.encode_document(texts), len(texts), encoder.dimensions, encoder.name)


def checked(returned: object, count: int, dimensions: int, name: str) -> Array:
    """Return what an encoder gave as vectors of length 1; those without a direction stay zeros.  # (N, D) float32

    >>> checked([[0.0, 4.0], [0.0, 0.0]], 2, 2, "mine").tolist()
    [[0.0, 1.0], [0.0, 0.0]]

    Raises:
        EncoderError: it is not ``count`` vectors of ``dimensions`` finite numbers.
    """
    try:
        values = np.asarray(returned)
        if values.dtype.kind not in "fiu":
            raise ValueError(f"values of the type {values.dtype}")
        array = values.astype(np.float64)  # (N, D); squares of what float32 can hold must not overflow
    except (TypeError, ValueError) as error:
        raise EncoderError(f"the encoder {name} gave no array of numbers: {str(error)[:200]}", _MEND) from error
    if array.shape != (count, dimensions) and not (count == 0 and array.size == 0):
        raise EncoderError(
            f"the encoder {name} gave an array of shape {array.shape} for {count} texts, expected"
            f" ({count}, {dimensions})",
            _MEND,
        )
    array = array.reshape(count, dimensions)
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise EncoderError(f"the encoder {name} gave numbers that are not finite for text {row + 1} of {count}", _MEND)
    largest = np.abs(array).max(axis=1, keepdims=True, initial=0.0)
    np.divide(array, largest, out=array, where=largest > 0)
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    np.divide(array, lengths, out=array, where=lengths > 0)
    return array.astype(np.float32)


_MEND = "mend the encoder, or encode with another one"


def send_no_telemetry() -> None:
    """Let ONNX Runtime, when it is loaded later, count and send nothing, unless the environment says otherwise.

    Since 1.32 it keeps a queue of events in the user's cache folder and a session's file among the temporary ones from
    the moment when it is imported; what may be called then to turn it off comes too late for both.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


class FastEmbedEncoder:
    """A model of fastembed, such as "BAAI/bge-small-en-v1.5"; it reads queries and passages as fastembed does.

    What lies in its cache under a name may change, so that it is known again by its vectors.
    """

    def __init__(self, model: str, embedding: Any) -> None:
        self.name = f"fastembed:{model}"
        self.dimensions = int(embedding.embedding_size)
        self._embedding = embedding

    @classmethod
    def load(cls, model: str, *, is_fetched: bool = False) -> FastEmbedEncoder:
        """Return a model from fastembed's cache (``FASTEMBED_CACHE_PATH``).

        Args:
            is_fetched: let fastembed download a model that is not in its cache.

        Raises:
            MissingExtraError: fastembed is not installed.
            EncoderError: fastembed knows no such model, or it is not there.
        """
        send_no_telemetry()
        fastembed = optional_module("fastembed", "the package fastembed is not installed", "fastembed")
        known = {
            supported["model"].lower(): str(supported["model"])
            for supported in fastembed.TextEmbedding.list_supported_models()
        }
        if model.lower() not in known:
            raise EncoderError(
                f"fastembed knows no model {model[:200]!r}", f"expected one of its {len(known)}, such as {min(known)}"
            )
        name = known[model.lower()]
        try:
            return cls(name, fastembed.TextEmbedding(name, local_files_only=not is_fetched))
        except Exception as error:  # whatever the hub's client, ONNX Runtime and the tokenizer raise
            raise EncoderError(
                f"fastembed cannot give {name}: {str(error)[:200]}",
                f'let it be downloaded with "askalike encode FORUM --model fastembed:{name}"',
            ) from error

    def encode_query(self, texts: Sequence[str]) -> Array:
        """Return the vectors of queries.  # (N, D) float32"""
        return self._as_array(self._embedding.query_embed(list(texts)))

    def encode_document(self, texts: Sequence[str]) -> Array:
        """Return the vectors of documents.  # (N, D) float32"""
        return self._as_array(self._embedding.passage_embed(list(texts)))

    def _as_array(self, vectors: Iterable[Any]) -> Array:
        rows = list(vectors)
        return np.array(rows, dtype=np.float32) if rows else np.zeros((0, self.dimensions), dtype=np.float32)
