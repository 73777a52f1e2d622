"""Where in a text the words are that made it match.

Enters: a text, the words that matched, the forum's analyzer. Leaves: ranges of characters. May import: text, types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from askalike.text.analyzer import Analyzer
from askalike.types import Match

__all__ = ["highlights"]


def highlights(text: str, matched: Sequence[Match], analyzer: Analyzer) -> list[tuple[int, int]]:
    """Return the ranges (start, end) of ``text`` that hold a word of the same term as one that matched, ascending.

    Counted in Unicode code points, the end not included. Ranges do not overlap.

    >>> from askalike.text.settings import TextSettings
    >>> highlights("Printers print. A printer!", [Match("printer", "title", 1.0)], Analyzer(TextSettings()))
    [(0, 8), (18, 25)]
    """
    wanted = {term for match in matched for term in analyzer.terms(match.word)}
    words = {word for word, _ in analyzer.pairs_among(text, wanted)}
    spans = sorted((span for word in words for span in _places(text, word)), key=lambda span: (span[0], -span[1]))
    found: list[tuple[int, int]] = []
    for start, end in spans:
        if not found or start >= found[-1][1]:
            found.append((start, end))
    return found


def _places(text: str, word: str) -> Iterator[tuple[int, int]]:
    """Yield where a word stands alone: no pattern is compiled, since every hit has words of its own."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if not (_is_inner(text, start - 1) or _is_inner(text, end)):
            yield start, end
        start = text.find(word, end)


def _is_inner(text: str, position: int) -> bool:
    """Return whether there is a letter or digit, which would go on with the word."""
    return 0 <= position < len(text) and (text[position].isalnum() or text[position] == "_")
