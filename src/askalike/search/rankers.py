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
from itertools import repeat
from typing import Final

import numpy as np
from msgspec import structs

from askalike.search.calibration import with_offsets
from askalike.search.pool import COMPONENTS, Pool, Scored, Source
from askalike.search.reranker import RERANKER
from askalike.search.scorer import Compared, Scoring, probability, scorers
from askalike.search.settings import OWN
from askalike.search.texts import Text
from askalike.types import Answer, Hit, Question

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
    held = min(max(probability, 1e-9), 1 - 1e-9)
    return math.log(held / (1 - held)) + LIFT * answer_quality(answer)


def by_help(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits by their values, equal ones as they were; as they are where no probability has ordered them."""
    if any(hit.likelihood is None or "reranker" in hit.components for hit in hits):
        return list(hits)
    ordered = sorted(hits, key=lambda hit: -helpfulness(hit.likelihood or 0.0, hit.answer))
    return [structs.replace(hit, rank=rank) for rank, hit in enumerate(ordered, start=1)]


OFFSET = "judged_different"
"""The component of a hit whose question has an offset (``search.calibration.offset``)."""

PROBABILITY = "probability"
"""The ranker that says how likely both ask the same, by vectors where there are some."""

WORDS = "words"
"""The ranker that needs no vectors."""

MEANING = "meaning"


@dataclass(frozen=True, slots=True)
class Ranker:
    """One way to rank.

    Args:
        sources: where candidates come from.
        about: what it does, in a few words.
    """

    name: str
    sources: tuple[Source, ...]
    about: str

    @property
    def reads_vectors(self) -> bool:
        """Whether it looks at vectors, where there are some."""
        return "vectors" in self.sources


RANKERS: Mapping[str, Ranker] = {
    ranker.name: ranker
    for ranker in (
        Ranker(PROBABILITY, ("lexical", "vectors"), "how likely both ask the same, by words and meaning"),
        Ranker(WORDS, ("lexical",), "words alone"),
        Ranker(MEANING, ("vectors",), "meaning alone"),
    )
}

RANKER_NAMES = (*RANKERS, RERANKER)
"""All names that a search takes: those that every forum has, and what its user named for it."""


def by_source(pool: Pool, source: Source) -> list[Scored]:
    """Return the candidates of the only source of a pool with their scores there."""
    name = COMPONENTS[source]
    return [Scored(key, score, {name: score}) for key, score in pool.scores[source].items()]


def by_probability(scoring: Scoring, pools: Sequence[Pool]) -> list[list[Scored]]:
    """Return the best candidates of each weighted sum with the probability that both ask the same.

    For one that has no vector words weigh as much as beside askalike's own models; ``pool.gather`` leaves out none that
    is among the best so. Components are those of the weighted sum, ``same``, the probability that whoever has answered
    one has answered the other, and ``judged_different``, by how much the logit of a question fell that drew wrong
    matches again and again. What several searches look at is read once.

    Args:
        pools: of searches of one engine.
    """
    # one without a vector is known by its words alone
    summed = [best_of_sum(pool, pool.weight, min(pool.weight, OWN)) for pool in pools]
    keys = list(dict.fromkeys(scored.key for best in summed for scored in best))
    if not keys:
        return [[] for _ in pools]
    engine = pools[0].engine
    texts: dict[int, Text | Question] = dict(engine.texts(keys))  # as they are compared
    texts.update(pools[0].questions([key for key in keys if key not in texts]))  # or as they are: that was not kept
    held = [
        [(scored.key, scored.components) for scored in best if scored.key in texts]
        if pool.query.counts is not None
        else []
        for pool, best in zip(pools, summed, strict=True)
    ]
    compared = []
    for pool, candidates in zip(pools, held, strict=True):
        query, cosines = pool.query, None
        if query.vector is not None:
            cosines = np.array([components.get("cosine", 0.0) for _, components in candidates])
        given = [texts[key] for key, _ in candidates]
        compared.append(Compared(query.query, query.counts, given, cosines))
    logits = scoring.logits(compared)
    offsets = [scoring.offsets.get(key, 0.0) for some in held for key, _ in some] if scoring.offsets else []
    moved = scoring.update.moved(logits)
    if any(offsets):
        moved = with_offsets(moved, np.array(offsets))
    version = scorers()[scoring.version]
    same = probability(moved + version.same - version.related)
    values = zip(probability(moved).tolist(), same.tolist(), offsets or repeat(0.0), strict=False)
    return [
        [
            Scored(key, likely, {**parts, "same": certain, OFFSET: off} if off else {**parts, "same": certain})
            for (key, parts), (likely, certain, off) in zip(some, values, strict=False)
        ]
        for some in held
    ]


def best_of_sum(pool: Pool, weight: float, without: float) -> list[Scored]:
    """Return the ``pool.count`` best by the weighted sum, by key where equal.

    Args:
        weight: w.
        without: w of those that have no vector.
    """
    lexical, near = pool.scores["lexical"], pool.scores.get("vectors")
    most = max(lexical.values(), default=0.0)
    joined: list[tuple[float, int, float, float, float]] = []
    for key in pool.keys:
        bm25, cosine = lexical.get(key, 0.0), 0.0 if near is None else near.get(key, 0.0)
        share = bm25 / most if most > 0 else 0.0
        own = weight if cosine else without
        if (score := own * cosine + (1.0 - own) * share) > 0:
            joined.append((-score, key, bm25, cosine, share))
    best = sorted(joined)[: pool.count]  # keys differ
    if near is None:
        return [Scored(key, -score, {"bm25": bm25, "bm25_share": share}) for score, key, bm25, _, share in best]
    return [
        Scored(key, -score, {"bm25": bm25, "cosine": cosine, "bm25_share": share})
        for score, key, bm25, cosine, share in best
    ]
