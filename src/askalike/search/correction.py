"""Misspelt words of a query, and what is searched for instead: a noisy channel over the words of the forum.

A word ``w`` that the forum has never or hardly seen is read as the word ``c``, one edit away, that was most probably
meant, if that is likelier than that ``w`` was meant as it is written::

    odds(c : w) = TYPOS · n(c) · P(w | c) / (SEEN · n(w) + new(w))

    c* = argmax odds(c : w), taken if odds(c* : w) > 1

``n`` counts the forum's questions with the word or another of its stem. ``P(w | c)`` is the channel of
``text.misspelling``. ``TYPOS`` is how often a word is misspelt. ``new(w)`` is how many questions with ``w`` as a word
of its own are expected though none was seen: short words are often names or abbreviations.

A misspelling that the archive itself holds a few times is found by the same rule: in 4,000 questions with
"segmentation", ``TYPOS · 4,000 · P(segmentaton | segmentation)`` = 0.01 · 4,000 · 0.036 = 1.4 misspellings of this kind
are expected, so that a single "segmentaton" is one of them. A tenth as many could not say so.

Only prose is corrected: no code, markup, path, address, identifier, no word with a digit or with capitals but the
first, and nothing in a line or a text with too many unknown words, which is a pasted log or another language.

Source: Kernighan, Church and Gale 1990, A Spelling Correction Program Based on a Noisy Channel Model (COLING): the
correction with the greatest ``P(c) · P(w | c)``. Norvig 2007, How to Write a Spelling Corrector: ``P(c)`` from counts.

Differs: both correct words that a dictionary lacks; a forum's rare words may be right, so that the word as it is
written competes with its corrections.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from askalike.search.query import TermCounts
from askalike.text.analyzer import Analyzer, Prepared
from askalike.text.misspelling import meant
from askalike.types import Correction, Markup, Query

LEAST_LETTERS: Final = 4
"""Shorter words are near to too many others."""

MOST_LETTERS: Final = 24
"""Longer words are none of a language that is written with spaces."""

MOST_WORDS: Final = 64
"""So many suspicious words of a query are looked at, the first."""

PROBES: Final = 16
"""After so many unknown words no more are looked at, unless half of them are misspelt: a log has ever more of them."""

MOST_CHARACTERS: Final = 10_000
"""Only so much of a body is looked at."""

LEAST_QUESTIONS: Final = 2
"""A word that fewer questions have is not what was meant: it may be the same misspelling."""

RARE: Final = 5
"""A word that more questions have is right."""

TYPOS: Final = 0.01
"""How often a word of a question is misspelt."""

NEW: Final[Mapping[int, float]] = {4: 0.015, 5: 0.0005, 6: 0.0001, 7: 0.00002}
"""Length of a word, 7 for any longer one → how many of 10,000 questions are expected to have it as a word of its own,
though none of the forum's has. This and the figures below were chosen on the Slicer forum (LOG.md)."""

SEEN: Final = 0.2
"""How much a question counts that has the word as it is written: it may have misspelt it likewise."""

CAPITAL: Final = 5.0
"""How much likelier a word with a capital within a sentence is one of its own."""

FREQUENT: Final = 20_000
"""So many words of the forum, the most frequent ones, are right as they are written."""

READ: Final = 1.0
"""How many questions are expected to mean a rarer word of the forum as it is written."""

DOUBT: Final = 3.0
"""How much likelier a word is one of its own than the share of new words says, since the forum alone was read. Chosen
on English by a forum's own words (``LOG.md``)."""

PIECES: Final = 20
"""So many pieces of a line are looked at together."""

MOST_UNKNOWN: Final = 0.3
FEW_UNKNOWN: Final = 2
"""A text with a greater share of pieces that are no words, or unknown and not misspelt, and more than a few of them, is
no prose of the forum's language."""


class KnownWords(NamedTuple):
    """The words of a language that a forum's questions have.

    Args:
        ranks: word → how many words are more frequent.
        letters: what the words are made of.
    """

    ranks: Mapping[str, int]
    letters: str


Speller = Callable[[], KnownWords | None]
"""Returns the words of a language; None where too few have been written to tell which others are misspelt."""


