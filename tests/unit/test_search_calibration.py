"""What people judged moves the probability of pairs like those that were judged, and leaves the others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askalike.search.calibration import BETWEEN, KNOTS, SPREAD, UNMOVED, Update, hats, moved_probabilities, posterior

logits = st.floats(-12, 12)
judgements = st.lists(st.tuples(logits, st.booleans()), min_size=1, max_size=30)


def log_posterior(shifts: np.ndarray, judged: list[tuple[float, bool]]) -> float:
    """Return what is maximised, written down once more."""
    whole = np.append(shifts, 0.0)
    found = -(shifts @ shifts) / (2 * SPREAD**2) - (np.diff(whole) ** 2).sum() / (2 * BETWEEN**2)
    for logit, is_same in judged:
        moved = logit + float(hats(np.array([logit]))[0] @ whole)
        found -= np.logaddexp(0, -moved if is_same else moved)
    return float(found)


@given(judgements)
def test_no_shift_near_by_fits_the_judgements_better(judged: list[tuple[float, bool]]) -> None:
    found = np.array(posterior(*map(list, zip(*judged, strict=True))).shifts[:-1])
    best = log_posterior(found, judged)
    for knot in range(len(found)):
        for step in (-0.01, 0.01):
            assert log_posterior(found + step * np.eye(len(found))[knot], judged) <= best + 1e-6


@given(judgements, st.lists(logits, min_size=2, max_size=20))
def test_judgements_never_change_the_order_of_pairs(judged: list[tuple[float, bool]], asked: list[float]) -> None:
    update = posterior(*map(list, zip(*judged, strict=True)))
    ordered = np.sort(np.array(asked))
    assert (np.diff(update.moved(ordered)) >= 0).all()


@pytest.mark.parametrize("count", [1, 8, 100])
def test_a_perfect_hit_loses_nothing_by_what_was_said_of_other_pairs(count: int) -> None:
    update = posterior([2.0] * count, [False] * count)
    assert update.moved(np.array([KNOTS[-1], 6.0])).tolist() == [KNOTS[-1], 6.0]
    assert moved_probabilities(update, [1.0, 0.98])[0] == 1.0


def test_judgements_from_the_top_of_the_queue_leave_the_bottom() -> None:
    update = posterior([1.0] * 100, [False] * 100)
    assert update.moved(np.array([1.0]))[0] < 0.5
    assert update.moved(np.array([-5.0]))[0] == pytest.approx(-5.0, abs=0.1)


def test_one_judgement_is_little_and_many_outweigh_what_was_learned_elsewhere() -> None:
    def after(count: int) -> float:
        return float(posterior([0.0] * count, [True] * count).moved(np.array([0.0]))[0])

    assert 0 < after(1) < 0.1
    assert after(20) < after(500)
    assert after(500) > 1.0


def test_nothing_judged_changes_nothing() -> None:
    assert posterior([], []) == UNMOVED
    assert moved_probabilities(UNMOVED, [0.2, 1.0]) == [0.2, 1.0]
    assert Update().moved(np.array([1.5])).tolist() == [1.5]
