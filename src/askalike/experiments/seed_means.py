"""A measure over several seeds: each query's value is the mean over seeds, the interval is over queries.

Enters: values of queries by seed, and a baseline's. Leaves: ``SeedMean``. May import: evaluate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from askalike.evaluate import Interval, bootstrap_mean, randomisation_test

__all__ = ["SeedMean", "seed_mean"]


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
    queries = list(by_seed[0])
    values = _over_seeds(by_seed, queries)
    return SeedMean(
        len(queries),
        bootstrap_mean(values),
        stdev(fmean(one.values()) for one in by_seed) if len(by_seed) > 1 else None,
        None if baseline is None else randomisation_test(values, _over_seeds(baseline, queries)).p_value,
    )


def _over_seeds(by_seed: Sequence[Mapping[str, float]], queries: Sequence[str]) -> list[float]:
    return [fmean(values[query] for values in by_seed) for query in queries]
