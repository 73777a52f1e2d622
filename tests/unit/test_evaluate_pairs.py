"""Measures of pairs: by hand, against scikit-learn, and their tests of chance."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.labelled_pairs import compare_pairs, pair_average_precision, pair_interval, roc_area

from askalike.errors import EvaluationError

SCORES = [0.9, 0.8, 0.7, 0.6, 0.5]
LABELS = [1, 0, 1, 1, 0]


def test_average_precision_of_pairs_worked_by_hand() -> None:
    assert pair_average_precision(SCORES, LABELS) == pytest.approx((1 / 1 + 2 / 3 + 3 / 4) / 3)


def test_pairs_of_one_score_count_together_whatever_their_order() -> None:
    for labels in ([1, 1, 0, 0], [0, 1, 0, 1]):
        assert pair_average_precision([0.5] * 4, labels) == roc_area([0.5] * 4, labels) == 0.5


def test_the_area_is_the_share_of_comparisons_that_are_right() -> None:
    # duplicates .9 .7 .6 against .8 .5: .9 wins both, .7 and .6 win one each
    assert roc_area(SCORES, LABELS) == pytest.approx(4 / 6)
    assert roc_area([0.7, 0.7, 0.1], [1, 0, 0]) == pytest.approx((0.5 + 1) / 2)


def test_measures_of_pairs_are_those_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    chance = np.random.default_rng(1)
    scores = chance.integers(0, 20, 500).astype(float)
    labels = (chance.random(500) < 0.3).astype(int)
    assert pair_average_precision(scores, labels) == pytest.approx(metrics.average_precision_score(labels, scores))
    assert roc_area(scores, labels) == pytest.approx(metrics.roc_auc_score(labels, scores))


def test_the_interval_holds_the_value_and_is_the_same_for_the_same_seed() -> None:
    chance = np.random.default_rng(2)
    labels = (chance.random(300) < 0.5).astype(int).tolist()
    scores = (chance.random(300) + 0.5 * np.array(labels)).tolist()
    found = pair_interval(scores, labels, rounds=200)
    assert found.low < found.mean < found.high
    assert found.mean == pair_average_precision(scores, labels)
    assert found == pair_interval(scores, labels, rounds=200)


def test_a_better_system_differs_by_more_than_chance_and_a_rescaled_one_does_not_differ() -> None:
    chance = np.random.default_rng(3)
    labels = (chance.random(400) < 0.5).astype(int).tolist()
    noise = chance.random(400)
    good, poor = (noise + np.array(labels)).tolist(), chance.random(400).tolist()
    better = compare_pairs(good, poor, labels, rounds=200)
    assert better.difference.low > 0
    assert better.p_value == pytest.approx(1 / 201)
    same = compare_pairs([100 * score for score in good], good, labels, "auc", rounds=200)
    assert (same.difference.mean, same.p_value) == (0, 1)


def test_pairs_that_cannot_be_measured_are_refused() -> None:
    with pytest.raises(EvaluationError, match="2 scores but 1 labels"):
        pair_average_precision([0.1, 0.2], [1])
    with pytest.raises(EvaluationError, match="the same label"):
        roc_area([0.1, 0.2], [1, 1])
    with pytest.raises(EvaluationError, match="not a finite number"):
        roc_area([0.1, float("nan")], [1, 0])
    with pytest.raises(EvaluationError, match="expected one of ap, auc"):
        pair_interval([0.1, 0.2], [1, 0], "f1")
