"""Labelled pairs of texts, and how well scores tell the duplicates among them: average precision and ROC area.

Neither measure is a mean over queries, so an interval draws pairs, and the test swaps the two systems' ranks of a pair
(scores of different systems have different units, ranks have not).

Source: Boyd, Eng and Page, "Area under the Precision-Recall Curve: Point Estimates and Confidence Intervals", ECML
2013 (average precision, bootstrap); Hanley and McNeil, "The Meaning and Use of the Area under a Receiver Operating
Characteristic (ROC) Curve", Radiology 143(1), 1982; Wang et al. 2017, "Bilateral Multi-Perspective
Matching for Natural Language Sentences", for the split of the Quora pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.errors import EvaluationError
from askalike.evaluation.significance import Interval
from askalike.readers.files import read_lines
from askalike.readers.frame import ReadContext
from askalike.readers.values import Unreadable, identifier, one_line

_LABELS = ("0", "1")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions and whether they ask the same.

    Args:
        id: the pair's own identifier.
        first: one question's text.
        second: the other's.
        is_duplicate: what the annotators said.
    """

    id: str
    first: str
    second: str
    is_duplicate: bool


def read_labelled_pairs(path: Path, context: ReadContext | None = None) -> Iterator[Pair]:
    """Yield the pairs of a file of (label, question, question, id), in file order.

    A question in double quotes is unquoted, and two double quotes in it are one. The split that is passed around is
    UTF-8 of which some bytes were lost: what is left of such a character becomes U+FFFD, counted as a repair.
    Differs: elsewhere the file is read as Latin-1, which never fails and turns every curly quote into three letters.

    Raises:
        DamagedInputError: the file is empty or truncated.
    """
    context = context or ReadContext()
    for line, raw in read_lines(path, path.name, context):
        text = raw.removesuffix(b"\r").decode("utf-8", "replace")
        if not text:
            continue
        if "\ufffd" in text and "\ufffd".encode() not in raw:
            context.repair("lines with bytes that are not UTF-8, written as U+FFFD")
        fields = text.split("\t")
        try:
            if len(fields) != 4 or fields[0] not in _LABELS:
                raise Unreadable("expected label (0 or 1), question, question and id, split by tabs")
            first, second = (one_line(_unquoted(field), "question", context) for field in fields[1:3])
            pair = Pair(identifier(fields[3]), first, second, fields[0] == "1")
        except Unreadable as error:
            context.reject(path.name, line, fields[-1], str(error))
            continue
        context.records_in += 1
        yield pair


def _unquoted(field: str) -> str:
    is_quoted = len(field) >= 2 and field[0] == field[-1] == '"'
    return field[1:-1].replace('""', '"') if is_quoted else field


def pair_average_precision(scores: Sequence[float] | Floats, labels: Sequence[int] | NDArray[np.int64]) -> float:
    """Return ``Σ_t (recall_t - recall_{t-1}) · precision_t`` over the distinct scores t, highest first.

    Pairs of one score are taken together, so their order in the file does not matter.

    Args:
        scores: (N,), finite, higher is more alike.
        labels: (N,), duplicate when > 0; at least one of each kind.

    Raises:
        EvaluationError: lengths that differ, a score that is not finite, or labels of one kind only.

    Example:
        Duplicates come first and third, then with the third tied to the second: 1/1 · 1/2 + 2/3 · 1/2 in both cases.

        >>> round(pair_average_precision([0.9, 0.5, 0.4, 0.1], [1, 0, 1, 0]), 4)
        0.8333
        >>> round(pair_average_precision([0.9, 0.4, 0.4, 0.1], [1, 0, 1, 0]), 4)
        0.8333
    """
    return _average_precision(*_checked(scores, labels))


def roc_area(scores: Sequence[float] | Floats, labels: Sequence[int] | NDArray[np.int64]) -> float:
    """Return how often a duplicate has a higher score than another pair; equal scores count half.

    ``AUC = (|{(i, j) : s_i > s_j}| + |{(i, j) : s_i = s_j}| / 2) / (P · N)`` over P duplicates i and N others j.

    ``scores``, ``labels`` and what is raised are as in `pair_average_precision`.

    Example:
        Of four comparisons three are right:

        >>> roc_area([0.9, 0.5, 0.4, 0.1], [1, 0, 1, 0])
        0.75
    """
    return _roc_area(*_checked(scores, labels))


def _average_precision(scores: Floats, is_duplicate: NDArray[np.bool_]) -> float:
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    found = np.cumsum(is_duplicate[order])[ends]
    return float((np.diff(found, prepend=0) * (found / (ends + 1))).sum() / found[-1])


def _roc_area(scores: Floats, is_duplicate: NDArray[np.bool_]) -> float:
    positives = int(is_duplicate.sum())
    others = len(scores) - positives
    above = _ranks(scores)[is_duplicate].sum() - positives * (positives + 1) / 2
    return float(above / (positives * others))


