"""The ways to rank candidates, by name: where candidates come from, and how each gets its score.

A new ranker is a function from the pool to scores, in a file of its own, and a row in ``RANKERS``; one that learns is
a row in ``reranker.RERANKERS``.

Enters: a ``Pool``. Leaves: ``Scored`` values. May import: errors, its own folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from askalike.errors import SettingError
from askalike.rank.pool import Pool, Source
from askalike.rank.reciprocal_rank_fusion import reciprocal_rank_fusion
from askalike.rank.reranker import RERANKERS
from askalike.rank.scored import Scored
from askalike.rank.settings import JoinSettings
from askalike.rank.weighted_sum import shares, weighted_sum

__all__ = ["LEXICAL", "RANKERS", "RANKER_NAMES", "Ranker", "ranker_named"]

LEXICAL = "lexical"
"""The ranker that needs no vectors."""


@dataclass(frozen=True, slots=True)
class Ranker:
    """One way to rank.

    Args:
        sources: where candidates come from.
        score: returns each candidate's score, in the pool's order.
        about: what it does, in a few words.
        is_joining: it looks at more candidates than are asked for, since it puts them in an order of its own.
        most: candidates that it looks at, however few of them are hits.
    """

    sources: tuple[Source, ...]
    score: Callable[[Pool, JoinSettings], list[Scored]]
    about: str
    is_joining: bool = False
    most: int | None = None

    @property
    def needs_vectors(self) -> bool:
        """Whether it can answer only where questions have vectors."""
        return "vectors" in self.sources


def ranker_named(name: str) -> Ranker | None:
    """Return a ranker, None for one that has to be learned.

    Raises:
        SettingError: there is none of this name.
    """
    if name not in RANKER_NAMES:
        raise SettingError(f"there is no ranker {name!r}", f"expected one of {', '.join(RANKER_NAMES)}")
    return RANKERS.get(name)


def _by_weighted_sum(pool: Pool, settings: JoinSettings) -> list[Scored]:
    relative = shares([candidate.components["bm25"] for candidate in pool.candidates])
    return [
        Scored(
            candidate.key,
            weighted_sum(candidate.components["cosine"], share, settings.weight),
            {**candidate.components, "bm25_share": share},
        )
        for candidate, share in zip(pool.candidates, relative, strict=True)
    ]


def _by_fusion(pool: Pool, settings: JoinSettings) -> list[Scored]:
    constant = settings.fusion_constant
    return [
        Scored(one.key, reciprocal_rank_fusion(one.ranks.values(), constant), one.components) for one in pool.candidates
    ]


def _by_component(name: str) -> Callable[[Pool, JoinSettings], list[Scored]]:
    return lambda pool, _: [Scored(one.key, one.components[name], one.components) for one in pool.candidates]


RANKERS: Mapping[str, Ranker] = {
    "hybrid": Ranker(("lexical", "vectors"), _by_weighted_sum, "words and meaning, a weighted sum", is_joining=True),
    "fusion": Ranker(("lexical", "vectors"), _by_fusion, "words and meaning, by their places", is_joining=True),
    LEXICAL: Ranker(("lexical",), _by_component("bm25"), "words alone"),
    "vector": Ranker(("vectors",), _by_component("cosine"), "meaning alone"),
}

RANKER_NAMES = (*RANKERS, *RERANKERS)
"""All names that a search takes: those that every forum has, then those that a forum has learned."""
