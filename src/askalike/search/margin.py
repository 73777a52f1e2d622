"""How far the questions of a forum stand out from one another: a figure of the forum, found without a label.

Forums differ in how many of their likely pairs are duplicates, beyond what a pair shows. Where the best match of a
question is far better than those behind it, more of them are. Of some questions q, each asked by its title and with its
body among all others, by words::

    b_i      = BM25 of q in the i-th best other question / BM25 of q in itself
    margin   = mean over q of b_1 - (b_2 + … + b_10) / 9, the mean of both forms

The scorer of encoders that read sentences takes it as a feature that all pairs of a forum share (``standing``): it says
something there beyond chance, and nothing to the others (LOG.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log
from typing import Final

from askalike.search.engine import CandidateSource
from askalike.search.query import QuerySettings, TermCounts, weigh
from askalike.text.analyzer import Analyzer
from askalike.types import Filters, Question

SAMPLE: Final = 500
"""So many questions of a forum are asked: the logarithm of the margin is then off by .03, a tenth of ``SPREAD``."""
AMONG: Final = 10
"""So many of the best are looked at."""
LEAST: Final = 50
"""A forum of fewer questions is taken for one as forums are."""

TYPICAL: Final = 0.135
"""The geometric mean of the margins of the forums that the scorer learned in."""
SPREAD: Final = 0.3
"""The standard deviation of their logarithms."""
LARGEST: Final = 2.0
"""No forum counts as further from what is typical than so many of these."""


def margin(scores: Sequence[float], own: float) -> float:
    """Return how far the best of some scores stands out from the next nine, as a share of a text's score with itself.

    Args:
        scores: of two others at least.
        own: > 0.

    Example:
        >>> margin([6.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 1.0], 10.0)
        0.3
    """
    best = sorted(scores, reverse=True)[:AMONG]
    return round((best[0] - sum(best[1:]) / len(best[1:])) / own, 9)


def standing(found: float | None) -> float:
    """Return a forum's margin as a feature, ``(ln margin - ln TYPICAL) / SPREAD``, in [-2, 2]; 0 where none is known.

    >>> standing(TYPICAL), round(standing(TYPICAL * 2.718281828**SPREAD), 6), standing(0.9), standing(None)
    (0.0, 1.0, 2.0, 0.0)
    """
    if found is None:
        return 0.0
    return min(LARGEST, max(-LARGEST, (log(max(found, 1e-9)) - log(TYPICAL)) / SPREAD))


def forum_margin(
    source: CandidateSource, analyzer: Analyzer, questions: Mapping[int, Question], told: Callable[[int], object]
) -> float | None:
    """Return the margin of a forum; None where hardly a question meets words that others have.

    Args:
        questions: some of the forum's by their numbers, drawn at random.
        told: is told 1 after each.
    """
    by_title: list[float] = []
    by_text: list[float] = []
    for num, one in questions.items():
        if one.title.strip() and one.body.strip():
            by_title += _margins(source, analyzer, num, one, "")
        by_text += _margins(source, analyzer, num, one, one.body)
        told(1)
    means = [sum(found) / len(found) for found in (by_title, by_text) if len(found) >= AMONG]
    return sum(means) / len(means) if means else None


def _margins(source: CandidateSource, analyzer: Analyzer, num: int, one: Question, body: str) -> list[float]:
    """Return the margin of one query, if it has one."""
    written, *others = (reading.prepare(one.title, body, one.markup) for reading in analyzer.readings(one.language))
    terms = weigh(written, QuerySettings(), TermCounts(source), others)
    weights = {term: found.weight for term, found in terms.items()}
    found = source.lexical(weights, AMONG + 1, Filters()) if weights else []
    scores = [score for key, score in found if key != num][:AMONG]
    if len(scores) < AMONG:
        return []
    own = dict(found).get(num)
    if own is None:
        own = source.scores(weights, [num], None, [])[0].get(num, 0.0)
    return [margin(scores, own)] if own > 0 else []
