"""What a filter asks for holds for every hit, and whatever satisfies it is found, however little that is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askalike import Answer, Filters, Forum, Query, Question
from askalike.errors import SettingError
from askalike.search import RANKERS

SIZE = 300
DAY = timedelta(days=1)
FIRST = datetime(2024, 1, 1, tzinfo=UTC)


def _question(number: int) -> Question:
    return Question(
        f"q{number}",
        f"Printer number {number} is offline",
        tags=("Even", "rare") if number == 200 else ("even",) if number % 2 == 0 else ("odd",),
        created=None if number % 11 == 0 else FIRST + number * DAY,
        closed=FIRST if number % 7 == 0 else None,
        language="de" if number % 5 == 0 else "fr" if number == 201 else "",
    )


@pytest.fixture(scope="module")
def forum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forum]:
    with Forum.create(tmp_path_factory.mktemp("filters") / "a.forum") as forum:
        forum.add(map(_question, range(SIZE)))
        forum.store.add_answers(Answer(f"a{number}", f"q{number}", "Restart it.") for number in range(0, SIZE, 3))
        forum.encode()
        yield forum


def _wanted(filters: Filters) -> set[str]:
    questions = map(_question, range(SIZE))
    return {
        question.id for question in questions if filters.admits(question, is_answered=int(question.id[1:]) % 3 == 0)
    }


FLAGS = st.sampled_from([None, True, False])
MOMENTS = st.none() | st.integers(-5, SIZE + 5).map(lambda day: FIRST + day * DAY)
TAGS = st.lists(st.sampled_from(["even", "ODD", "rare", "none"]), max_size=2).map(tuple)
FILTERS = st.builds(
    Filters,
    tags=TAGS,
    before=MOMENTS,
    exclude_ids=st.sets(st.integers(0, SIZE).map("q{}".format), max_size=9).map(frozenset),
    exclude_tags=TAGS,
    after=MOMENTS,
    is_answered=FLAGS,
    is_closed=FLAGS,
    languages=st.lists(st.sampled_from(["de", "fr-CA", "sv"]), max_size=2).map(tuple),
)


@given(filters=FILTERS, k=st.sampled_from([1, 10, SIZE]), ranker=st.sampled_from(["words", "meaning", "probability"]))
def test_what_satisfies_a_filter_is_found_and_nothing_else(forum: Forum, filters: Filters, k: int, ranker: str) -> None:
    ids = [hit.question.id for hit in forum.similar("printer offline", k=k, filters=filters, ranker=ranker)]
    wanted = _wanted(filters)
    assert set(ids) <= wanted
    assert len(ids) == min(k, len(wanted))


@pytest.mark.parametrize("ranker", sorted(RANKERS))
def test_one_question_of_many_is_found_by_what_only_it_satisfies(forum: Forum, ranker: str) -> None:
    only = Filters(tags=("rare",), is_answered=False, is_closed=False, after=FIRST + 200 * DAY)
    assert [hit.question.id for hit in forum.similar("offline", k=5, filters=only, ranker=ranker)] == ["q200"]


def test_after_takes_its_own_moment_in_and_before_leaves_it_out(forum: Forum) -> None:
    moment = FIRST + 10 * DAY
    parts = [Filters(before=moment), Filters(after=moment)]
    early, late = ({hit.question.id for hit in forum.similar("printer", k=SIZE, filters=part)} for part in parts)
    assert "q10" in late - early
    assert not early & late
    assert len(early | late) == sum(_question(number).created is not None for number in range(SIZE))


def test_an_answer_that_comes_or_goes_counts_at_once(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "a.forum") as forum:
        forum.add(Question("q", "Printer is offline"))
        answered, unanswered = Filters(is_answered=True), Filters(is_answered=False)
        assert not forum.similar("printer", filters=answered)
        forum.store.add_answers([Answer("a", "q", "Restart it.")])
        assert [hit.question.id for hit in forum.similar("printer", filters=answered)] == ["q"]
        forum.store.delete_answers(["a"])
        assert not forum.similar("printer", filters=answered)
        assert [hit.question.id for hit in forum.similar("printer", filters=unanswered)] == ["q"]


def test_a_least_score_that_is_no_number_is_refused(forum: Forum) -> None:
    with pytest.raises(SettingError, match="query minimum is nan, but expected `float` >= -1e\\+300"):
        forum.search(Query("printer", minimum=float("nan")))
