"""The first line of a word2vec file: how many words, and how many numbers each.

Enters: a line. Leaves: the two numbers. May import: found, errors.
"""

from __future__ import annotations

import re

from askalike.errors import FormatError
from askalike.training.word_vectors.found import MOST_DIMENSIONS

__all__ = ["MOST_HEADER_BYTES", "parse_header"]

MOST_HEADER_BYTES = 64
_MOST_WORDS = 10**9
_HEADER = re.compile(rb"(\d{1,20}) (\d{1,20})\s*")


def parse_header(line: bytes, name: str) -> tuple[int, int]:
    """Return (words, dimensions).

    Raises:
        FormatError: no such line, or numbers that cannot be believed; nothing is set aside for them.

    >>> parse_header(b"3000000 300\\n", "news.bin")
    (3000000, 300)
    """
    match = _HEADER.fullmatch(line)
    if match is None:
        raise FormatError(
            f"{name}, line 1: {line[:40]!r} is no word2vec header, expected the numbers of words and of dimensions",
            "a file without that line is in the format glove",
        )
    count, dimensions = int(match[1]), int(match[2])
    if not (1 <= dimensions <= MOST_DIMENSIONS and count <= _MOST_WORDS):
        raise FormatError(
            f"{name}, line 1: a header of {count} words with {dimensions} dimensions, "
            f"expected at most {_MOST_WORDS} and 1 to {MOST_DIMENSIONS}",
            "the file is damaged or in another format",
        )
    return count, dimensions
