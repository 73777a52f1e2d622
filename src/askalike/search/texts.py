"""A question as it is compared: its terms as hashes and its informative words, made once and kept with the word index.

Two texts are compared by which terms they share, by how many either has alone, and by the vectors of words. So of the
title and the beginning of the body this is kept: the hash of each distinct term, one of all terms in their order, and
the informative words as models look them up. Nothing here depends on an encoder.

Hashes have 48 bits: in one search of three thousand million, one of 1,600 terms of candidates has by chance the hash of
another one's among 60 of the query.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import Final, NamedTuple
from zlib import crc32

from askalike.text.analyzer import Analyzer, Prepared
from askalike.text.markup import readable
from askalike.text.tokens import words
from askalike.types import Markup

BODY_CHARACTERS: Final = 600
"""Only so much of a body is compared."""

MOST_WORDS: Final = 40
"""Only so many words of a field are compared by their vectors."""

HASH_BYTES: Final = 6
_HEAD: Final = struct.Struct("<III8s8s")
_SUM_BYTES: Final = 4
_MOST_PIECES: Final = 1 << 16
_MOST_HASHES: Final = 1 << 17
_AROUND: Final = "(\"'[*.,;:!?)]"


class Text(NamedTuple):
    """A text as it is compared.

    Args:
        title: hashes of the distinct terms of the title, joined.
        body: of those terms of the body that the title lacks.
        title_order, body_order: hashes of all terms in their order.
        title_words, body_words: the informative words, joined by spaces; more than ``MOST_WORDS``, since a model need
            not know each.
        language: of a question of a forum in several; by it the query is read that this one is compared with.
    """

    title: bytes
    body: bytes
    title_order: bytes
    body_order: bytes
    title_words: str
    body_words: str
    language: str = ""

    def packed(self) -> bytes:
        """Return what ``unpacked`` reads: a checksum, the lengths of the parts, and these."""
        named = self.title_words.encode()
        head = _HEAD.pack(len(self.title), len(self.body), len(named), self.title_order, self.body_order)
        words = f"{self.body_words}\0{self.language}" if self.language else self.body_words  # no word has such a sign
        found = b"".join((head, self.title, self.body, named, words.encode()))
        return crc32(found).to_bytes(_SUM_BYTES, "little") + found


def unpacked(packed: bytes) -> Text | None:
    """Return the text that was packed, None where these bytes are not what was written."""
    if len(packed) < _SUM_BYTES + _HEAD.size:
        return None
    if crc32(memoryview(packed)[_SUM_BYTES:]) != int.from_bytes(packed[:_SUM_BYTES], "little"):
        return None
    title, body, named, title_order, body_order = _HEAD.unpack_from(packed, _SUM_BYTES)
    rest = packed[_SUM_BYTES + _HEAD.size :]
    body += title
    named += body
    words, _, language = rest[named:].decode().partition("\0")
    return Text(rest[:title], rest[title:body], title_order, body_order, rest[body:named].decode(), words, language)


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
    """Prepares texts for being compared; what a piece of text gives is remembered. Safe to share between threads.

    Args:
        analyzer: a piece that it makes no term of is not informative.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self._known: dict[str, tuple[str, ...]] = {}

    def read(self, title: str, body: str, markup: Markup, *, is_whole: bool = False) -> Read:
        """Return a text as it is compared.

        Args:
            is_whole: all terms of a long body are wanted too, not only those of its beginning.
        """
        is_cut = len(body) > BODY_CHARACTERS
        begun = body[:BODY_CHARACTERS].rsplit(None, 1)[0] if is_cut else body  # no half word
        shown = readable(begun, markup, with_code=self.analyzer.settings.with_code) if body else ""
        terms, rest = self.analyzer.terms(title), self.analyzer.terms(shown)
        prepared = Prepared(terms, rest)
        if is_cut and is_whole:
            prepared = self.analyzer.prepare(title, body, markup)
        titled = dict.fromkeys(terms)
        others = [term for term in dict.fromkeys(rest) if term not in titled]
        hashes = [b"".join(map(hashed, some)) for some in (titled, others)]
        orders = [" ".join(some).encode(errors="surrogatepass") for some in (terms, rest)]
        digests = [blake2b(order, digest_size=8).digest() for order in orders]
        text = Text(hashes[0], hashes[1], digests[0], digests[1], self._words(title), self._words(shown))
        return Read(text, (*titled, *others), prepared)

    def _words(self, text: str) -> str:
        known = self._known
        if len(known) > _MOST_PIECES:
            self._known = known = {}
        pieces = text.lower().split(None, 2 * MOST_WORDS)[: 2 * MOST_WORDS]
        for piece in pieces:
            if piece not in known:
                known[piece] = tuple(self._of(piece))
        return " ".join(chain.from_iterable(map(known.__getitem__, pieces)))

    def _of(self, piece: str) -> Iterable[str]:
        if not self.analyzer.terms(piece):
            return ()
        core = piece.strip(_AROUND)
        return [core] if core.isascii() and core.isalpha() else words(piece)


@lru_cache(64)
def reader_of(analyzer: Analyzer) -> TextReader:
    """Return the reader of an analyzer, the same one whenever it is asked for."""
    return TextReader(analyzer)
