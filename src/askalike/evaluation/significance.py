"""How much of a figure is chance: the paired randomisation test and bootstrap intervals.

Source: Smucker, Allan and Carterette, "A Comparison of Statistical Significance Tests for Information Retrieval
Evaluation", CIKM 2007, section 3.1 (randomisation test); Efron and Tibshirani, "An Introduction to the Bootstrap",
1993, chapter 13 (percentile interval); Phipson and Smyth, "Permutation P-values Should Never Be Zero", Statistical
Applications in Genetics and Molecular Biology 9(1), 2010 (the +1 of the drawn test).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.errors import EvaluationError, SettingError

Values = NDArray[np.float64]

_CELLS = 1 << 20
"""Signs or indices held at once: bounds the memory to some 8 MB. Part of what a seed means; do not change."""

_ROUNDING = 1e-12
"""Two sums that differ by less than this share of Σ|d| are equal: they differ by rounding only."""


@dataclass(frozen=True, slots=True)
class RandomisationTest:
    """The outcome of a paired randomisation test.

    Args:
        difference: mean of first minus second.
        p_value: two-sided, in (0, 1].
        rounds: sign patterns looked at.
        is_exact: all patterns were looked at, none drawn.
    """

    difference: float
    p_value: float
    rounds: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its bootstrap percentile interval.

    Args:
        level: share of the resampled means between the ends, for example 0.95.
    """

    mean: float
    low: float
    high: float
    level: float


def randomisation_test(
    first: Sequence[float], second: Sequence[float], *, rounds: int = 10_000, seed: int = 0
) -> RandomisationTest:
    """Test whether two systems differ by more than the chance of which value came from which.

    Were both systems alike, each difference ``d_i = first_i - second_i`` could as well have the other sign. With
    ``T(s) = |Σ s_i d_i|`` over sign patterns ``s ∈ {-1, 1}ⁿ`` and n the number of differences that are not 0:

    ``p = |{s : T(s) ≥ T(1)}| / 2ⁿ`` when ``2ⁿ ≤ rounds`` (exact), else, over ``rounds`` patterns drawn at random,
    ``p = (|{s : T(s) ≥ T(1)}| + 1) / (rounds + 1)``.

    Differences of 0 change neither T nor p, so they are left out before n is counted.

    Args:
        first, second: values of the same queries in the same order, length ≥ 1.
        rounds: most patterns to look at, ≥ 1.
        seed: of the drawn patterns, ≥ 0.

    Raises:
        EvaluationError: lengths that differ or are 0, or a value that is not finite.
        SettingError: rounds or seed out of range.

    Example:
        Three queries, all better by the same: only +++ and --- are as extreme, 2 of 8 patterns.

        >>> randomisation_test([0.5, 0.6, 0.7], [0.4, 0.5, 0.6]).p_value
        0.25
    """
    _check_draws(rounds, seed)
    differences = _differences(first, second)
    moving = differences[differences != 0.0]
    count = len(moving)
    least = abs(float(moving.sum())) - _ROUNDING * float(np.abs(moving).sum())
    mean = float(differences.mean())
    if count < 63 and 2**count <= rounds:
        extreme = sum(int((np.abs(signs @ moving) >= least).sum()) for signs in _all_signs(count))
        return RandomisationTest(mean, extreme / 2**count, 2**count, is_exact=True)
    extreme = sum(int((np.abs(signs @ moving) >= least).sum()) for signs in _drawn_signs(count, rounds, seed))
    return RandomisationTest(mean, (extreme + 1) / (rounds + 1), rounds, is_exact=False)


def bootstrap_mean(values: Sequence[float], *, level: float = 0.95, rounds: int = 10_000, seed: int = 0) -> Interval:
    """Return the mean over queries with the interval that other samples of such queries would put it in.

    n values are drawn with replacement, ``rounds`` times; the interval is from the (1 - level) / 2 quantile of their
    means to the (1 + level) / 2 quantile, interpolated linearly.

    Args:
        values: one per query, length ≥ 2.
        level: in (0, 1).
        rounds: resamples, ≥ 1.
        seed: ≥ 0.

    Raises:
        EvaluationError: fewer than 2 values, or one that is not finite.
        SettingError: level, rounds or seed out of range.

    Example:
        >>> bootstrap_mean([0.25, 0.25, 0.25])
        Interval(mean=0.25, low=0.25, high=0.25, level=0.95)
    """
    _check_draws(rounds, seed)
    if not 0 < level < 1:
        raise SettingError(f"the level is {level}; expected a number between 0 and 1", "0.95 is usual")
    finite = _finite(values)
    if len(finite) < 2:
        raise EvaluationError(f"an interval from {len(finite)} queries; expected at least 2", "score more queries")
    generator = np.random.default_rng(seed)
    count = len(finite)
    drawn = (generator.integers(0, count, (size, count)) for size in _sizes(count, rounds))
    means = np.concatenate([finite[indices].mean(axis=1) for indices in drawn])  # (rounds,) float64
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(finite.mean()), float(low), float(high), level)


