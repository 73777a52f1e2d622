"""Pairs that may ask the same: found bit by bit, kept in step with every change, paged without repeats."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import filelock
import pytest

from askalike import Forum, Link, Question
from askalike.errors import BusyForumError, DamagedForumError
from askalike.forum import pairs as pairs_module
from askalike.store import ForumLayout, sqlite_file
from askalike.store.pairs import Pair

pytestmark = pytest.mark.usefixtures("words_alone")

LONG = 60.0


@pytest.fixture
def forum(tmp_path: Path) -> Iterator[Forum]:
    with Forum.create(tmp_path / "f") as forum:
        forum.add(
            [
                Question("a", "wifi drops every evening"),
                Question("b", "wifi drops every evening"),
                Question("c", "wifi drops in the kitchen"),
                Question("d", "printer prints blank pages"),
                Question("e", "printer prints blank pages only"),
            ]
        )
        yield forum


def pairs(forum: Forum, minimum: float = 0.1) -> dict[str, float]:
    assert forum.pairs.advance(LONG) == 0
    page, place = forum.pairs.page(minimum, 100)
    assert place is None
    questions = forum.store.questions_by_num([num for pair in page for num in (pair.first, pair.second)])
    assert [pair.score for pair in page] == sorted((pair.score for pair in page), reverse=True)
    return {questions[pair.first].id + questions[pair.second].id: pair.score for pair in page}


def test_questions_that_say_the_same_are_pairs_and_a_copy_scores_1(forum: Forum) -> None:
    scores = pairs(forum)
    assert scores["ab"] == 1.0
    assert scores["ab"] > scores["de"] > scores["ac"]
    assert set(scores) == {"ab", "ac", "de"}  # a stands for b beside other texts


def test_nothing_is_listed_before_it_was_compared(forum: Forum) -> None:
    assert forum.pairs.waiting() == 5
    assert forum.pairs.page(0.0, 10) == ([], None)
    assert forum.pairs.advance(0.0) == 4  # one question at least, whatever the time
    assert forum.pairs.advance(LONG, lambda: True) == 3
    assert forum.pairs.advance(LONG) == forum.pairs.waiting() == 0


def test_marked_and_judged_pairs_are_not_listed(forum: Forum) -> None:
    assert set(pairs(forum)) == {"ab", "ac", "de"}
    forum.store.put_links([Link("c", "b")])
    forum.judge("e", "d", "different")
    assert set(pairs(forum)) == {"ab", "ac"}
    forum.store.put_links([Link("a", "b")])  # now a and c lead to the same original
    assert pairs(forum) == {}
    assert forum.pairs.store.count() == 0


def test_a_settled_pair_is_left_out_before_the_comparison_has_seen_it(forum: Forum) -> None:
    pairs(forum)
    forum.judge("a", "b", "duplicate")
    listed, _ = forum.pairs.page(0.99, 10)
    assert listed == []


def test_changes_are_followed(forum: Forum) -> None:
    pairs(forum)
    forum.edit(Question("b", "cat sleeps all day"))
    forum.delete("e")
    forum.add([Question("f", "printer prints blank pages"), Question("g", "cat sleeps all day long")])
    assert set(pairs(forum)) == {"ac", "df", "bg"}


def test_what_came_last_is_compared_first_while_others_still_wait(
    forum: Forum, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs_module, "AT_ONCE", 1)
    forum.pairs.advance(0.0)
    forum.add(Question("f", "printer prints blank pages again"))
    forum.pairs.advance(0.0)
    assert forum.pairs.waiting() > 0
    nums = forum.store.nums_by_id(["d", "f"])
    assert (nums["d"], nums["f"]) in [(pair.first, pair.second) for pair in forum.pairs.store.pairs_of([nums["f"]])]


def test_only_what_changed_is_compared_again(forum: Forum) -> None:
    pairs(forum)
    forum.add(Question("f", "a cat"))
    forum.pairs.advance(0.0)
    assert forum.pairs.waiting() == 0


def test_pages_neither_repeat_nor_pass_over_what_stays(forum: Forum) -> None:
    pairs(forum)
    whole, _ = forum.pairs.page(0.0, 100)
    shown: list[Pair] = []
    place = None
    while True:
        page, place = forum.pairs.page(0.0, 1, place)
        shown += page
        if len(shown) == 1:
            forum.add(Question("copy", "wifi drops every evening"))  # comes before what was shown already
            forum.pairs.advance(LONG)
        if place is None:
            break
    assert [pair for pair in shown if pair in whole] == whole
    assert len(set(shown)) == len(shown)


def copied(forum: Forum, count: int, text: str = "my phone does not charge", first: int = 0) -> set[str]:
    """Add so many questions of one text, each written another way, and return their ids."""
    ways = [
        (text, "It <b>is</b> warm", "html"),
        (text.upper(), "it  is\nwarm", "plain"),
        (text.title(), "*It* is warm", "markdown"),
    ]
    questions = [
        Question(f"copy{num}", ways[num % 3][0], ways[num % 3][1], markup=ways[num % 3][2])  # type: ignore[arg-type]
        for num in range(first, first + count)
    ]
    forum.add(questions)
    return {question.id for question in questions}


def groups(forum: Forum) -> list[set[str]]:
    """Return the questions that ask the same, by the likeliest pairs."""
    assert forum.pairs.advance(LONG) == 0
    return [set(group.members) for group in forum.groups.find(0.9)]


@pytest.mark.parametrize("count", [9, 500])
def test_all_questions_of_the_same_text_hang_together_however_many(forum: Forum, count: int) -> None:
    ids = copied(forum, count)
    assert groups(forum)[0] == ids
    assert forum.pairs.store.count() < 2 * count  # not each with each


def test_questions_of_the_same_text_are_found_before_any_are_compared(
    forum: Forum, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = copied(forum, 9)
    monkeypatch.setattr(pairs_module, "AT_ONCE", 1)
    forum.pairs.advance(0.0)
    assert forum.pairs.waiting() > 9
    page, _ = forum.pairs.page(1.0, 100)
    questions = forum.store.questions_by_num([num for pair in page for num in (pair.first, pair.second)])
    assert {question.id for question in questions.values()} == {*ids, "a", "b"}


@pytest.mark.parametrize("going", ["copy0", "copy4", "copy8"])
@pytest.mark.parametrize("is_deleted", [True, False])
def test_questions_of_the_same_text_still_hang_together_when_one_goes(
    forum: Forum, going: str, is_deleted: bool
) -> None:
    ids = copied(forum, 9)
    assert groups(forum)[0] == ids
    if is_deleted:
        forum.delete(going)
    else:
        forum.edit(Question(going, "now about the cat"))
    assert groups(forum)[0] == ids - {going}
    forum.edit(Question("a", "my phone does not charge", "it is warm"))  # before all of them
    assert groups(forum)[0] == (ids - {going}) | {"a"}


@pytest.mark.slow
def test_questions_of_the_same_text_still_hang_together_when_the_first_of_many_go_at_once(forum: Forum) -> None:
    ids = copied(forum, 300)
    assert groups(forum)[0] == ids
    gone = {f"copy{num}" for num in range(250)}
    for identifier in sorted(gone):
        forum.delete(identifier)
    assert groups(forum)[0] == ids - gone


def test_what_was_judged_different_from_the_first_of_its_text_is_the_pair_of_the_next(forum: Forum) -> None:
    ids = copied(forum, 9)
    forum.judge("copy1", "copy0", "different")
    forum.judge("copy3", "copy0", "different")
    forum.judge("copy2", "copy0", "duplicate")
    assert groups(forum)[0] == ids - {"copy1", "copy3"}
    assert pairs(forum)["copy1copy3"] == 1.0


def test_questions_without_words_are_not_of_the_same_text(forum: Forum) -> None:
    forum.store.add_questions([Question("x", "", "<img src='a.png'>", markup="html"), Question("y", " ", "")])
    forum.catch_up()
    assert groups(forum) == [{"a", "b"}]


def test_the_best_of_other_texts_is_found_past_many_copies(forum: Forum) -> None:
    copied(forum, 30)
    forum.add(Question("near", "my phone does not charge any more", "it is warm"))
    assert forum.pairs.advance(LONG) == 0
    near = forum.store.nums_by_id(["near", "copy0"])
    assert [(pair.first, pair.second) for pair in forum.pairs.store.pairs_of([near["near"]])] == [
        (near["copy0"], near["near"])
    ]


def test_a_question_is_compared_though_others_are_found_before_it(
    forum: Forum, monkeypatch: pytest.MonkeyPatch
) -> None:
    forum.add([Question(f"z{num}", "fan is loud", f"fan fan fan loud loud is {num}") for num in range(8)])
    forum.add(Question("last", "fan is loud", "the"))
    assert forum.pairs.advance(LONG) == 0
    assert forum.pairs.store.pairs_of(forum.store.nums_by_id(["last"]).values())


def test_nothing_is_compared_that_searches_do_not_see_yet(forum: Forum) -> None:
    pairs(forum)
    forum.put_unindexed([Question("f", "printer prints blank pages")])  # stored, not indexed
    forum.pairs.advance(LONG)
    assert forum.pairs.store.pairs_of(forum.store.nums_by_id(["f"]).values()) == []
    forum.catch_up()
    assert "df" in pairs(forum)


def test_of_several_changes_only_those_are_followed_that_searches_see(forum: Forum) -> None:
    pairs(forum)
    forum.put_unindexed([Question("f", "cat sleeps all day")])
    forum.catch_up()
    forum.put_unindexed([Question("g", "a parrot talks"), Question("h", "a parrot talks too much")])
    forum.pairs.advance(LONG)
    forum.catch_up()
    assert set(pairs(forum)) == {"ab", "ac", "de", "gh"}


def test_a_pair_comes_back_when_the_link_goes_by_which_it_was_settled(forum: Forum) -> None:
    forum.add([Question("m", "a parrot talks"), Question("x", "wifi drops every evening again")])
    forum.store.put_links([Link("x", "m"), Link("m", "a")])  # x leads to a
    assert "ax" not in pairs(forum)
    forum.store.delete_links([Link("m", "a")])
    assert "ax" in pairs(forum)


def test_a_pair_with_a_question_that_was_deleted_meanwhile_is_not_kept(forum: Forum) -> None:
    first, other = forum.store.nums_by_id(["a", "c"]).values()
    kept = forum.pairs._open_or_linked([Pair(first, other, 0.5), Pair(first, 999, 0.9)])  # the second was still found
    assert [(pair.first, pair.second) for pair in kept] == [(first, other)]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_TIMEOUT_S", 0.05)


@pytest.mark.usefixtures("impatient")
def test_a_file_that_another_process_has_locked_is_not_taken_for_damaged(forum: Forum) -> None:
    pairs(forum)
    path = ForumLayout(forum.path).pairs
    before = path.stat().st_ino
    connection = sqlite3.connect(path, isolation_level=None)
    with contextlib.closing(connection), Forum.open(forum.path) as other:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO state VALUES ('written', 'meanwhile')")
        assert set(other.pairs.page(0.3, 100)[0]) == set(forum.pairs.page(0.3, 100)[0])  # reading goes on
        forum.add(Question("f", "printer prints blank pages"))
        with pytest.raises(BusyForumError, match="locked"):
            other.pairs.advance(LONG)
        connection.execute("COMMIT")
        assert path.stat().st_ino == before
        assert other.pairs.store.state("written") == "meanwhile"
        assert set(pairs(other)) == {"ab", "ac", "de", "df"}


@pytest.mark.usefixtures("impatient")
def test_a_file_that_is_locked_whole_is_not_taken_for_damaged(forum: Forum) -> None:
    pairs(forum)
    forum.pairs.close()
    path = ForumLayout(forum.path).pairs
    connection = sqlite3.connect(path, isolation_level=None)
    with contextlib.closing(connection):
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("INSERT INTO state VALUES ('written', 'meanwhile')")
        with pytest.raises(BusyForumError):
            forum.pairs.page(0.3, 100)
        with pytest.raises(BusyForumError):
            forum.pairs.advance(LONG)
        connection.execute("COMMIT")
    assert forum.pairs.store.state("written") == "meanwhile"


def test_who_only_reads_never_replaces_a_damaged_file_and_who_compares_does(forum: Forum) -> None:
    pairs(forum)
    forum.pairs.close()
    path = ForumLayout(forum.path).pairs
    path.write_bytes(b"no database")
    with pytest.raises(DamagedForumError, match=r"pairs\.sqlite is damaged"):
        forum.pairs.page(0.3, 100)
    assert path.read_bytes() == b"no database"
    with filelock.FileLock(ForumLayout(forum.path).pairs_lock):  # another process compares
        assert forum.pairs.advance(LONG) == 0
    assert path.read_bytes() == b"no database"
    assert set(pairs(forum)) == {"ab", "ac", "de"}


def test_damage_that_only_a_reader_meets_is_mended_by_who_compares_next(forum: Forum) -> None:
    copied(forum, 500)
    groups(forum)
    forum.pairs.close()
    path = ForumLayout(forum.path).pairs
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'pairs_by_score'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    assert forum.pairs.advance(LONG) == 0  # has nothing to look up there
    with pytest.raises(DamagedForumError):
        forum.pairs.page(0.3, 100)
    assert {"a", "b"} in groups(forum)


def test_another_process_that_has_the_old_file_open_sees_the_new_one(forum: Forum) -> None:
    with Forum.open(forum.path) as other:
        assert set(pairs(other)) == {"ab", "ac", "de"}
        path = ForumLayout(forum.path).pairs
        for name in path.parent.glob("pairs.sqlite*"):
            name.unlink()
        assert set(pairs(forum)) == {"ab", "ac", "de"}
        forum.add(Question("f", "printer prints blank pages"))
        assert set(pairs(other)) == set(pairs(forum)) == {"ab", "ac", "de", "df"}
        assert forum.pairs.store.state("version") == other.pairs.store.state("version")


def test_a_failed_write_leaves_the_file_usable(forum: Forum) -> None:
    def clear_and_fail() -> None:
        with forum.pairs.store.writing() as store:
            store.clear()
            raise ZeroDivisionError

    pairs(forum)
    with pytest.raises(ZeroDivisionError):
        clear_and_fail()
    assert set(pairs(forum)) == {"ab", "ac", "de"}


def test_a_file_of_another_format_is_made_anew(forum: Forum) -> None:
    pairs(forum)
    forum.pairs.close()
    with sqlite3.connect(ForumLayout(forum.path).pairs) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert set(pairs(forum)) == {"ab", "ac", "de"}
