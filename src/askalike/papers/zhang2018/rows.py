"""The rows of the tables as data: which layers of RAMN are on, and what was reported; and what dev chooses of each.

Source: Zhang and Wu, "An Unsupervised Model with Attention Autoencoders for Question Retrieval", AAAI 2018, tables 2
to 4, MAP and MRR by the official scorer. The paper prints 74.57 for the MAP of the search engine's order in 2016, which
the official scorer gives as 74.75.

Policy, in this one place; all choices are by the mean of dev MAP over the seeds, the first of equals:

- *treatment*: similarity, floor and repeats, the best over the paper's grid of α of all three layers, with positions;
- *positions*: all three layers with that treatment and its best α, the rank being the place among the ten candidates;
  *mismatch*: without the rank; *base*: without both;
- *full*: with the rank that the search engine gave, R as the formula has it, and its best α; *clamped*: R at least a
  millionth; *full-035* and *clamped-035*: with the paper's α in place of dev's;
- *tuned*: the same features, each layer with a weight: γ of the mismatch, α from 0, product or mean over words;
- *both*: as tuned, per word, and the candidate's words are matched in the query too.

The sum is our own: RAMN's parts, the other direction and BM25, each standardised::

    match      mean_i log b_i(Q), the query's words in the candidate           (11)
    back       mean_j log b_j(q), the candidate's words in the query
    mismatch   mean_i log d_i                                                   (16)
    rank       -rank(Q)                                                         (18)
    bm25       BM25 of query and candidate, title and body joined
    score      Σ_k w_k · (x_k - mean x_k) / std x_k                             over the query's candidates

The paper multiplies its parts, which gives every word of a mismatch as much weight as the whole order of the search
engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from statistics import fmean
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from askalike.evaluation.forum.tasks import RerankTask, judge
from askalike.papers.harness import Row
from askalike.papers.zhang2018.ramn import (
    ALPHAS,
    Comparison,
    Matcher,
    RamnSettings,
    RankFactor,
    Repeats,
    Similarity,
    backward_means,
    log_scores,
)
from askalike.types import Run

Kind = Literal["attention", "gru"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""The autoencoders."""

SEARCH: Final = ("ir", "bm25", "oracle")
"""The rows without RAMN: the search engine's order, BM25's, and the best order that there is."""
LAYERS: Final = ("base", "mismatch", "full", "clamped", "full-035", "clamped-035", "positions", "tuned", "both")
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


def layers_of(system: str) -> tuple[str, ...]:
    """Return the rows of a system but the combined one; without states there is no match by meaning."""
    return LAYERS[1:] if system == WORDS else LAYERS


SYSTEMS: Final = (WORDS, *(f"{kind}{white}" for kind in KINDS for white in ("", f"-{WHITE}")))
ROWS: Final[Mapping[str, Row]] = {
    **{name: Row(name, "search") for name in SEARCH},
    **{
        f"{system}-{layers}": Row(f"{system}-{layers}", system, is_drawn=system != WORDS)
        for system in SYSTEMS
        for layers in (*layers_of(system), COMBINED)
    },
}
"""Name → row as it stands in the tables, before dev has chosen its settings."""


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


SIMILARITIES: Final[tuple[Similarity, ...]] = ("dot", "cosine", "shifted-cosine")
REPEATS: Final[tuple[Repeats, ...]] = ("each", "once")
FLOORS: Final = (1e-3, 1e-2, 0.1)
READINGS: Final[Mapping[str, RankFactor]] = {"full": "signed", "clamped": "clamped"}
"""Row → what R is beyond the rank 1/α."""
MISMATCH_WEIGHTS: Final = tuple(round(0.1 * step, 1) for step in range(11))


@dataclass(frozen=True, slots=True)
class Choice:
    """What dev chose.

    Args:
        settings: layers that are on → settings.
        tried: every treatment with its best α, and its dev MAP, best first.
    """

    settings: Mapping[str, RamnSettings]
    tried: Sequence[Mapping[str, object]]


