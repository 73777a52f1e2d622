"""Cases in which each two values of different axes meet at least once, in place of the whole product."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any


def pairwise(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return cases, one value of each axis, so that every two values of two axes are together in one of them.

    Greedy and without chance: each case begins with the first two values that have not met, and takes of every other
    axis the value that meets most new ones, of equals the one that was taken least.

    >>> len(pairwise("ab", "xy", "12")), len(list(product("ab", "xy", "12")))
    (4, 8)
    """
    if len(axes) < 2:
        return [(value,) for axis in axes for value in axis]
    waiting = dict.fromkeys(
        ((first, value), (second, other))
        for first, second in combinations(range(len(axes)), 2)
        for value, other in product(range(len(axes[first])), range(len(axes[second])))
    )
    taken = {(axis, place): 0 for axis, values in enumerate(axes) for place in range(len(values))}
    cases = []
    while waiting:
        case = dict(next(iter(waiting)))
        for axis in (number for number in range(len(axes)) if number not in case):
            case[axis] = max(
                range(len(axes[axis])),
                key=lambda place: (
                    sum(tuple(sorted(((axis, place), choice))) in waiting for choice in case.items()),
                    -taken[axis, place],
                ),
            )
        for pair in combinations(sorted(case.items()), 2):
            waiting.pop(pair, None)
        for taken_choice in case.items():
            taken[taken_choice] += 1
        cases.append(tuple(axes[axis][case[axis]] for axis in range(len(axes))))
    return cases
