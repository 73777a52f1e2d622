"""The rows of the tables as data: which system, over which text, trained how, and what was reported.

Source: Lei et al., "Semi-supervised Question Retrieval with Gated Convolutions", NAACL 2016, tables 2, 4, 5,
section 5; Joshi, "Finding Similar Questions in Large-Scale Community QA Forums", master's thesis, MIT 2016, tables 7.1
to 7.4.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Final, Literal

from askalike.models.encoders.settings import EncoderConfig, Gate, Kind, Pooling
from askalike.models.vocabulary import Reads
from askalike.papers.harness import Row
from askalike.training.recipe import network_recipe

WORD_DIMENSIONS: Final = 200

Origin = Literal["paper", "thesis", "recomputed"]
"""``paper`` and ``thesis`` are quoted from their texts; ``recomputed`` comes from the released scores."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A reported mean, times 100."""

    value: float
    origin: Origin

    def __str__(self) -> str:
        return f"{'=' if self.origin == 'recomputed' else ''}{self.value:.1f}"


def _figures(origin: Origin, **values: float) -> dict[str, Figure]:
    names = {"map": "map", "mrr": "mrr", "p1": "p@1", "p5": "p@5"}
    return {names[key]: Figure(value, origin) for key, value in values.items()}


REPORTED: Final[Mapping[str, Mapping[str, Figure]]] = {
    "bm25": _figures("recomputed", map=55.99, mrr=68.03, p1=53.76, p5=42.47),
    "rcnn-last-pretrained": _figures("paper", mrr=75.6, p1=62.0),
}
"""Row → measure → the paper's figure, of those that its text has outside of its tables."""

THESIS: Final[Mapping[str, Mapping[str, Figure]]] = {
    "tfidf": _figures("thesis", map=53.2, mrr=67.1, p1=53.8),
    "tfidf-title": _figures("thesis", map=54.3, mrr=66.8, p1=52.7),
    "cnn-max": _figures("thesis", map=58.2, mrr=71.4, p1=57.6, p5=44.9),
    "cnn-mean": _figures("thesis", map=57.8, mrr=71.3, p1=58.0, p5=43.4),
    "lstm-last": _figures("thesis", map=57.8, mrr=69.8, p1=56.6, p5=42.8),
    "lstm-mean": _figures("thesis", map=58.1, mrr=71.2, p1=58.3, p5=43.3),
    "rcnn-last": _figures("thesis", map=62.6, mrr=75.0, p1=64.2, p5=46.0),
    "rcnn-mean": _figures("thesis", map=59.6, mrr=71.9, p1=58.5, p5=44.9),
    "rcnn-last-title": _figures("thesis", map=58.9, mrr=73.0, p1=61.5),
    "rcnn-mean-title": _figures("thesis", map=55.6, mrr=68.7, p1=54.8),
    "rcnn-last-pretrained": _figures("thesis", p1=64.5),
}
"""The same of the thesis. Its models have other settings than the paper's, so that a row of the one is not to be set
against a row of the other: by the thesis alone pre-training brings P@1 from 64.2 to 64.5. "tfidf" is the best of the
n-grams that they tried."""


@dataclass(frozen=True, slots=True)
class LeiRow(Row):
    """One row; its system is "bm25", "search", "tfidf", "svm", or the kind of an encoder.

    Args:
        scorer: of BM25 and tfidf, the name of the scorer in ``SCORERS``; else "".
        encoder: of an encoder, its sizes and pooling; else None.
        is_pretrained: whether an encoder-decoder was trained on all texts before.
        kept_by: the measure that its epoch was kept by, or "" for the recipe's.
        recipe: of a row with settings of its own, the shipped recipe that has them.
        gate_bias: what is added to the first bias of its gates.
        about: how it is run, in a few words.
        reported: measure → the paper's figure on AskUbuntu's test set, where one is known.
        thesis: measure → the thesis's.
    """

    scorer: str = ""
    reads: Reads = "title and body"
    encoder: EncoderConfig | None = None
    is_pretrained: bool = False
    kept_by: str = ""
    recipe: str = ""
    gate_bias: float = 0.0
    about: str = ""
    reported: Mapping[str, Figure] = field(default_factory=dict)
    thesis: Mapping[str, Figure] = field(default_factory=dict)

    def decides(self) -> dict[str, Any]:
        """Return what of the row decides its outcome, as JSON can hold it."""
        own: dict[str, Any] = {"gate_bias": self.gate_bias} if self.gate_bias else {}
        if self.kept_by:
            own["kept_by"] = self.kept_by
        if self.recipe:
            own["recipe"] = json.loads(network_recipe(self.recipe).to_json())
        return own | {
            "id": self.id,
            "system": self.system,
            "scorer": self.scorer,
            "reads": self.reads,
            "encoder": self.encoder.to_json() if self.encoder else None,
            "is_pretrained": self.is_pretrained,
        }


