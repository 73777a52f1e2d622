"""Duplicates lead to their originals, over chains and circles, and never where filters forbid it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest

from askalike import Filters, Forum, Link, Question
from askalike.errors import InputError, SettingError, UnknownIdError
from askalike.forum import ForumSettings
from askalike.search.originals import combined, originals_of, reached
from askalike.search.settings import JoinSettings, SearchSettings
from askalike.types import Query, Stage

pytestmark = pytest.mark.usefixtures("words_alone")


def day(number: int) -> datetime:
    return datetime(2024, 5, number, tzinfo=UTC)


@pytest.fixture
def forum(tmp_path: Path) -> Iterator[Forum]:
    with Forum.create(tmp_path / "f") as forum:
        forum.add(
            [
                Question("old", "Connection lost at night", created=day(1), tags=("Net",)),
                Question("dup", "Wifi drops every evening", created=day(2), tags=("net", "wifi")),
                Question("dup2", "Wifi drops again and again", created=day(3)),
                Question("other", "Printer prints blank pages", created=day(4)),
                Question("free", "Wifi slow", created=day(5)),
            ]
        )
        forum.store.put_links([Link("dup", "old"), Link("dup2", "dup")])
        yield forum


def ids(forum: Forum, title: str, **more: object) -> list[str]:
    return [hit.question.id for hit in forum.search(Query(title, is_canonical=True, **more)).hits]  # type: ignore[arg-type]


def test_a_duplicate_is_replaced_by_its_original_once(forum: Forum) -> None:
    result = forum.search(Query("wifi drops", is_canonical=True))
    assert result.ranker == "probability"
    assert sorted(hit.question.id for hit in result.hits) == ["free", "old"]
    stand_in = next(hit for hit in result.hits if hit.question.id == "old")
    assert stand_in.via is not None
    assert stand_in.via.id in ("dup", "dup2")
    assert stand_in.rank == 1
    assert {match.word.lower() for match in stand_in.matched} == {"wifi", "drops"}
    assert stand_in.missing == (), "the words are those of the question that matched"


def test_an_original_found_itself_stands_for_itself(forum: Forum) -> None:
    (hit,) = forum.search(Query("connection lost", is_canonical=True)).hits
    assert (hit.question.id, hit.via, hit.missing) == ("old", None, ())


def test_a_question_is_not_suggested_to_itself_nor_through_its_duplicates(forum: Forum) -> None:
    assert ids(forum, "wifi drops", own="old") == ["free"]
    assert ids(forum, "wifi slow", own="free") == ["old"]


def test_what_stands_for_a_duplicate_satisfies_the_filters(forum: Forum) -> None:
    assert ids(forum, "wifi drops", filters=Filters(exclude_ids=frozenset({"old"}))) == ["free"]
    assert ids(forum, "wifi drops", filters=Filters(tags=("NET",))) == ["old"]
    assert ids(forum, "wifi drops", filters=Filters(tags=("wifi",))) == []
    assert ids(forum, "wifi drops", filters=Filters(before=day(3))) == ["old"]
    forum.edit(Question("old", "Connection lost at night", created=day(9)))
    assert ids(forum, "wifi drops", filters=Filters(before=day(3))) == []


def test_as_many_are_suggested_as_there_are_beneath_many_duplicates(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "many") as forum:
        forum.add([Question("root", "Root"), *(Question(f"d{n}", "Wifi drops") for n in range(40))])
        forum.add(Question("last", "Wifi drops in a house with many long walls and doors and no cable at all"))
        forum.store.put_links([Link(f"d{n}", "root") for n in range(40)])
        assert ids(forum, "wifi drops", k=2) == ["root", "last"]


def test_several_duplicates_are_more_evidence_than_the_best_of_them(tmp_path: Path) -> None:
    def found(damping: float, **more: object) -> list[tuple[str, float]]:
        join = replace(JoinSettings(), damping=damping)
        settings = ForumSettings(search=replace(SearchSettings(), join=join))
        with Forum.open(tmp_path / "f", settings=settings) as forum:
            hits = forum.search(Query("wifi drops at night", **more)).hits  # type: ignore[arg-type]
            return [(hit.question.id, hit.score) for hit in hits]

    with Forum.create(tmp_path / "f") as forum:
        forum.add([Question("old", "Connection lost"), Question("alone", "My wifi drops and drops at night")])
        forum.add([Question(f"d{number}", f"Wifi {number} drops each night") for number in range(6)])
        forum.add([Question(f"o{number}", f"Printer {number} prints blank pages") for number in range(20)])
        forum.store.put_links([Link(f"d{number}", "old") for number in range(6)])
        single = dict(found(0.5, is_canonical=False))
    best_only, together = dict(found(0.0)), dict(found(0.5))
    assert best_only["old"] == pytest.approx(max(single[f"d{number}"] for number in range(6)))
    assert together["old"] == pytest.approx(
        combined(sorted((score for name, score in single.items() if name[0] == "d"), reverse=True), 0.5)
    )
    assert together["old"] > best_only["old"]
    assert together["alone"] == best_only["alone"] == pytest.approx(single["alone"])
    between = (together["old"] + best_only["old"]) / 2
    assert "old" in dict(found(0.5, minimum=between))
    assert "old" not in dict(found(0.0, minimum=between))
    assert dict(found(0.5, k=1)).items() <= together.items()


@pytest.mark.parametrize("damping", [-0.1, 1.1, float("nan")])
def test_a_damping_out_of_range_is_refused(damping: float) -> None:
    with pytest.raises(SettingError, match="expected damping and weight from 0 to 1"):
        JoinSettings(damping=damping)


def test_the_most_senior_question_of_a_circle_stands_for_all(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "circle") as forum:
        forum.add([Question("a", "Wifi one", created=day(3)), Question("b", "Wifi two", created=day(1))])
        forum.add([Question("c", "Wifi three", created=day(2)), Question("d", "Wifi four")])
        forum.store.put_links([Link("a", "b"), Link("b", "c"), Link("c", "a"), Link("d", "a")])
        assert ids(forum, "wifi") == ["b"]


def test_of_several_originals_the_nearest_is_taken() -> None:
    marks = {"q": ("far", "near"), "far": ("end",)}
    assert originals_of(marks, lambda question: (0.0, question))["q"] == "near"
    assert reached(["q"], lambda question: marks.get(question, ())) == ["far", "near", "end"]


def test_originals_are_those_that_each_way_leads_to() -> None:
    """Compared with walking from every question, over chains, circles, ways between circles, and marks of itself."""
    draw = random.Random(0)
    for _ in range(300):
        names = [f"{number:02}" for number in range(draw.randint(1, 9))]
        marks = {name: sorted(draw.sample(names, min(len(names), draw.choice((1, 1, 2))))) for name in names[1:]}
        marks = {name: targets for name, targets in marks.items() if draw.random() < 0.9}
        ages = {name: draw.random() for name in names}
        originals = originals_of(marks, lambda name, ages=ages: (ages[name], name))  # type: ignore[misc]
        for name in marks:
            ways = {start: reached([start], lambda key, marks=marks: marks.get(key, ())) for start in names}  # type: ignore[misc]
            ends = [end for end in ways[name] if end not in marks]
            circle = [end for end in ways[name] if end in ways[end]]
            assert originals[name] == (ends[0] if ends else min(circle, key=ages.__getitem__))


@pytest.mark.parametrize("last", ["end", "00000"])
def test_long_chains_and_circles_are_walked_once(last: str) -> None:
    names = [f"{number:05}" for number in range(30_000)]
    marks = {name: (following,) for name, following in zip(names, [*names[1:], last], strict=True)}
    originals = originals_of(marks, lambda name: (-float(name), name))
    assert set(originals.values()) == {"end" if last == "end" else names[-1]}


@pytest.mark.parametrize("last", ["end", "0"])
def test_a_search_among_hundreds_of_duplicates_of_one_another_ends(tmp_path: Path, last: str) -> None:
    with Forum.create(tmp_path / "f") as forum:
        forum.add([Question("end", "Printer"), *(Question(str(number), f"Wifi {number}") for number in range(400))])
        forum.store.put_links([Link(str(number), str(number + 1)) for number in range(399)] + [Link("399", last)])
        assert ids(forum, "wifi") == [last]


def test_a_search_tells_how_long_each_stage_took(forum: Forum) -> None:
    seconds = forum.search(Query("wifi drops", is_canonical=True)).seconds
    assert set(seconds) == set(get_args(Stage))
    assert all(value >= 0 for value in seconds.values())


def test_a_person_names_the_question_at_the_end_of_a_chain_and_closes_no_circle(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "f") as forum:
        forum.add([Question(identifier, f"Question {identifier}") for identifier in "abcdxyz"])
        assert forum.store.mark("b", "a")
        assert not forum.store.mark("b", "a")
        forum.store.put_links([Link("c", "b")])  # as an archive has it
        with pytest.raises(InputError, match="'b' is a duplicate itself: d -> b -> a") as chained:
            forum.store.mark("d", "b")
        assert chained.value.hint == "link 'd' to 'a'"
        with pytest.raises(InputError, match="'c' is a duplicate itself: d -> c -> b -> a"):
            forum.store.mark("d", "c")
        with pytest.raises(InputError, match="the link would close a circle: a -> c -> b -> a"):
            forum.store.mark("a", "c")
        assert not forum.store.mark("c", "b")  # what is there stays as it is
        assert forum.store.mark("a", "d")  # the end moves on
        forum.store.put_links([Link("x", "y"), Link("y", "x")])
        with pytest.raises(InputError, match="z -> x -> y"):
            forum.store.mark("z", "x")
        with pytest.raises(UnknownIdError):
            forum.store.mark("z", "nowhere")
        with pytest.raises(InputError):
            forum.store.mark("z", "z")
