"""What every engine does alike, whoever finds: this machine, or Milvus with records in a file or in PostgreSQL."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

import pytest
from tests.engine.conftest import SETTINGS, Make
from tests.tiny_models import synonym_model

from askalike import Answer, Filters, Forum, ForumSettings, Query, Question
from askalike.data import bundled_forum, general_folder
from askalike.forum.check import check_forum
from askalike.index.local import QuestionStates
from askalike.progress import SilentProgress
from askalike.store import Store

pytestmark = pytest.mark.slow

DAY = timedelta(days=1)
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
SIZE = 60


def ids(forum: Forum, title: str, k: int = 10, filters: Filters | None = None, ranker: str = "words") -> list[str]:
    return [hit.question.id for hit in forum.similar(title, k=k, filters=filters, ranker=ranker) if hit.score > 1e-6]


def test_what_is_added_edited_and_deleted_is_found_as_it_is_now(make: Make) -> None:
    forum = make()
    assert ids(forum, "wifi drops") == []
    forum.add([Question("1", "Wifi drops every evening"), Question("2", "Printer is offline")])
    assert ids(forum, "wifi drops") == ["1"]
    forum.edit(Question("1", "Bluetooth stutters", "The printer is near."))
    assert ids(forum, "wifi drops") == []
    assert ids(forum, "printer") == ["2", "1"]
    forum.delete("2")
    assert ids(forum, "printer") == ["1"]
    forum.put([Question("2", "Printer jams"), Question("3", "Wifi")])
    assert (ids(forum, "jams"), ids(forum, "wifi")) == (["2"], ["3"])
    assert (forum.info().indexed, forum.info().behind) == (3, 0)
    assert check_forum(forum.path, SilentProgress()).is_sound


def _question(number: int) -> Question:
    return Question(
        f"q{number}",
        f"Printer number {number} is offline",
        tags=("Even", "rare") if number == 20 else ("even",) if number % 2 == 0 else ("odd", "Naïve “quoted” %_'\\"),
        created=None if number % 11 == 0 else FIRST + number * DAY,
        closed=FIRST if number % 7 == 0 else None,
    )


FILTERS = {
    "none": Filters(),
    "a tag": Filters(tags=("EVEN",)),
    "two tags": Filters(tags=("even", "rare")),
    "odd characters": Filters(tags=("naïve “QUOTED” %_'\\",)),
    "no question has it": Filters(tags=('" or num > 0 or tags like "',)),
    "without a tag": Filters(exclude_tags=("odd",)),
    "before": Filters(before=FIRST + 9 * DAY),
    "in another time zone": Filters(
        after=datetime(2024, 1, 6, 5, tzinfo=timezone(timedelta(hours=5))), before=FIRST + 9 * DAY
    ),
    "answered": Filters(is_answered=True),
    "open": Filters(is_closed=False, exclude_ids=frozenset(["q1", "q2", "gone"])),
    "answered, odd, late": Filters(is_answered=False, exclude_tags=("even",), after=FIRST + 30 * DAY),
}


def test_a_filter_holds_for_every_hit_and_whatever_satisfies_it_is_found(make: Make) -> None:
    forum = make()
    forum.add(map(_question, range(SIZE)))
    forum.store.add_answers(Answer(f"a{number}", f"q{number}", "Restart it.") for number in range(0, SIZE, 3))
    for name, filters in FILTERS.items():
        wanted = {
            question.id
            for question in map(_question, range(SIZE))
            if filters.admits(question, is_answered=int(question.id[1:]) % 3 == 0)
        }
        assert set(ids(forum, "printer offline", SIZE, filters)) == wanted, name
        assert forum.indexes.count(filters) == len(wanted), name
        assert len(ids(forum, "printer offline", 5, filters)) == min(5, len(wanted)), name


def test_equally_good_questions_come_by_id_and_the_first_of_them_alone_where_fewer_are_asked_for(make: Make) -> None:
    forum = make()
    forum.add([Question(f"t{number:02}", "Wifi drops") for number in range(30)])
    assert ids(forum, "wifi", 30) == [f"t{number:02}" for number in range(30)]
    assert ids(forum, "wifi", 3) == ["t00", "t01", "t02"]


def test_questions_without_words_with_many_and_with_control_characters_are_kept_and_found(make: Make) -> None:
    forum = make()
    huge = " ".join(f"word{number}" for number in range(20_000))
    forum.store.add_questions([Question("empty", "")])
    forum.add(
        [
            Question("huge", "Long log", f"{huge} {'printer ' * 5_000}"),
            Question("zero", "control\x01byte scanner", tags=("a\x01b",)),
            Question("marks", "? ! …"),
        ]
    )
    assert ids(forum, "long log") == ["huge"]
    assert ids(forum, "word77") == ["huge"]
    assert ids(forum, "scanner") == ids(forum, "scanner", filters=Filters(tags=("A\x01B",))) == ["zero"]
    assert ids(forum, "? !") == []
    assert forum.info().indexed == 4


def test_more_hits_than_there_are_questions_are_all_of_them(make: Make) -> None:
    forum = make()
    forum.add([Question(str(number), "Wifi drops") for number in range(3)])
    assert len(ids(forum, "wifi", 100)) == 3


@pytest.fixture
def calls(kind: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what grows by an address with each call to the engine."""
    addresses: list[str] = []
    if kind != "local":
        from askalike.index.milvus.client import Milvus

        inner = Milvus._connected

        def counting(self: Milvus) -> object:
            addresses.append(self.address)
            return inner(self)

        monkeypatch.setattr(Milvus, "_connected", counting)
    return addresses


