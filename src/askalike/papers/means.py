"""Measures over several seeds, and two rows tested against each other: each query's value is its mean over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from askalike.evaluation import Interval, bootstrap_difference, bootstrap_mean, randomisation_test

Values = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Task → measure → query → value in [0, 1]."""


@dataclass(frozen=True, slots=True)
class SeedMean:
    """One measure of a row on one task.

    Args:
        queries: how many count.
        over_queries: mean of the queries' values, with its interval over queries.
        spread: standard deviation of the seeds' means, None where there are fewer than two.
        p_value: of the paired randomisation test against a baseline on those values; None without one.
    """

    queries: int
    over_queries: Interval
    spread: float | None
    p_value: float | None


@dataclass(frozen=True, slots=True)
class Compared:
    """Two rows on one task by MAP.

    Args:
        better, worse: ids of rows; the first is said to be above the second.
        difference: of the first to the second, with its interval over queries.
        p_value: of the paired randomisation test, two-sided.
    """

    better: str
    worse: str
    task: str
    difference: Interval
    p_value: float


def over_seeds(by_seed: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return each query's mean over seeds.

    >>> over_seeds([{"q": 1.0, "r": 0.5}, {"q": 0.5, "r": 0.5}])
    {'q': 0.75, 'r': 0.5}
    """
    return {query: fmean(values[query] for values in by_seed) for query in by_seed[0]}


def seed_mean(
    by_seed: Sequence[Mapping[str, float]], baseline: Sequence[Mapping[str, float]] | None = None
) -> SeedMean:
    """Return the mean over seeds and queries.

    Args:
        by_seed: query → value, for each seed.
        baseline: the same of another row, whatever its seeds; None compares with nothing.

    Example:
        >>> found = seed_mean([{"q": 1.0, "r": 0.5}, {"q": 0.5, "r": 0.0}])
        >>> found.over_queries.mean, round(found.spread or 0.0, 4)
        (0.5, 0.3536)
    """
    found = over_seeds(by_seed)
    values, other = list(found.values()), over_seeds(baseline) if baseline else None
    return SeedMean(
        len(values),
        bootstrap_mean(values),
        stdev(fmean(one.values()) for one in by_seed) if len(by_seed) > 1 else None,
        None if other is None else randomisation_test(values, [other[query] for query in found]).p_value,
    )


def row_means(
    by_seed: Sequence[Values], baseline: Sequence[Values], measures: Iterable[str]
) -> dict[str, dict[str, SeedMean]]:
    """Return task → measure → mean over seeds; nothing where there is no seed.

    Args:
        baseline: another row's, or nothing to compare with none.
    """
    names = list(measures)
    return {
        task: {
            name: seed_mean([one[task][name] for one in by_seed], [one[task][name] for one in baseline])
            for name in names
        }
        for task in (by_seed[0] if by_seed else ())
    }


def compare_rows(
    values: Mapping[str, Mapping[str, Mapping[str, float]]], pairs: Iterable[tuple[str, str]], tasks: Sequence[str]
) -> list[Compared]:
    """Return every pair on every task, where both rows are there.

    Args:
        values: row → task → query → value.
        pairs: (better, worse).

    Example:
        >>> values = {"b": {"dev": {"q": 1.0, "r": 0.5}}, "a": {"dev": {"q": 0.5, "r": 0.5}}}
        >>> [(one.better, one.difference.mean) for one in compare_rows(values, [("b", "a"), ("c", "a")], ["dev"])]
        [('b', 0.25)]
    """
    made = []
    for better, worse in pairs:
        for task in tasks if better in values and worse in values else ():
            queries = list(values[better][task])
            first, second = ([values[name][task][query] for query in queries] for name in (better, worse))
            p_value = randomisation_test(first, second).p_value
            made.append(Compared(better, worse, task, bootstrap_difference(first, second), p_value))
    return made


def means_object(means: Mapping[str, Mapping[str, SeedMean]]) -> dict[str, Any]:
    """Return task → measure → mean as JSON has it; means lie in [0, 1]."""
    return {
        task: {
            measure: {
                "mean": mean.over_queries.mean,
                "interval95": [mean.over_queries.low, mean.over_queries.high],
                "spread": mean.spread,
                "p_value": mean.p_value,
            }
            for measure, mean in found.items()
        }
        for task, found in means.items()
    }


def comparison_objects(found: Iterable[Compared]) -> list[dict[str, Any]]:
    """Return each comparison as JSON has it; differences lie in [-1, 1]."""
    return [
        {
            "better": one.better,
            "worse": one.worse,
            "task": one.task,
            "difference": one.difference.mean,
            "interval95": [one.difference.low, one.difference.high],
            "p_value": one.p_value,
        }
        for one in found
    ]
