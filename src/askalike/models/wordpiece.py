"""WordPiece as BERT's lowercase models read it: a text → the ids of its pieces.

A text is cut at white space; accents, control characters and capitals go; punctuation and Chinese characters stand
alone; each word is then cut into the longest pieces of the vocabulary from its beginning on::

    unaffable → un ##aff ##able

Differs: ``[MASK]`` and the like are read as any other text.

Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2019; Schuster and Nakajima, "Japanese
and Korean Voice Search", 2012.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

MAX_WORD: Final = 100
"""A longer word is unknown."""

_WORD: Final = re.compile(r"\S+")
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]")
_MEMOISED: Final = 1 << 15
_MAX_MEMOISED: Final = 32
_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_CHINESE: Final = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


class WordPiece:
    """A vocabulary and what cuts texts into its pieces; any thread may ask.

    Args:
        pieces: of the vocabulary, in the order of their ids; ``[UNK]``, ``[CLS]`` and ``[SEP]`` are among them.

    Raises:
        ValueError: one of these is not.
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        self._ids = {piece: number for number, piece in enumerate(pieces)}
        if missing := [name for name in ("[UNK]", "[CLS]", "[SEP]") if name not in self._ids]:
            raise ValueError(f"the vocabulary has no {' and no '.join(missing)}")
        self._unknown, self._first, self._last = (self._ids[name] for name in ("[UNK]", "[CLS]", "[SEP]"))
        self._memoised = lru_cache(_MEMOISED)(self._ids_of_word)

    def encode(self, text: str, max_pieces: int) -> list[int]:
        """Return the ids of a text's first pieces between those of ``[CLS]`` and ``[SEP]``, at most ``max_pieces``.

        >>> WordPiece(["[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "!"]).encode("Unaffable!", 16)
        [1, 3, 4, 5, 6, 2]
        """
        return [self._first, *islice(self._ids_of_text(text), max_pieces - 2), self._last]

    def count(self, word: str) -> int:
        """Return of how many pieces a word is.

        >>> WordPiece(["[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "!"]).count("Unaffable")
        3
        """
        return len(self._memoised(word)) if len(word) <= _MAX_MEMOISED else len(self._ids_of_word(word))

    def _ids_of_text(self, text: str) -> Iterator[int]:
        if _CONTROL.search(text):
            text = _CONTROL.sub("", text)
        for match in _WORD.finditer(text):
            word = match.group()
            yield from self._memoised(word) if len(word) <= _MAX_MEMOISED else self._ids_of_word(word)

    def _ids_of_word(self, word: str) -> tuple[int, ...]:
        """Return the ids of what stands between two white spaces."""
        return tuple(number for part in _parts(word) for number in self._ids_of_part(part))

    def _ids_of_part(self, part: str) -> list[int]:
        if len(part) > MAX_WORD:
            return [self._unknown]
        numbers, start = [], 0
        while start < len(part):
            prefix = "##" if start else ""
            for end in range(len(part), start, -1):
                number = self._ids.get(prefix + part[start:end])
                if number is not None:
                    break
            else:
                return [self._unknown]
            numbers.append(number)
            start = end
        return numbers


def _parts(word: str) -> list[str]:
    """Return the words and the marks in what stands between two white spaces, in lowercase without accents.

    >>> _parts("Größe—it's")
    ['große', '—', 'it', "'", 's']
    """
    if not word.isascii():
        word = "".join(map(_plain, unicodedata.normalize("NFD", "".join(filter(_is_kept, word)))))
    parts, is_open = [], False
    for letter in word.lower() if word.isascii() else word:
        if letter in _PUNCTUATION or (letter > "\x7f" and _stands_alone(letter)):
            parts.append(letter)
            is_open = False
        elif is_open:
            parts[-1] += letter
        else:
            parts.append(letter)
            is_open = True
    return parts


def _is_kept(letter: str) -> bool:
    """Return whether a character is no control character; white space does not come here."""
    return unicodedata.category(letter) not in ("Cc", "Cf", "Co")


def _plain(letter: str) -> str:
    """Return a character in lowercase, nothing for an accent."""
    return "" if unicodedata.category(letter) == "Mn" else letter.lower()


def _stands_alone(letter: str) -> bool:
    if unicodedata.category(letter)[0] == "P":
        return True
    number = ord(letter)
    return any(first <= number <= last for first, last in _CHINESE)
