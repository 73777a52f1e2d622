"""Everything that a search can be tuned by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from askalike.errors import SettingError
from askalike.search.query import QuerySettings

OWN_WEIGHT: Final = 0.4
"""The weight of the cosine beside words where one of askalike's own models gives it."""

OTHER_WEIGHT: Final = 0.7
"""The same for a text encoder that nobody measured here."""

MEASURED_WEIGHTS: Final[Mapping[str, float]] = {"own": OWN_WEIGHT, "adapted": 0.95, "general": 0.95}
"""An encoder's name as far as the @ → its weight in [0, 1], measured on graded pools of four forums; an adapted
encoder has that of the bundled one.
A transformer's cosines differ less between candidates than those of a forum's own model, so that they count more."""


def cosine_weight_of(name: str) -> float:
    """Return the weight of the cosine where the encoder of this name gives it.

    >>> cosine_weight_of("general@31f1829f4fa1") == MEASURED_WEIGHTS["general"]
    True
    """
    return MEASURED_WEIGHTS.get(name.partition("@")[0], OTHER_WEIGHT)


MAX_HITS = 1000


@dataclass(frozen=True, slots=True)
class JoinSettings:
    """How words and vectors are joined.

    Args:
        weight: of the cosine in the weighted sum, in [0, 1]; the rest is BM25's. None takes what was measured to be
            best for the encoder (``MEASURED_WEIGHTS``), and ``OTHER_WEIGHT`` for one that was not measured.
        depth: candidates taken from each source, or as many as hits are asked for where that is more.
        scored: candidates that the scorer compares, the best of the weighted sum, or as many as hits are asked for.
        damping: how much the duplicates of a canonical question count beside the likeliest, in [0, 1]; see
            ``originals.combined``. Chosen on dev links (results/evidence.json).
        reranked: hits that a reranker puts in its order, where the forum has one.

    Raises:
        SettingError: a value is out of range.
    """

    weight: float | None = None
    depth: int = 50
    scored: int = 20
    damping: float = 0.25
    reranked: int = 20

    def __post_init__(self) -> None:
        if not (
            0 <= self.cosine_weight <= 1
            and 1 <= self.depth <= MAX_HITS
            and self.scored > 0
            and 0 <= self.damping <= 1
            and 1 <= self.reranked <= MAX_HITS
        ):
            raise SettingError(
                f"weight is {self.weight}, depth {self.depth}, scored {self.scored}, damping {self.damping}, "
                f"reranked {self.reranked}",
                f"expected damping and weight from 0 to 1, depth and reranked from 1 to {MAX_HITS}, and scored > 0",
            )

    @property
    def cosine_weight(self) -> float:
        """Return the weight, or where there is none that of askalike's own models."""
        return OWN_WEIGHT if self.weight is None else self.weight

    def for_encoder(self, name: str) -> JoinSettings:
        """Return the settings with the weight for an encoder, where they have none."""
        return self if self.weight is not None else replace(self, weight=cosine_weight_of(name))


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Everything that a search can be tuned by.

    Args:
        ranker: a name from ``search.RANKER_NAMES``, for searches that name none; where it needs vectors and the forum
            has none, ``words`` answers; ``probability`` needs none.
        is_corrected: rankers by vectors read misspelt words as what was probably meant; see ``correction``.
    """

    query: QuerySettings = field(default_factory=QuerySettings)
    ranker: str = "probability"
    join: JoinSettings = field(default_factory=JoinSettings)
    is_corrected: bool = True
