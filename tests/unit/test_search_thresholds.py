"""Thresholds that keep a promise: formulas by hand, coverage by simulation, one parser."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askalike.errors import SettingError
from askalike.search.thresholds import (
    BETWEEN_FORUMS,
    Promise,
    Share,
    clopper_pearson,
    drawn_threshold,
    expected_threshold,
    needed,
    parse_minimum,
    weighted_share,
)

BORDERS = np.array([0.03, 0.1, 0.25, 0.5, 0.75, 0.9])


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("0.4", 0.4),
        (1, 1.0),
        (0.00001, 0.00001),
        ("precision:0.9", Promise("precision", 0.9)),
        ("recall:.95", Promise("recall", 0.95)),
        ("default", None),
    ],
)
def test_a_minimum_is_a_probability_or_a_promise(text: float | str, meant: float | Promise | None) -> None:
    assert parse_minimum(text) == meant


@pytest.mark.parametrize(
    "text",
    [
        "",
        -0.1,
        "nan",
        "precision",
        "precision:1",
        "1e-3",
        "٠.٥",
    ],
)
def test_what_is_no_minimum_is_refused_with_one_sentence(text: float | str) -> None:
    with pytest.raises(SettingError, match=r"^the minimum is .*") as refused:
        parse_minimum(text)
    assert "precision:P or recall:R" in str(refused.value.hint)


def test_limits_of_a_share_by_hand() -> None:
    low, high = clopper_pearson(0, 10)
    assert (low, round(high, 6)) == (0.0, round(1 - 0.05 ** (1 / 10), 6))  # (1 - p)^10 = .05
    low, _ = clopper_pearson(2, 2)
    assert low == pytest.approx(math.sqrt(0.05))  # p² = .05
    low, _ = clopper_pearson(1, 2)
    assert low == pytest.approx(1 - math.sqrt(0.95))  # 1 - (1 - p)² = .05
    assert clopper_pearson(0, 0) == (0.0, 1.0)


@given(st.integers(0, 40), st.integers(1, 40))
def test_limits_hold_the_share_and_answer_each_other(successes: int, trials: int) -> None:
    successes = min(successes, trials)
    low, high = clopper_pearson(successes, trials)
    assert low <= successes / trials <= high
    mirrored = clopper_pearson(trials - successes, trials)
    assert (low, high) == pytest.approx((1 - mirrored[1], 1 - mirrored[0]), abs=1e-9)


def test_unequal_weights_are_worth_fewer_judgements() -> None:
    share = weighted_share(np.array([1.0, 1.0, 0.0]), np.array([2.0, 1.0, 1.0]))
    assert (share.value, share.worth) == (0.75, pytest.approx(16 / 6))  # (2 + 1 + 1)² / (4 + 1 + 1)
    assert weighted_share(np.zeros(0), np.zeros(0)) == Share(0.0, 0.0, 1.0, 0.0)


def test_precision_by_hand() -> None:
    """Sixty sure pairs are the same, thirty unsure ones are not: two of these may be shown, 60 of 62 still prove .9."""
    likely = np.concatenate([np.linspace(0.99, 0.91, 60), np.linspace(0.6, 0.5, 30)])
    is_same = np.concatenate([np.ones(60), np.zeros(30)])
    strata = np.array([1] * 60 + [0] * 30)
    minimum, share = drawn_threshold(Promise("precision", 0.9), likely, is_same, strata, np.array([30.0, 60.0]))
    assert minimum == likely[61]
    assert (share.value, share.low) == (60 / 62, clopper_pearson(60, 62)[0])
    assert clopper_pearson(60, 63)[0] < 0.9 <= share.low
    few = drawn_threshold(Promise("precision", 0.9), likely[:20], is_same[:20], strata[:20], np.array([0.0, 60.0]))
    assert few[0] is None


def test_recall_by_hand() -> None:
    """Hundred duplicates at .8 of hundred pairs, none of a hundred at .2: the half at .2 costs a share of 1 in 201."""
    likely = np.array([0.8] * 100 + [0.2] * 100)
    is_same = np.array([1.0] * 100 + [0.0] * 100)
    strata = np.array([1] * 100 + [0] * 100)
    minimum, share = drawn_threshold(Promise("recall", 0.9), likely, is_same, strata, np.array([100.0, 100.0]))
    assert minimum == 0.8
    weight = 100 / 101
    assert share.value == pytest.approx((100.5 * weight) / (101 * weight))
    many = drawn_threshold(Promise("recall", 0.9), likely, is_same, strata, np.array([10_000.0, 100.0]))
    assert many[0] != 0.8, "of ten thousand, fifty may be duplicates"


@pytest.mark.parametrize(("share", "count"), [(0.9, 29), (0.95, 59), (0.5, 5)])
def test_the_least_number_that_proves_a_share(share: float, count: int) -> None:
    assert needed(share) == count
    assert clopper_pearson(count, count)[0] >= share > clopper_pearson(count - 1, count - 1)[0]


def test_a_precision_that_the_first_pairs_miss_is_proved_by_the_next_by_hand() -> None:
    """Of 58 pairs three differ, of the 58 after them none: three of 58 may be chance at .9, three of 116 are not.

    116 pairs hold two beginnings, so that each may err with probability .025.
    """
    likely = np.linspace(0.99, 0.5, 116)
    is_same = np.array([0.0] * 3 + [1.0] * 113)

    def chance(count: int) -> float:
        """Return how probable three or fewer of so many differ where one of ten does."""
        return sum(math.comb(count, wrong) * 0.1**wrong * 0.9 ** (count - wrong) for wrong in range(4))

    assert chance(58) > 0.05 > 0.025 > chance(116)
    strata, sizes = np.zeros(116, dtype=int), np.array([116.0])
    minimum, share = drawn_threshold(Promise("precision", 0.9), likely, is_same, strata, sizes)
    assert (minimum, share.value) == (0.5, 113 / 116)
    assert share.low == pytest.approx(clopper_pearson(113, 116)[0])
    assert drawn_threshold(Promise("precision", 0.9), likely[:115], is_same[:115], strata[:115], sizes)[0] is None


@pytest.mark.parametrize("share", [0.7, 0.9])
def test_precision_just_below_the_promise_is_proved_in_at_most_one_of_twenty_samples(share: float) -> None:
    """The worst case: at every threshold the precision is just below, so that any proof is an error."""
    chance, count, rounds = np.random.default_rng(5), 240, 300
    likely, strata, sizes = np.linspace(0.99, 0.1, count), np.zeros(count, dtype=int), np.array([float(count)])
    proved = 0
    for _ in range(rounds):
        is_same = (chance.random(count) < share - 0.001).astype(float)
        proved += drawn_threshold(Promise("precision", share), likely, is_same, strata, sizes)[0] is not None
    assert 0 < proved <= 0.05 * rounds + 2 * math.sqrt(0.05 * 0.95 * rounds)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "share"), [("precision", 0.6), ("recall", 0.7)])
@pytest.mark.parametrize("spread", [1.5, 2.5])
def test_a_promise_is_broken_in_at_most_one_of_twenty_samples(kind: str, share: float, spread: float) -> None:
    promise = Promise("precision" if kind == "precision" else "recall", share)
    chance, broken, kept, rounds = np.random.default_rng(7), 0, 0, 100
    for _ in range(rounds):
        logits = chance.normal(-2.5, spread, 5000)
        likely, off = 1 / (1 + np.exp(-logits)), chance.normal(0, BETWEEN_FORUMS)  # the scorer is wrong for this forum
        is_same = (chance.random(len(likely)) < 1 / (1 + np.exp(-logits - off))).astype(float)
        strata = np.searchsorted(BORDERS, likely, side="right")
        drawn = np.concatenate([np.flatnonzero(strata == stratum)[:30] for stratum in range(7)])
        sizes = np.bincount(strata, minlength=7).astype(float)
        minimum, _ = drawn_threshold(promise, likely[drawn], is_same[drawn], strata[drawn], sizes)
        if minimum is not None:
            at = likely >= minimum
            true = is_same[at].mean() if kind == "precision" else is_same[at].sum() / is_same.sum()
            kept += true >= share
            broken += true < share
    assert broken <= 0.05 * rounds + 2 * math.sqrt(0.05 * 0.95 * rounds)
    assert kept >= rounds / 2


def test_without_judgements_the_probabilities_themselves_are_taken_at_their_word() -> None:
    likely, weights = np.array([0.95, 0.85, 0.3]), np.array([1.0, 1.0, 2.0])
    minimum, share = expected_threshold(Promise("precision", 0.89), likely, weights)
    assert (minimum, share.value) == (0.85, pytest.approx(0.9))
    assert share.low < 0.9 < share.high
    minimum, share = expected_threshold(Promise("recall", 0.7), likely, weights)
    assert (minimum, share.value) == (0.85, pytest.approx(1.8 / 2.4))
    assert expected_threshold(Promise("precision", 0.99), likely, weights)[0] is None
    assert expected_threshold(Promise("recall", 0.9), np.zeros(0), np.zeros(0))[0] is None
