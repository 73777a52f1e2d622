"""The ways to rank candidates, by name: where candidates come from, and how each gets its score.

A new ranker is a function from the pool to scores, in a file of its own, and a row in ``RANKERS``; one that learns is
a row in ``reranker.RERANKERS``.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Final

import numpy as np
from msgspec import structs

from askalike.search.calibration import with_offsets
from askalike.search.interaction import interactions, meaning
from askalike.search.pool import Pool, Scored, Source
from askalike.search.reranker import RERANKERS
from askalike.search.scorer import Compared, Scoring, probability, scorers
from askalike.search.settings import OWN, JoinSettings
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


def reciprocal_rank_fusion(ranks: Iterable[int], constant: float) -> float:
    """Return ``Σ_r 1 / (constant + rank_r(p))`` over the rankings that have the candidate, places from 1.

    >>> round(reciprocal_rank_fusion([1, 3], constant=60), 6)  # 1/61 + 1/63
    0.032266
    """
    return sum(1.0 / (constant + rank) for rank in ranks)


def shares(scores: Sequence[float]) -> list[float]:
    """Return each score as a share of the greatest: ``s(p) / max_p' s(p')``; zeros where none is above 0.

    >>> shares([10.0, 5.0, 0.0])
    [1.0, 0.5, 0.0]
    """
    most = max(scores, default=0.0)
    return [score / most if most > 0 else 0.0 for score in scores]


def weighted_sum(cosine: float, bm25_share: float, weight: float) -> float:
    """Return ``w · cos(q, p) + (1 - w) · bm25(q, p) / max_p' bm25(q, p')``.

    Args:
        cosine: in [-1, 1].
        bm25_share: in [0, 1].
        weight: of the cosine, in [0, 1].

    >>> round(weighted_sum(cosine=0.8, bm25_share=0.5, weight=0.25), 3)  # 0.25 · 0.8 + 0.75 · 0.5
    0.575
    """
    return weight * cosine + (1.0 - weight) * bm25_share


HYBRID = "hybrid"
"""The ranker that joins words and meaning by a weighted sum."""

INTERACTION = "interaction"
"""The ranker that compares words by their states."""

LEXICAL = "lexical"
"""The ranker that needs no vectors."""

OFFSET = "judged_different"
"""The component of a hit whose question has an offset (``search.calibration.offset``)."""

PROBABILITY = "probability"
"""The ranker that says how likely both ask the same, by vectors where there are some."""


@dataclass(frozen=True, slots=True)
class Ranker:
    """One way to rank.

    Args:
        sources: where candidates come from.
        score: returns the score of each candidate of each pool, in the pools' order.
        about: what it does, in a few words.
        is_joining: it looks at more candidates than are asked for, since it puts them in an order of its own.
        most: candidates that it looks at, however few of them are hits.
        is_reading: it looks at the best of the weighted sum alone, as many as are asked for or
            ``JoinSettings.scored``, where that is more; the others are no hits.
        is_sum: its score is the weighted sum, so that it may look at the best alone; it does where asking the engine
            for the other scores takes long, unless a threshold is that of all candidates.
    """

    sources: tuple[Source, ...]
    score: Callable[[Sequence[Pool], JoinSettings], list[list[Scored]]]
    about: str
    is_joining: bool = False
    most: int | None = None
    is_reading: bool = False
    is_sum: bool = False

    @property
    def needs_vectors(self) -> bool:
        """Whether it can answer only where questions have vectors."""
        return "vectors" in self.sources


def by_probability(scoring: Scoring, pools: Sequence[Pool], settings: JoinSettings) -> list[list[Scored]]:
    """Return the best candidates of each weighted sum with the probability that both ask the same.

    For one that has no vector words weigh as much as beside askalike's own models; ``pool.gather`` leaves out none that
    is among the best so. Components are those of the weighted sum, ``same``, the probability that whoever has answered
    one has answered the other, and ``judged_different``, by how much the logit of a question fell that drew wrong
    matches again and again. What several searches look at is read once.

    Args:
        pools: of searches of one engine.
    """
    # one without a vector is known by its words alone
    summed = [_best(pool, pool.read[1], min(pool.read[1], OWN)) for pool in pools]
    keys = list(dict.fromkeys(one.key for best in summed for one in best))
    if not keys:
        return [[] for _ in pools]
    texts: dict[int, Text | Question] = dict(pools[0].engine.texts(keys))  # as they are compared
    texts.update(pools[0].questions([key for key in keys if key not in texts]))  # or as they are: that was not kept
    held = [
        [(one.key, one.components) for one in best if one.key in texts] if pool.asked.counts is not None else []
        for pool, best in zip(pools, summed, strict=True)
    ]
    compared = []
    for pool, some in zip(pools, held, strict=True):
        vector = pool.asked.vector if "vectors" in pool.known else None
        cosines = None if vector is None else [parts.get("cosine", 0.0) for _, parts in some]
        given = [texts[key] for key, _ in some]
        compared.append(Compared(pool.asked.query, pool.asked.counts, given, vector, cosines))
    logits = scoring.logits(compared)
    offsets = [scoring.offsets.get(key, 0.0) for some in held for key, _ in some] if scoring.offsets else []
    moved = scoring.update.moved(logits)
    if any(offsets):
        moved = with_offsets(moved, np.array(offsets))
    version = scorers()[scoring.version()]
    same = probability(moved + version.same - version.related)
    values = zip(probability(moved).tolist(), same.tolist(), offsets or repeat(0.0), strict=False)
    return [
        [
            Scored(key, likely, {**parts, "same": certain, OFFSET: off} if off else {**parts, "same": certain})
            for (key, parts), (likely, certain, off) in zip(some, values, strict=False)
        ]
        for some in held
    ]


def _best(pool: Pool, weight: float, without: float) -> list[Scored]:
    """Return the best by the weighted sum of a pool that was gathered to read so many of them, by key where equal.

    Args:
        weight: w.
        without: w of those that have no vector.
    """
    lexical, near = pool.known["lexical"], pool.known.get("vectors")
    most = max(lexical.values(), default=0.0)
    joined: list[tuple[float, int, float, float, float]] = []
    for key in pool.keys:
        bm25, cosine = lexical.get(key, 0.0), 0.0 if near is None else near.get(key, 0.0)
        share = bm25 / most if most > 0 else 0.0
        own = weight if cosine else without
        if (score := own * cosine + (1.0 - own) * share) > 0:
            joined.append((-score, key, bm25, cosine, share))
    best = sorted(joined)[: pool.read[0]]  # keys differ
    if near is None:
        return [Scored(key, -score, {"bm25": bm25, "bm25_share": share}) for score, key, bm25, _, share in best]
    return [
        Scored(key, -score, {"bm25": bm25, "cosine": cosine, "bm25_share": share})
        for score, key, bm25, cosine, share in best
    ]


def _by_hybrid(pool: Pool, settings: JoinSettings) -> list[Scored]:
    if not pool.keys:
        return _by_weighted_sum(pool, settings)
    return _best(pool, settings.cosine_weight, settings.cosine_weight)


def _by_weighted_sum(pool: Pool, settings: JoinSettings) -> list[Scored]:
    relative = shares([candidate.components["bm25"] for candidate in pool.candidates])
    return [
        Scored(
            candidate.key,
            weighted_sum(candidate.components["cosine"], share, settings.cosine_weight),
            {**candidate.components, "bm25_share": share},
        )
        for candidate, share in zip(pool.candidates, relative, strict=True)
    ]


def _by_interaction(pool: Pool, settings: JoinSettings) -> list[Scored]:
    """Return the weighted sum, in which the best candidates get another score, and all others stay below those."""
    joined = _by_weighted_sum(pool, settings)
    if pool.encoder is None or pool.asked.vector is None:
        return joined
    order = sorted(range(len(joined)), key=lambda place: (-joined[place].score, joined[place].key))
    best, others = order[: settings.interaction_depth], order[settings.interaction_depth :]
    questions = pool.questions([joined[place].key for place in best])
    held = [(joined[place].key, questions[joined[place].key]) for place in best if joined[place].key in questions]
    compared = interactions(pool.encoder.states(pool.asked.query), pool.encoder.states_of(held)).tolist()
    found = {key: value for (key, _), value in zip(held, compared, strict=True)}
    scored = {place: _interacting(joined[place], found.get(joined[place].key), settings) for place in best}
    lowest = max(0.0, min((one.score for one in scored.values()), default=0.0))
    highest = max((joined[place].score for place in others), default=0.0)
    for place in others:  # each was below every one that is compared, and stays there
        one = joined[place]
        scored[place] = structs.replace(one, score=one.score * min(1.0, lowest / highest) if highest > 0 else one.score)
    return [scored[place] for place in range(len(joined))]


def _interacting(one: Scored, interaction: float | None, settings: JoinSettings) -> Scored:
    """Return a candidate by its interaction; as it is where it has gone meanwhile."""
    if interaction is None:
        return one
    parts = {**one.components, "interaction": interaction}
    near = meaning(parts["cosine"], interaction)
    return Scored(one.key, weighted_sum(near, parts["bm25_share"], settings.interaction_weight), parts)


def _by_fusion(pool: Pool, settings: JoinSettings) -> list[Scored]:
    constant = settings.fusion_constant
    return [
        Scored(one.key, reciprocal_rank_fusion(one.ranks.values(), constant), one.components) for one in pool.candidates
    ]


def _by_component(name: str) -> Callable[[Pool, JoinSettings], list[Scored]]:
    return lambda pool, _: [Scored(one.key, one.components[name], one.components) for one in pool.candidates]


def each(
    score: Callable[[Pool, JoinSettings], list[Scored]],
) -> Callable[[Sequence[Pool], JoinSettings], list[list[Scored]]]:
    """Return what scores several pools one after another."""
    return lambda pools, settings: [score(pool, settings) for pool in pools]


RANKERS: Mapping[str, Ranker] = {
    PROBABILITY: Ranker(
        ("lexical", "vectors"),
        each(_by_weighted_sum),
        "how likely both ask the same, by words and meaning",
        is_joining=True,
        is_reading=True,
    ),
    HYBRID: Ranker(
        ("lexical", "vectors"), each(_by_hybrid), "words and meaning, a weighted sum", is_joining=True, is_sum=True
    ),
    INTERACTION: Ranker(
        ("lexical", "vectors"), each(_by_interaction), "hybrid, its best compared word by word", is_joining=True
    ),
    "fusion": Ranker(("lexical", "vectors"), each(_by_fusion), "words and meaning, by their places", is_joining=True),
    LEXICAL: Ranker(("lexical",), each(_by_component("bm25")), "words alone"),
    "vector": Ranker(("vectors",), each(_by_component("cosine")), "meaning alone"),
}

CROSS_ENCODER = "cross-encoder"
"""The ranker that puts the best of the probability in the order of a scorer of pairs; see ``cross_encoder``."""

RANKER_NAMES = (*RANKERS, CROSS_ENCODER, *RERANKERS)
"""All names that a search takes: those that every forum has, what its user named for it, what it has learned."""
