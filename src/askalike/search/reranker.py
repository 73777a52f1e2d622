"""The best candidates in a new order, by what reads a query together with questions.

A reranker is a cross-encoder, an endpoint, a model of one of the papers, or any object with one method ``score``.

Source: Nogueira and Cho, "Passage Re-ranking with BERT", 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, isfinite
from typing import Final, Protocol

from msgspec import structs
from numpy.typing import NDArray

from askalike.errors import EncoderError
from askalike.search.originals import Found
from askalike.types import Query, Question

RERANKER: Final = "reranker"
"""The ranker that puts the best of the probability in the order of what the forum's user named."""

LEAST: Final = 1e-9
"""A score of 0 would be no hit."""


class Reranker(Protocol):
    """How well questions answer to a query; any number of threads may ask."""

    def score(self, query: Question, questions: Sequence[Question]) -> Sequence[float] | NDArray:  # type: ignore[type-arg]
        """Return a finite number for each question, higher where it fits better: probabilities or log odds.

        Args:
            query: what is searched for, as a question without an id.
            questions: of the forum, in the order before, the first being the best.
        """


def as_question(query: Query) -> Question:
    """Return a query as a question that has no id."""
    return Question("", query.title, query.body, query.markup)


def checked_scores(reranker: Reranker, query: Question, questions: Sequence[Question]) -> list[float]:
    """Return the scores that a reranker gives.

    Raises:
        EncoderError: it does not answer, or gave something else than one finite number for each question.
    """
    given = reranker.score(query, questions)
    try:
        scores = [float(score) for score in given]
    except (TypeError, ValueError) as error:
        raise EncoderError(f"the reranker gave no numbers: {str(error)[:200]}", "mend it, or use another") from error
    if len(scores) != len(questions) or not all(map(isfinite, scores)):
        raise EncoderError(
            f"the reranker gave {len(scores)} numbers for {len(questions)} texts, or some that are not finite",
            "mend it, or use another",
        )
    return scores


def in_unit(scores: Sequence[float]) -> list[float]:
    """Return scores in (0, 1] in the same order: as they are where all are in [0, 1], else of the logistic function.

    >>> in_unit([0.25, 1.0, 0.0]), in_unit([0.0, 2.0])
    ([0.25, 1.0, 1e-09], [0.5, 0.8807970779778823])
    """
    if all(0 <= score <= 1 for score in scores):
        return [max(score, LEAST) for score in scores]
    return [max(1 / (1 + exp(-min(max(score, -700.0), 700.0))), LEAST) for score in scores]


def reranked(reranker: Reranker, query: Query, hits: Sequence[Found], depth: int) -> list[Found]:
    """Return hits with the first ``depth`` in a reranker's order; the others follow, below all of them.

    Components gain ``reranker``, its number, and ``first``, the score before. Where an original stands for a duplicate,
    the duplicate's text is read: it is what was found.

    Raises:
        EncoderError: as ``checked_scores``.
    """
    best, others = hits[:depth], hits[depth:]
    read = [hit.question if hit.via is None else hit.via for hit in best]
    numbers = checked_scores(reranker, as_question(query), read) if best else []
    ordered = [
        _scored(hit, score, {"reranker": number})
        for hit, number, score in zip(best, numbers, in_unit(numbers), strict=True)
    ]
    lowest = min((hit.scored.score for hit in ordered), default=1.0)
    highest = max((hit.scored.score for hit in others), default=1.0)
    ordered.sort(key=lambda hit: (-hit.scored.score, -hit.scored.components["reranker"], hit.question.id))
    return ordered + [_scored(hit, hit.scored.score * min(1.0, lowest / highest), {}) for hit in others]


def _scored(hit: Found, score: float, more: dict[str, float]) -> Found:
    components = {**hit.scored.components, "first": hit.scored.score, **more}
    return hit._replace(scored=structs.replace(hit.scored, score=score, components=components))
