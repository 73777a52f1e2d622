"""The best candidates in a new order, by what reads two texts together: a cross-encoder, an endpoint, any object.

Source: Nogueira and Cho, "Passage Re-ranking with BERT", 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, isfinite
from typing import Final, Protocol

from msgspec import structs

from askalike.errors import EncoderError
from askalike.search.originals import Found
from askalike.text.markup import plain_text
from askalike.types import Markup, Query

MAX_CHARACTERS: Final = 4_000
"""Only so much of a text is given to a scorer of pairs: more than most of them read."""
LEAST: Final = 1e-9
"""A score of 0 would be no hit."""


class PairScorer(Protocol):
    """How well texts answer to a query; any number of threads may ask."""

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a finite number for each text, higher where it fits better: probabilities or log odds."""


def text_of(title: str, body: str, markup: Markup) -> str:
    """Return what a scorer of pairs reads of a question: its title, and its body on the next line."""
    written = plain_text(body[: 4 * MAX_CHARACTERS], markup)  # markup takes more room than text
    return f"{title}\n{written}".strip()[:MAX_CHARACTERS]


def pair_scores(scorer: PairScorer, query: str, texts: Sequence[str]) -> list[float]:
    """Return the scores that a scorer gives, checked.

    Raises:
        EncoderError: it does not answer, or gave something else than one finite number for each text.
    """
    given = scorer.score(query, texts)
    try:
        found = [float(one) for one in given]
    except (TypeError, ValueError) as error:
        raise EncoderError(f"the reranker gave no numbers: {str(error)[:200]}", "mend it, or use another") from error
    if len(found) != len(texts) or not all(map(isfinite, found)):
        raise EncoderError(
            f"the reranker gave {len(found)} numbers for {len(texts)} texts, or some that are not finite",
            "mend it, or use another",
        )
    return found


def in_unit(scores: Sequence[float]) -> list[float]:
    """Return scores in (0, 1] in the same order: as they are where all are in [0, 1], else of the logistic function.

    >>> in_unit([0.25, 1.0, 0.0]), in_unit([0.0, 2.0])
    ([0.25, 1.0, 1e-09], [0.5, 0.8807970779778823])
    """
    if all(0 <= one <= 1 for one in scores):
        return [max(one, LEAST) for one in scores]
    return [max(1 / (1 + exp(-min(max(one, -700.0), 700.0))), LEAST) for one in scores]


def reranked(scorer: PairScorer, query: Query, found: Sequence[Found], depth: int) -> list[Found]:
    """Return what was found with the first ``depth`` in a scorer's order; the others follow, below all of them.

    Components gain ``reranker``, the scorer's number, and ``first``, the score before. Where an original stands for a
    duplicate, the duplicate's text is read: it is what was found.

    Raises:
        EncoderError: as ``pair_scores``.
    """
    best, others = found[:depth], found[depth:]
    shown = [one.question if one.via is None else one.via for one in best]
    texts = [text_of(one.title, one.body, one.markup) for one in shown]
    numbers = pair_scores(scorer, text_of(query.title, query.body, query.markup), texts) if best else []
    made = [
        _scored(one, score, {"reranker": number})
        for one, number, score in zip(best, numbers, in_unit(numbers), strict=True)
    ]
    lowest = min((one.scored.score for one in made), default=1.0)
    highest = max((one.scored.score for one in others), default=1.0)
    made.sort(key=lambda one: (-one.scored.score, -one.scored.components["reranker"], one.question.id))
    return made + [_scored(one, one.scored.score * min(1.0, lowest / highest), {}) for one in others]


def _scored(one: Found, score: float, more: dict[str, float]) -> Found:
    components = {**one.scored.components, "first": one.scored.score, **more}
    return one._replace(scored=structs.replace(one.scored, score=score, components=components))
