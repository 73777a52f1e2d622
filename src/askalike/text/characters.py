"""Which characters are let through: control characters out, look-alikes to one form."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")


def safe(text: str) -> str:
    """Return ``text`` with a space for each control character and each lone surrogate; line ends become ``\\n``.

    What is left can be encoded as UTF-8, stored and shown.

    >>> safe("a\\x00b\\r\\nc")
    'a b\\nc'
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.replace("\n", "").isprintable():  # 20 times faster than the search, and true of most texts
        return text
    return _CONTROL.sub(" ", text)


def _ranges(points: list[int]) -> str:
    """Return the inside of a character class that holds ``points`` (ascending)."""
    spans: list[list[int]] = []
    for point in points:
        if spans and spans[-1][1] == point - 1:
            spans[-1][1] = point
        else:
            spans.append([point, point])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in spans)


_EMOJI_PARTS = {*range(0x20D0, 0x2100), *range(0xFE00, 0xFE10)}  # keycap rings and variation selectors
_MAY_BE_MARKS = (*range(0x300, 0x3400), *range(0xA000, 0x12000), *range(0x16000, 0x17000), *range(0x1B000, 0x1F000))
"""Between these are ideographs; beyond, no character has a combining class."""

MARKS: Final = _ranges(
    [point for point in _MAY_BE_MARKS if unicodedata.category(chr(point)) in ("Mn", "Mc") and point not in _EMOJI_PARTS]
)
"""The inside of a character class of combining marks: parts of words (Hindi vowels, accents), unknown to ``\\w``."""

# NFKC sorts each run of marks in time that grows with its square: a long run is hostile, not language. The two
# halfwidth sound marks become combining marks only in NFKC.
_MARK_RUN = re.compile(f"([{MARKS}\uff9e\uff9f]{{8}})[{MARKS}\uff9e\uff9f]+")

_INVISIBLE = [0xAD, 0x34F, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)]
_ONE_FORM: Final[dict[int, str | None]] = {
    **dict.fromkeys([*_INVISIBLE, 0xFEFF, *_EMOJI_PARTS]),
    **dict.fromkeys([0x2018, 0x2019, 0x201B, 0x2BC, 0xB4, 0x2032, 0xFF07], "'"),
    **dict.fromkeys([0x2010, 0x2011, 0x2012, 0x2013, 0x2212], "-"),
    **dict.fromkeys([0x2014, 0x2015, 0x2026], ","),  # dashes and ellipses part words
}


_LATIN_AND_GREEK = (*range(0xC0, 0x250), *range(0x370, 0x400), *range(0x1E00, 0x2000))
_WITHOUT_ACCENTS: Final[dict[int, str]] = {
    **{
        point: base
        for point in _LATIN_AND_GREEK
        if (base := unicodedata.normalize("NFD", chr(point))[0]) != chr(point) and base.isalpha()
    },
    **{ord(letter): base for letter, base in zip("đøłıħŧ", "doliht", strict=True)},
}


def without_accents(word: str) -> str:
    """Return a word in small letters without the accents of Latin and Greek letters.

    >>> without_accents("canción"), without_accents("złącze"), without_accents("йод")
    ('cancion', 'zlacze', 'йод')
    """
    return word if word.isascii() else word.translate(_WITHOUT_ACCENTS)


def normalised(piece: str) -> str:
    """Return ``piece`` in NFKC form without invisible characters, curly quotes and dashes made plain.

    Zero-width characters, soft hyphens, direction marks and variation selectors are removed; of more than eight
    combining marks in a row, eight are kept. Upper and lower case stay. Time grows with the length only.

    >>> normalised("ｄｏｎ’ｔ\\u200b")
    "don't"
    """
    if piece.isascii():
        return piece
    return unicodedata.normalize("NFKC", _MARK_RUN.sub(r"\1", piece.translate(_ONE_FORM)))
