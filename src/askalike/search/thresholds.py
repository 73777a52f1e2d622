"""From a promise, such as a precision of .9, to the least probability that keeps it, with how sure that is.

A sample in which chance drew pairs with known shares says what the rest is like; pairs that were chosen do not::

    precision(t) = Σ w_i y_i [p_i ≥ t] / Σ w_i [p_i ≥ t]        w_i: pairs of its stratum by the judged ones of it
    recall(t)    = Σ w_i y_i [p_i ≥ t] / Σ w_i y_i

The share's interval is that of Clopper and Pearson with as many judgements as the weighted ones are worth. Thresholds
are tried one after the other from the safe end, as long as they keep the promise. For a precision, that walk begins
anew at 1, 2, 4, … times the least number of pairs: the risk of an error, 1 - ``SURE``, is divided among these
beginnings, and a walk that comes to the next one takes its risk with it. So the first pairs may fail and the rest still
prove, and with probability ``SURE`` the promise holds for pairs like those that were drawn.

Source: Clopper and Pearson, "The Use of Confidence or Fiducial Limits", Biometrika 26, 1934; Korn and Graubard,
"Confidence Intervals for Proportions with Small Expected Number of Positive Counts Estimated from Survey Data", Survey
Methodology 24, 1998, for n* = (Σ w)² / Σ w²; Angelopoulos, Bates, Candès, Jordan and Lei, "Learn then Test", 2021,
section 2.3, for the fixed sequence; Wiens and Dmitrienko, "The Fallback Procedure for Evaluating a Single Family of
Hypotheses", Journal of Biopharmaceutical Statistics 15, 2005, for its several beginnings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.search.engine import Floats
from askalike.types import ReliabilityBin

SURE: Final = 0.95
"""How sure a promise is: its lower limit is that of a one-sided interval, and of a two-sided one of 90 %."""

BETWEEN_FORUMS: Final = 0.6
"""By how much a forum's logits are off: a standard deviation over ten forums; .44 over eleven since the
scorer allows for their size."""

_FORM: Final = re.compile(r"(precision|recall):(0?\.[0-9]+|[01]|1\.0*|0)")
_NUMBER: Final = re.compile(r"[0-9]*\.[0-9]+|[0-9]+\.?", re.ASCII)
_EXPECTED: Final = "expected a probability such as 0.5, precision:P or recall:R such as precision:0.9, or default"

DEFAULT: Final = "default"
"""A least probability by which 19 of 20 titles of other subjects show nothing (``search.scorer.LEAST_SHOWN``)."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What a threshold is to keep: a share in (0, 1)."""

    kind: Literal["precision", "recall"]
    share: float


def parse_minimum(minimum: float | str) -> float | Promise | None:
    """Return the least score, by default a probability, or the promise that a setting holds; None is ``default``.

    >>> parse_minimum("0.4"), parse_minimum("precision:0.9")
    (0.4, Promise(kind='precision', share=0.9))

    Raises:
        SettingError: it holds neither.
    """
    value: Any = minimum
    text = f"{value:.9f}" if isinstance(value, Real) else str(value).strip()
    if text == DEFAULT:
        return None
    match = _FORM.fullmatch(text)
    if match and 0 < float(match[2]) < 1:
        return Promise("precision" if match[1] == "precision" else "recall", float(match[2]))
    if not match and _NUMBER.fullmatch(text):
        return float(text)
    raise SettingError(f"the minimum is {str(minimum)[:40]!r}", _EXPECTED)


def check_minimum(minimum: float, least: float = 0.0) -> float:
    """Return the least probability of a pair; raise SettingError where it is not from ``least`` to 1."""
    if not least <= minimum <= 1:
        raise SettingError(f"the minimum is {minimum:g}", f"expected a probability from {least:g} to 1")
    return minimum


def clopper_pearson(successes: float, trials: float, sure: float = SURE) -> tuple[float, float]:
    """Return the limits of a share: each is passed with probability 1 - ``sure`` at most; (0, 1) without trials.

    Example:
        Of 22 judgements all say the same: the share is at least .05^(1 / 22).

        >>> [round(limit, 4) for limit in clopper_pearson(22, 22)], round(0.05 ** (1 / 22), 4)
        ([0.8727, 1.0], 0.8727)
    """
    if trials <= 0:
        return 0.0, 1.0
    from scipy.special import betaincinv  # here: a search does not pay for loading it

    low = 0.0 if successes <= 0 else float(betaincinv(successes, trials - successes + 1, 1 - sure))
    high = 1.0 if successes >= trials else float(betaincinv(successes + 1, trials - successes, sure))
    return low, high


@dataclass(frozen=True, slots=True)
class Share:
    """A share of a weighted sample, with the limits of its interval, and how many judgements it is worth."""

    value: float
    low: float
    high: float
    worth: float