def choose_settings(matchers: Sequence[Matcher], dev: RerankTask) -> Choice:
    """Return the settings of each row for one kind of autoencoder.

    Args:
        matchers: one for each seed.
    """
    tried: list[tuple[float, RamnSettings]] = []
    for similarity, floor, repeats in product(SIMILARITIES, FLOORS, REPEATS):
        treated = RamnSettings(similarity=similarity, floor=floor, repeats=repeats)
        tried.append(_best(matchers, dev, (replace(treated, alpha=alpha) for alpha in ALPHAS)))
    full = max(tried, key=lambda one: one[0])[1]
    weighted = [
        replace(full, mismatch_weight=weight, alpha=alpha)
        for weight, alpha in product(MISMATCH_WEIGHTS, (0.0, *ALPHAS))
    ]
    per_word = [replace(one, is_per_word=True) for one in weighted]
    both = [replace(one, repeats="each", is_both_ways=True) for one in per_word]
    settings = {
        "base": replace(full, has_mismatch=False, alpha=0.0),
        "mismatch": replace(full, alpha=0.0),
        "positions": full,
        **_by_engine(matchers, dev, full),
        "tuned": _best(matchers, dev, weighted + per_word)[1],
        "both": _best(matchers, dev, both)[1],
    }
    ordered = sorted(tried, key=lambda one: -one[0])
    return Choice(settings, [{**asdict(one), "dev_map": value} for value, one in ordered])


def _by_engine(matchers: Sequence[Matcher], dev: RerankTask, full: RamnSettings) -> dict[str, RamnSettings]:
    """Return the settings of the rows with the search engine's own ranks."""
    found: dict[str, RamnSettings] = {}
    for name, factor in READINGS.items():
        own = replace(full, rank_factor=factor)
        found[name] = _best(matchers, dev, (replace(own, alpha=alpha) for alpha in ALPHAS))[1]
        found[f"{name}-035"] = replace(own, alpha=RamnSettings().alpha)
    return found


def _best(matchers: Sequence[Matcher], dev: RerankTask, settings: Iterable[RamnSettings]) -> tuple[float, RamnSettings]:
    found = [(fmean(judge(dev, one.run(dev, each)).means["map"] for one in matchers), each) for each in settings]
    return max(found, key=lambda one: one[0])


PARTS: Final = ("match", "back", "mismatch", "rank", "bm25")
PART_WEIGHTS: Final = (0.0, 0.5, 1.0)
"""Few, since dev has fifty queries."""

Floats = NDArray[np.float64]
Parts = Mapping[str, Floats]
"""Query → standardised parts of its candidates.  # (K, N)"""

_TINY = 1e-9


def standardised(values: Floats) -> Floats:
    """Return values less their mean, divided by their standard deviation; zeros where all are the same.

    Example:
        >>> standardised(np.array([1.0, 3.0])).tolist(), standardised(np.array([2.0, 2.0])).tolist()
        ([-1.0, 1.0], [0.0, 0.0])
    """
    spread = float(values.std())
    return np.asarray((values - values.mean()) / spread if spread > _TINY else np.zeros(len(values)))


def parts(matcher: Matcher, task: RerankTask, settings: RamnSettings) -> Parts:
    """Return the parts of each query's candidates.

    Args:
        settings: similarity and floor are taken from these.
    """
    compared = matcher.comparisons(task, settings.similarity)
    match = RamnSettings(has_mismatch=False, alpha=0.0, floor=settings.floor, is_per_word=True)
    found = {}
    for query, entries in task.given.items():
        one, ranks = compared[query], np.arange(1, len(entries) + 1)
        rows = (
            log_scores(one, ranks, match),
            backward_means(one, match),
            _mismatch(one),
            -ranks.astype(np.float64),
            np.array([score for _, score in task.lexical[query]]),
        )
        found[query] = np.stack([standardised(row) for row in rows])
    return found


def combined_run(task: RerankTask, found: Parts, weights: Mapping[str, float]) -> Run:
    """Return every query's candidates, in their given order, with the weighted sum of their parts."""
    vector = np.array([weights[name] for name in PARTS])
    run: Run = {}
    for query, entries in task.given.items():
        scores = (vector @ found[query]).tolist()
        run[query] = [(document, score) for (document, _), score in zip(entries, scores, strict=True)]
    return run


def choose_weights(by_seed: Sequence[Parts], dev: RerankTask) -> dict[str, float]:
    """Return the weights with the best mean of dev MAP over the seeds; of equals the first, which has the least."""
    best, chosen = -1.0, dict.fromkeys(PARTS, 0.0)
    for values in product(PART_WEIGHTS, repeat=len(PARTS)):
        weights = dict(zip(PARTS, values, strict=True))
        if max(values) != max(PART_WEIGHTS):
            continue  # the same order as twice these weights
        value = fmean(judge(dev, combined_run(dev, one, weights)).means["map"] for one in by_seed)
        if value > best:
            best, chosen = value, weights
    return chosen


def _mismatch(comparison: Comparison) -> Floats:
    """Return the mean of log d_i.  # (N,)"""
    factors = np.log(np.where(comparison.occurs, 1.0, comparison.importance[:, None]))
    return np.asarray(factors.mean(axis=0) if len(factors) else np.zeros(factors.shape[1]))
