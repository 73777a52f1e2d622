"""Word vectors from files of the usual formats, and to word2vec's text format.

Files are streamed and not trusted: nothing is set aside because a header says so, and what does not fit is refused with
file and line. Nothing is unpickled.

Enters: a path. Leaves: ``FoundVectors``, or a file. May import: found, its formats, durable, encode.vocabulary, errors.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, cast

import numpy as np
from numpy.typing import NDArray

from askalike.durable import sync_folder, writing_whole
from askalike.errors import DamagedInputError, InputError, SettingError
from askalike.models.encoders.vocabulary import Vocabulary
from askalike.training.word_vectors.binary_format import read_word2vec_binary
from askalike.training.word_vectors.found import FoundVectors, Gathering
from askalike.training.word_vectors.text_format import read_glove, read_word2vec_text

__all__ = ["FORMATS", "VectorFormat", "read_vectors", "write_word2vec_text"]

VectorFormat = Literal["word2vec-text", "word2vec-binary", "glove"]

FORMATS: Mapping[str, Callable[[BinaryIO, str, Gathering], FoundVectors]] = {
    "word2vec-text": read_word2vec_text,
    "word2vec-binary": read_word2vec_binary,
    "glove": read_glove,
}
"""Format → who reads it."""

_FETCH_AGAIN = "take the file from where it came"


def read_vectors(
    path: Path, file_format: VectorFormat, *, wanted: Container[str] | None = None, limit: int = 1_000_000
) -> FoundVectors:
    """Return the vectors of a file, unpacking ``.gz``.

    Words are compared as they are written: vectors for ``Paris`` are not those of the word ``paris``.

    Args:
        wanted: the words to look for, for example a ``Vocabulary``; None for all.
        limit: at most this many are kept, the first of the file; reading stops there, and what follows is not checked.

    Raises:
        SettingError: an unknown format, or a limit below 1.
        InputError: the file cannot be opened, a word is not UTF-8, or a wanted word occurs twice.
        FormatError: the file is in another format.
        DamagedInputError: the file is truncated, or a record does not fit the others; names line or record.
    """
    if file_format not in FORMATS:
        raise SettingError(f"vector format {file_format!r}, expected one of: {', '.join(FORMATS)}")
    if limit < 1:
        raise SettingError(f"a limit of {limit} words, expected ≥ 1", "leave it out for a million")
    unit = "record" if file_format == "word2vec-binary" else "line"
    gathering = Gathering(path.name, unit, wanted, limit)
    try:
        with _opened(path) as stream:
            return FORMATS[file_format](stream, path.name, gathering)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DamagedInputError(
            f"{path.name}: damaged gzip data after {gathering.record_count} words ({error})", _FETCH_AGAIN
        ) from error


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        if path.exists() and not path.is_file():  # opening a pipe could wait for ever
            raise InputError(f"{path} is no file", "name a file of word vectors")
        file = path.open("rb")
    except OSError as error:
        raise InputError(
            f"{path} cannot be opened: {error.strerror}", "look at the path and its permissions"
        ) from error
    with file:
        if path.name.lower().endswith(".gz"):
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield cast("BinaryIO", unpacked)
        else:
            yield file


def write_word2vec_text(path: Path, vocabulary: Vocabulary, vectors: NDArray[np.float32]) -> None:
    """Write the known words' vectors as word2vec text; what is read back has the same bits.

    Args:
        path: is replaced in one step.
        vectors: (V, D) float32, row 0 for unknown words, which has no word and is left out.

    Raises:
        SettingError: rows and ids are not equally many, or a number is not finite.
    """
    if vectors.ndim != 2 or len(vectors) != len(vocabulary) or not np.isfinite(vectors).all():
        raise SettingError(
            f"vectors of shape {vectors.shape} for {len(vocabulary)} ids, expected one finite row an id",
            "give the vectors of this vocabulary",
        )
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    with writing_whole(temporary) as file:
        file.write(f"{len(vocabulary.words)} {vectors.shape[1]}\n".encode())
        for word, vector in zip(vocabulary.words, vectors[1:].astype(np.float32), strict=True):
            numbers = " ".join(f"{number:.9g}" for number in vector.tolist())  # nine digits hold every float32
            file.write(f"{word} {numbers}\n".encode())
    temporary.replace(path)
    sync_folder(path.parent)
