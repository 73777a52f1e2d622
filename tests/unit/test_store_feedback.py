"""Verdicts on pairs: stored for good, the newest counts, kept from being proposed again, learned from."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from askalike import Forum, Link, Query, Question
from askalike.errors import InputError, UnknownIdError
from askalike.evaluation.forum.links import read_duplicate_links
from askalike.store import ForumLayout
from askalike.store.sqlite.schema import FORMAT
from askalike.store.sqlite.soundness import stored_faults
from askalike.store.sqlite.store import SqliteStore
from askalike.types import Draw

pytestmark = pytest.mark.usefixtures("words_alone")


@pytest.fixture
def forum(tmp_path: Path) -> Iterator[Forum]:
    with Forum.create(tmp_path / "f") as made:
        made.add([Question(one, f"wifi {one}") for one in "abcd"])
        yield made


def test_a_verdict_is_there_after_opening_again(forum: Forum) -> None:
    given = forum.judge("a", "b", "duplicate", by="Käthe")
    assert given.at is not None
    with Forum.open(forum.path) as again:
        assert list(again.feedback()) == [given]


def test_the_newest_verdict_on_a_pair_counts_whichever_way_round(forum: Forum) -> None:
    first = forum.judge("a", "b", "duplicate")
    other = forum.judge("c", "d", "different")
    last = forum.judge("b", "a", "different")
    assert list(forum.feedback()) == [first, other, last]
    assert forum.verdicts() == [other, last]


def test_a_pair_that_differs_is_not_suggested_again(forum: Forum) -> None:
    def suggested(own: str) -> set[str]:
        return {one.question.id for one in forum.search(Query("wifi", own=own, is_canonical=True)).hits}

    forum.judge("a", "b", "different")
    assert suggested("a") == {"c", "d"}
    assert suggested("b") == {"c", "d"}
    assert suggested("c") == {"a", "b", "d"}
    forum.judge("a", "b", "duplicate")
    assert suggested("a") == {"b", "c", "d"}


def test_a_verdict_that_was_withdrawn_is_as_if_never_given(forum: Forum) -> None:
    forum.judge("a", "b", "different")
    kept = forum.judge("a", "c", "different")
    forum.judge("b", "a", "withdrawn")
    assert forum.verdicts() == [kept]
    assert len(list(forum.feedback())) == 3
    assert {one.question.id for one in forum.search(Query("wifi", own="a", is_canonical=True)).hits} == {"b", "d"}
    assert read_duplicate_links(forum).pairs == []


def test_verdicts_go_with_their_questions(forum: Forum) -> None:
    forum.judge("a", "b", "different")
    forum.judge("c", "a", "different")
    kept = forum.judge("c", "d", "different")
    forum.delete("a")
    assert list(forum.feedback()) == [kept]


@pytest.mark.parametrize(
    ("pair", "error"),
    [(("a", "a"), InputError), (("a", "zz"), UnknownIdError), (("\ud800", "a"), UnknownIdError)],
)
def test_a_verdict_on_what_is_no_pair_is_refused(forum: Forum, pair: tuple[str, str], error: type[Exception]) -> None:
    with pytest.raises(error):
        forum.judge(*pair, "different")
    with pytest.raises(InputError, match="verdict"):
        forum.judge("a", "b", "perhaps")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="surrogate"):
        forum.judge("a", "b", "different", by="\ud800")
    assert list(forum.feedback()) == []


def test_verdicts_are_learned_from_as_marks_are(forum: Forum) -> None:
    forum.add_links([Link("a", "b"), Link("c", "b")])
    forum.judge("b", "a", "duplicate")  # marked already, the other way round
    forum.judge("d", "a", "duplicate")
    forum.judge("b", "c", "different")
    assert read_duplicate_links(forum).pairs == [("a", "b"), ("d", "a")]


def test_how_a_pair_was_drawn_is_there_after_opening_again(forum: Forum) -> None:
    draw = Draw("sample", 0.25, 0.5)
    assert forum.judge("a", "b", "different", draw=draw).draw == draw
    forum.judge("a", "c", "different")
    with Forum.open(forum.path) as again:
        assert [one.draw for one in again.feedback()] == [draw, Draw("queue")]
    for odd in (Draw("guess"), Draw("sample", 1.5), Draw("sample", 0.5, float("nan"))):  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"drawn by|probability|propensity"):
            forum.judge("a", "d", "different", draw=odd)


def test_judgements_of_format_2_came_from_the_queue_with_unknown_propensity(forum: Forum) -> None:
    given = forum.judge("a", "b", "different", "Ada")
    forum.close()
    path = ForumLayout(forum.path).archive
    connection = sqlite3.connect(path)
    for column in ("draw", "probability", "propensity"):
        connection.execute(f"ALTER TABLE feedback DROP COLUMN {column}")
    for table in ("outcomes", "moderation", "assignments", "outbox"):
        connection.execute(f"DROP TABLE {table}")
    _drop_languages(connection)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    assert list(stored_faults(ForumLayout(forum.path), *[lambda _: None] * 3)) == []
    with Forum.open(forum.path) as opened:
        assert list(opened.feedback()) == [given]
        assert given.draw == Draw("queue", None, None)


def _drop_languages(connection: sqlite3.Connection) -> None:
    connection.execute("DROP INDEX questions_by_language")
    for column in ("language", "is_language_detected"):
        connection.execute(f"ALTER TABLE questions DROP COLUMN {column}")


def test_an_archive_of_format_1_is_brought_to_the_newest_with_all_that_it_holds(forum: Forum) -> None:
    forum.add_links([Link("a", "b")])
    forum.close()
    path = ForumLayout(forum.path).archive
    connection = sqlite3.connect(path)
    for table in ("outcomes", "feedback", "moderation", "assignments", "outbox"):
        connection.execute(f"DROP TABLE {table}")
    _drop_languages(connection)
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    assert list(stored_faults(ForumLayout(forum.path), *[lambda _: None] * 3)) == []
    with Forum.open(forum.path) as opened:
        assert [one.id for one in opened.questions()] == ["a", "b", "c", "d"]
        assert opened.links() == [Link("a", "b")]
        opened.judge("a", "c", "different")
        assert [one.verdict for one in opened.feedback()] == ["different"]
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == FORMAT
    connection.close()
    SqliteStore(path).close()


def test_an_upgrade_that_fails_leaves_the_archive_as_it_was(forum: Forum) -> None:
    forum.close()
    path = ForumLayout(forum.path).archive
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 1")  # the table is there already: making it fails
    connection.close()
    with pytest.raises(Exception, match="feedback"):
        SqliteStore(path)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == 1
    connection.close()
