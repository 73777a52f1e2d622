"""What the scorer learns from, and how its probabilities are judged."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.scorer import calibration_error
from recipes.scorer.fit import OF_COPIES, OF_ELSEWHERE, OF_OTHER_FORM, training_rows
from recipes.scorer.pairs import OTHER_FORM, Pairs

from askalike.search.features import FEATURES
from askalike.search.scorer import VERSIONS, WORDS


def pairs(kind: str, *grades: float, forum: str = "travel") -> Pairs:
    features, zeros = np.zeros((len(grades), len(FEATURES))), np.zeros(len(grades))
    ids = tuple(map(str, range(len(grades))))
    return Pairs(forum, kind, True, ids, np.array(grades), features, features, features, zeros, zeros, zeros)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_kind_of_pair_has_its_weight(version: str) -> None:
    kinds = ["pool", OTHER_FORM, "copy", "elsewhere", "nonsense"]
    rows = training_rows([pairs(kind, 0.0) for kind in kinds], version, [])
    far = OF_ELSEWHERE[version]
    assert rows.weights.tolist() == [1.0, OF_OTHER_FORM, OF_COPIES, far, far]


def test_nothing_is_learned_from_the_forum_that_is_left_out_nor_from_what_nobody_judged() -> None:
    judged = [pairs("pool", 2.0, np.nan), pairs("pool", 3.0, forum="devops")]
    assert training_rows(judged, WORDS, ["devops"]).grades.tolist() == [2.0]


def test_the_calibration_error_is_the_mean_distance_of_probability_and_share_over_ten_groups() -> None:
    likely, is_so = np.repeat([0.2, 0.8], 50), np.tile([True, False], 50)
    assert calibration_error(likely, is_so) == pytest.approx(30.0)  # half of each group is so