PAIR_MEASURES: Final[Mapping[str, Callable[[Floats, NDArray[np.bool_]], float]]] = {
    "ap": _average_precision,
    "auc": _roc_area,
}
"""name → the measure of checked scores and labels."""


@dataclass(frozen=True, slots=True)
class PairComparison:
    """One system's scores of pairs against another's.

    Args:
        difference: first minus second, with its bootstrap interval over pairs.
        p_value: of the two-sided paired randomisation test, in (0, 1].
    """

    difference: Interval
    p_value: float


def pair_interval(
    scores: Sequence[float], labels: Sequence[int], measure: str = "ap", *, rounds: int = 1000, seed: int = 0
) -> Interval:
    """Return a measure with the 95 % interval that other samples of pairs would put it in.

    Raises:
        EvaluationError: as in `pair_average_precision`, or an unknown measure.
    """
    value = _measure(measure)
    given, is_duplicate = _checked(scores, labels)
    found = [value(given[drawn], is_duplicate[drawn]) for drawn in _draws(is_duplicate, rounds, seed)]
    return _interval(value(given, is_duplicate), found)


def compare_pairs(
    first: Sequence[float],
    second: Sequence[float],
    labels: Sequence[int],
    measure: str = "ap",
    *,
    rounds: int = 1000,
    seed: int = 0,
) -> PairComparison:
    """Compare two systems on the same pairs.

    ``p = (|{rounds in which |M(a') - M(b')| ≥ |M(a) - M(b)|}| + 1) / (rounds + 1)``, where a' and b' are the systems'
    ranks of all pairs, swapped for each pair with probability 1/2.

    Raises:
        EvaluationError: as in `pair_average_precision`, or an unknown measure.
    """
    value = _measure(measure)
    given, is_duplicate = _checked(first, labels)
    other, _ = _checked(second, labels)
    ranks, other_ranks = _ranks(given), _ranks(other)
    gap = value(given, is_duplicate) - value(other, is_duplicate)
    chance = np.random.default_rng(seed)
    extreme = 0
    for _ in range(rounds):
        is_swapped = chance.random(len(given)) < 0.5
        swapped = value(np.where(is_swapped, other_ranks, ranks), is_duplicate)
        swapped -= value(np.where(is_swapped, ranks, other_ranks), is_duplicate)
        extreme += abs(swapped) >= abs(gap) - 1e-12
    gaps = [
        value(given[drawn], is_duplicate[drawn]) - value(other[drawn], is_duplicate[drawn])
        for drawn in _draws(is_duplicate, rounds, seed)
    ]
    return PairComparison(_interval(gap, gaps), (extreme + 1) / (rounds + 1))


def _measure(name: str) -> Callable[[Floats, NDArray[np.bool_]], float]:
    if name not in PAIR_MEASURES:
        raise EvaluationError(f"there is no measure of pairs {name!r}", f"expected one of {', '.join(PAIR_MEASURES)}")
    return PAIR_MEASURES[name]


def _ranks(scores: Floats) -> Floats:
    """Return each score's place among all, 1 for the lowest; equal scores share the mean of their places.

    >>> _ranks(np.array([0.2, 0.7, 0.2])).tolist()
    [1.5, 3.0, 1.5]
    """
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], dtype=np.float64)


def _draws(is_duplicate: NDArray[np.bool_], rounds: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield indices drawn with replacement; a draw of one kind only has no value and is drawn again."""
    chance = np.random.default_rng(seed)
    for _ in range(rounds):
        drawn = chance.integers(0, len(is_duplicate), len(is_duplicate))
        while is_duplicate[drawn].all() or not is_duplicate[drawn].any():
            drawn = chance.integers(0, len(is_duplicate), len(is_duplicate))
        yield drawn


def _interval(value: float, found: Sequence[float]) -> Interval:
    low, high = np.quantile(found, [0.025, 0.975])
    return Interval(value, float(low), float(high), 0.95)


def _checked(
    scores: Sequence[float] | Floats, labels: Sequence[int] | NDArray[np.int64]
) -> tuple[Floats, NDArray[np.bool_]]:
    given = np.asarray(scores, dtype=np.float64)
    is_duplicate = np.asarray(labels) > 0
    if given.ndim != 1 or given.shape != is_duplicate.shape:
        raise EvaluationError(
            f"{given.size} scores but {is_duplicate.size} labels", "give one score and one label for each pair"
        )
    if not np.isfinite(given).all():
        raise EvaluationError("the score of a pair is not a finite number", "find out why the scorer gave it")
    if is_duplicate.all() or not is_duplicate.any():
        raise EvaluationError(
            f"all of the {len(given)} pairs have the same label", "give duplicates and pairs that are none"
        )
    return given, is_duplicate
