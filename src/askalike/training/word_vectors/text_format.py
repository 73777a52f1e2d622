"""Word vectors as text: a line is a word and its numbers. word2vec's files begin with a header, GloVe's do not.

Numbers of words that are not wanted are counted, not parsed.

Enters: a stream of bytes. Leaves: ``FoundVectors``. May import: found, header, errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from askalike.errors import FormatError
from askalike.training.word_vectors.found import MOST_DIMENSIONS, FoundVectors, Gathering
from askalike.training.word_vectors.header import parse_header

__all__ = ["read_glove", "read_word2vec_text"]

_LONGEST_LINE = 32 * MOST_DIMENSIONS + 4096


def read_word2vec_text(stream: BinaryIO, name: str, gathering: Gathering) -> FoundVectors:
    """Return the wanted vectors of a word2vec text file.

    Raises:
        FormatError: the first line is no header.
        DamagedInputError: fewer or more lines than the header says, or a line that does not fit it.
    """
    lines = _lines(stream, gathering)
    count, dimensions = parse_header(next(lines, (1, b""))[1], name)
    for number, line in lines:
        if gathering.record_count == count:
            raise gathering.damage(number, f"more lines than the {count} words of the header")
        _take(number, line, dimensions, gathering)
        if gathering.is_full():
            return gathering.found(dimensions)
    if gathering.record_count < count:
        raise gathering.damage(gathering.record_count + 2, f"the file ends, but its header says {count} words")
    return gathering.found(dimensions)


def read_glove(stream: BinaryIO, name: str, gathering: Gathering) -> FoundVectors:
    """Return the wanted vectors of a GloVe file; the first line tells how many numbers a word has.

    Raises:
        FormatError: the first line is a header, or not a word with numbers.
        DamagedInputError: a line that has more or fewer numbers than the first.
    """
    dimensions = 0
    for number, line in _lines(stream, gathering):
        if not dimensions:
            dimensions = _dimensions(line, name)
        _take(number, line, dimensions, gathering)
        if gathering.is_full():
            break
    if not dimensions:
        raise gathering.damage(1, "the file is empty")
    return gathering.found(dimensions)


def _dimensions(line: bytes, name: str) -> int:
    fields = line.split(b" ")
    if len(fields) == 2 and fields[0].isdigit() and fields[1].isdigit():
        raise FormatError(f"{name}, line 1: a header, expected a word and its numbers", "read it as word2vec-text")
    if not (1 <= len(fields) - 1 <= MOST_DIMENSIONS) or not all(map(_is_number, fields[1:])):
        raise FormatError(
            f"{name}, line 1: {line[:40]!r}, expected a word and 1 to {MOST_DIMENSIONS} numbers", "name another format"
        )
    return len(fields) - 1


def _lines(stream: BinaryIO, gathering: Gathering) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line) without the white space at its end."""
    number = 0
    while line := stream.readline(_LONGEST_LINE + 1):
        number += 1
        if len(line) > _LONGEST_LINE:
            raise gathering.damage(number, f"a line longer than {_LONGEST_LINE:,} bytes")
        yield number, line.rstrip(b" \r\n\t")


def _take(number: int, line: bytes, dimensions: int, gathering: Gathering) -> None:
    fields = line.rsplit(b" ", dimensions)
    raw_word = fields[0]
    if len(fields) != dimensions + 1:
        raise gathering.damage(number, f"{len(fields) - 1} numbers, expected {dimensions}")
    if b" " in raw_word and _is_number(raw_word.rpartition(b" ")[2]):  # GloVe has words of several parts: ". . ."
        raise gathering.damage(number, f"{line.count(b' ')} numbers, expected {dimensions}")
    word = gathering.wants(number, raw_word)
    if word is None:
        return
    try:
        numbers = list(map(float, fields[1:]))
    except ValueError as error:
        raise gathering.damage(number, f"the vector of {word[:40]!r} has something that is no number") from error
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused as such
        gathering.keep(number, word, np.array(numbers, np.float32))


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
