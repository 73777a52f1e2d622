"""What differs from encoder to encoder in a search: how much the cosine counts beside words, and what a cosine says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from askalike.search.calibration import DEFAULT_PRIOR, Calibration


@dataclass(frozen=True, slots=True)
class Joining:
    """How an encoder's cosines are used.

    Args:
        weight: of the cosine in the weighted sum with BM25, in [0, 1], where the settings name none.
        prior: how likely a cosine says that two questions ask the same before a forum has verdicts; None where that
            was not measured.
    """

    weight: float
    prior: Calibration | None = None


OWN: Final = Joining(0.4, DEFAULT_PRIOR)
"""Of askalike's own models."""

OTHER: Final = Joining(0.7)
"""Of a text encoder that nobody measured here."""

MEASURED: Final[Mapping[str, Joining]] = {
    "own": OWN,
    "general": OWN,
    "minilm": Joining(0.95, Calibration(-7.74, 9.92)),
}
"""An encoder's name as far as the colon → how its cosines are used: results/encoders.json, on graded pools of four
forums. MiniLM's cosines differ less between candidates than the general model's, so that they count more."""


def joining_of(name: str) -> Joining:
    """Return how the cosines of the encoder of this name are used.

    >>> joining_of("minilm:all-MiniLM-L6-v2@31f1829f4fa1+int8").weight == MEASURED["minilm"].weight
    True
    """
    return MEASURED.get(name.partition(":")[0], OTHER)
