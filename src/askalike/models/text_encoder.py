"""What turns texts into vectors: its shape, and the check of what it returns.

An encoder is askalike's own model, a sentence transformer, a static model, an endpoint, or any object with the two
methods; nothing that it returns is trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.errors import EncoderError

Array = NDArray[np.float32]


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


def checked(found: object, count: int, dimensions: int, name: str) -> Array:
    """Return what an encoder gave as vectors of length 1; those without a direction stay zeros.  # (N, D) float32

    >>> checked([[0.0, 4.0], [0.0, 0.0]], 2, 2, "mine").tolist()
    [[0.0, 1.0], [0.0, 0.0]]

    Raises:
        EncoderError: it is not ``count`` vectors of ``dimensions`` finite numbers.
    """
    try:
        values = np.asarray(found)
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