def no_speller(language: str) -> Speller | None:
    """Return None: words of no language are corrected."""
    return None


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of prose: where it stands, in small letters, and whether a capital begins it within a sentence."""

    start: int
    end: int
    word: str
    has_capital: bool


@dataclass(frozen=True, slots=True)
class _Candidates:
    """What a word may have meant.

    Args:
        as_written: how many questions are expected to mean it as it is written.
        likelihoods: candidate → how likely it is misspelt so.
        terms: candidate → its term.
    """

    as_written: float
    likelihoods: Mapping[str, float]
    terms: Mapping[str, str]


def corrected(
    query: Query, prepared: Prepared, analyzer: Analyzer, speller: Speller, counts: TermCounts
) -> tuple[Query, tuple[Correction, ...]]:
    """Return the query as it is searched for, and which words stand for others in it, in their order.

    Args:
        prepared: the terms of the query as it is written.
    """
    known = counts.look_up([*prepared.title, *prepared.body])
    if min([known[term] for term in (*prepared.title, *prepared.body)], default=RARE + 1) > RARE:
        return query, ()
    in_title = list(_stretches(query.title[:MOST_CHARACTERS], "plain"))
    in_body = list(_stretches(query.body[:MOST_CHARACTERS], query.markup))
    known_words = speller()
    if known_words is None:
        return query, ()
    reader = _Reader(analyzer, known_words, counts)
    if not reader.suspects([*in_title, *in_body]):
        return query, ()
    title, body = reader.read(query.title, in_title), reader.read(query.body, in_body)
    if not reader.changed:
        return query, ()
    return replace(query, title=title, body=body), tuple(Correction(*change) for change in reader.changed.items())


class _Reader:
    """Reads the texts of one query; ``changed`` holds which words were read as others."""

    def __init__(self, analyzer: Analyzer, words: KnownWords, counts: TermCounts) -> None:
        self._analyzer, self._words, self._counts = analyzer, words, counts
        self._suspicious: dict[str, int] = {}
        self._candidates: dict[str, _Candidates] = {}
        self._looked_at: dict[str, str | None] = {}
        self._unknown = self._misspelt = 0
        self.changed: dict[str, str] = {}

    def suspects(self, stretches: Sequence[Sequence[_Word | None]]) -> bool:
        """Find the words that may be misspelt, and ask for the counts of what the first of them may have meant.

        Return whether there are any.
        """
        words: dict[str, _Word] = {}
        for pieces in stretches:
            if _is_prose(pieces):
                for piece in pieces:
                    if piece is not None:
                        words.setdefault(piece.word, piece)
        terms = {word: self._analyzer.terms(word) for word in words}
        known = self._counts.look_up([term for of_word in terms.values() for term in of_word])
        for word, of_word in terms.items():
            count = min([known[term] for term in of_word], default=RARE + 1)  # stop words are known
            if count <= RARE:
                rank = self._words.ranks.get(word)
                if rank is None or rank >= FREQUENT:
                    self._suspicious[word] = count
        readable = [word for word in self._suspicious if _is_readable(word)]
        for word in readable[:PROBES]:
            self._candidates[word] = self._candidates_of(words[word])
        self._counts.look_up([term for of_word in self._candidates.values() for term in of_word.terms.values()])
        return bool(readable)

    def read(self, text: str, stretches: Sequence[Sequence[_Word | None]]) -> str:
        """Return a text with what was meant in place of the misspelt words of its prose."""
        changes: list[tuple[_Word, str]] = []
        prose, unread = set[str](), set[str]()
        for pieces in stretches:
            if not _is_prose(pieces):
                continue
            words = [piece for piece in pieces if piece is not None]
            most = max(FEW_UNKNOWN, MOST_UNKNOWN * len(pieces))
            others = len(pieces) - len(words)
            here, unread_here = self._read_words(words)
            prose.update(word.word for word in words)
            unread |= unread_here
            if others + len(unread_here) <= most:
                changes += here
        if len(unread) > max(FEW_UNKNOWN, MOST_UNKNOWN * len(prose)):
            return text
        parts: list[str] = []
        done = 0
        for word, other in changes:
            self.changed[word.word] = other
            parts += (text[done : word.start], other)
            done = word.end
        return "".join([*parts, text[done:]])

    def _read_words(self, words: list[_Word]) -> tuple[list[tuple[_Word, str]], set[str]]:
        """Return the misspelt of some words with what was meant, and the unknown ones that were read as no other."""
        changes: list[tuple[_Word, str]] = []
        unread: set[str] = set()
        for word in words:
            count = self._suspicious.get(word.word)
            if count is None:
                continue
            is_unknown = not count and word.word not in self._words.ranks
            other = self._intended_word(word, is_unknown=is_unknown) if _is_readable(word.word) else None
            if other:
                changes.append((word, other))
            elif is_unknown:
                unread.add(word.word)
        return changes, unread

    def _intended_word(self, word: _Word, *, is_unknown: bool) -> str | None:
        """Return what a suspicious word is read as, None where it was meant as it is written."""
        if word.word in self._looked_at:
            return self._looked_at[word.word]
        if len(self._looked_at) == MOST_WORDS or (self._unknown >= PROBES and 2 * self._misspelt < self._unknown):
            return None
        reading = self._looked_at[word.word] = self._likeliest(word)
        self._unknown += is_unknown
        self._misspelt += is_unknown and reading is not None
        return reading

    def _candidates_of(self, word: _Word) -> _Candidates:
        size, ranks = max(1, self._counts.size or 0), self._words.ranks
        new = DOUBT * NEW[min(len(word.word), max(NEW))] * size / 10_000 * (CAPITAL if word.has_capital else 1.0)
        if word.word in ranks:
            new += READ
        as_written = SEEN * self._suspicious[word.word] + new
        enough = as_written / (TYPOS * size)  # if every question had it
        likelihoods = {
            other: likelihood
            for other, likelihood in meant(word.word, self._words.letters).items()
            if likelihood > enough and other in ranks
        }
        own = {"", *self._analyzer.terms(word.word)}
        terms = dict(zip(likelihoods, self._analyzer.term_of_each(list(likelihoods)), strict=True))
        others = {other: term for other, term in terms.items() if term not in own}
        return _Candidates(as_written, likelihoods, others)

    def _likeliest(self, word: _Word) -> str | None:
        candidates = self._candidates.get(word.word) or self._candidates_of(word)
        known = self._counts.look_up(candidates.terms.values())
        odds = {
            other: TYPOS * known[term] * candidates.likelihoods[other]
            for other, term in candidates.terms.items()
            if known[term] >= LEAST_QUESTIONS
        }
        best = max(odds, key=lambda other: (odds[other], other), default="")
        return best if odds.get(best, 0.0) > candidates.as_written else None


def _is_prose(pieces: Sequence[_Word | None]) -> bool:
    """Return whether few enough of some pieces of a line are no words."""
    return pieces.count(None) <= max(FEW_UNKNOWN, MOST_UNKNOWN * len(pieces))


def _is_readable(word: str) -> bool:
    return LEAST_LETTERS <= len(word) <= MOST_LETTERS and _VOWEL.search(word) is not None


_VOWEL: Final = re.compile(r"[aeiouy]|[^\x00-\x7f]")
_PIECE: Final = re.compile(r"\S+")
_BEFORE, _AFTER = "(\"'[*_“‘", ".,;:!?)\"']*_…”’"
_WRITTEN: Final = re.compile(r"[^\W\d_]*(?:['’-][^\W\d_]+)*|[\d.,:%]+[^\W\d_]{0,2}|\W*")
"""What stands in prose without being looked at: words with a hyphen or an apostrophe, abbreviations, numbers, signs."""
_ENDS_SENTENCE: Final = frozenset(".!?:")
_LONGEST: Final = 64


def _stretches(text: str, markup: Markup) -> Iterator[list[_Word | None]]:
    """Yield the words of prose, a few together; None for a piece that is no word, as a path or an assignment."""
    for start, end in _lines(text, markup):
        pieces: list[_Word | None] = []
        is_first = True
        for piece in _PIECE.finditer(text, start, end):
            shape = piece[0]
            core = shape.lstrip(_BEFORE)
            at = piece.start() + len(shape) - len(core)
            core = core.rstrip(_AFTER)
            if len(core) > _LONGEST:
                pieces.append(None)
            elif core.isalpha() and (len(core) == 1 or core[1:].islower()):
                pieces.append(_Word(at, at + len(core), core.lower(), core[0].isupper() and not is_first))
            elif not _WRITTEN.fullmatch(core):
                pieces.append(None)
            is_first = not _ENDS_SENTENCE.isdisjoint(shape[at + len(core) - piece.start() :])
            if len(pieces) == PIECES:
                yield pieces
                pieces = []
        yield pieces


_CODE: Final[Mapping[Markup, re.Pattern[str]]] = {
    "html": re.compile(r"<(?P<close>/?)(?P<tag>[A-Za-z]{1,20})[^<>]{0,500}>|\n"),
    "markdown": re.compile(  # fences, ticks, indented lines, addresses of links
        r"(?P<fence>^[ >]{0,8}(?:```|~~~).*$)|(?P<tick>`{1,3})|^(?: {4}|\t).*$|\]\([^)\s]{0,500}\)|\n", re.M
    ),
    "plain": re.compile(r"\n"),
}
_VERBATIM: Final = frozenset({"pre", "code", "kbd", "samp", "tt", "var", "script", "style"})


def _lines(text: str, markup: Markup) -> Iterator[tuple[int, int]]:
    """Yield start and end of the stretches of prose in a text: its lines, without tags and code."""
    done = depth = 0
    ticks = ""
    for match in _CODE[markup].finditer(text):
        if not depth and not ticks:
            yield done, match.start()
        done = match.end()
        groups = match.groupdict()
        if (groups.get("tag") or "").lower() in _VERBATIM:
            depth = max(0, depth - 1 if groups["close"] else depth + 1)
        mark = groups.get("tick") or ("fence" if groups.get("fence") else "")
        if mark:
            ticks = "" if ticks == mark else ticks or mark
    if not depth and not ticks:
        yield done, len(text)
