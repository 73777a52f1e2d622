"""The sections on forums in several languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.sections.cells import table

__all__ = ["encoders", "several"]


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


def encoders(result: Mapping[str, Any]) -> list[str]:
    """Return what encoders of single languages find, and how words are corrected by a forum's own."""
    systems = ("own", "minilm", "minilm for English")
    found = [
        (part, row["queries"], *_cells(row, "words", systems))
        for part, row in result["found"].items()
        if row.get("queries", 0) >= _LEAST
    ]
    read = []
    for row in result["corrections"]:
        misspelt, whole = row["misspelt"], row["as it is"]
        shares = (f"{100 * misspelt[name] / misspelt['queries']:.1f}" for name in ("rightly", "wrongly"))
        changed = f"{100 * whole['changed'] / whole['titles']:.1f}"
        gains = (_cells(row["found"][name], "not corrected", ("corrected",))[-1] for name in _ASKED)
        read.append((f"{row['questions']:,}", row["by"], *shares, changed, *gains))
    return [
        "## Encoders and corrections by language",
        "",
        "The same questions asked in the same way. English is encoded by the general model; other languages by nothing"
        " (words), each by a model of the letter n-grams of its own few questions, or each by MiniLM, which reads"
        " English alone. Last, MiniLM is English's own, and the others have words. No model that was trained on much"
        " text of another language was at hand: what a good one brings there is not shown.",
        "",
        *table(
            ("questions in", "queries", "words", *_BESIDE),
            found,
        ),
        "",
        f"English corrected by the words of so many questions alone, as other languages are (from"
        f" {result['least questions']:,} on), and by the general model's: percent of titles with one misspelt word in"
        " which it is read rightly and wrongly, and of titles that are changed as they are; and what corrections change"
        " of 100 · the mean of 1 / rank, by words alone, for what is asked as it is and with one word misspelt.",
        "",
        *table(("questions", "by", "rightly", "wrongly", "changed", "as it is", "misspelt"), read),
    ]


_BESIDE = ("own", "difference", "MiniLM", "difference", "MiniLM for English", "difference")
_ASKED = ("as it is", "one word misspelt")
_SHARES = ("right", "right of English", "right of the others")
_LEAST = 20


def _cells(row: Mapping[str, Any], base: str, others: tuple[str, ...]) -> list[str]:
    cells = [f"{row[base]['mean']:.1f}"]
    for name in others:
        mean, low, high = row[name][f"less {base}"]
        cells += [f"{row[name]['mean']:.1f}", f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"]
    return cells