_POOLED: Final[Mapping[Pooling, str]] = {
    "last": "last state",
    "max": "max-pooling",
    "mean": "mean-pooling",
    "normalised-mean": "mean-pooling, normalised",
}


def _encoder(
    kind: Kind, pooling: Pooling, reads: Reads = "title and body", *, is_pretrained: bool = False, name: str = ""
) -> LeiRow:
    """Return an encoder's row; sizes give the kinds about the same number of parameters (400,800 to 424,320)."""
    hidden, order = {"rcnn": (400, 2), "lstm": (240, 2), "gru": (280, 2), "cnn": (667, 3)}[kind]
    words = [kind, name or pooling, "title" if reads == "title" else "", "pretrained" if is_pretrained else ""]
    identifier = "-".join(word for word in words if word)
    after = [*(["title only"] if reads == "title" else []), *(["pre-trained"] if is_pretrained else [])]
    return LeiRow(
        identifier,
        kind,
        is_drawn=True,
        reads=reads,
        encoder=EncoderConfig(kind, WORD_DIMENSIONS, hidden, order, pooling=pooling),
        is_pretrained=is_pretrained,
        name=", ".join([f"{kind.upper()}s", _POOLED[pooling], *after]),
        about="pre-training on all texts, then max-margin on labelled pairs" if is_pretrained else "max-margin",
        reported=REPORTED.get(identifier, {}),
        thesis=THESIS.get(identifier, {}),
    )


def _variant(
    name: str,
    about: str,
    reads: Reads = "title and body",
    *,
    pooling: Pooling = "last",
    gate: Gate = "vector",
    **own: Any,
) -> LeiRow:
    """Return an RCNN's row with another reading, or with settings of the official program."""
    config = EncoderConfig("rcnn", WORD_DIMENSIONS, 400, 2, pooling=pooling, gate=gate)
    words = ["rcnn", pooling.removeprefix("normalised-"), name, *(["title"] if reads == "title" else [])]
    return LeiRow("-".join(words), "rcnn", is_drawn=True, reads=reads, encoder=config, about=about, **own)


PAPERS_NAMES: Final = {"bm25": "BM25", "tfidf": "TF-IDF", "tfidf-title": "TF-IDF, title only", "svm": "SVM"}


def _baseline(identifier: str, system: str, about: str, *, scorer: str = "", reads: Reads = "title and body") -> LeiRow:
    paper, thesis = REPORTED.get(identifier, {}), THESIS.get(identifier, {})
    name = PAPERS_NAMES.get(identifier, "")
    return LeiRow(identifier, system, name=name, scorer=scorer, reads=reads, about=about, reported=paper, thesis=thesis)


def _words(scorer: str, about: str) -> LeiRow:
    return _baseline(scorer, "tfidf", about, scorer=scorer)


BOTH: Final[tuple[Reads, ...]] = ("title and body", "title")
LAST_AND_MEAN: Final[tuple[Pooling, ...]] = ("last", "normalised-mean")
BIAS: Final = "max-margin; λ begins at .95 instead of .5, which is no setting of the authors"
CONSTANT: Final = "max-margin; the constant decay of Lei et al. 2015, λ = .5"
PROGRAM: Final = "max-margin with the settings of the official program, which are not the paper's"

