"""Words to index terms: stop words dropped, words stemmed, compounds also taken apart.

Nothing that becomes a term depends on what stands beyond white space, so what became of each piece between white space
is remembered: most pieces of a forum's text are met again and again, and cost one look-up in a dictionary.

Source: M. F. Porter, Snowball (snowballstem.org), through PyStemmer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from threading import Lock

import Stemmer

from askalike.text.characters import normalised
from askalike.text.markup import readable
from askalike.text.settings import NO_LANGUAGE, TextSettings
from askalike.text.stop_words import STOP_WORDS
from askalike.text.tokens import is_compound, parts, surfaces, word_of
from askalike.types import Markup

LONGEST_TERM = 64
"""Characters of a term; of a longer one the first 64 are kept, so two addresses may share a term."""

_ENGLISH = ("english", "porter")
_CONTRACTION = re.compile(r"'(?:s|m|d|re|ve|ll)$")
_PIECE = re.compile(r"\S+")
_HAS_DIGIT = re.compile(r"\d")
_BEFORE, _AFTER = "(\"'[*", ".,;:!?)\"']*"  # around a plain word, these are never part of a token
_LONGEST_REMEMBERED = 64
_MOST_PIECES = 1 << 17  # on 50,000 questions, a quarter as many take 1.7 times as long, twice as many no less
_MOST_WORDS = 1 << 14
_MOST_STEMS = 1 << 16


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question's index terms, in order and with repetitions; title and body apart."""

    title: list[str]
    body: list[str]


class _Memory(dict[str, tuple[str, ...]]):
    """piece → its terms, worked out when first asked for.

    When full it is set aside and begun anew, and what is asked for again is taken over: what is in use stays, at most
    twice ``most`` pieces are held, and a look-up that finds its piece costs what a dictionary's does.
    """

    def __init__(self, work_out: Callable[[str], tuple[str, ...]], most: int) -> None:
        super().__init__()
        self._work_out = work_out
        self._most = most
        self._older: dict[str, tuple[str, ...]] = {}

    def __missing__(self, piece: str) -> tuple[str, ...]:
        terms = self._older.get(piece)
        if terms is None:
            terms = self._work_out(piece)
            if len(piece) > _LONGEST_REMEMBERED:
                return terms
        if len(self) >= self._most:
            self._older = dict(self)
            self.clear()
        self[piece] = terms
        return terms


