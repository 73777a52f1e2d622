"""What people judged beside what was said of it; and how often a question answered somebody's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from askalike import Forum, Question
from askalike.errors import UnknownIdError
from askalike.search.thresholds import bins, wilson


def test_an_interval_holds_its_share_and_grows_narrower_with_more_judgements() -> None:
    few, many = wilson(3, 4), wilson(300, 400)
    assert few[0] < many[0] < 0.75 < many[1] < few[1]
    assert (wilson(0, 5)[0], wilson(5, 5)[1]) == (0.0, pytest.approx(1.0))


def test_every_judged_pair_is_in_one_group() -> None:
    judged = [(p / 20, p % 3 == 0) for p in range(21)]
    groups = bins(judged)
    assert sum(group.judged for group in groups) == 21
    assert sum(group.same for group in groups) == sum(same for _, same in judged)
    assert all(group.least <= group.mean <= group.below for group in groups)


def test_judgements_do_not_change_the_probability_that_they_are_compared_with(
    tmp_path: Path, words_alone: None
) -> None:
    with Forum.create(tmp_path / "f") as forum:
        forum.add([Question("a", "wifi drops every evening"), Question("b", "wifi drops in the evening")])
        forum.add([Question(f"q{num}", f"printer {num} prints blank pages") for num in range(8)])
        assert forum.thresholds.reliability() == ()
        forum.judge("a", "b", "duplicate")
        (first,) = forum.thresholds.reliability()
        assert (first.judged, first.same) == (1, 1)
        for num in range(1, 8):
            forum.judge("q0", f"q{num}", "different")
        assert sum(group.judged for group in forum.thresholds.reliability()) == 8
        forum.judge("a", "b", "withdrawn")
        assert sum(group.same for group in forum.thresholds.reliability()) == 0


def test_each_asker_who_was_helped_is_counted_whoever_counts_beside(tmp_path: Path, words_alone: None) -> None:
    with Forum.create(tmp_path / "f") as forum:
        forum.add([Question("a", "wifi drops"), Question("b", "printer prints")])
        assert forum.store.helped() == (0, 0)
        with ThreadPoolExecutor(4) as others:
            assert max(others.map(lambda _: forum.store.add_helped("a"), range(8))) == 8
        assert forum.store.add_helped("b") == 1
        with pytest.raises(UnknownIdError):
            forum.store.add_helped("nowhere")
    with Forum.open(tmp_path / "f") as forum:
        assert forum.store.helped() == (9, 2)
    assert Forum.check(tmp_path / "f").is_sound
