"""The figures that the paper and the thesis report on AskUbuntu's test set, and where each is from.

Enters: nothing. Leaves: ``Figure`` values by row. May import: nothing of askalike.

Source: Lei et al., "Semi-supervised Question Retrieval with Gated Convolutions", NAACL 2016; Joshi, "Finding Similar
Questions in Question Answering Forums", master's thesis, MIT 2016, tables 7.3 and 7.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["MARKS", "REPORTED", "Figure", "Origin"]

Origin = Literal["paper", "thesis", "recomputed", "remembered"]

MARKS: Final[Mapping[Origin, str]] = {"paper": "", "thesis": "", "recomputed": "=", "remembered": "~"}
"""What is printed before a figure: ``paper`` and ``thesis`` are quoted from their texts; ``recomputed`` comes from the
released scores; ``remembered`` was written down from memory of the published table and must be checked before it is
quoted."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A reported mean, times 100."""

    value: float
    origin: Origin

    def __str__(self) -> str:
        return f"{MARKS[self.origin]}{self.value:.1f}"


def _figures(origin: Origin, **values: float) -> dict[str, Figure]:
    names = {"map": "map", "mrr": "mrr", "p1": "p@1", "p5": "p@5"}
    return {names[key]: Figure(value, origin) for key, value in values.items()}


REPORTED: Final[Mapping[str, Mapping[str, Figure]]] = {
    "bm25": _figures("recomputed", map=55.99, mrr=68.03, p1=53.76, p5=42.47),
    "tfidf": {**_figures("thesis", map=53.2, mrr=67.1, p1=53.8), **_figures("remembered", p5=39.7)},
    "tfidf-title": _figures("thesis", map=54.3, mrr=66.8, p1=52.7),
    "svm": _figures("remembered", map=57.7, mrr=71.3, p1=57.0, p5=43.3),
    "cnn-max": _figures("thesis", map=58.2, mrr=71.4, p1=57.6, p5=44.9),
    "cnn-mean": _figures("thesis", map=57.8, mrr=71.3, p1=58.0, p5=43.4),
    "lstm-last": _figures("thesis", map=57.8, mrr=69.8, p1=56.6, p5=42.8),
    "lstm-mean": _figures("thesis", map=58.1, mrr=71.2, p1=58.3, p5=43.3),
    "rcnn-last": _figures("thesis", map=62.6, mrr=75.0, p1=64.2, p5=46.0),
    "rcnn-mean": _figures("thesis", map=59.6, mrr=71.9, p1=58.5, p5=44.9),
    "rcnn-last-title": _figures("thesis", map=58.9, mrr=73.0, p1=61.5),
    "rcnn-mean-title": _figures("thesis", map=55.6, mrr=68.7, p1=54.8),
    "rcnn-last-pretrained": {
        **_figures("paper", mrr=75.6, p1=62.0),
        **_figures("remembered", map=62.3, p5=47.1),
    },
}
"""Row → measure → the figure. The thesis and the paper differ in their models' settings, so their rows are not one run;
"tfidf" is the best of the n-grams that they tried."""
