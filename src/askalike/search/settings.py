"""Everything that a search can be tuned by, and which of its candidates are shown at all beside the best k.

Source: Das et al. 2016 (ACL), section 5: "The threshold is dynamically set to the average similarity score across
questions and we output only those which have a similarity greater than the average".
Differs: the average is that of the candidates, not of all questions of a forum; and one that has just the average is
shown, so that a candidate that is the only one, or as good as all the others, can be found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum, isclose
from typing import TYPE_CHECKING, Final

from askalike.errors import SettingError
from askalike.models.ramn import FORUM, RamnSettings
from askalike.search.query import QuerySettings

if TYPE_CHECKING:
    from askalike.search.pool import Scored

OWN: Final = 0.4
"""Of askalike's own models."""

OTHER: Final = 0.7
"""Of a text encoder that nobody measured here."""

MEASURED: Final[Mapping[str, float]] = {"own": OWN, "general": OWN, "minilm": 0.95}
"""An encoder's name as far as the colon → its weight in [0, 1]: results/encoders.json, on graded pools of four forums.
MiniLM's cosines differ less between candidates than the general model's, so that they count more."""


def cosine_weight_of(name: str) -> float:
    """Return the weight of the encoder of this name.

    >>> cosine_weight_of("minilm:all-MiniLM-L6-v2@31f1829f4fa1+int8") == MEASURED["minilm"]
    True
    """
    return MEASURED.get(name.partition(":")[0], OTHER)


ALL: Final = "none"

_ROUNDING: Final = 1e-12
"""The average of equal scores may differ from them by so much."""


def above_average(scored: Sequence[Scored]) -> list[Scored]:
    """Return those whose score is not below the mean of all, in their order.

    >>> from askalike.search.pool import Scored
    >>> [one.score for one in above_average([Scored(key, score, {}) for key, score in enumerate((0.9, 0.2, 0.4))])]
    [0.9]
    """
    average = fsum(one.score for one in scored) / len(scored) if scored else 0.0
    return [one for one in scored if one.score >= average or isclose(one.score, average, rel_tol=_ROUNDING)]


THRESHOLDS: Final[Mapping[str, Callable[[Sequence[Scored]], list[Scored]]]] = {ALL: list, "average": above_average}
"""Name → what it leaves of the candidates."""


MAX_HITS = 1000


@dataclass(frozen=True, slots=True)
class TextualSettings:
    """How much the cosine counts beside BM25 in ``t-scqa`` and ``t-dsqa``.

    Args:
        alpha: α in [0, 1]; 0 is BM25 alone, 1 the cosine alone. On dev of a forum that 5,000 pairs were learned from it
            is flat up to 0.2 and falls from there (LOG.md); the paper, with two million pairs, has 0.8.

    Raises:
        SettingError: it is out of range.
    """

    alpha: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise SettingError(f"alpha is {self.alpha}", "expected a number from 0 to 1")


@dataclass(frozen=True, slots=True)
class JoinSettings:
    """How words and vectors are joined.

    Args:
        weight: of the cosine in the weighted sum, in [0, 1]; the rest is BM25's. None takes what was measured to be
            best for the encoder (``MEASURED``), and ``OTHER`` for one that was not measured.
        depth: candidates taken from each source, or as many as hits are asked for where that is more.
        scored: candidates that the scorer compares, the best of the weighted sum, or as many as hits are asked for.
        reranked: hits that a scorer of pairs puts in its order, where the forum has one.
        fusion_constant: of reciprocal rank fusion, > 0.
        interaction_weight: of cosine and late interaction together in their weighted sum with BM25, in [0, 1].
        interaction_depth: candidates that are compared word by word, the best of the weighted sum.

    Raises:
        SettingError: a value is out of range.
    """

    weight: float | None = None
    depth: int = 50
    scored: int = 20
    reranked: int = 20
    fusion_constant: float = 60.0
    interaction_weight: float = 0.7
    interaction_depth: int = 20

    def __post_init__(self) -> None:
        if not (
            0 <= self.cosine_weight <= 1
            and 1 <= self.depth <= MAX_HITS
            and self.fusion_constant > 0
            and self.scored > 0
            and 1 <= self.reranked <= MAX_HITS
        ):
            raise SettingError(
                f"weight is {self.weight}, depth {self.depth}, scored {self.scored}, "
                f"reranked {self.reranked}, fusion_constant {self.fusion_constant}",
                f"expected weight from 0 to 1, depth and reranked from 1 to {MAX_HITS}, scored and fusion_constant > 0",
            )
        if not (0 <= self.interaction_weight <= 1 and 1 <= self.interaction_depth <= MAX_HITS):
            raise SettingError(
                f"interaction_weight is {self.interaction_weight}, interaction_depth {self.interaction_depth}",
                f"expected interaction_weight from 0 to 1 and interaction_depth from 1 to {MAX_HITS}",
            )

    @property
    def cosine_weight(self) -> float:
        """Return the weight, or where there is none that of askalike's own models."""
        return OWN if self.weight is None else self.weight

    def for_encoder(self, name: str) -> JoinSettings:
        """Return the settings with the weight for an encoder, where they have none."""
        return self if self.weight is not None else replace(self, weight=cosine_weight_of(name))


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Everything that a search can be tuned by.

    Args:
        ranker: a name from ``search.RANKER_NAMES``, for searches that name none; where it needs vectors and the forum
            has none, ``lexical`` answers; ``probability`` needs none.
        ramn: of the ranker of that name.
        textual: of the rankers ``t-scqa`` and ``t-dsqa``.
        threshold: a name from ``THRESHOLDS``: ``average`` shows no hit whose score is below the average of
            the candidates' scores, ``none`` shows the best k.
        is_corrected: rankers by vectors read misspelt words as what was probably meant; see ``correction``.

    Raises:
        SettingError: there is no such threshold.
    """

    query: QuerySettings = field(default_factory=QuerySettings)
    ranker: str = "probability"
    join: JoinSettings = field(default_factory=JoinSettings)
    ramn: RamnSettings = FORUM
    textual: TextualSettings = field(default_factory=TextualSettings)
    threshold: str = ALL
    is_corrected: bool = True

    def __post_init__(self) -> None:
        if self.threshold not in THRESHOLDS:
            raise SettingError(f"there is no threshold {self.threshold!r}", f"expected one of {', '.join(THRESHOLDS)}")