@pytest.mark.skipif(general_folder() is None, reason="the package contains no general model")
def test_a_misspelt_word_is_found_as_it_was_meant_by_few_calls_to_the_engine(
    make: Make, kind: str, calls: list[str]
) -> None:
    forum = make(settings=ForumSettings())
    forum.load(bundled_forum())
    body = "It began after the last update. The router is in the cellar, and every evening all laptops lose it. " * 5
    for title, text in (
        ("Wifi drops every evening", ""),
        ("Wifi drops every evening", body),
        ("My lapotp looses the wireles connection", "The roter is in the cellar, and nobody can conect any more."),
        ("wifff routr", ""),
    ):
        for filters in (Filters(), Filters(exclude_tags=("x",), is_closed=False)):
            forum.search(Query(title))  # reads the model, and which vectors are usual
            calls.clear()
            assert forum.search(Query(title, text, filters=filters)).hits
            assert len(calls) <= 11
            assert calls or kind == "local"
    assert any("router" in hit.question.title.casefold() for hit in forum.similar("my routr"))


def test_what_was_written_is_there_after_the_forum_is_opened_again(make: Make) -> None:
    forum = make()
    forum.add([Question("1", "Wifi drops"), Question("2", "Printer is offline")])
    forum.put_unindexed([Question("3", "Scanner hums")], gone=["2"])  # stored, and not indexed yet
    forum.close()
    with Forum.open(forum.path, settings=SETTINGS) as again:
        assert ids(again, "scanner printer wifi") == ["1", "3"]
        assert again.info().indexed == 2


