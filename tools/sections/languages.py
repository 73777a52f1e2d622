"""The section on forums in several languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.sections.cells import table

__all__ = ["several"]


def several(result: Mapping[str, Any]) -> list[str]:
    """Return how well languages are told apart, and what is found by the rules of each."""
    apart, spoken = result["told apart"], result["languages"].items()
    detectors = [
        (name, *(f"{row[key]:.1f}" for key in _SHARES), row["ms"], row["size_mb"])
        for name, row in apart["detectors"].items()
    ]
    titles = ", ".join(f"{count:,} {code}" for code, count in sorted(apart["titles"].items(), key=lambda one: -one[1]))
    held = ", ".join(f"{count:,} {code}" for code, count in spoken if code and count >= _LEAST)
    found = [
        (part, row["queries"], *_cells(row, "english", ("none", "each")))
        for part, row in result["found"].items()
        if row.get("queries", 0) >= _LEAST
    ]
    read = [
        (part, row["queries"], *_cells(row, "own reading", ("each reading",)))
        for part, row in result["readings"].items()
    ]
    ms = result["found"]["ms a search"]
    header = ("questions in", "queries", "English for all", "no stems", "difference", "its own", "difference")
    return [
        "## Several languages in one forum",
        "",
        f"{result['questions']:,} questions of Reddit, as detected {held}. Titles told apart, in percent of those whose"
        f" bodies all three detectors read alike ({titles}). Some are in another language than their bodies.",
        "",
        *table(("detector", *_SHARES, "ms a title", "MB"), detectors),
        "",
        "The first sentences of a body are asked for the question, which is stored without them: 100 · the mean of"
        " 1 / rank among the first ten, with all questions read as English, with words as they are written, and each by"
        f" its own language; a search took {ms['english']:.1f} ms by the first and {ms['each']:.1f} by the last.",
        "",
        *table(header, found),
        "",
        "Candidates of words alone, the query read by its own language, or by each of the forum's. Names are the two"
        " rarest words of an English title, asked in a sentence of another language:",
        "",
        *table(("questions", "queries", "own reading", "each reading", "difference"), read),
    ]


_SHARES = ("right", "right of English", "right of the others")
_LEAST = 20


def _cells(row: Mapping[str, Any], base: str, others: tuple[str, ...]) -> list[str]:
    cells = [f"{row[base]['mean']:.1f}"]
    for name in others:
        mean, low, high = row[name][f"less {base}"]
        cells += [f"{row[name]['mean']:.1f}", f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"]
    return cells
