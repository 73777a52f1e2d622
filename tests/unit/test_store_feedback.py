"""Verdicts on pairs: stored for good, the newest counts, kept from being proposed again, learned from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from askalike import Forum, Link, Query, Question
from askalike.errors import InputError, UnknownIdError
from askalike.evaluation.forum.links import read_duplicate_links
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
        assert list(again.store.all_feedback()) == [given]


def test_the_newest_verdict_on_a_pair_counts_whichever_way_round(forum: Forum) -> None:
    first = forum.judge("a", "b", "duplicate")
    other = forum.judge("c", "d", "different")
    last = forum.judge("b", "a", "different")
    assert list(forum.store.all_feedback()) == [first, other, last]
    assert forum.store.judgements() == [other, last]


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
    assert forum.store.judgements() == [kept]
    assert len(list(forum.store.all_feedback())) == 3
    assert {one.question.id for one in forum.search(Query("wifi", own="a", is_canonical=True)).hits} == {"b", "d"}
    assert read_duplicate_links(forum).pairs == []


def test_verdicts_go_with_their_questions(forum: Forum) -> None:
    forum.judge("a", "b", "different")
    forum.judge("c", "a", "different")
    kept = forum.judge("c", "d", "different")
    forum.delete("a")
    assert list(forum.store.all_feedback()) == [kept]


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
    assert list(forum.store.all_feedback()) == []


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
        assert [one.draw for one in again.store.all_feedback()] == [draw, Draw("queue")]
    for odd in (Draw("guess"), Draw("sample", 1.5), Draw("sample", 0.5, float("nan"))):  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"drawn by|probability|propensity"):
            forum.judge("a", "d", "different", draw=odd)
