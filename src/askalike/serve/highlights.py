"""Where in a text the words are that made it match.

Enters: a text, the words that matched, the forum's analyzer. Leaves: ranges of characters. May import: text, types.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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
    if not words:
        return []
    among = "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))
    return [match.span() for match in re.finditer(rf"(?<!\w)(?:{among})(?!\w)", text)]
