"""The parts of exact search, on numbers that can be checked by hand."""

from __future__ import annotations

import numpy as np

from askalike.index.vectors.codes import decode, encode
from askalike.index.vectors.nearest import shortlist


def test_codes_keep_the_direction_to_a_part_in_ten_thousand_and_better() -> None:
    vectors = np.random.default_rng(0).standard_normal((200, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.abs(decode(encode(vectors)) - vectors).max() < 4e-6


def test_codes_of_codes_are_the_same_codes() -> None:
    codes = encode(np.random.default_rng(1).standard_normal((50, 7)))
    np.testing.assert_array_equal(encode(decode(codes)), codes)


def test_a_shortlist_holds_the_best_and_all_that_come_close() -> None:
    scores = np.array([0.1, 0.5, 0.4999, 0.3, 0.9], np.float32)
    assert shortlist(scores, 2, 0.0).tolist() == [1, 4]
    assert shortlist(scores, 2, 0.001).tolist() == [1, 2, 4]
    assert shortlist(scores, 9, 0.0).tolist() == [0, 1, 2, 3, 4]


def test_a_shortlist_over_groups_misses_nothing() -> None:
    scores = np.random.default_rng(2).standard_normal(10_007).astype(np.float32)
    scores[5_000:] = -np.inf
    for limit in (1, 10, 39, 200):
        chosen = shortlist(scores, limit, 0.0)
        assert set(np.argsort(-scores)[:limit]) <= set(chosen)
        assert len(chosen) <= 4 * limit
    assert len(shortlist(scores, 9_000, 0.0)) == 5_000