def test_what_two_writers_add_is_all_found(make: Make) -> None:
    forum = make()
    with Forum.open(forum.path, settings=SETTINGS) as other:

        def write(name: str, opened: Forum) -> None:
            for number in range(5):
                opened.add(Question(f"{name}{number}", f"wifi {name}{number}"))

        threads = [threading.Thread(target=write, args=pair) for pair in (("a", forum), ("b", other))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for opened in (forum, other):
            opened.catch_up()
            assert len(ids(opened, "wifi", 20)) == 10
            assert ids(opened, "a3") == ["a3"]


ONE, OTHER = ({"wifi", "wireless"}, {"printer", "scanner"}), ({"wifi", "printer"}, {"wireless", "scanner"})


def test_each_answer_is_by_one_model_while_the_forum_is_encoded_by_another(make: Make, tmp_path: Path) -> None:
    for name, groups in (("one", ONE), ("other", OTHER)):
        synonym_model(groups).save(tmp_path / name)
    forum = make(settings=ForumSettings())
    forum.models.use_model(tmp_path / "one")
    forum.add([Question(name, name) for name in ("wifi", "printer", "scanner", "wireless")])
    by_one, by_other = ["wifi", "wireless"], ["printer", "wifi"]
    assert sorted(ids(forum, "wifi", ranker="meaning")) == by_one
    hits: list[list[str]] = []
    stop = threading.Event()

    def search() -> None:
        while not stop.is_set():
            hits.append(sorted(ids(forum, "wifi", ranker="meaning")))

    searching = threading.Thread(target=search)
    searching.start()
    try:
        for name in ("other", "one", "other"):
            forum.models.use_model(tmp_path / name)
            forum.encode()
    finally:
        stop.set()
        searching.join()
    assert hits
    assert all(answer in (by_one, by_other) for answer in hits)
    assert sorted(ids(forum, "wifi", ranker="meaning")) == by_other
    forum.add(Question("new", "wifi"))
    assert sorted(ids(forum, "wifi", ranker="meaning")) == ["new", *by_other]
    forum.delete("wifi")
    assert sorted(ids(forum, "wifi", ranker="meaning")) == ["new", "printer"]
    assert check_forum(forum.path, SilentProgress()).is_sound


def test_a_forum_is_indexed_anew_from_its_store(make: Make) -> None:
    forum = make()
    forum.add([Question("1", "Wifi drops"), Question("2", "Printer is offline")])
    forum.close()
    with Forum.reindex(forum.path, settings=SETTINGS) as again:
        assert ids(again, "printer wifi") == ["1", "2"]


def test_which_questions_are_answered_or_closed_follows_every_change(make: Make) -> None:
    forum = make()
    forum.add([Question(str(num), f"Wifi drops {num}") for num in range(20)])
    states, draw = QuestionStates(forum.store), random.Random(0)
    wanted = [Filters(is_answered=True), Filters(is_answered=False), Filters(is_closed=True), Filters(is_closed=False)]
    for step in range(40):
        name = str(draw.randrange(25))
        known = forum.store.nums_by_id([name])
        change = draw.choice(["answer", "no answer", "close", "open", "delete"])
        if change == "answer" and known:
            forum.store.put_answers([Answer(f"a{name}", name, f"Try {step}")])
        elif change == "no answer":
            forum.store.delete_answers([f"a{name}"] if forum.store.answers_of([name]).get(name) else [])
        elif change == "delete" and known:
            forum.delete(name)
        elif change in ("close", "open"):
            closed = datetime(2020, 1, 1, tzinfo=UTC) if change == "close" else None
            forum.put(Question(name, f"Wifi drops {name}", closed=closed))
        for filters in wanted:
            expected = forum.store.numbers(is_answered=filters.is_answered, is_closed=filters.is_closed)
            assert states.numbers(filters) == set(expected), (step, change, filters)


def test_of_many_questions_only_those_that_changed_are_looked_at_again_for_filters(make: Make) -> None:
    forum = make()
    forum.add([Question(str(num), f"Wifi drops {num}") for num in range(20)])
    read: list[Sequence[int] | None] = []

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(forum.store, name)

        def numbers(self, *, among: Sequence[int] | None = None, **states: Any) -> list[int]:
            read.append(among)
            return forum.store.numbers(among=among, **states)

    states = QuestionStates(cast("Store", Watched()))
    for number in (3, 4):
        forum.put(Question(str(number), f"Wifi drops {number}", closed=datetime(2020, 1, 1, tzinfo=UTC)))
        assert len(states.numbers(Filters(is_closed=False))) == 22 - number
    assert read == [None, list(forum.store.nums_by_id(["4"]).values())]
    assert len(states.numbers(Filters(is_closed=False))) == 18
