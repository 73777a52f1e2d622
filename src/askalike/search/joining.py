"""How much the cosine counts beside words in the weighted sum, which differs from encoder to encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
