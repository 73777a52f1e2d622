"""Misspelt words of a query, and what is searched for instead.

A word that neither the forum nor the encoder knows finds nothing as it is. Where it is one edit away from words that
both know, it is read as the one of them that the encoder has seen most often. ::

    w  →  argmax over known w' that are one edit away from w of the frequency of w'

Enters: a query, what is known. Leaves: the query to search for, and what was changed. May import: text, types, its own
folder.

Differs: the noisy channel of Kernighan, Church and Gale 1990 weighs each edit by how often people make it; here all are
as likely. A word that is known is never changed, though it may be a misspelling of another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from askalike.rank.query import Query
from askalike.text.analyzer import Analyzer
from askalike.text.markup import plain_text
from askalike.text.misspelling import one_edit_away
from askalike.text.tokens import words
from askalike.types import Correction

__all__ = ["Speller", "corrected"]

LEAST_LETTERS: Final = 4
"""Shorter words are near to too many others."""

MOST_WORDS: Final = 32
"""So many unknown words of a query are looked at, the first."""

MOST_CHARACTERS: Final = 10_000
"""Only so much of a body is looked at."""

LEAST_QUESTIONS: Final = 2
"""A word that fewer questions have is not what was meant: it may be the same misspelling."""


class Speller(Protocol):
    """The words that an encoder has vectors for."""

    def rank(self, word: str) -> int | None:
        """Return how many words are more frequent, None for a word without a vector of its own."""


def corrected(
    query: Query, analyzer: Analyzer, speller: Speller, document_frequency: Callable[[str], int]
) -> tuple[Query, tuple[Correction, ...]]:
    """Return the query as it is searched for, and which words stand for others in it, in their order."""
    body = plain_text(query.body[:MOST_CHARACTERS], query.markup, with_code=analyzer.settings.with_code)
    found: list[Correction] = []
    asked = query
    for word in _unknown(f"{query.title}\n{body}", analyzer, speller, document_frequency):
        meant = _meant(word, analyzer, speller, document_frequency)
        if meant is None:
            continue
        pattern = re.compile(rf"(?<![\w@./\\-]){re.escape(word)}(?!\w|[@./\\-]\w)", re.IGNORECASE)  # no part of a code
        title, in_title = pattern.subn(meant, asked.title)
        text, in_body = pattern.subn(meant, asked.body)
        if in_title or in_body:
            asked = replace(asked, title=title, body=text)
            found.append(Correction(word, meant))
    return asked, tuple(found)


def _unknown(text: str, analyzer: Analyzer, speller: Speller, document_frequency: Callable[[str], int]) -> list[str]:
    """Return the words that are neither stop words nor known to anybody, in their order."""
    found: dict[str, None] = {}
    for word in words(text):
        if len(word) >= LEAST_LETTERS and word.isalpha() and word not in found and speller.rank(word) is None:
            terms = analyzer.terms(word)
            if terms and not any(map(document_frequency, terms)):
                found[word] = None
                if len(found) == MOST_WORDS:
                    break
    return list(found)


def _meant(word: str, analyzer: Analyzer, speller: Speller, document_frequency: Callable[[str], int]) -> str | None:
    """Return the most frequent known word that is one edit away."""
    ranked = {other: rank for other in one_edit_away(word) if (rank := speller.rank(other)) is not None}
    for other in sorted(ranked, key=lambda other: (ranked[other], other)):
        terms = analyzer.terms(other)
        if terms and all(document_frequency(term) >= LEAST_QUESTIONS for term in terms):
            return other
    return None