UNKNOWN: Final = Share(0.0, 0.0, 1.0, 0.0)


def weighted_share(is_so: Floats, weights: Floats, sure: float = SURE) -> Share:
    """Return Σ w y / Σ w with Korn's and Graubard's limits.

    Example:
        Ten of equal weight, eight of them so: the interval of 8 of 10.

        >>> share = weighted_share(np.array([1.0] * 8 + [0.0] * 2), np.full(10, 3.0))
        >>> round(share.value, 2), share.worth, (share.low, share.high) == clopper_pearson(8, 10)
        (0.8, 10.0, True)
    """
    total = float(weights.sum())
    if total <= 0:
        return UNKNOWN
    worth = min(total**2 / float(weights @ weights), float(len(weights)))
    return _share(float(weights @ is_so) / total, worth, sure)


def _share(value: float, worth: float, sure: float = SURE) -> Share:
    """Return a share with the limits of as many judgements as it is worth."""
    return Share(value, *clopper_pearson(round(value * worth, 9), round(worth, 9), sure), worth)


@dataclass(frozen=True, slots=True)
class Threshold:
    """The least probability that keeps a promise.

    Args:
        minimum: the least probability; None where there is none, or too little to tell.
        share: the precision or recall there, with its interval.
        judgements: how many drawn ones it rests on; 0 where it rests on other forums.
        about: on what it rests, or what is missing, in a sentence.
    """

    promise: Promise
    minimum: float | None
    share: Share
    judgements: int
    about: str


def needed(share: float, sure: float = SURE) -> int:
    """Return the least number of judgements, all as promised, that prove a share: n with share^n ≤ 1 - sure.

    >>> needed(0.9), needed(0.95)
    (29, 59)
    """
    return math.ceil(math.log(1 - sure) / math.log(share) - 1e-9)


def drawn_threshold(
    promise: Promise, likely: Floats, is_same: Floats, strata: NDArray[np.int64], sizes: Floats
) -> tuple[float | None, Share]:
    """Return the threshold that a drawn and judged sample proves, and the share there; None where it proves none.

    For a recall, each stratum counts one judgement more, half of a duplicate: where none of thirty is one among ten
    thousand, there may be a hundred. Source: Brown, Cai and DasGupta, "Interval Estimation for a Binomial Proportion",
    2001, section 4.3 (Jeffreys' prior).

    Args:
        likely: probabilities of the judged pairs.  # (N,)
        strata: the stratum of each.  # (N,)
        sizes: how many pairs each stratum has.  # (H,)
    """
    counts = np.bincount(strata, minlength=len(sizes))
    if promise.kind == "recall":
        weights = np.append((sizes / (counts + 1))[strata], (sizes / (counts + 1) / 2)[counts > 0])
        middles = [float(np.median(likely[strata == stratum])) for stratum in np.flatnonzero(counts)]
        likely, is_same = np.append(likely, middles), np.append(is_same, np.ones(len(middles)))
    else:
        weights = (sizes / np.maximum(counts, 1))[strata]
    are_same = is_same > 0

    def share_from(minimum: float, sure: float) -> Share:
        is_shown = likely >= minimum
        if promise.kind == "precision":
            return weighted_share(is_same[is_shown], weights[is_shown], sure)
        return weighted_share(is_shown[are_same].astype(float), weights[are_same], sure)

    return _last_that_keeps(promise, likely, share_from)


