"""Word vectors from text files: a line for each word with its numbers, as word2vec and GloVe write them.

word2vec's has a line before with the numbers of words and of dimensions; GloVe's has none. Files are streamed and not
trusted: nothing is allocated because a header says so, and what does not fit is refused with file and line. Numbers of
words that are not wanted are not parsed.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedInputError, FormatError, InputError, SettingError
from askalike.files import replacing_whole
from askalike.models.vocabulary import Vocabulary

_MOST_DIMENSIONS = 4096
_MOST_WORDS = 10**9
_LONGEST_LINE = 32 * _MOST_DIMENSIONS + 4096
_HEADER = re.compile(rb"(\d{1,20}) (\d{1,20})\s*")
_GET_AGAIN = "get the file again from its source"


@dataclass(frozen=True, slots=True)
class PretrainedVectors:
    """Words and a vector for each.

    Args:
        words: each once, in the order of the file.
        vectors: (n, D) float32, finite.

    Raises:
        SettingError: words and vectors are not equally many, a word occurs twice, or a number is not finite.
    """

    words: tuple[str, ...]
    vectors: NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.words) != len(self.vectors) or len(set(self.words)) != len(self.words):
            raise SettingError(
                f"{len(self.words)} words ({len(set(self.words))} different) and vectors of shape {self.vectors.shape}",
                "give each word once, and one row a word",
            )
        if not np.isfinite(self.vectors).all():
            raise SettingError("word vectors that are not finite", "train them with a lower learning rate")

    @classmethod
    def trained(cls, vocabulary: Vocabulary, vectors: NDArray[np.float32]) -> PretrainedVectors:
        """Return what ``train_word2vec`` gave, (V, D); a row of zeros is none found, row 0 has no word."""
        if len(vocabulary) != len(vectors):
            raise SettingError(f"{len(vocabulary)} ids but {len(vectors)} vectors", "give one row an id")
        rows = np.flatnonzero(vectors[1:].any(axis=1))
        return cls(tuple(vocabulary.words[row] for row in rows), vectors[1:][rows])


def read_vectors(path: Path, *, wanted: Container[str] | None = None) -> PretrainedVectors:
    """Return the vectors of a text file, unpacking ``.gz``.

    Words are compared as they are written: vectors for ``Paris`` are not those of the word ``paris``.

    Args:
        wanted: the words to look for, for example a ``Vocabulary``; None for all.

    Raises:
        InputError: the file cannot be opened, a word is not UTF-8, or a wanted word occurs twice.
        FormatError: the file is in another format.
        DamagedInputError: the file is truncated, or a line does not fit the others; names the line.
    """
    name, numbers, read = path.name, bytearray(), 0
    lines_of: dict[str, int] = {}
    try:
        with _opened(path) as stream:
            count, dimensions, lines = _beginning(stream, name)
            for line, content in lines:
                if read == count:
                    raise _damaged(name, line, f"more lines than the {count} words of the header")
                word, fields = _word_and_fields(name, line, content, dimensions)
                read += 1
                if wanted is not None and word not in wanted:
                    continue
                if word in lines_of:
                    again = f"the word {word[:40]!r} again, after line {lines_of[word]}"
                    raise InputError(f"{name}, line {line}: {again}", "remove one of them")
                lines_of[word] = line
                numbers += _vector(name, line, word, fields).tobytes()
            if count is not None and read < count:
                raise _damaged(name, read + 2, f"the file ends, but its header says {count} words")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DamagedInputError(f"{name}: damaged gzip data after {read} words ({error})", _GET_AGAIN) from error
    return PretrainedVectors(tuple(lines_of), np.frombuffer(numbers, np.float32).reshape(-1, dimensions))


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        if path.exists() and not path.is_file():  # opening a pipe could wait for ever
            raise InputError(f"{path} is not a file", "name a file of word vectors")
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{path} cannot be opened: {error.strerror}", "check the path and its permissions") from error
    with file:
        if path.name.lower().endswith(".gz"):
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield cast("BinaryIO", unpacked)
        else:
            yield file


def _damaged(name: str, line: int, what: str) -> DamagedInputError:
    return DamagedInputError(f"{name}, line {line}: {what}", _GET_AGAIN)


def _beginning(stream: BinaryIO, name: str) -> tuple[int | None, int, Iterator[tuple[int, bytes]]]:
    """Return how many words a header promises, None without one; D; and the lines of the words with their numbers."""
    lines = _lines(stream, name)
    _, first = next(lines, (1, b""))
    if not first:
        raise _damaged(name, 1, "the file is empty")
    header = _header(first, name)
    if header is None:
        return None, _dimensions(first, name), chain([(1, first)], lines)
    return *header, lines


def _header(line: bytes, name: str) -> tuple[int, int] | None:
    """Return (words, dimensions) of the first line of a word2vec file; None where it is a word's.

    >>> _header(b"3000000 300", "news.txt"), _header(b"the 0.1 0.2", "glove.txt")
    ((3000000, 300), None)
    """
    match = _HEADER.fullmatch(line)
    if match is None:
        return None
    count, dimensions = int(match[1]), int(match[2])
    if not (1 <= dimensions <= _MOST_DIMENSIONS and count <= _MOST_WORDS):
        raise FormatError(
            f"{name}, line 1: a header of {count} words with {dimensions} dimensions, "
            f"expected at most {_MOST_WORDS} and 1 to {_MOST_DIMENSIONS}",
            "the file is damaged or in another format",
        )
    return count, dimensions


def _dimensions(line: bytes, name: str) -> int:
    fields = line.split(b" ")
    if not (1 <= len(fields) - 1 <= _MOST_DIMENSIONS) or not all(map(_is_number, fields[1:])):
        raise FormatError(
            f"{name}, line 1: {line[:40]!r}, expected a word and 1 to {_MOST_DIMENSIONS} numbers",
            "give word vectors as text, as word2vec and GloVe write them",
        )
    return len(fields) - 1


def _lines(stream: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line) without the white space at its end."""
    number = 0
    while line := stream.readline(_LONGEST_LINE + 1):
        number += 1
        if len(line) > _LONGEST_LINE:
            raise _damaged(name, number, f"a line longer than {_LONGEST_LINE:,} bytes")
        yield number, line.rstrip(b" \r\n\t")


