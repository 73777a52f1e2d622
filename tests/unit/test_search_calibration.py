"""What people judged moves the probability of pairs like those that were judged, and leaves the others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from askalike.search.calibration import (
    BETWEEN,
    KNOTS,
    LEAST_RISE,
    SPREAD,
    UNMOVED,
    WEIGHTS,
    Update,
    hats,
    most_probable,
    moved_probabilities,
    posterior,
    unmoved_probabilities,
)
from askalike.search.thresholds import BETWEEN_FORUMS

logits = st.floats(-12, 12)
judgements = st.lists(st.tuples(logits, st.booleans()), min_size=1, max_size=30)


def log_posterior(shifts: np.ndarray, judged: list[tuple[float, bool]]) -> float:
    """Return what is maximised, written down once more, with the forum's offset that fits these shifts best."""
    whole = np.append(shifts, 0.0)
    pulled = shifts.sum() / SPREAD**2 + shifts[-1] / BETWEEN**2
    common = pulled / (1 / BETWEEN_FORUMS**2 + len(shifts) / SPREAD**2 + 1 / BETWEEN**2)
    own = np.append(shifts - common, 0.0)
    value = -(common**2) / (2 * BETWEEN_FORUMS**2) - (own @ own) / (2 * SPREAD**2)
    value -= (np.diff(own) ** 2).sum() / (2 * BETWEEN**2)
    for logit, is_same in judged:
        moved = logit + float(hats(np.array([logit]))[0] @ whole)
        value -= np.logaddexp(0, -moved if is_same else moved)
    return float(value)


@given(judgements)
def test_no_shift_near_by_fits_the_judgements_better(judged: list[tuple[float, bool]]) -> None:
    shifts = np.array(most_probable(*map(list, zip(*judged, strict=True))))
    assume((np.diff(KNOTS + shifts) > LEAST_RISE * np.diff(KNOTS) + 1e-9).all())  # else they were held back, to rise
    mode = shifts[:-1]
    best = log_posterior(mode, judged)
    for knot in range(len(mode)):
        for step in (-0.01, 0.01):
            assert log_posterior(mode + step * np.eye(len(mode))[knot], judged) <= best + 1e-6


@given(judgements, st.lists(logits, min_size=2, max_size=20))
def test_judgements_never_change_the_order_of_pairs(judged: list[tuple[float, bool]], logits: list[float]) -> None:
    update = posterior(*map(list, zip(*judged, strict=True)))
    ordered = np.sort(np.array(logits))
    assert (np.diff(update.moved(ordered)) >= -1e-12).all()


@pytest.mark.parametrize("count", [1, 8, 100])
def test_a_perfect_hit_loses_nothing_by_what_was_said_of_other_pairs(count: int) -> None:
    update = posterior([2.0] * count, [False] * count)
    assert update.moved(np.array([KNOTS[-1], 6.0])).tolist() == [KNOTS[-1], 6.0]
    assert moved_probabilities(update, [1.0, 0.98])[0] == 1.0


def test_judgements_move_knots_near_them_and_all_by_what_the_forum_has_in_common() -> None:
    judged = [1.0] * 100, [False] * 100
    near = posterior(*judged, between_forums=0.0)
    assert near.moved(np.array([1.0]))[0] < 0.5
    assert near.moved(np.array([-5.0]))[0] == pytest.approx(-5.0, abs=0.1)
    assert posterior(*judged).moved(np.array([-5.0]))[0] < -6


def test_a_forums_offset_by_hand() -> None:
    """Five of forty at the second knot are the same. Where the sum is greatest, what the labels pull there,
    g = Σ (y - P), is held by the priors: r = ρ² g, and ε is as far as g moves knots that have nothing in common.
    """
    mode = np.array(most_probable([KNOTS[1]] * 40, [True] * 5 + [False] * 35, between_forums=0.6))
    pull = 5 - 40 / (1 + np.exp(-KNOTS[1] - mode[1]))
    steps = np.diff(np.eye(len(KNOTS)), axis=0)[:, :-1]
    own = np.linalg.inv(np.eye(len(KNOTS) - 1) / SPREAD**2 + steps.T @ steps / BETWEEN**2)[:, 1] * pull
    assert mode[:-1] == pytest.approx(0.6**2 * pull + own, abs=1e-6)
    assert mode[-1] == 0


def test_one_judgement_is_little_and_many_outweigh_what_was_learned_elsewhere() -> None:
    def after(count: int) -> float:
        return float(posterior([0.0] * count, [True] * count).moved(np.array([0.0]))[0])

    assert after(1) == after(3) == 0, "chance says so of one pair in two, and of three in eight"
    assert 0 < after(20) < after(500)
    assert after(500) > 1.0


@pytest.mark.parametrize("count", [1, 5, 20, 100, 500])
def test_judgements_as_the_probabilities_say_move_little_or_nothing(count: int) -> None:
    chance, moved = np.random.default_rng(0), []
    for _ in range(50):
        judged = np.sort(chance.normal(-2, 2, 3 * count))[-count:]  # the top of a queue
        is_same = chance.random(count) < 1 / (1 + np.exp(-judged))
        moved.append(max(map(abs, posterior(judged.tolist(), is_same.tolist()).shifts)))
    assert np.mean(np.array(moved) == 0) > 0.6
    assert np.mean(moved) < 0.06


def test_nothing_judged_changes_nothing() -> None:
    assert posterior([], []) == UNMOVED
    assert moved_probabilities(UNMOVED, [0.2, 1.0]) == [0.2, 1.0]
    assert Update().moved(np.array([1.5])).tolist() == [1.5]


@given(judgements, st.lists(logits, min_size=1, max_size=10))
def test_what_was_moved_can_be_moved_back(judged: list[tuple[float, bool]], logits: list[float]) -> None:
    update = posterior(*map(list, zip(*judged, strict=True)))
    assert update.before(update.moved(np.array(logits))) == pytest.approx(np.array(logits), abs=1e-6)
    assert unmoved_probabilities(update, moved_probabilities(update, [0.3])) == pytest.approx([0.3])


def test_duplicates_that_somebody_brought_in_say_nothing_of_others() -> None:
    brought = posterior([0.0] * 50, [True] * 50, [WEIGHTS["import"]] * 50)
    assert brought.moved(np.array([0.0, 1.0])).tolist() == [0.0, 1.0]
    assert brought.judgements == 0