def _last_that_keeps(
    promise: Promise, likely: Floats, share_from: Callable[[float, float], Share]
) -> tuple[float | None, Share]:
    """Return the last threshold from the safe end that is proved, and the share there with its interval.

    The safe end of a precision is the greatest probability from which on there are enough pairs to prove it, that of a
    recall the least. Where none is proved, the share that came nearest is returned without a threshold.

    Args:
        share_from: returns the share from a probability on, with limits that are as sure as its second argument.
    """
    minima, counts = np.unique(likely, return_counts=True)
    starts = [0]
    if promise.kind == "precision":
        shown, least = np.cumsum(counts[::-1]), 2 * needed(promise.share)
        minima, shown = minima[::-1][shown >= least], shown[shown >= least]
        doublings = range(max(1, (len(likely) // least).bit_length()))
        starts = [int(np.searchsorted(shown, least * 2**times)) for times in doublings]
    if not len(minima):
        return None, UNKNOWN
    tried = {*np.linspace(0, len(minima) - 1, MOST_TRIED).astype(int).tolist(), *starts}
    proven: float | None = None
    nearest, risk = UNKNOWN, 0.0
    for place in sorted(tried):
        minimum = float(minima[place])
        risk += starts.count(place) * (1 - SURE) / len(starts)
        if risk and share_from(minimum, 1 - risk).low >= promise.share:
            proven = minimum
            continue
        risk = 0.0
        if proven is None:
            nearest = max(nearest, share_from(minimum, SURE), key=lambda share: share.low)
    return (None, nearest) if proven is None else (proven, share_from(proven, SURE))


def expected_threshold(promise: Promise, likely: Floats, weights: Floats) -> tuple[float | None, Share]:
    """Return the threshold by what the probabilities themselves say of a forum's pairs, if they are right.

    Limits are of forums whose logits are all too high or too low by as much as forums differ.

    Args:
        likely: probabilities of pairs that nobody needs to have judged.  # (N,)
        weights: of each, how many pairs it stands for.  # (N,)
    """
    at = np.argsort(-likely, kind="stable")
    likely, weights = likely[at], weights[at]
    if not len(likely):
        return None, UNKNOWN
    inside = np.clip(likely, 1e-9, 1 - 1e-9)
    logits = np.log(inside) - np.log1p(-inside)
    tail = 1.6449 * BETWEEN_FORUMS
    values = [_shares(promise, 1 / (1 + np.exp(-(logits + move))), weights) for move in (0.0, -tail, tail)]
    kept = np.flatnonzero(values[0] >= promise.share)
    if not len(kept):
        most, low, high = (float(shares.max()) for shares in values)
        return None, Share(most, low, high, 0.0)
    place = int(kept[-1] if promise.kind == "precision" else kept[0])
    shown = sorted(float(shares[place]) for shares in values)
    return float(likely[place]), Share(float(values[0][place]), shown[0], shown[2], 0.0)


def _shares(promise: Promise, likely: Floats, weights: Floats) -> Floats:
    """Return precision or recall with each pair as the last that is shown."""
    same = np.cumsum(likely * weights)
    return same / (np.cumsum(weights) if promise.kind == "precision" else same[-1])


def components(pairs: Sequence[tuple[Hashable, Hashable]]) -> NDArray[np.int64]:
    """Return the number of each pair's component: pairs that share a question, directly or by others, are in one.

    >>> components([("a", "b"), ("c", "d"), ("b", "e")]).tolist()
    [0, 1, 0]
    """
    parents: dict[Hashable, Hashable] = {}

    def root(end: Hashable) -> Hashable:
        while (parent := parents.setdefault(end, end)) != end:
            parents[end] = end = parents[parent]
        return end

    for first, second in pairs:
        parents[root(second)] = root(first)
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(root(first), len(numbers)) for first, _ in pairs], dtype=np.int64)


def clustered_share(is_so: NDArray[np.bool_], clusters: NDArray[np.int64], sure: float = SURE) -> Share:
    """Return the share of pairs that are so, with the limits of as many independent ones as they are worth. ::

        n* = (Σ n_c)² / Σ n_c²        n_c: pairs of component c, which may all be so for one reason

    Source: Kish, "Survey Sampling", 1965, section 8.2, with full correlation within a component; Clopper and Pearson,
    1934, for the limits.

    Example:
        Of two pairs that share a question and two others, three are so: worth 4² / (2² + 1 + 1) = 2.67.

        >>> share = clustered_share(np.array([True, True, True, False]), np.array([0, 0, 1, 2]))
        >>> share.value, round(share.worth, 2)
        (0.75, 2.67)
    """
    counts = np.unique(clusters, return_counts=True)[1].astype(np.float64)
    if not len(counts):
        return UNKNOWN
    return _share(float(is_so.mean()), float(counts.sum() ** 2 / (counts @ counts)), sure)


MOST_TRIED: Final = 300
"""So many thresholds are tried at most, one after the other from the safe end."""


def labelled_threshold(
    promise: Promise, likely: Floats, is_same: NDArray[np.bool_], clusters: NDArray[np.int64]
) -> Threshold:
    """Return the threshold that labelled pairs prove for pairs like them, or why they prove none.

    Labels of duplicates alone prove no precision: every threshold would do.

    Args:
        likely: probabilities of the pairs.  # (N,)
        clusters: of each pair, its component.  # (N,)
    """
    count = len(likely)

    def share_from(minimum: float, sure: float = SURE) -> Share:
        return share_at(promise.kind, likely, is_same, clusters, minimum, sure)

    if promise.kind == "precision" and count and is_same.all():
        about = (
            f"all {count:,} labelled pairs are duplicates, and a precision takes pairs that are none too: label pairs"
            " as they come, with 0 where they differ (an empty is_duplicate is left out)"
        )
        return Threshold(promise, None, UNKNOWN, 0, about)
    minimum, share = _last_that_keeps(promise, likely, share_from)
    if minimum is not None:
        about = f"rests on {count:,} labelled pairs, and holds for pairs that are drawn as they were"
        return Threshold(promise, minimum, share, count, about)
    about = f"no minimum is proved by {count:,} labelled pairs"
    if promise.kind == "recall":
        about += f": {int(is_same.sum()):,} of them are duplicates, and it takes at least {needed(promise.share):,}"
    elif count < (least := 2 * needed(promise.share)):
        about += f": it takes at least {least:,}"
    else:
        about += f": {_what_lacks(promise, likely, share_from)}"
    return Threshold(promise, None, share, 0, about)


def _what_lacks(promise: Promise, likely: Floats, share_from: Callable[[float], Share]) -> str:
    """Return which precision came nearest to a promise, and about how many labels would prove it."""
    ranked, least = np.sort(likely)[::-1], 2 * needed(promise.share)
    places = np.unique(np.linspace(least - 1, len(ranked) - 1, MOST_TRIED).astype(int))
    shares = [share_from(float(ranked[place])) for place in places]
    best, minimum = max(zip(shares, ranked[places], strict=True), key=lambda pair: pair[0].low)
    shown = int((likely >= minimum).sum())
    text = (
        f"nearest came {minimum:.2f}, from which on {100 * best.value:.1f} % of {shown:,} are the same (at least"
        f" {100 * best.low:.1f} % alone, less sure as one of several minima that were looked at)"
    )
    labels = [
        len(likely) * pairs / share.worth
        for share in shares
        if share.value > promise.share and (pairs := pairs_to_prove(share.value, promise.share))
    ]
    if not labels:
        return f"{text}; more labels like these would not prove it"
    more = math.ceil(max(min(labels), 1.1 * len(likely)) / 100) * 100
    return f"{text}; about {more:,} labels like these would prove one"


def pairs_to_prove(value: float, share: float, sure: float = 0.99) -> int | None:
    """Return about how many pairs of which a share ``value`` is the same prove ``share``; None where a million do not.

    >>> pairs_to_prove(1.0, 0.9), pairs_to_prove(0.9, 0.9)
    (58, None)
    """
    pairs = 2 * needed(share)
    while clopper_pearson(value * pairs, pairs, sure)[0] < share:
        pairs = math.ceil(pairs * 1.1)
        if pairs > 1_000_000:
            return None
    return pairs


def share_at(
    kind: str,
    likely: Floats,
    is_same: NDArray[np.bool_],
    clusters: NDArray[np.int64],
    minimum: float,
    sure: float = SURE,
) -> Share:
    """Return the precision or recall of the pairs from a probability on."""
    is_shown = likely >= minimum
    if kind == "precision":
        return clustered_share(is_same[is_shown], clusters[is_shown], sure)
    return clustered_share(is_shown[is_same], clusters[is_same], sure)


EDGES: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Between the groups of probability that judged pairs are shown by."""
Z: Final = 1.96


def wilson(same: int, judged: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, judged > 0.

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", 1927.

    >>> [round(end, 3) for end in wilson(8, 10)]
    [0.49, 0.943]
    """
    share, spread = same / judged, Z * Z / judged
    middle = share + spread / 2
    wide = Z * math.sqrt(share * (1 - share) / judged + spread / judged / 4)
    return max(0.0, (middle - wide) / (1 + spread)), min(1.0, (middle + wide) / (1 + spread))


def bins(judged: Sequence[tuple[float, bool]]) -> tuple[ReliabilityBin, ...]:
    """Return the groups of probability that hold a judged pair, ascending.

    >>> groups = bins([(0.7, True), (0.6, False), (1.0, True)])
    >>> [(group.least, group.judged, group.same, round(group.mean, 2)) for group in groups]
    [(0.6, 2, 1, 0.65), (0.8, 1, 1, 1.0)]
    """
    groups = []
    for place, least in enumerate(EDGES[:-1]):
        is_last = place == len(EDGES) - 2
        within = [(p, same) for p, same in judged if least <= p and (is_last or p < EDGES[place + 1])]
        if within:
            same = sum(is_same for _, is_same in within)
            mean = sum(p for p, _ in within) / len(within)
            groups.append(ReliabilityBin(least, EDGES[place + 1], len(within), same, mean, *wilson(same, len(within))))
    return tuple(groups)


def calibration_error(groups: Sequence[ReliabilityBin]) -> float:
    """Return by how much probabilities are off on average: Σ n |mean - same / n| / Σ n over groups of n judged pairs.

    Source: Naeini, Cooper and Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian Binning", 2015.

    >>> calibration_error(bins([(0.5, True), (0.5, False), (0.9, True), (0.9, False)]))
    0.2
    """
    judged = sum(group.judged for group in groups)
    off = sum(abs(group.mean * group.judged - group.same) for group in groups)
    return round(off / judged, 9) if judged else 0.0