_ALL: Final[Sequence[LeiRow]] = (
    _baseline(
        "bm25", "bm25", "BM25 over title and body joined, untuned; of AskUbuntu the released scores", scorer="bm25"
    ),
    _baseline("candidate-search", "search", "the scores of the search that found the candidates"),
    _words("tfidf", "words"),
    _words("tfidf-2", "n-grams of up to 2"),
    _words("tfidf-3", "n-grams of up to 3"),
    _words("tfidf-all-words", "words, stop words kept"),
    _words("tfidf-2-all-words", "n-grams of up to 2, stop words kept"),
    _words("tfidf-3-all-words", "n-grams of up to 3, stop words kept"),
    _baseline("tfidf-title", "tfidf", "words", scorer="tfidf", reads="title"),
    _baseline("svm", "svm", "linear ranking SVM over similarity measures"),
    _encoder("cnn", "max"),
    _encoder("cnn", "normalised-mean", name="mean"),
    _encoder("lstm", "last"),
    _encoder("lstm", "normalised-mean", name="mean"),
    _encoder("gru", "last"),
    _encoder("gru", "normalised-mean", name="mean"),
    _encoder("rcnn", "last"),
    _encoder("rcnn", "normalised-mean", name="mean"),
    _encoder("rcnn", "mean", name="plain-mean"),
    _encoder("rcnn", "last", "title"),
    _encoder("rcnn", "normalised-mean", "title", name="mean"),
    _variant("bias", BIAS, gate_bias=3.0),
    _variant("bias", BIAS, "title", gate_bias=3.0),
    *(
        _variant("constant", CONSTANT, reads, pooling=pooling, gate="constant")
        for reads, pooling in product(BOTH, LAST_AND_MEAN)
    ),
    _variant("program", PROGRAM, pooling="normalised-last", recipe="lei2016-program"),
    _variant("program", PROGRAM, pooling="normalised-mean", recipe="lei2016-program"),
    _encoder("lstm", "last", is_pretrained=True),
    _encoder("gru", "last", is_pretrained=True),
    _encoder("rcnn", "last", is_pretrained=True),
    replace(
        _encoder("rcnn", "last", is_pretrained=True),
        id="rcnn-last-pretrained-body",
        kept_by="perplexity from body",
        name="",
        about="the same, pre-training up to its lowest perplexity of titles from bodies",
        reported={},
        thesis={},
    ),
)

ROWS: Final[Mapping[str, LeiRow]] = {row.id: row for row in _ALL}
"""id → row, in the order of the table. "mean" is the mean of states that were brought to length 1, which the thesis
found better; "plain-mean" is the mean of the states as they are."""

COMPARED: Final[Sequence[tuple[str, str]]] = (
    ("rcnn-last", "lstm-last"),
    ("rcnn-last", "gru-last"),
    ("rcnn-mean", "lstm-mean"),
    ("rcnn-mean", "gru-mean"),
    ("rcnn-mean", "cnn-mean"),
    ("rcnn-last", "rcnn-mean"),
    ("rcnn-mean", "rcnn-plain-mean"),
    ("rcnn-last", "rcnn-last-title"),
    ("rcnn-mean", "rcnn-mean-title"),
    ("rcnn-last-bias", "rcnn-last"),
    ("rcnn-mean", "rcnn-last-bias"),
    ("rcnn-mean", "bm25"),
    ("rcnn-mean-title", "bm25"),
    ("rcnn-last", "rcnn-last-constant"),
    ("rcnn-mean", "rcnn-mean-constant"),
    ("rcnn-last-bias-title", "rcnn-last-title"),
    ("rcnn-mean-title", "rcnn-last-title"),
    ("rcnn-mean-title", "rcnn-last-bias-title"),
    ("rcnn-last-title", "rcnn-last-constant-title"),
    ("rcnn-mean-title", "rcnn-mean-constant-title"),
    ("rcnn-last-program", "rcnn-last"),
    ("rcnn-mean-program", "rcnn-mean"),
    ("rcnn-last-program", "rcnn-mean-program"),
    ("lstm-last-pretrained", "lstm-last"),
    ("gru-last-pretrained", "gru-last"),
    ("rcnn-last-pretrained", "rcnn-last"),
    ("rcnn-last-pretrained", "rcnn-last-pretrained-body"),
    ("rcnn-last-pretrained-body", "rcnn-last"),
    ("rcnn-last-pretrained", "lstm-last-pretrained"),
    ("rcnn-last-pretrained", "gru-last-pretrained"),
    ("rcnn-last-pretrained", "bm25"),
    ("candidate-search", "bm25"),
    ("svm", "candidate-search"),
    ("rcnn-mean", "candidate-search"),
    ("rcnn-last-pretrained", "candidate-search"),
)
"""What paper and thesis say of rows, in order: the RCNN beats others of its size, the last state beats the mean, states
brought to length 1 are better, bodies help, pre-training helps, and the best of all beats BM25. Between them, readings
and settings beside each other."""
