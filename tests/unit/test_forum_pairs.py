"""Pairs that may ask the same: found bit by bit, kept in step with every change, paged without repeats."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from askalike import Forum, Link, Question
from askalike.archive import Layout
from askalike.forum.pair_store import Pair

pytestmark = pytest.mark.usefixtures("words_alone")

LONG = 60.0


@pytest.fixture
def forum(tmp_path: Path) -> Iterator[Forum]:
    with Forum.create(tmp_path / "f") as made:
        made.add(
            [
                Question("a", "wifi drops every evening"),
                Question("b", "wifi drops every evening"),
                Question("c", "wifi drops in the kitchen"),
                Question("d", "printer prints blank pages"),
                Question("e", "printer prints blank pages only"),
            ]
        )
        yield made


def pairs(forum: Forum, minimum: float = 0.3) -> dict[str, float]:
    assert forum.pairs.advance(LONG) == 0
    found, place = forum.pairs.page(minimum, 100)
    assert place is None
    held = forum.questions_by_number([num for pair in found for num in (pair.first, pair.second)])
    assert [pair.score for pair in found] == sorted((pair.score for pair in found), reverse=True)
    return {held[pair.first].id + held[pair.second].id: pair.score for pair in found}


def test_questions_that_say_the_same_are_pairs_and_a_copy_scores_1(forum: Forum) -> None:
    found = pairs(forum)
    assert found["ab"] == 1.0
    assert found["ab"] > found["de"] > found["ac"]
    assert set(found) == {"ab", "ac", "bc", "de"}


def test_nothing_is_listed_before_it_was_compared(forum: Forum) -> None:
    assert forum.pairs.waiting() == 5
    assert forum.pairs.page(0.0, 10) == ([], None)
    assert forum.pairs.advance(0.0) == 4  # one question at least, whatever the time
    assert forum.pairs.advance(LONG, lambda: True) == 3
    assert forum.pairs.advance(LONG) == forum.pairs.waiting() == 0


def test_marked_and_judged_pairs_are_not_listed(forum: Forum) -> None:
    assert set(pairs(forum)) == {"ab", "ac", "bc", "de"}
    forum.add_links([Link("c", "b")])
    forum.judge("e", "d", "different")
    assert set(pairs(forum)) == {"ab", "ac"}
    forum.add_links([Link("a", "b")])  # now a and c lead to the same original
    assert pairs(forum) == {}
    assert forum.pairs.store.count() == 0


def test_a_settled_pair_is_left_out_before_the_comparison_has_seen_it(forum: Forum) -> None:
    pairs(forum)
    forum.judge("a", "b", "duplicate")
    listed, _ = forum.pairs.page(0.99, 10)
    assert listed == []


def test_a_pair_whose_verdict_was_withdrawn_comes_back(forum: Forum) -> None:
    forum.judge("a", "b", "different")
    assert "ab" not in pairs(forum)
    forum.judge("a", "b", "withdrawn")
    assert "ab" in pairs(forum)


def test_changes_are_followed(forum: Forum) -> None:
    pairs(forum)
    forum.edit(Question("b", "cat sleeps all day"))
    forum.delete("e")
    forum.add([Question("f", "printer prints blank pages"), Question("g", "cat sleeps all day long")])
    assert set(pairs(forum)) == {"ac", "df", "bg"}


def test_only_what_changed_is_compared_again(forum: Forum) -> None:
    pairs(forum)
    forum.add(Question("f", "a cat"))
    forum.pairs.advance(0.0)
    assert forum.pairs.waiting() == 0


def test_pages_neither_repeat_nor_pass_over_what_stays(forum: Forum) -> None:
    pairs(forum)
    whole, _ = forum.pairs.page(0.0, 100)
    found: list[Pair] = []
    place = None
    while True:
        page, place = forum.pairs.page(0.0, 1, place)
        found += page
        if len(found) == 1:
            forum.add(Question("copy", "wifi drops every evening"))  # comes before what was shown already
            forum.pairs.advance(LONG)
        if place is None:
            break
    assert [one for one in found if one in whole] == whole
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("content", [b"no database", b""])
def test_a_damaged_file_is_made_anew(forum: Forum, content: bytes) -> None:
    pairs(forum)
    forum.pairs.close()
    path = Layout(forum.path).pairs
    for name in path.parent.glob("pairs.sqlite-*"):
        name.unlink()
    path.write_bytes(content)
    assert set(pairs(forum)) == {"ab", "ac", "bc", "de"}


def test_a_file_of_another_format_is_made_anew(forum: Forum) -> None:
    pairs(forum)
    forum.pairs.close()
    with sqlite3.connect(Layout(forum.path).pairs) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert set(pairs(forum)) == {"ab", "ac", "bc", "de"}


def test_two_forums_over_one_folder_share_the_work(forum: Forum) -> None:
    with Forum.open(forum.path) as other:
        forum.pairs.advance(0.0)
        assert other.pairs.advance(LONG) == 0
        assert forum.pairs.waiting() == 0
        assert set(pairs(other)) == {"ab", "ac", "bc", "de"}
