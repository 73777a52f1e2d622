"""The rows of the tables as data: which states, which layers of RAMN are on, and what was reported.

Source: Zhang and Wu, "An Unsupervised Model with Attention Autoencoders for Question Retrieval", AAAI 2018, tables 2
to 4, MAP and MRR by the official scorer. The paper prints 74.57 for the MAP of the search engine's order in 2016, which
the official scorer gives as 74.75.

A row's name is its states and its layers::

    base         the match by meaning alone
    mismatch     and lexical mismatch
    full         and the rank that the search engine gave: the paper's model
    clamped      full, with R at least a millionth
    positions    full, with the place among the candidates as the rank
    …-cosine     the cosine in place of the dot product of equation 10

Everything but α is fixed beforehand; dev chooses α for each seed from the paper's grid, the first of equals.

``rank-bm25`` has no autoencoder: the sum of -rank and of BM25 over title and body joined, each standardised over a
query's candidates. Of a sum that had RAMN's parts as well, dev gave them weight 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from askalike.papers.harness import Row
from askalike.papers.zhang2018.ramn import RamnSettings

States = Literal["words", "word2vec", "untrained", "gru", "attention"]

SEARCH: Final = ("candidate-search", "bm25", "rank-bm25", "oracle")
"""The rows without RAMN: the search engine's order, BM25's, the sum of both, and the best order that there is."""

_BASE: Final = RamnSettings(has_mismatch=False, alpha=0.0)
_MISMATCH: Final = RamnSettings(alpha=0.0)
_FULL: Final = RamnSettings(rank_factor="signed")
LAYERS: Final[Mapping[str, RamnSettings]] = {
    "base": _BASE,
    "mismatch": _MISMATCH,
    "full": _FULL,
    "clamped": RamnSettings(rank_factor="clamped"),
    "positions": RamnSettings(rank_factor="scaled"),
    "base-cosine": replace(_BASE, similarity="cosine"),
    "mismatch-cosine": replace(_MISMATCH, similarity="cosine"),
    "full-cosine": replace(_FULL, similarity="cosine"),
}
WORDS_LAYERS: Final = ("mismatch", "full", "clamped", "positions")
"""Without states there is no match by meaning, and no similarity."""


@dataclass(frozen=True, slots=True)
class RamnRow(Row):
    """A row; its system is "search" or its states. Rows of word2vec and of an untrained encoder share their words.

    Args:
        states: what RAMN compares.
        settings: of RAMN, with α to be chosen where it is above 0; None for the rows without RAMN.
    """

    states: States = "words"
    settings: RamnSettings | None = None


PAPERS_NAMES: Final = {
    "candidate-search": "Baseline (IR)",
    "gru-base": "GRU autoencoder",
    "gru-full": "GRU autoencoder, with all factors",
    "attention-base": "attention autoencoder",
    "attention-mismatch": "with lexical mismatch",
    "attention-full": "Our model",
}


def _rows() -> dict[str, RamnRow]:
    rows = {name: RamnRow(name, "search", name=PAPERS_NAMES.get(name, "")) for name in SEARCH}
    kinds: tuple[States, ...] = get_args(States)
    for states in kinds:
        learner = "untrained" if states == "word2vec" else states
        for layers in WORDS_LAYERS if states == "words" else LAYERS:
            name, is_drawn = f"{states}-{layers}", states != "words"
            paper = PAPERS_NAMES.get(name, "")
            rows[name] = RamnRow(name, states, learner, is_drawn, paper, states=states, settings=LAYERS[layers])
    return rows


ROWS: Final[Mapping[str, RamnRow]] = _rows()
"""id → row, in the order of the table."""

BASELINE: Final = "candidate-search"
"""What every row is tested against."""

Figures = tuple[float, float]

REPORTED: Final[Mapping[str, Mapping[str, Figures]]] = {
    "candidate-search": {"test2016": (74.57, 83.79), "test2017": (41.85, 46.42)},
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
    ("attention-full", "candidate-search"),
    ("attention-base", "untrained-base"),
    ("attention-base", "word2vec-base"),
    ("untrained-base", "word2vec-base"),
    ("attention-mismatch", "words-mismatch"),
    ("attention-full", "words-full"),
    ("gru-full", "words-full"),
    ("untrained-full", "words-full"),
    ("attention-base-cosine", "attention-base"),
    ("attention-full-cosine", "attention-full"),
    ("attention-base-cosine", "gru-base-cosine"),
    ("attention-base-cosine", "untrained-base-cosine"),
    ("attention-base-cosine", "word2vec-base-cosine"),
    ("attention-clamped", "attention-full"),
    ("attention-clamped", "words-clamped"),
    ("attention-positions", "attention-full"),
    ("rank-bm25", "candidate-search"),
    ("rank-bm25", "bm25"),
    ("rank-bm25", "attention-full"),
)
"""What the paper says of rows: attention helps, every layer helps, and all of them beat the search engine. Then the
controls, which have learned nothing from texts or nothing but word vectors, and the readings."""