class Analyzer:
    """Turns text into index terms, the same way for questions and queries. Safe to share between threads.

    A word kept whole by ``tokens`` is not stemmed, and gives itself and its parts, so that ``resolv.conf`` finds
    ``/etc/resolv.conf``. A word with a digit is not stemmed. In English, contractions lose their second half
    (``user's`` is ``user``, ``we'll`` is ``we``) and other apostrophes go (``can't`` is ``cant``); in every other
    language an apostrophe parts words (``l'avion`` is ``l``, ``avion``). Languages without a list in ``STOP_WORDS``
    drop no stop words. Terms have 1 to 64 characters and no white space.

    >>> Analyzer(TextSettings()).terms("Why is the drive mounted read-only in /boot/grub.cfg?")
    ['whi', 'drive', 'mount', 'read', 'onli', '/boot/grub.cfg', 'boot', 'grub.cfg', 'grub', 'cfg']
    """

    def __init__(self, settings: TextSettings) -> None:
        self.settings = settings
        self._stops = STOP_WORDS.get(settings.language, frozenset()) if settings.stop_words else frozenset()
        self._is_english = settings.language in _ENGLISH
        is_stemmed = settings.stem and settings.language != NO_LANGUAGE
        self._stemmer = Stemmer.Stemmer(settings.language, 0) if is_stemmed else None
        self._lock = Lock()  # a Snowball stemmer has inner state
        self._memory = _Memory(self._terms_of_piece, _MOST_PIECES)
        self._of_word = _Memory(self._terms_of_word, _MOST_WORDS)

    def terms(self, text: str) -> list[str]:
        """Return the index terms of ``text``, in order and with repetitions."""
        pieces = (text.lower() if text.isascii() else text).split()
        return list(chain.from_iterable(map(self._memory.__getitem__, pieces)))

    def term_of_each(self, words: Sequence[str]) -> list[str]:
        """Return the term of each word of small letters alone, "" for a stop word.

        It is that of ``terms``; nothing is remembered, since most of these may be no words at all.

        >>> Analyzer(TextSettings()).term_of_each(["mounting", "the", "mountign"])
        ['mount', '', 'mountign']
        """
        cut = [word[:LONGEST_TERM] for word in words]
        if self._stemmer is not None:
            with self._lock:
                cut = [stem or word for stem, word in zip(self._stemmer.stemWords(cut), cut, strict=True)]
        return ["" if word in self._stops else term for word, term in zip(words, cut, strict=True)]

    def pairs(self, text: str) -> list[tuple[str, str]]:
        """Return (word as the text writes it, term) for every term of ``terms(text)``, in the same order.

        Every term of a compound is paired with the whole compound. Where normalising changes the number of
        characters (``Core™`` is the word ``coretm``), the word is all that stands between two white spaces.

        >>> Analyzer(TextSettings()).pairs("Mounting ~/Disks")
        [('Mounting', 'mount'), ('~/Disks', '~/disks'), ('~/Disks', 'disk')]
        """
        return list(chain.from_iterable(map(self._pairs_of_piece, text.split())))

    def pairs_among(self, text: str, wanted: Set[str]) -> list[tuple[str, str]]:
        """Return those of ``pairs(text)`` whose term is wanted; far faster when few are.

        >>> Analyzer(TextSettings()).pairs_among("Mounting ~/Disks by hand", {"disk"})
        [('~/Disks', 'disk')]
        """
        memory = self._memory
        pieces = [piece for piece in text.split() if not wanted.isdisjoint(memory[piece])]
        return [pair for piece in pieces for pair in self._pairs_of_piece(piece) if pair[1] in wanted]

    def first_among(self, text: str, wanted: Set[str]) -> dict[str, str]:
        """Return those of the terms wanted that the text has → the word of its first place, in the order of these.

        >>> Analyzer(TextSettings()).first_among("Mounted disks: mounting disks", {"disk", "mount"})
        {'mount': 'Mounted', 'disk': 'disks'}
        """
        memory, found = self._memory, dict[str, str]()
        lacking = set(wanted)
        for piece in dict.fromkeys(text.split()):
            if not lacking.isdisjoint(memory[piece]):
                for start, end, term in self._places(piece):
                    if term in lacking:
                        lacking.remove(term)
                        found[term] = piece[start:end]
        return found

    def spans_among(self, text: str, wanted: Set[str]) -> list[tuple[int, int]]:
        """Return where ``text`` holds the words of ``pairs_among(text, wanted)``: (start, end) of each, ascending.

        >>> Analyzer(TextSettings()).spans_among("無線LANが切れる", {"線", "lan"})
        [(1, 2), (2, 5)]
        """
        found: list[tuple[int, int]] = []
        for piece in _PIECE.finditer(text):
            if not wanted.isdisjoint(self._memory[piece[0]]):
                at = piece.start()
                spans = [(at + start, at + end) for start, end, term in self._places(piece[0]) if term in wanted]
                found += dict.fromkeys(spans)  # a compound is there once for each of its terms
        return found

    def prepare(self, title: str, body: str, markup: Markup) -> Prepared:
        """Return the index terms of a question; code blocks count if the settings say so, banners never."""
        return Prepared(self.terms(title), self.terms(readable(body, markup, with_code=self.settings.with_code)))

    def _pairs_of_piece(self, piece: str) -> Iterator[tuple[str, str]]:
        return ((piece[start:end], term) for start, end, term in self._places(piece))

    def _places(self, piece: str) -> Iterator[tuple[int, int, str]]:
        """Yield start and end of a word in ``piece``, and a term of it.

        What the text had there: the piece without the signs around it where normalising moved its characters.
        """
        core = piece.lstrip(_BEFORE)
        begin = len(piece) - len(core)
        core = core.rstrip(_AFTER)
        if core.isascii() and core.isalnum():  # most pieces: the general way below gives the same
            for term in self._memory[core]:
                yield begin, begin + len(core), term
            return
        form = normalised(piece)
        stripped = piece.strip(_BEFORE + _AFTER) or piece
        whole = piece.find(stripped)
        position = 0
        for surface in surfaces(form):
            start = form.find(surface, position)
            position = start + len(surface)
            place = (start, position) if len(form) == len(piece) else (whole, whole + len(stripped))
            for term in self._of_word[word_of(surface)]:
                yield *place, term

    def _terms_of_piece(self, piece: str) -> tuple[str, ...]:
        core = piece.lstrip(_BEFORE).rstrip(_AFTER)
        if core.isascii() and core.isalnum():  # most pieces: the general way below gives the same
            return self._memory[core] if core != piece else tuple(self._stemmed(core.lower()))
        words = map(word_of, surfaces(normalised(piece)))
        return tuple(chain.from_iterable(map(self._of_word.__getitem__, words)))

    def _terms_of_word(self, word: str) -> tuple[str, ...]:
        if not is_compound(word):
            return tuple(self._terms_of_simple(word))
        terms = [word[:LONGEST_TERM]]
        for part in parts(word):
            terms += [part[:LONGEST_TERM]] if is_compound(part) else self._terms_of_simple(part)
        return tuple(dict.fromkeys(terms))

    def _terms_of_simple(self, word: str) -> list[str]:
        if "'" not in word:
            return self._stemmed(word)
        if self._is_english:
            return self._stemmed(_CONTRACTION.sub("", word).replace("'", ""))
        return list(chain.from_iterable(map(self._stemmed, filter(None, word.split("'")))))

    def _stemmed(self, word: str) -> list[str]:
        if not word or word in self._stops:
            return []
        word = word[:LONGEST_TERM]
        if self._stemmer is None or not (word.isalpha() or _HAS_DIGIT.search(word) is None):
            return [word]
        with self._lock:
            stem: str = self._stemmer.stemWord(word)
        return [stem[:LONGEST_TERM] or word]


class WordStemmer:
    """Brings words to their stems. Safe to share between threads.

    These stay as they are written: a word that ``tokens`` keeps whole (a path, an address), one with a digit, one of
    more than 64 characters, and one of which nothing would be left.

    Args:
        language: a Snowball stemmer, one of ``settings.LANGUAGES``.

    >>> WordStemmer("english").stems(["routers", "user's", "/etc/hosts", "22.04s"])
    ['router', 'user', '/etc/hosts', '22.04s']
    """

    def __init__(self, language: str) -> None:
        self._stemmer = Stemmer.Stemmer(language, 0)
        self._lock = Lock()  # a Snowball stemmer has inner state
        self._stem = lru_cache(maxsize=_MOST_STEMS)(self._worked_out)

    def stems(self, words: Iterable[str]) -> list[str]:
        """Return the stem of each word, in order."""
        return [word if len(word) > LONGEST_TERM else self._stem(word) for word in words]

    def _worked_out(self, word: str) -> str:
        if not word.isalpha() and (is_compound(word) or _HAS_DIGIT.search(word)):
            return word
        with self._lock:
            stem: str = self._stemmer.stemWord(word)
        return stem or word


@cache
def stemmer_of(language: str) -> WordStemmer:
    """Return the stemmer of a language, the same one whenever it is asked for."""
    return WordStemmer(language)
