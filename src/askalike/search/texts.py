"""A question as it is compared: its terms as hashes and the words of its title, made once and kept with the word index.

Two texts are compared by which terms they share, by how many either has alone, and by what differs in their titles. So
of the title and the beginning of the body this is kept: the hash of each distinct term, one of all terms in their
order, and the title's words as they are written; and of its best answers the hash of each distinct term that these
lack. Nothing here depends on an encoder.

Hashes have 48 bits: in one search of three thousand million, one of 1,600 terms of candidates has by chance the hash of
another one's among 60 of the query.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate
from typing import Final, NamedTuple
from zlib import crc32

from askalike.text.analyzer import Analyzer, Prepared
from askalike.text.characters import normalised
from askalike.text.markup import readable
from askalike.text.tokens import surfaces
from askalike.types import Markup

BODY_CHARACTERS: Final = 600
"""So many characters of a body are compared, the first."""

MOST_ANSWERS: Final = 3
"""So many answers of a question are read, the best."""

ANSWER_CHARACTERS: Final = 2_000
"""So many characters of each answer are read, the first."""

MOST_WORDS: Final = 40
"""Only so many words of a title are looked at one by one."""

HASH_BYTES: Final = 6
_HEAD: Final = struct.Struct("<IIII8s8s")
_SUM_BYTES: Final = 4
_MOST_HASHES: Final = 1 << 17


class Text(NamedTuple):
    """A text as it is compared.

    Args:
        title: hashes of the distinct terms of the title, joined.
        body: of those terms of the body that the title lacks.
        title_order, body_order: hashes of all terms in their order.
        written: the first ``MOST_WORDS`` words of the title as they are written, joined by spaces.
        language: of a question of a forum in several; by it the query is read that this one is compared with.
        answers: hashes of the terms of its best answers that title and body lack.
    """

    title: bytes
    body: bytes
    title_order: bytes
    body_order: bytes
    written: str
    language: str = ""
    answers: bytes = b""

    def packed(self) -> bytes:
        """Return what ``unpacked`` reads: a checksum, the lengths of the parts, and these."""
        written = self.written.encode()
        sizes = (len(self.title), len(self.body), len(written), len(self.answers))
        head = _HEAD.pack(*sizes, self.title_order, self.body_order)
        content = b"".join((head, self.title, self.body, written, self.answers, self.language.encode()))
        return crc32(content).to_bytes(_SUM_BYTES, "little") + content


def unpacked(packed: bytes) -> Text | None:
    """Return the text that was packed, None where these bytes are not what was written."""
    if len(packed) < _SUM_BYTES + _HEAD.size:
        return None
    if crc32(memoryview(packed)[_SUM_BYTES:]) != int.from_bytes(packed[:_SUM_BYTES], "little"):
        return None
    *sizes, title_order, body_order = _HEAD.unpack_from(packed, _SUM_BYTES)
    rest = packed[_SUM_BYTES + _HEAD.size :]
    ends = list(accumulate(sizes))
    title, body, written, answers = (rest[end - size : end] for end, size in zip(ends, sizes, strict=True))
    language = rest[ends[-1] :].decode()
    return Text(title, body, title_order, body_order, written.decode(), language, answers)


@lru_cache(1 << 12)
def hashes_of(text: Text) -> frozenset[bytes]:
    """Return the hashes of all terms of a text."""
    joined = text.title + text.body
    return frozenset(joined[start : start + HASH_BYTES] for start in range(0, len(joined), HASH_BYTES))


@lru_cache(_MOST_HASHES)
def hashed(term: str) -> bytes:
    """Return the hash of a term."""
    return blake2b(term.encode(errors="surrogatepass"), digest_size=HASH_BYTES).digest()


class Read(NamedTuple):
    """What was read of a text.

    Args:
        terms: distinct, in the order of the hashes of ``text``.
        prepared: all terms, in their order.
    """

    text: Text
    terms: tuple[str, ...]
    prepared: Prepared


class TextReader:
    """Prepares texts for being compared. Safe to share between threads."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer

    def read(self, title: str, body: str, markup: Markup, *, is_whole: bool = False) -> Read:
        """Return a text as it is compared.

        Args:
            is_whole: all terms of a long body are wanted too, not only those of its beginning.
        """
        is_cut = len(body) > BODY_CHARACTERS
        terms, rest = self.analyzer.terms(title), self.terms_of(beginning(body, BODY_CHARACTERS), markup)
        prepared = Prepared(terms, rest)
        if is_cut and is_whole:
            prepared = self.analyzer.prepare(title, body, markup)
        titled = dict.fromkeys(self.analyzer.informative(terms))
        others = [term for term in dict.fromkeys(self.analyzer.informative(rest)) if term not in titled]
        hashes = [b"".join(map(hashed, field)) for field in (titled, others)]
        orders = [" ".join(field).encode(errors="surrogatepass") for field in (terms, rest)]
        digests = [blake2b(order, digest_size=8).digest() for order in orders]
        text = Text(hashes[0], hashes[1], digests[0], digests[1], written_words(title))
        return Read(text, (*titled, *others), prepared)

    def terms_of(self, body: str, markup: Markup) -> list[str]:
        """Return the terms of a body."""
        return self.analyzer.terms(readable(body, markup, with_code=self.analyzer.settings.with_code)) if body else []

    def with_answers(self, text: Text, terms: Sequence[str]) -> Text:
        """Return a text with the terms of its answers."""
        known = hashes_of(text)
        hashes = dict.fromkeys(map(hashed, self.analyzer.informative(terms)))
        return text._replace(answers=b"".join(hash_ for hash_ in hashes if hash_ not in known))


def beginning(body: str, characters: int) -> str:
    """Return the first characters of a body, without half a word at the end.

    >>> beginning("the printer is offline", 14)
    'the printer'
    """
    return "".join(body[:characters].rsplit(None, 1)[:1]) if len(body) > characters else body


def written_words(title: str) -> str:
    """Return the first words of a title as they are written, joined by spaces.

    >>> written_words("Can't mount 22.04 (USB)?")
    "Can't mount 22.04 USB"
    """
    pieces = title.split(None, MOST_WORDS)[:MOST_WORDS]
    return " ".join([word for piece in pieces for word in surfaces(normalised(piece))][:MOST_WORDS])


@lru_cache(64)
def reader_of(analyzer: Analyzer) -> TextReader:
    """Return the reader of an analyzer, the same one whenever it is asked for."""
    return TextReader(analyzer)