def bootstrap_over_seeds(
    values: Sequence[Sequence[float]], *, level: float = 0.95, rounds: int = 10_000, seed: int = 0
) -> Interval:
    """Return the mean over seeds and queries with the interval for other seeds and other such queries.

    Both are drawn with replacement, independently of each other; of one seed it is the interval of `bootstrap_mean`.

    Args:
        values: for each seed of a training, one value per query, in the same order.  # (S, Q)
        level, rounds, seed: as in `bootstrap_mean`.

    Raises:
        EvaluationError: seeds with other numbers of queries, fewer than 2 queries, or a value that is not finite.
        SettingError: level, rounds or seed out of range.

    Example:
        Queries that are all alike leave the chance of the seeds, which were drawn both, or one of them twice:

        >>> bootstrap_over_seeds([[0.5, 0.5], [0.25, 0.25]])
        Interval(mean=0.375, low=0.25, high=0.5, level=0.95)
    """
    if len({len(of_seed) for of_seed in values}) != 1:
        raise EvaluationError("seeds with other numbers of queries", "score each seed on the same queries")
    if len(values) == 1:
        return bootstrap_mean(values[0], level=level, rounds=rounds, seed=seed)
    means = [bootstrap_mean(of_seed, level=level, rounds=1, seed=seed).mean for of_seed in values]  # checks them
    matrix = np.asarray(values, dtype=np.float64)  # (S, Q)
    seeds, queries = matrix.shape
    generator = np.random.default_rng(seed)
    drawn: list[Values] = []
    for size in _sizes(queries, rounds):
        chosen = generator.integers(0, seeds, (size, seeds))
        shares = (chosen[:, :, None] == np.arange(seeds)).mean(axis=1)  # (size, S)
        places = generator.integers(0, queries, (size, queries))
        drawn.append(np.take_along_axis(shares @ matrix, places, axis=1).mean(axis=1))
    low, high = np.quantile(np.concatenate(drawn), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(np.mean(means)), float(low), float(high), level)


def bootstrap_difference(
    first: Sequence[float], second: Sequence[float], *, level: float = 0.95, rounds: int = 10_000, seed: int = 0
) -> Interval:
    """Return the mean of first minus second with its interval, drawing queries, not values: the pairs stay together.

    Args:
        first, second: values of the same queries in the same order.
        level, rounds, seed: as in `bootstrap_mean`.

    Raises:
        EvaluationError: lengths that differ, fewer than 2 queries, or a value that is not finite.
        SettingError: level, rounds or seed out of range.

    Example:
        The systems vary a lot from query to query, but the first is always better by 0.25:

        >>> bootstrap_difference([0.25, 0.5, 1.0], [0.0, 0.25, 0.75])
        Interval(mean=0.25, low=0.25, high=0.25, level=0.95)
    """
    return bootstrap_mean(_differences(first, second).tolist(), level=level, rounds=rounds, seed=seed)


def _check_draws(rounds: int, seed: int) -> None:
    if rounds < 1:
        raise SettingError(f"{rounds} rounds; expected at least 1", "10000 is usual")
    if seed < 0:
        raise SettingError(f"the seed is {seed}; expected 0 or more")


def _finite(values: Sequence[float]) -> Values:
    try:
        array = np.asarray(values, dtype=np.float64)  # (Q,)
    except (TypeError, ValueError) as error:
        raise EvaluationError(f"the values are {values!r:.80}", "expected a number for each query") from error
    if array.ndim != 1:
        raise EvaluationError(f"the values have the shape {array.shape}", "expected a number for each query")
    if not np.isfinite(array).all():
        raise EvaluationError("a query's value is not a finite number", "find out which measure gave it")
    return array


def _differences(first: Sequence[float], second: Sequence[float]) -> Values:
    if len(first) != len(second):
        raise EvaluationError(
            f"{len(first)} values of the first system but {len(second)} of the second",
            "a paired test needs both on the same queries",
        )
    if len(first) == 0:
        raise EvaluationError("there is no query to compare on", "score at least one query")
    return _finite(first) - _finite(second)


def _sizes(width: int, rounds: int) -> Iterator[int]:
    step = max(1, _CELLS // max(1, width))
    for start in range(0, rounds, step):
        yield min(step, rounds - start)


def _all_signs(count: int) -> Iterator[Values]:
    start = 0
    for size in _sizes(count, 2**count):
        patterns = np.arange(start, start + size, dtype=np.int64)[:, None]
        start += size
        yield np.where(patterns >> np.arange(count) & 1, -1.0, 1.0)  # (size, count)


def _drawn_signs(count: int, rounds: int, seed: int) -> Iterator[Values]:
    generator = np.random.default_rng(seed)
    for size in _sizes(count, rounds):
        yield np.where(generator.integers(0, 2, (size, count)) == 1, 1.0, -1.0)  # (size, count)
