"""Labelled pairs of texts, and how well scores tell the duplicates among them: average precision and ROC area.

Neither measure is a mean over queries, so an interval draws pairs, and the test swaps the two systems' ranks of a pair
(scores of different systems have different units, ranks have not).

Source: Boyd, Eng and Page, "Area under the Precision-Recall Curve: Point Estimates and Confidence Intervals", ECML
2013 (average precision, bootstrap); Wang et al. 2017, "Bilateral Multi-Perspective
Matching for Natural Language Sentences", for the split of the Quora pairs.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score, roc_auc_score

from askalike.evaluation.significance import Interval

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions' texts, and whether annotators took them for the same."""

    first: str
    second: str
    is_duplicate: bool


def read_labelled_pairs(path: Path) -> Iterator[Pair]:
    """Yield the pairs of a file of (label, question, question, id), split by tabs, in file order.

    A question in double quotes is unquoted, and two double quotes in it are one. The split that is passed around is
    UTF-8 of which some bytes were lost: what is left of such a character becomes U+FFFD. Differs: elsewhere the file is
    read as Latin-1, which turns every curly quote into three letters.
    """
    with gzip.open(path, "rt", encoding="utf-8", errors="replace", newline="\n") as lines:
        for line in lines:
            label, first, second, _ = line.rstrip("\r\n").split("\t")
            yield Pair(_unquoted(first), _unquoted(second), label == "1")


def _unquoted(field: str) -> str:
    is_quoted = len(field) >= 2 and field[0] == field[-1] == '"'
    return " ".join((field[1:-1].replace('""', '"') if is_quoted else field).split())


PAIR_MEASURES: Final[Mapping[str, Callable[[Floats, NDArray[np.bool_]], float]]] = {
    "ap": lambda scores, labels: float(average_precision_score(labels, scores)),
    "auc": lambda scores, labels: float(roc_auc_score(labels, scores)),
}
"""Name → the measure. Pairs of one score count together, whatever their order."""


def pair_interval(
    scores: Sequence[float], labels: Sequence[int], measure: str = "ap", *, rounds: int = 1000, seed: int = 0
) -> Interval:
    """Return a measure with the 95 % interval that other samples of pairs would put it in."""
    value, of_pairs, is_duplicate = PAIR_MEASURES[measure], np.asarray(scores), np.asarray(labels) > 0
    samples = [value(of_pairs[drawn], is_duplicate[drawn]) for drawn in _draws(is_duplicate, rounds, seed)]
    return _interval(value(of_pairs, is_duplicate), samples)


def compare_pairs(
    first: Sequence[float],
    second: Sequence[float],
    labels: Sequence[int],
    measure: str = "ap",
    *,
    rounds: int = 1000,
    seed: int = 0,
) -> tuple[Interval, float]:
    """Return the first system's measure minus the second's, with its interval, and p of the paired test.

    ``p = (|{rounds in which |M(a') - M(b')| ≥ |M(a) - M(b)|}| + 1) / (rounds + 1)``, where a' and b' are the systems'
    ranks of all pairs, swapped for each pair with probability 1/2.
    """
    value, scores, others, is_duplicate = (
        PAIR_MEASURES[measure],
        np.asarray(first),
        np.asarray(second),
        np.asarray(labels) > 0,
    )
    ranks, other_ranks = rankdata(scores), rankdata(others)
    gap = value(scores, is_duplicate) - value(others, is_duplicate)
    chance = np.random.default_rng(seed)
    extreme = 0
    for _ in range(rounds):
        is_swapped = chance.random(len(scores)) < 0.5
        swapped = value(np.where(is_swapped, other_ranks, ranks), is_duplicate)
        swapped -= value(np.where(is_swapped, ranks, other_ranks), is_duplicate)
        extreme += abs(swapped) >= abs(gap) - 1e-12
    gaps = [
        value(scores[drawn], is_duplicate[drawn]) - value(others[drawn], is_duplicate[drawn])
        for drawn in _draws(is_duplicate, rounds, seed)
    ]
    return _interval(gap, gaps), (extreme + 1) / (rounds + 1)


def _draws(is_duplicate: NDArray[np.bool_], rounds: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield indices drawn with replacement; a draw of one kind only has no value and is drawn again."""
    chance = np.random.default_rng(seed)
    for _ in range(rounds):
        drawn = chance.integers(0, len(is_duplicate), len(is_duplicate))
        while is_duplicate[drawn].all() or not is_duplicate[drawn].any():
            drawn = chance.integers(0, len(is_duplicate), len(is_duplicate))
        yield drawn


def _interval(value: float, samples: Sequence[float]) -> Interval:
    low, high = np.quantile(samples, [0.025, 0.975])
    return Interval(value, float(low), float(high), 0.95)
