"""What people say of pairs: the newest judgement counts, and stays when a load takes its question away and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from askalike import Answer, Forum, Link, Query, Question
from askalike.errors import InputError
from askalike.evaluation.forum.links import read_duplicate_links
from askalike.types import Draw, Record, Reject, Source

pytestmark = pytest.mark.usefixtures("words_alone")

DUMP = Source("dump", "jsonl")
TITLES = (
    "router reboots nightly",
    "router reboots daily",
    "printer jams paper",
    "printer jams often",
    "laptop battery swells",
    "laptop battery drains",
    "phone screen flickers",
    "phone screen breaks",
)
ALL: list[Record] = [Question(f"q{number}", title) for number, title in enumerate(TITLES)]
LESS = [record for record in ALL if record != ALL[1]]


def no_reject(reject: Reject) -> None:
    raise AssertionError(reject)


def loaded(forum: Forum, records: list[Record]) -> None:
    forum.store.load(records, DUMP, no_reject)
    forum.catch_up()


@pytest.fixture
def forum(tmp_path: Path) -> Iterator[Forum]:
    with Forum.create(tmp_path / "f") as forum:
        loaded(forum, ALL)
        yield forum


def test_a_judged_pair_is_not_listed_after_its_question_went_and_came_back(forum: Forum) -> None:
    forum.judge("q0", "q1", "different")
    for records in (LESS, ALL):
        loaded(forum, records)
        while forum.pairs.advance(10):
            pass
    pairs, _ = forum.pairs.page(0.0, 1000)
    questions = forum.store.questions_by_num([num for pair in pairs for num in (pair.first, pair.second)])
    listed = {frozenset((questions[pair.first].id, questions[pair.second].id)) for pair in pairs}
    assert frozenset(("q2", "q3")) in listed
    assert frozenset(("q0", "q1")) not in listed


def test_a_load_leaves_links_and_answers_of_other_sources_as_they_are(forum: Forum) -> None:
    more: list[Record] = [Question("other", "t"), Answer("theirs", "q1", "b"), Link("other", "q1")]
    forum.store.load(more, Source("more", "jsonl"), no_reject)
    loaded(forum, LESS)
    loaded(forum, ALL)
    assert [answer.id for answer in forum.answers("q1")] == ["theirs"]
    assert forum.store.links() == [Link("other", "q1")]


def test_the_report_of_a_load_and_the_counts_of_the_forum_agree_on_links(forum: Forum) -> None:
    links: list[Record] = [Link("q0", "q2"), Link("q3", "q2"), Link("q4", "nowhere"), Link("q5", "q6", "related")]
    report = forum.store.load([*ALL, *links], DUMP, no_reject)
    counts = forum.info().counts
    assert (report.links.added, report.links_without_question) == (4, 1)
    assert (counts.duplicates, counts.related, counts.links_without_question) == (2, 1, 1)
    again = forum.store.load([*LESS, *links], DUMP, no_reject)
    counts = forum.info().counts
    shown = counts.duplicates + counts.related + counts.links_without_question
    assert again.links.added + again.links.unchanged == shown == 4


# -- judgements, as searches and training see them -------------------------------------------------------------------


@pytest.fixture
def wifi(tmp_path: Path) -> Iterator[Forum]:
    with Forum.create(tmp_path / "wifi") as forum:
        forum.add([Question(identifier, f"wifi {identifier}") for identifier in "abcd"])
        yield forum


def test_a_pair_that_differs_is_not_suggested_again(wifi: Forum) -> None:
    def suggested(own: str) -> set[str]:
        return {hit.question.id for hit in wifi.search(Query("wifi", own=own, is_canonical=True)).hits}

    wifi.judge("a", "b", "different")
    assert suggested("a") == {"c", "d"}
    assert suggested("b") == {"c", "d"}
    assert suggested("c") == {"a", "b", "d"}
    wifi.judge("a", "b", "duplicate")
    assert suggested("a") == {"b", "c", "d"}


def test_verdicts_are_learned_from_as_marks_are(wifi: Forum) -> None:
    wifi.store.put_links([Link("a", "b"), Link("c", "b")])
    wifi.judge("b", "a", "duplicate")  # marked already, the other way round
    wifi.judge("d", "a", "duplicate")
    wifi.judge("b", "c", "different")
    assert read_duplicate_links(wifi).pairs == [("a", "b"), ("d", "a")]


def test_how_a_pair_was_drawn_is_there_after_opening_again(wifi: Forum) -> None:
    draw = Draw("sample", 0.25)
    assert wifi.judge("a", "b", "different", draw=draw).draw == draw
    wifi.judge("a", "c", "different")
    with Forum.open(wifi.path) as again:
        assert [judgement.draw for judgement in again.store.all_judgements()] == [draw, Draw("queue")]
    for odd in (Draw("guess"), Draw("sample", 1.5), Draw("sample", float("nan"))):  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"drawn by|probability"):
            wifi.judge("a", "d", "different", draw=odd)
