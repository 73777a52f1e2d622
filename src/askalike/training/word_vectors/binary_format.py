"""Word vectors in word2vec's binary format: a header line, then for each word its bytes, a space, and D float32.

Numbers are little-endian. The authors' program ends a record with a line feed, others do not; both are read.

Enters: a stream of bytes. Leaves: ``FoundVectors``. May import: found, header, errors.
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from askalike.training.word_vectors.found import FoundVectors, Gathering
from askalike.training.word_vectors.header import MOST_HEADER_BYTES, parse_header

__all__ = ["read_word2vec_binary"]

_BLOCK_BYTES = 1 << 20
_LONGEST_WORD = 4096


def read_word2vec_binary(stream: BinaryIO, name: str, gathering: Gathering) -> FoundVectors:
    """Return the wanted vectors of a binary word2vec file.

    Raises:
        FormatError: the first line is no header.
        DamagedInputError: the file ends within a record, goes on after the last, or a word does not end.
    """
    count, dimensions = parse_header(stream.readline(MOST_HEADER_BYTES), name)
    window = _Window(stream)
    for record in range(1, count + 1):
        raw_word = window.until_space()
        if raw_word is None:
            what = "the file ends" if window.is_at_end else f"a word longer than {_LONGEST_WORD} bytes"
            raise gathering.damage(record, f"{what}, but the header says {count} words of {dimensions} dimensions")
        numbers = window.take(4 * dimensions)
        if len(numbers) < 4 * dimensions:
            raise gathering.damage(record, f"the file ends within a vector of {dimensions} numbers")
        word = gathering.wants(record, raw_word.lstrip(b"\n"))
        if word is not None:
            gathering.keep(record, word, np.frombuffer(numbers, "<f4").astype(np.float32))
            if gathering.is_full():
                return gathering.found(dimensions)
    if window.take(_LONGEST_WORD).strip():
        raise gathering.damage(count + 1, f"the file goes on after the {count} words of its header")
    return gathering.found(dimensions)


class _Window:
    """A stream read in blocks, of which the part not yet used is at hand."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._block = b""
        self._start = 0
        self.is_at_end = False

    def _fill(self, count: int) -> None:
        """Have ``count`` bytes at hand, or all that is left."""
        while not self.is_at_end and len(self._block) - self._start < count:
            more = self._stream.read(_BLOCK_BYTES)
            self.is_at_end = not more
            self._block = self._block[self._start :] + more
            self._start = 0

    def until_space(self) -> bytes | None:
        """Return the bytes before the next space, which is used up too; None where it does not come."""
        end = self._block.find(b" ", self._start, self._start + _LONGEST_WORD)
        if end < 0:
            self._fill(_LONGEST_WORD)
            end = self._block.find(b" ", self._start, self._start + _LONGEST_WORD)
            if end < 0:
                return None
        found = self._block[self._start : end]
        self._start = end + 1
        return found

    def take(self, count: int) -> bytes:
        """Return the next bytes, fewer at the end."""
        self._fill(count)
        found = self._block[self._start : self._start + count]
        self._start += len(found)
        return found
