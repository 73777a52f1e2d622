"""The figures that the paper reports on Yahoo! Answers: MAP, MRR and P@1.

Enters: nothing. Leaves: figures by row. May import: nothing of askalike.

Source: Das, Yenala, Chinnakotla and Shrivastava, "Together We Stand: Siamese Networks for Similar Question Retrieval",
ACL 2016, table 2. The paper has no row of BM25 or TF-IDF.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["MEASURES", "REPORTED", "REPORTED_ALPHA"]

MEASURES: Final = ("map", "mrr", "p@1")

REPORTED: Final[Mapping[str, tuple[float, float, float]]] = {
    "lmir": (76.2, 84.4, 71.7),
    "translation": (78.6, 87.0, 80.7),
    "translm": (78.7, 86.9, 80.4),
    "phrase": (78.9, 87.5, 81.7),
    "qatm": (78.7, 87.9, 81.0),
    "sqatm": (80.0, 88.8, 82.0),
    "dsqa": (75.5, 92.1, 75.1),
    "t-dsqa": (80.1, 93.2, 82.2),
    "scqa": (81.1, 89.5, 83.0),
    "t-scqa": (85.2, 93.4, 84.9),
}
"""Row → the figures of ``MEASURES``, times 100. DSQA's MRR of 92.1 beside a P@1 of 75.1 is what the paper prints."""

REPORTED_ALPHA: Final = 0.8
"""The weight α of SCQA beside BM25 (section 8.1)."""
