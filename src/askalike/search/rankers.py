"""The ways to rank candidates, by name: where candidates come from, and how each gets its score.

``help`` orders hits for who asks: how likely each asks the same, and whether it has an answer that may help. ::

    value(h) = logit p(h) + ln 2 · a(h)

    a(h) = 0                          it has no answer
           1                          its best answer is accepted
           1/2 + 1/2 · v / (v + 4)    else, v ≥ 0 being the votes for its best answer

An accepted answer counts as much as doubled odds and nothing counts more, so a hit never passes one whose odds are more
than twice its own: of two hits with 60 % and 42 % the first stays, whatever their answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import structs

from askalike.types import Answer, Hit

LIFT: Final = math.log(2)
MANY_VOTES: Final = 4


def answer_quality(answer: Answer | None) -> float:
    """Return a(h) of a hit with this best answer, in [0, 1].

    >>> [answer_quality(Answer("a", "q", "Yes.", score=votes)) for votes in (None, 4)]
    [0.5, 0.75]
    """
    if answer is None:
        return 0.0
    votes = max(0, answer.score or 0)
    return 1.0 if answer.is_accepted else 0.5 + 0.5 * votes / (votes + MANY_VOTES)


def helpfulness(probability: float, answer: Answer | None) -> float:
    """Return the value of a hit.

    >>> accepted = Answer("a", "q", "Yes.", is_accepted=True)
    >>> round(helpfulness(0.5, accepted), 3), helpfulness(0.65, None) < helpfulness(0.5, accepted)
    (0.693, True)
    """
    inside = min(max(probability, 1e-9), 1 - 1e-9)
    return math.log(inside / (1 - inside)) + LIFT * answer_quality(answer)


def by_help(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits by their values, equal ones as they were; as they are where no probability has ordered them."""
    if any(hit.likelihood is None or "reranker" in hit.components for hit in hits):
        return list(hits)
    ordered = sorted(hits, key=lambda hit: -helpfulness(hit.likelihood or 0.0, hit.answer))
    return [structs.replace(hit, rank=rank) for rank, hit in enumerate(ordered, start=1)]


PROBABILITY = "probability"
"""The ranker that says how likely both ask the same, by vectors where there are some."""

WORDS = "words"
"""The ranker that needs no vectors."""

MEANING = "meaning"

RERANKER = "reranker"
"""The ranker that puts the best of the probability in the order of what the forum's user named."""


@dataclass(frozen=True, slots=True)
class Ranker:
    """One way to rank.

    Args:
        reads_vectors: candidates come from vectors too, as far as there are some.
        about: what it does, in a few words.
    """

    name: str
    reads_vectors: bool
    about: str


RANKERS: Mapping[str, Ranker] = {
    ranker.name: ranker
    for ranker in (
        Ranker(PROBABILITY, True, "how likely both ask the same, by words and meaning"),
        Ranker(WORDS, False, "words alone"),
        Ranker(MEANING, True, "meaning alone"),
    )
}

RANKER_NAMES = (*RANKERS, RERANKER)
"""All names that a search takes: those that every forum has, and what its user named for it."""
