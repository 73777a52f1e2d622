"""A measure over several seeds: each query's value is the mean over seeds, the interval is over queries.

Enters: values of queries by seed, and a baseline's. Leaves: ``SeedMean``. May import: evaluate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from askalike.evaluation import Interval, bootstrap_mean, randomisation_test

__all__ = ["SeedMean", "over_seeds", "seed_mean"]


@dataclass(frozen=True, slots=True)
class SeedMean:
    """One measure of a system on one task.

    Args:
        queries: how many count.
        over_queries: mean of the queries' values, each the mean over seeds, with its interval over queries.
        spread: standard deviation of the seeds' means, None where there are fewer than two.
        p_value: of the paired randomisation test against a baseline on those values; None without one.
    """

    queries: int
    over_queries: Interval
    spread: float | None
    p_value: float | None


def seed_mean(
    by_seed: Sequence[Mapping[str, float]], baseline: Sequence[Mapping[str, float]] | None = None
) -> SeedMean:
    """Return the mean over seeds and queries.

    Args:
        by_seed: query → value, for each seed.
        baseline: the same of another system, whatever its seeds; None compares with nothing.

    Example:
        >>> found = seed_mean([{"q": 1.0, "r": 0.5}, {"q": 0.5, "r": 0.0}])
        >>> found.over_queries.mean, round(found.spread or 0.0, 4)
        (0.5, 0.3536)
    """
    found = over_seeds(by_seed)
    values = list(found.values())
    return SeedMean(
        len(values),
        bootstrap_mean(values),
        stdev(fmean(one.values()) for one in by_seed) if len(by_seed) > 1 else None,
        None if baseline is None else randomisation_test(values, _in_order(baseline, found)).p_value,
    )


def over_seeds(by_seed: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return each query's mean over seeds.

    >>> over_seeds([{"q": 1.0, "r": 0.5}, {"q": 0.5, "r": 0.5}])
    {'q': 0.75, 'r': 0.5}
    """
    return {query: fmean(values[query] for values in by_seed) for query in by_seed[0]}


def _in_order(by_seed: Sequence[Mapping[str, float]], queries: Iterable[str]) -> list[float]:
    found = over_seeds(by_seed)
    return [found[query] for query in queries]
