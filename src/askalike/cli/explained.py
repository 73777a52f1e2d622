"""Why a question was found, on a terminal: its scores, and how much the model takes of each word or how it is matched.

::

    cosine 0.82 · bm25 12.30, 91 % of the best
    router▇0.83 drops▅0.57 the▁0.08

    rank factor 0.97 · bm25 12.30
    router▇ drop▅→disconnect 0.62 the▁

    cosine 0.71 · bm25 12.30
    router +0.21 drop +0.08 evening -0.02

A bar is how much a word matters; an arrow leads from a word that the hit lacks to the one that stands for it best; a
number with a sign is what the cosine loses without the word.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from askalike.cli.display import safe
from askalike.types import Explanation, Hit, WordEffect, WordMatch, WordWeight

BARS = "▁▂▃▄▅▆▇█"
SHOWN_WORDS = 40
"""Words of a body that are shown; JSON holds all that the model reads."""


def query_lines(explanation: Explanation) -> Text:
    """Return the words of the query with their weights; empty where the model does not weigh words."""
    fields = (("asked: ", explanation.query_title), ("its body: ", explanation.query_body))
    return Text("\n").join(Text(name, style="dim") + weighed(words) for name, words in fields if words)


def hit_lines(hit: Hit, explanation: Explanation) -> Text:
    """Return a hit's scores, and the words of its title with their weights."""
    lines = [Text(scores(hit), style="cyan")]
    if explanation.title:
        lines.append(weighed(explanation.title))
    if explanation.matches:
        lines.append(matched(explanation.matches))
    if explanation.effects:
        lines.append(effects(explanation.effects))
    return Text("\n").join(lines)


def scores(hit: Hit) -> str:
    """Return the parts of a score in one line."""
    parts = hit.components
    shown = [f"cosine {parts['cosine']:.2f}"] if "cosine" in parts else []
    if "interaction" in parts:
        shown.append(f"word by word {parts['interaction']:.2f}")
    if "rank_factor" in parts:
        shown.append(f"rank factor {parts['rank_factor']:.2f}")
    if "likelihood" in parts:
        shown.append(f"{parts['likelihood']:.2f} times likelier a word")
    if "bm25" in parts:
        share = f", {parts['bm25_share']:.0%} of the best" if parts.get("bm25_share") else ""
        shown.append(f"bm25 {parts['bm25']:.2f}{share}")
    return " · ".join(shown)


def weighed(words: Sequence[WordWeight]) -> Text:
    """Return words, each with a bar and a number; those that count more are brighter."""
    line = Text()
    for one in words[:SHOWN_WORDS]:
        style = "dim" if one.weight < 1 / 3 else "bold" if one.weight > 2 / 3 else "none"
        line.append(safe(one.word), style=style)  # word, bar and number stay together at the end of a line
        line.append(f"{bar(one.weight)}{one.weight:.2f} ", style="dim" if style == "dim" else "magenta")
    if len(words) > SHOWN_WORDS:
        line.append(f"and {len(words) - SHOWN_WORDS} more", style="dim")
    line.rstrip()
    return line


def matched(words: Sequence[WordMatch]) -> Text:
    """Return words with a bar for their importance; those that the hit lacks with what stands for them."""
    line = Text()
    for one in words[:SHOWN_WORDS]:
        line.append(safe(one.word), style="yellow" if one.is_missing else "bold green")
        line.append(bar(one.importance), style="magenta")
        line.append(f"→{safe(one.match)} {one.similarity:.2f} " if one.is_missing and one.match else " ", style="dim")
    if len(words) > SHOWN_WORDS:
        line.append(f"and {len(words) - SHOWN_WORDS} more", style="dim")
    line.rstrip()
    return line


def effects(words: Sequence[WordEffect]) -> Text:
    """Return words with what each brought, those that brought or took most first."""
    line = Text()
    for one in sorted(words, key=lambda one: -abs(one.effect))[:SHOWN_WORDS]:
        line.append(safe(one.word), style="bold green" if one.effect > 0 else "yellow")
        line.append(f" {one.effect:+.2f} ", style="dim")
    if len(words) > SHOWN_WORDS:
        line.append(f"and {len(words) - SHOWN_WORDS} more", style="dim")
    line.rstrip()
    return line


def bar(weight: float) -> str:
    """Return a bar for a weight in [0, 1].

    >>> bar(0.0), bar(0.5), bar(1.0)
    ('▁', '▅', '█')
    """
    return BARS[min(len(BARS) - 1, int(weight * len(BARS)))]
