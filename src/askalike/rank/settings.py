"""Everything that a search can be tuned by."""

from __future__ import annotations

from dataclasses import dataclass, field

from askalike.errors import SettingError
from askalike.models.ramn.score import FORUM, RamnSettings
from askalike.rank.query import QuerySettings
from askalike.rank.siamese import TextualSettings
from askalike.rank.threshold import ALL, THRESHOLDS

MAX_HITS = 1000


@dataclass(frozen=True, slots=True)
class JoinSettings:
    """How words and vectors are joined.

    Args:
        weight: of the cosine in the weighted sum, in [0, 1]; the rest is BM25's.
        depth: candidates taken from each source, or as many as hits are asked for where that is more.
        fusion_constant: of reciprocal rank fusion, > 0.
        interaction_weight: of cosine and late interaction together in their weighted sum with BM25, in [0, 1].
        interaction_depth: candidates that are compared word by word, the best of the weighted sum.

    Raises:
        SettingError: a value is out of range.
    """

    weight: float = 0.4
    depth: int = 50
    fusion_constant: float = 60.0
    interaction_weight: float = 0.7
    interaction_depth: int = 20

    def __post_init__(self) -> None:
        if not (0 <= self.weight <= 1 and 1 <= self.depth <= MAX_HITS and self.fusion_constant > 0):
            raise SettingError(
                f"weight is {self.weight}, depth {self.depth}, fusion_constant {self.fusion_constant}",
                f"expected weight from 0 to 1, depth from 1 to {MAX_HITS} and fusion_constant > 0",
            )
        if not (0 <= self.interaction_weight <= 1 and 1 <= self.interaction_depth <= MAX_HITS):
            raise SettingError(
                f"interaction_weight is {self.interaction_weight}, interaction_depth {self.interaction_depth}",
                f"expected interaction_weight from 0 to 1 and interaction_depth from 1 to {MAX_HITS}",
            )


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Everything that a search can be tuned by.

    Args:
        ranker: a name from ``rank.RANKER_NAMES``, for searches that name none; where it needs vectors and the forum
            has none, ``lexical`` answers.
        ramn: of the ranker of that name.
        textual: of the rankers ``t-scqa`` and ``t-dsqa``.
        threshold: a name from ``threshold.THRESHOLDS``: ``average`` shows no hit whose score is below the average of
            the candidates' scores, ``none`` shows the best k.
        is_corrected: rankers by vectors read misspelt words as what was probably meant; see ``correction``.

    Raises:
        SettingError: there is no such threshold.
    """

    query: QuerySettings = field(default_factory=QuerySettings)
    ranker: str = "hybrid"
    join: JoinSettings = field(default_factory=JoinSettings)
    ramn: RamnSettings = FORUM
    textual: TextualSettings = field(default_factory=TextualSettings)
    threshold: str = ALL
    is_corrected: bool = True

    def __post_init__(self) -> None:
        if self.threshold not in THRESHOLDS:
            raise SettingError(f"there is no threshold {self.threshold!r}", f"expected one of {', '.join(THRESHOLDS)}")
