"""The rows of the table as data: which system, what it is learned by, what dev may choose, what was reported.

Source: Das, Yenala, Chinnakotla and Shrivastava, "Together We Stand: Siamese Networks for Similar Question Retrieval",
ACL 2016, table 2: MAP, MRR and P@1 on Yahoo! Answers. Rows without the paper's figures are ours: BM25, half of T-SCQA;
the cosine of the trigrams that the networks read, without a network; and other readings of what the paper leaves open
(docs/papers/das2016.md). "bm25" is BM25 over title and body joined, untuned, and what T-SCQA mixes in;
"candidate-search" are the scores of the search that found the candidates, on travel and Slicer the forum's own by
fields. "t-scqa-08" has the paper's α, and "t-scqa-08-z" the same with both scores standardised.

Policy of what dev chooses, in this one place: of all combinations of a grid's values the one with the highest MAP on a
set's dev split is taken for that set, the first of equals; nothing is chosen by a test split. Each seed of a topic
model chooses for itself. The model of word translations is the one that is written, in which no share of the words
stays as it is: with such a share, and without answers of candidates, it would be TransLM. ``translation`` has t(w|w) as
it was learned, ``translation-self`` has it 1. Epochs are the network's own choice: the lowest loss on pairs that were
held out, or, of rows that end in ``-dev``, the highest MAP of the dev sets, of epochs from the first on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, Literal, get_args

from askalike.evaluation.forum.tasks import Scaling
from askalike.papers.das2016.language import LanguageSettings, Method
from askalike.papers.das2016.phrases import Segmentation
from askalike.papers.harness import Row

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

PAPERS_ALPHA: Final = 0.8
"""The α of T-SCQA that the paper reports."""

Kept = Literal["loss", "dev", "untrained"]
"""Which epoch of a training a row stands for."""


@dataclass(frozen=True, slots=True)
class DasRow(Row):
    """One row; its system is "bm25", "search", "trigrams", "language" or "siamese".

    Its learner is a grid's name, or a network: "scqa" or "dsqa", "-sum" where losses are summed over a batch.

    Args:
        has_words: the scores of BM25 are mixed in.
        alpha: the weight of the network beside BM25, None for the one that dev chooses.
        scaling: how both scores are brought together.
        kept: of a network, which epoch.
        reported: MAP, MRR and P@1 times 100, or nothing.
    """

    has_words: bool = False
    alpha: float | None = None
    scaling: Scaling = "share"
    kept: Kept = "loss"
    reported: tuple[float, ...] = ()


def _language(learner: str, name: str = "", *, is_drawn: bool = False) -> DasRow:
    return DasRow(learner, "language", learner, is_drawn, name=name, reported=REPORTED.get(learner, ()))


def _siamese(identifier: str, learner: str, kept: Kept = "loss") -> DasRow:
    return DasRow(
        identifier,
        "siamese",
        learner,
        is_drawn=True,
        name=identifier.upper() if identifier in REPORTED else "",
        has_words=identifier.startswith("t-"),
        kept=kept,
        reported=REPORTED.get(identifier, ()),
    )


_ALL: Final[Sequence[DasRow]] = (
    DasRow("bm25", "bm25"),
    DasRow("candidate-search", "search"),
    DasRow("trigrams", "trigrams"),
    DasRow("trigrams-idf", "trigrams"),
    _language("lmir", "LMIR"),
    _language("translation", "translation(word)"),
    _language("translation-self"),
    _language("translm", "translation+LM"),
    _language("phrase", "translation(phrase)"),
    _language("qatm", "Q-A topic model", is_drawn=True),
    _language("qatm-lmir", is_drawn=True),
    _language("sqatm", "Q-A topic model(s)", is_drawn=True),
    _siamese("dsqa", "dsqa"),
    _siamese("t-dsqa", "dsqa"),
    _siamese("scqa", "scqa"),
    _siamese("t-scqa", "scqa"),
    replace(_siamese("t-scqa-08", "scqa"), alpha=PAPERS_ALPHA),
    replace(_siamese("t-scqa-08-z", "scqa"), alpha=PAPERS_ALPHA, scaling="z-score"),
    _siamese("scqa-untrained", "scqa", "untrained"),
    _siamese("scqa-dev", "scqa", "dev"),
    _siamese("t-scqa-dev", "scqa", "dev"),
    _siamese("dsqa-dev", "dsqa", "dev"),
    _siamese("scqa-sum", "scqa-sum"),
    _siamese("t-scqa-sum", "scqa-sum"),
    _siamese("scqa-sum-dev", "scqa-sum", "dev"),
    _siamese("dsqa-sum", "dsqa-sum"),
)

ROWS: Final[Mapping[str, DasRow]] = {row.id: row for row in _ALL}
"""id → row, in the order of the table."""

BASELINE: Final = "lmir"
"""What every row is tested against."""

COMPARED: Final[Sequence[tuple[str, str]]] = (
    ("translation", "lmir"),
    ("translation-self", "lmir"),
    ("translation-self", "translation"),
    ("translm", "lmir"),
    ("phrase", "lmir"),
    ("qatm", "translm"),
    ("qatm", "qatm-lmir"),
    ("sqatm", "translm"),
    ("sqatm", "qatm"),
    ("scqa", "dsqa"),
    ("t-scqa", "t-dsqa"),
    ("t-scqa", "scqa"),
    ("t-scqa", "bm25"),
    ("t-scqa", "candidate-search"),
    ("t-scqa-08", "bm25"),
    ("t-scqa-08", "t-scqa"),
    ("t-scqa-08-z", "t-scqa-08"),
    ("t-scqa-08-z", "bm25"),
    ("scqa", "scqa-sum"),
    ("scqa", "scqa-untrained"),
    ("scqa-sum", "scqa-untrained"),
    ("scqa", "trigrams"),
    ("scqa-dev", "scqa"),
    ("scqa-dev", "trigrams"),
    ("t-scqa-dev", "bm25"),
    ("t-scqa", "t-scqa-sum"),
)
"""What the paper says of rows, in order: translation helps, topics help more, shared weights help, and words help. Then
readings beside each other, and networks beside what they read."""

FINE: Final[tuple[tuple[Method, float], ...]] = (
    *(("dirichlet", weight) for weight in (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)),
    *(("jelinek-mercer", step / 10) for step in range(1, 10)),
)
COARSE: Final[tuple[tuple[Method, float], ...]] = (
    *(("dirichlet", weight) for weight in (10.0, 30.0, 100.0, 300.0, 1000.0)),
    *(("jelinek-mercer", weight) for weight in (0.1, 0.3, 0.5, 0.7, 0.9)),
)
LONGEST: Final = (2, 3, 4)
TOPICS: Final = (10, 20, 50)


def grid(name: str, seed: int) -> Iterator[LanguageSettings]:
    """Yield the settings of a language model's row, those that share what was learned beside each other.

    >>> sum(1 for _ in grid("lmir", 0)), sum(1 for _ in grid("phrase", 0))
    (16, 240)
    """
    if name in ("lmir", "translation", "translation-self"):
        own, is_certain = float(name == "lmir"), name == "translation-self"
        yield from (LanguageSettings(*smoothing, own=own, is_self_certain=is_certain) for smoothing in FINE)
    elif name == "translm":
        for smoothing, own in product(COARSE, (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)):
            yield LanguageSettings(*smoothing, own=own)
    elif name == "phrase":
        for longest, smoothing, own, cut in product(LONGEST, COARSE, (0.3, 0.5, 0.7, 0.9), get_args(Segmentation)):
            yield LanguageSettings(*smoothing, own=own, longest=longest, segmentation=cut)
    else:
        words = (1.0,) if name == "qatm-lmir" else (0.5, 0.8)
        voted = LanguageSettings(is_voted=name == "sqatm", seed=seed)
        for topics, (method, weight), own, share in product(TOPICS, COARSE, words, (0.5, 0.7, 0.9)):
            yield replace(voted, smoothing=method, weight=weight, own=own, topics=topics, share=share)
