"""The rows of the tables as data: which layers of RAMN are on, with which states, and what was reported.

Source: Zhang and Wu, "An Unsupervised Model with Attention Autoencoders for Question Retrieval", AAAI 2018, tables 2
to 4, MAP and MRR by the official scorer. The paper prints 74.57 for the MAP of the search engine's order in 2016, which
the official scorer gives as 74.75.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from askalike.models.ramn import RamnSettings
from askalike.papers.harness import Row

Kind = Literal["attention", "gru"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""The autoencoders."""

SEARCH: Final = ("ir", "bm25", "oracle")
"""The rows without RAMN: the search engine's order, BM25's, and the best order that there is."""
LAYERS: Final = (
    "base",
    "mismatch",
    "full",
    "clamped",
    "full-035",
    "clamped-035",
    "positions",
    "tuned",
    "both",
)
COMBINED: Final = "combined"
WORDS: Final = "words"
"""The kind of the rows without an autoencoder: what its states bring is what the others are above these."""
WHITE: Final = "white"
"""Ends the kind of rows with whitened states."""


@dataclass(frozen=True, slots=True)
class RamnRow(Row):
    """A row as dev has chosen it; its system is "search", "words", or a kind of autoencoder, "-white" or not.

    Args:
        id: one of ``SEARCH``, or system and layers as in "attention-full"; "attention-combined" is our own sum.
        size: texts that its autoencoder learned from, or its words were counted in; 0 without any.
        settings: of RAMN, or None.
        weights: of the parts of "combined", or None.
    """

    size: int = 0
    settings: RamnSettings | None = None
    weights: Mapping[str, float] | None = None


def row_names() -> list[str]:
    """Return the names of all rows, in the tables' order.

    >>> row_names()[2:5], len(row_names())
    (['oracle', 'words-mismatch', 'words-full'], 52)
    """
    systems = [WORDS, *(f"{kind}{white}" for kind in KINDS for white in ("", f"-{WHITE}"))]
    return [*SEARCH, *(f"{system}-{layers}" for system in systems for layers in (*layers_of(system), COMBINED))]


def layers_of(system: str) -> tuple[str, ...]:
    """Return the rows of a system but the combined one; without states there is no match by meaning."""
    return LAYERS[1:] if system == WORDS else LAYERS


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

COMPARED: Final[Sequence[tuple[str, str]]] = (
    ("attention-base", "gru-base"),
    ("attention-full", "gru-full"),
    ("attention-mismatch", "attention-base"),
    ("attention-full", "attention-mismatch"),
    ("attention-full", "ir"),
    ("attention-clamped", "attention-mismatch"),
    ("attention-clamped", "attention-full"),
    ("attention-clamped", "ir"),
    ("attention-full-035", "attention-mismatch"),
    ("attention-clamped-035", "attention-mismatch"),
    ("attention-positions", "attention-mismatch"),
    ("attention-full", "attention-positions"),
    ("attention-tuned", "ir"),
    ("attention-both", "attention-tuned"),
    ("attention-both", "ir"),
    ("attention-full", "words-full"),
    ("attention-clamped", "words-clamped"),
    ("attention-positions", "words-positions"),
    ("attention-tuned", "words-tuned"),
    ("attention-both", "words-both"),
    ("attention-combined", "words-combined"),
    ("gru-full", "words-full"),
    ("attention-white-base", "attention-base"),
    ("attention-white-full", "attention-full"),
    ("attention-white-both", "words-both"),
    ("attention-white-combined", "words-combined"),
    ("attention-combined", "bm25"),
)
"""What the paper says of rows: attention helps, every layer helps, and all of them beat the search engine; and what we
ask of rows that we added."""
