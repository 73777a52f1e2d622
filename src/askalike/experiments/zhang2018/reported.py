"""The figures that the paper reports, MAP and MRR by the official scorer.

Enters: nothing. Leaves: figures by row and test set. May import: nothing of askalike.

Source: Zhang and Wu, "An Unsupervised Model with Attention Autoencoders for Question Retrieval", AAAI 2018, tables 2
to 4. The paper prints 74.57 for the MAP of the search engine's order in 2016, which the official scorer gives as 74.75.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["REPORTED"]

Figures = tuple[float, float]

REPORTED: Final[Mapping[str, Mapping[str, Figures]]] = {
    "ir": {"test2016": (74.57, 83.79), "test2017": (41.85, 46.42)},
    "gru-base": {"test2016": (71.76, 81.14), "test2017": (43.59, 48.80)},
    "gru-full": {"test2016": (77.06, 84.16), "test2017": (46.38, 52.07)},
    "attention-base": {"test2016": (73.05, 81.51), "test2017": (45.36, 51.27)},
    "attention-mismatch": {"test2016": (75.92, 84.29), "test2017": (47.40, 51.61)},
    "attention-full": {"test2016": (77.79, 85.76), "test2017": (48.53, 52.75)},
    "campaign": {"test2016": (76.70, 83.02), "test2017": (47.22, 50.07)},
}
"""Row → test set → (MAP, MRR), times 100. "campaign" is the best system that took part, which learned from labels."""
