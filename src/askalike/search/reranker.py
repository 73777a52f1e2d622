"""The best candidates in a new order, by what reads a query together with questions.

A reranker is a cross-encoder, an endpoint, a model of one of the papers, or any object with one method ``score``.

Source: Nogueira and Cho, "Passage Re-ranking with BERT", 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, isfinite
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.errors import EncoderError
from askalike.search.candidates import Candidates
from askalike.search.rankers import RERANKER
from askalike.types import Query, Question

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
    untyped = reranker.score(query, questions)
    try:
        scores = [float(score) for score in untyped]
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


def rerank(reranker: Reranker, table: Candidates, depth: int) -> str:
    """Put the first ``depth`` rows of a table in a reranker's order; the others follow, below all of them.

    Return why the order is as before where the reranker cannot be asked; else "".

    Components gain ``reranker``, its number, and ``first``, the score before. Where an original stands for a duplicate,
    the duplicate's text is read: it is what was found.
    """
    questions = [via or question for question, via in zip(table.questions[:depth], table.via, strict=False)]
    try:
        numbers = checked_scores(reranker, as_question(table.query), questions) if questions else []
    except EncoderError as error:
        return str(error)
    scores = np.array([*in_unit(numbers), *table.scores[depth:]])
    if len(scores) > depth:
        scores[depth:] *= min(1.0, float(scores[:depth].min() / scores[depth:].max()))
    table.components |= {"reranker": np.array(numbers + [np.nan] * (len(scores) - len(numbers))), "first": table.scores}
    table.scores = scores
    ids = [question.id for question in table.questions]
    order = sorted(range(len(numbers)), key=lambda row: (-scores[row], -numbers[row], ids[row]))
    order += range(len(numbers), len(scores))
    table.take(order)
    table.reranked_by = RERANKER
    return ""
