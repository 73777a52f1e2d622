"""What a paper says of two of its rows, tested on ours.

Enters: queries' values by row and task. Leaves: ``Compared``. May import: evaluate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from askalike.evaluation import Interval, bootstrap_difference, randomisation_test

__all__ = ["Compared", "compare_rows"]


@dataclass(frozen=True, slots=True)
class Compared:
    """Two rows on one task by MAP, each query's value the mean over seeds.

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