def _word_and_fields(name: str, line: int, content: bytes, dimensions: int) -> tuple[str, list[bytes]]:
    """Return the word of a line and its numbers as they are written."""
    raw_word, *fields = content.rsplit(b" ", dimensions)
    if len(fields) != dimensions:
        raise _damaged(name, line, f"{len(fields)} numbers, expected {dimensions}")
    if b" " in raw_word and _is_number(raw_word.rpartition(b" ")[2]):  # GloVe has words of several parts: ". . ."
        raise _damaged(name, line, f"{content.count(b' ')} numbers, expected {dimensions}")
    try:
        word = raw_word.decode()
    except UnicodeDecodeError as error:
        what = f"a word that is not UTF-8: {raw_word[:40]!r}"
        raise InputError(f"{name}, line {line}: {what}", "convert the file") from error
    if not word:
        raise InputError(f"{name}, line {line}: no word before the numbers", _GET_AGAIN)
    return word, fields


def _vector(name: str, line: int, word: str, fields: list[bytes]) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused as such
            vector = np.array(list(map(float, fields)), np.float32)
    except ValueError as error:
        raise _damaged(name, line, f"the vector of {word[:40]!r} has something that is no number") from error
    if not np.isfinite(vector).all():
        raise _damaged(name, line, f"the vector of {word[:40]!r} has a number that is not finite")
    return vector


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


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
    with replacing_whole(path) as file:
        file.write(f"{len(vocabulary.words)} {vectors.shape[1]}\n".encode())
        for word, vector in zip(vocabulary.words, vectors[1:].astype(np.float32), strict=True):
            numbers = " ".join(f"{number:.9g}" for number in vector.tolist())  # nine digits hold every float32
            file.write(f"{word} {numbers}\n".encode())
