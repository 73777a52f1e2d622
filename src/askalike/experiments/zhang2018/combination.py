"""RAMN's own parts, the other direction and BM25, added up with weights that dev chooses.

::

    match      mean_i log b_i(Q), the query's words in the candidate           (11)
    back       mean_j log b_j(q), the candidate's words in the query
    mismatch   mean_i log d_i                                                   (16)
    rank       -rank(Q)                                                         (18)
    bm25       BM25 of query and candidate, title and body joined
    score      Σ_k w_k · (x_k - mean x_k) / std x_k                             over the query's candidates

Enters: matchers of several seeds, tasks. Leaves: runs, weights that dev chose. May import: rank, its own folder and its
neighbours in experiments. Source: our own; the paper multiplies its parts, which gives every word of a mismatch as much
weight as the whole order of the search engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.experiments.matcher import Matcher
from askalike.experiments.tasks import RerankTask, judge
from askalike.models.ramn.comparison import Comparison
from askalike.models.ramn.score import RamnSettings, backward_means, log_scores, reduced
from askalike.types import Run

__all__ = ["PARTS", "Parts", "choose_weights", "combined_run", "parts", "standardised"]

PARTS: Final = ("match", "back", "mismatch", "rank", "bm25")
WEIGHTS: Final = (0.0, 0.5, 1.0)
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
            backward_means(one.backwards, match) if one.backwards else np.zeros(len(entries)),
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
    for values in product(WEIGHTS, repeat=len(PARTS)):
        weights = dict(zip(PARTS, values, strict=True))
        if max(values) != max(WEIGHTS):
            continue  # the same order as twice these weights
        value = fmean(judge(dev, combined_run(dev, one, weights)).means["map"] for one in by_seed)
        if value > best:
            best, chosen = value, weights
    return chosen


def _mismatch(comparison: Comparison) -> Floats:
    """Return the mean of log d_i.  # (N,)"""
    factors = np.log(reduced(comparison.importance, comparison.occurs))
    return np.asarray(factors.mean(axis=0) if len(factors) else np.zeros(factors.shape[1]))
