"""The cases that stand for a product: every two values meet, and there are few of them."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from tests.pairwise import pairwise


@pytest.mark.parametrize("sizes", [(1,), (2, 3), (2, 2, 2), (9, 3, 5, 4), (5, 1, 4, 4, 2)])
def test_every_two_values_of_two_axes_meet(sizes: tuple[int, ...]) -> None:
    axes = [range(size) for size in sizes]
    cases = pairwise(*axes)
    for first, second in combinations(range(len(axes)), 2):
        assert {(case[first], case[second]) for case in cases} == set(product(axes[first], axes[second]))
    largest = sorted(sizes)[-2:]
    assert len(cases) <= 1.5 * largest[0] * largest[-1]
    assert cases == pairwise(*axes)
