"""What the scorer learns from: how much each kind of pair counts, and how well weights explain grades."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.scorer import OF_COPIES, OF_ELSEWHERE, OF_OTHER_FORM, calibration_error, training_rows
from benchmarks.scorer_sets import OTHER_FORM, Pairs

from askalike.search.features import FEATURES
from askalike.search.scorer import VERSIONS, WORDS

TEXTS = FEATURES.index("texts")


def pairs(kind: str, *grades: float, forum: str = "travel") -> Pairs:
    features = np.zeros((len(grades), len(FEATURES)))
    features[:, TEXTS] = np.nan_to_num(np.array(grades)) / 3
    none = np.zeros(len(grades))
    ids = tuple(map(str, range(len(grades))))
    return Pairs(forum, kind, True, ids, np.array(grades), features, features, features, none, none, none, none)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_kind_of_pair_counts_as_it_is_said(version: str) -> None:
    kinds = ["pool", OTHER_FORM, "copy", "elsewhere", "nonsense"]
    found = training_rows([pairs(kind, 0.0) for kind in kinds], version, "")
    far = OF_ELSEWHERE[version]
    assert found.weights.tolist() == [1.0, OF_OTHER_FORM, OF_COPIES, far, far]
    assert training_rows([pairs("elsewhere", 0.0)], version, "", 0.5).weights.tolist() == [0.5]


def test_nothing_is_learned_from_the_forum_that_is_left_out_nor_from_what_nobody_judged() -> None:
    given = [pairs("pool", 2.0, np.nan), pairs("pool", 3.0, forum="devops")]
    assert training_rows(given, WORDS, "devops").grades.tolist() == [2.0]


def test_ten_equal_groups_are_off_by_the_mean_distance_of_what_is_said_and_what_is() -> None:
    likely, is_so = np.repeat([0.2, 0.8], 50), np.tile([True, False], 50)
    assert calibration_error(likely, is_so) == pytest.approx(30.0)  # each group is so in half
