"""The order for who asks: a good answer comes first among hits that are about as likely, and never further."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askalike import Answer, Forum, Hit, Link, Query, Question
from askalike.cli.main import main
from askalike.errors import SettingError
from askalike.schemas import SimilarRequest
from askalike.search.rankers import by_help
from askalike.server.handlers import Handlers

text = st.just("a")
votes = st.none() | st.integers(-5, 99)
answers = st.none() | st.builds(Answer, text, text, text, score=votes, is_accepted=st.booleans())


@given(st.lists(st.tuples(st.floats(0.01, 0.99), answers), max_size=8))
def test_no_hit_passes_one_whose_odds_are_more_than_twice_its_own(answered: list[tuple[float, Answer | None]]) -> None:
    ordered = sorted(answered, key=lambda entry: -entry[0])
    question = Question("q", "t")
    hits = [Hit(rank, p, question, likelihood=p, answer=answer) for rank, (p, answer) in enumerate(ordered)]
    ordered_hits = by_help(hits)
    assert sorted(hit.score for hit in ordered_hits) == sorted(hit.score for hit in hits)
    assert [hit.rank for hit in ordered_hits] == list(range(1, len(hits) + 1))
    odds = [hit.score / (1 - hit.score) for hit in ordered_hits]
    for place, odd in enumerate(odds):
        assert all(later <= 2.000001 * odd for later in odds[place:])


def test_accepted_comes_before_voted_before_answered_before_none_where_all_are_as_likely() -> None:
    answers = [None, Answer("1", "q", "x"), Answer("2", "q", "x", score=4), Answer("3", "q", "x", is_accepted=True)]
    hits = [Hit(rank, 0.7, Question("q", "t"), likelihood=0.7, answer=answer) for rank, answer in enumerate(answers)]
    assert [hit.answer for hit in by_help(hits)] == answers[::-1]


def test_hits_without_probabilities_stay_in_their_order() -> None:
    hits = [Hit(1, 9.0, Question("a", "t")), Hit(2, 8.0, Question("b", "t"), answer=Answer("1", "b", "x"))]
    assert by_help(hits) == hits
    answer = Answer("1", "b", "x", is_accepted=True)
    read = [Hit(1, 0.6, hits[0].question, {"reranker": 0.9}, likelihood=0.6)]
    read.append(Hit(2, 0.5, hits[1].question, {"reranker": 0.4}, likelihood=0.5, answer=answer))
    assert by_help(read) == read


@pytest.fixture
def forum(tmp_path: Path, words_alone: None) -> Iterator[Forum]:
    with Forum.create(tmp_path / "f") as forum:
        forum.add([Question("a", "wifi drops every evening"), Question("b", "the wifi drops every evening")])
        forum.add([Question("c", "wifi drops and the printer stops every day")])
        forum.store.add_answers(
            [Answer("1", "b", "Change the channel"), Answer("2", "c", "Buy another", is_accepted=True)]
        )
        yield forum


def test_order_by_probability_is_the_control_and_order_by_help_finds_the_same_hits(forum: Forum) -> None:
    def asked(order: str) -> list[str]:
        query = Query("wifi drops every evening", order=order)  # type: ignore[arg-type]
        return [hit.question.id for hit in forum.search(query).hits]

    assert asked("probability") == ["a", "b", "c"]
    assert asked("help") == ["b", "a", "c"]  # c is accepted, and much less likely
    with pytest.raises(SettingError, match="probability, help"):
        asked("luck")


def test_a_duplicate_gives_way_to_its_original_in_the_library_unless_it_is_asked_for(forum: Forum) -> None:
    forum.store.put_links([Link("a", "c")])
    assert forum.similar("wifi drops every evening", k=1)[0].question.id == "c"
    hit_of = {hit.question.id: hit for hit in forum.similar("wifi drops every evening")}
    assert hit_of.keys() == {"b", "c"}
    assert hit_of["c"].via is not None
    assert hit_of["c"].via.id == "a"
    single = forum.search(Query("wifi drops every evening", is_canonical=False)).hits
    assert {hit.question.id for hit in single} == {"a", "b", "c"}
    assert [identifier for identifier, _ in forum.indexes.ranking(Query("wifi drops every evening"))] == ["a", "b", "c"]


def test_library_service_and_command_replace_duplicates_by_their_originals_alike(
    forum: Forum, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forum.store.put_links([Link("a", "c")])
    library = [hit.question.id for hit in forum.similar("wifi drops every evening")]
    assert library == ["c", "b"]
    request = SimilarRequest(title="wifi drops every evening")
    assert [hit["question"]["id"] for hit in Handlers(forum).similar(request)["hits"]] == library
    monkeypatch.setattr("sys.argv", ["askalike", "search", str(forum.path), "wifi drops every evening", "--json"])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert [hit["question"]["id"] for hit in json.loads(capsys.readouterr().out)] == library
