"""Where in a text the words are that made it match."""

from __future__ import annotations

from collections.abc import Sequence

from askalike.text.analyzer import Analyzer
from askalike.types import Match


def highlights(text: str, matched: Sequence[Match], analyzer: Analyzer) -> list[tuple[int, int]]:
    """Return the ranges (start, end) of ``text`` that hold a word of the same term as one that matched, ascending.

    Counted in Unicode code points, the end not included. Ranges do not overlap; words that touch, as ideographs do,
    share one.

    >>> from askalike.text.settings import TextSettings
    >>> highlights("Printers print. A printer!", [Match("printer", "title", 1.0)], Analyzer(TextSettings()))
    [(0, 8), (18, 25)]
    """
    wanted = {term for match in matched for term in analyzer.terms(match.word)}
    found: list[tuple[int, int]] = []
    for start, end in analyzer.spans_among(text, wanted):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
