"""Every public method of a forum is given what notebooks give: it works, or an error says what is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askalike import Answer, Forum, Question
from askalike.errors import AskalikeError, SettingError
from askalike.forum.queue import Moderation
from askalike.forum.settings import ForumSettings
from askalike.settings import check_arguments
from askalike.types import Draw, Feedback, Filters, Link, Outcome, Query, Source, Thread, Write

PLAIN = ForumSettings(has_vectors=False)
ODD: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "bytes": lambda: b"q1",
    "path": lambda: Path("q1"),
    "nan": lambda: float("nan"),
    "infinite": lambda: float("inf"),
    "negative": lambda: -1,
    "huge": lambda: 10**30,
    "empty": lambda: "",
    "surrogate": lambda: "\ud800",
    "nul": lambda: "q\x001",
    "object": object,
    "true": lambda: True,
    "fraction": lambda: 1.5,
    "numpy whole": lambda: np.int64(1),
    "numpy half": lambda: np.float32(0.5),
    "numpy nan": lambda: np.float32("nan"),
    "numpy text": lambda: np.str_("q1"),
    "numpy true": lambda: np.True_,
    "no time": lambda: np.datetime64("NaT"),
    "local": lambda: datetime(2020, 1, 1),
    "generator": lambda: (one for one in ("q1", "q2")),
    "table": lambda: {"q1": 1},
    "list of none": lambda: [None],
    "list of bytes": lambda: [b"q1"],
    "array": lambda: np.array([1, 2]),
    "pair": lambda: ("q1", "q2"),
}
QUESTION, THREAD = Question("q9", "My cat purrs"), Thread(Question("t", "t"))
FORUM: dict[str, dict[str, Any]] = {
    "add": {"questions": QUESTION},
    "add_answers": {"answers": [Answer("a9", "q1", "b")]},
    "add_helped": {"question_id": "q1"},
    "add_links": {"links": [Link("q1", "q2")]},
    "add_outcomes": {"session": "s" * 16, "outcomes": [Outcome("shown", "q1")]},
    "answer_counts": {"ids": ["q1"]},
    "answers": {"question_id": "q1"},
    "answering_vectors": {},
    "attach": {"path": "attached", "database": "postgresql://127.0.0.1:1/none"},
    "catch_up": {},
    "change_languages": {"path": "nowhere", "languages": ["de"]},
    "check": {"path": "nowhere"},
    "close": {},
    "compare": {},
    "count": {"filters": Query("x").filters},
    "create": {"path": "made"},
    "delete": {"ids": "nowhere"},
    "delete_answers": {"ids": ["nowhere"]},
    "describe_groups": {"nodes": []},
    "discard_if_empty": {},
    "duplicates": {},
    "edit": {"questions": QUESTION},
    "embed": {"texts": ["x"]},
    "encode": {},
    "export": {"folder": "out"},
    "feedback": {},
    "forget_language_encoder": {"language": "de"},
    "from_dataframe": {"path": "framed", "frame": None},
    "group_nodes": {},
    "groups": {},
    "helped": {},
    "ids_of": {"source": "manual"},
    "info": {},
    "judge": {"question_id": "q1", "candidate_id": "q2", "verdict": "different"},
    "least": {"minimum": 0.5},
    "least_score": {"minimum": 0.5},
    "likelihoods": {"scores": [0.5]},
    "links": {},
    "links_of": {"question_id": "q1"},
    "load": {"archive": "nowhere"},
    "mark": {"duplicate": "q1", "original": "q2"},
    "migrate": {"path": "nowhere", "into": "there"},
    "newest": {"limit": 3},
    "numbers": {"ids": ["q1"]},
    "open": {"path": "nowhere"},
    "outcome_labels": {},
    "probe": {},
    "proposals": {},
    "put": {"questions": QUESTION},
    "put_answers": {"answers": [Answer("a9", "q1", "b")]},
    "question": {"identifier": "q1"},
    "question_vectors": {},
    "questions": {},
    "questions_by_id": {"ids": ["q1"]},
    "questions_by_number": {"nums": [1]},
    "ranking": {"query": Query("wifi")},
    "rankers": {},
    "records": {"table": "questions"},
    "reindex": {"path": "nowhere"},
    "reliability": {},
    "remove_links": {"links": [Link("q1", "q2")]},
    "remove_source": {"name": "nowhere"},
    "upkeep": {},
    "repair": {"path": "nowhere"},
    "replace_threads": {"threads": [THREAD], "gone": [], "source": Source("s", "jsonl")},
    "report": {},
    "score": {"query": "wifi", "texts": ["wifi"]},
    "search": {"query": "wifi"},
    "scores_by": {"model": None, "encode": None, "encode_queries": None},
    "searches_by": {"student": None},
    "similar": {"title": "wifi"},
    "similar_many": {"queries": ["wifi"]},
    "size": {},
    "source_counts": {},
    "sources": {},
    "store": {},
    "threshold": {"precision": 0.9},
    "to_dataframe": {"library": "pyarrow"},
    "train": {"recipe": "nowhere"},
    "train_student": {"teacher": "nowhere"},
    "use_encoder": {"encoder": "nowhere"},
    "use_engine": {"address": "nowhere"},
    "use_model": {"folder": "nowhere"},
    "use_queries": {"by": "nowhere"},
    "use_ranker": {"name": "nowhere", "folder": "nowhere"},
    "use_reranker": {"reranker": "nowhere"},
    "verdicts": {},
}
MODERATION: dict[str, dict[str, Any]] = {
    "assignments": {},
    "decide": {"given": [Feedback("q1", "q2", "different")], "is_preview": True},
    "decided_duplicates": {"source": "manual"},
    "give_back": {"pairs": [("q1", "q2")], "by": None},
    "last": {},
    "log": {},
    "note": {"question_id": "q1", "candidate_id": "q2", "text": "x"},
    "outbox": {},
    "put_writes": {"wanted": [Write(0, "t", "q1", "q2", "close")]},
    "set_write": {"number": 1, "state": "done"},
    "take": {"pairs": [("q1", "q2")], "by": "ann", "lasting": timedelta(minutes=1)},
    "taken": {},
    "undo": {"numbers": [1]},
    "writing_alone": {},
}


def public(kind: type) -> set[str]:
    return {
        name
        for name, member in vars(kind).items()
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, classmethod | staticmethod))
    }


def test_every_method_is_asked() -> None:
    assert (public(Forum), public(Moderation)) == (FORUM.keys(), MODERATION.keys())


@pytest.fixture
def forum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Forum]:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with Forum.create(tmp_path / "forum", settings=PLAIN) as made:
        made.add([Question(f"q{number}", f"Wifi drops {number}") for number in (1, 2)])
        yield made


def called(method: Callable[..., Any], given: dict[str, Any]) -> None:
    """Call a method, and go through what it yields."""
    found = method(**given)
    if isinstance(found, Forum):
        found.close()
    elif isinstance(found, Iterator):
        list(found)


def odd_calls(method: Callable[..., Any], valid: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, one in inspect.signature(method).parameters.items():
        for what, make in ODD.items():
            if one.annotation != "Any" and not (what == "none" and "None" in str(one.annotation)):
                yield f"{name} {what}", {**valid, name: make()}


@pytest.mark.parametrize("name", sorted({*FORUM, *(f"moderation.{one}" for one in MODERATION)} - {"close"}))
@pytest.mark.filterwarnings("ignore")
def test_odd_arguments_are_named_or_work(forum: Forum, name: str) -> None:
    part, _, last = name.rpartition(".")
    method = getattr(forum.moderation if part else forum, last)
    wrong: list[str] = []
    for what, given in odd_calls(method, (MODERATION if part else FORUM)[last]):
        try:
            called(method, given)
        except AskalikeError as error:
            if len(str(error).split()) < 4:
                wrong.append(f"{what}: {error}")
        except Exception as error:  # noqa: BLE001  # whatever it is, it is a fault
            wrong.append(f"{what}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("proposals", {"minimum": float("nan")}, "minimum is nan .*finite number"),
        ("proposals", {"minimum": 2}, "2 .*from 0 to 1"),
        ("duplicates", {"since": "2020"}, "since is '2020' .*a datetime or None"),
        ("newest", {"limit": -1}, "limit is -1 .*from 0"),
        ("similar", {"title": "wifi", "k": None}, "None .*a whole number from 1"),
        ("similar", {"title": "wifi", "markup": 3}, "markup is 3 .*one of html, markdown, plain"),
        ("embed", {"texts": "wifi"}, "texts is 'wifi' .*several, each a text"),
        ("question_vectors", {"ids": [None]}, "ids is .None. .*several, each a text or a whole number"),
        ("questions_by_number", {"nums": [1, 2**70]}, "nums is .*a number from"),
        ("add_links", {"links": [("a", "b")]}, "links is .* several, each Link"),
        ("export", {"folder": b"out"}, "folder is b'out' .*a path"),
        ("load", {"archive": "a", "progress": 3}, "progress is 3 .*Progress or None"),
        ("likelihoods", {"scores": [0.5, float("nan")]}, "scores is .*each a finite number"),
        ("likelihoods", {"scores": {"a": 1}}, "scores is .*each a finite number"),
    ],
)
def test_the_argument_is_named(forum: Forum, name: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        getattr(forum, name)(**given)


def test_numbers_of_numpy_and_what_yields_are_taken(forum: Forum) -> None:
    assert len(forum.similar("wifi", k=np.int64(1))) == 1  # type: ignore[arg-type]
    assert forum.likelihoods(np.array([0.25, 0.5])) == [0.25, 0.5]  # type: ignore[arg-type]
    assert forum.add_links(Link("q1", one) for one in ("q2",)) == 1
    assert [one.id for _, one in forum.newest(np.int32(1))] == ["q2"]  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"similar\(\) missing 1 required positional argument: 'title'"):
        forum.similar()  # type: ignore[call-arg]
    assert forum.moderation.take((one for one in [["q1", "q2"]]), by="ann")[0].by == "ann"  # type: ignore[arg-type]


def test_what_has_no_annotation_and_what_is_private_are_left_alone() -> None:
    @check_arguments
    class Plain:
        def either(self, one, two: int = 1):  # type: ignore[no-untyped-def]
            return one, two

        def _own(self, one: int) -> int:
            return one

        @staticmethod
        def whole(numbers: tuple[int, ...], how: Callable[[], int] | None = None) -> Any:
            return numbers, how

    assert (Plain().either(None, np.int8(2)), Plain()._own("x")) == ((None, 2), "x")  # type: ignore[arg-type]
    assert Plain.whole([1, np.int64(2)])[0] == (1, 2)  # type: ignore[arg-type,list-item]
    for wrong in ((1, "2"), 3):
        with pytest.raises(SettingError, match=r"numbers is .*several, each a whole number"):
            Plain.whole(wrong)  # type: ignore[arg-type]


VALUES: dict[str, tuple[Callable[..., Any], dict[str, Any], Callable[[Forum, Any], Any]]] = {
    "answer": (Answer, {"id": "a9", "question_id": "q1", "body": "b"}, lambda forum, one: forum.put_answers([one])),
    "draw": (Draw, {}, lambda forum, one: forum.judge("q1", "q2", "different", draw=one)),
    "feedback": (
        Feedback,
        {"question_id": "q1", "candidate_id": "q2", "verdict": "different"},
        lambda forum, one: forum.moderation.decide([one], is_preview=True),
    ),
    "filters": (Filters, {}, lambda forum, one: (forum.similar("wifi", filters=one), forum.count(one))),
    "link": (Link, {"source_id": "q1", "target_id": "q2"}, lambda forum, one: forum.add_links([one])),
    "outcome": (
        Outcome,
        {"kind": "shown", "question": "q1"},
        lambda forum, one: (forum.add_outcomes("s" * 16, [one]), forum.report()),
    ),
    "query": (Query, {"title": "wifi"}, lambda forum, one: (forum.search(one), forum.ranking(one))),
    "question": (Question, {"id": "q8", "title": "t"}, lambda forum, one: (forum.put(one), forum.similar("wifi"))),
    "source": (
        Source,
        {"name": "s", "format": "jsonl"},
        lambda forum, one: forum.replace_threads([THREAD], [], one, is_trial=True),
    ),
    "thread": (
        Thread,
        {"question": Question("t", "t")},
        lambda forum, one: forum.replace_threads([one], [], Source("s", "jsonl"), is_trial=True),
    ),
    "write": (
        Write,
        {"number": 0, "target": "t", "question_id": "q1", "candidate_id": "q2", "action": "close"},
        lambda forum, one: forum.moderation.put_writes([one]),
    ),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.filterwarnings("ignore")
def test_values_with_odd_fields_are_named_or_work(forum: Forum, kind: str) -> None:
    make, valid, use = VALUES[kind]
    wrong: list[str] = []
    for name in inspect.signature(make).parameters:
        for what, odd in ODD.items():
            try:
                use(forum, make(**{**valid, name: odd()}))
                [list(forum.records(table)) for table in ("questions", "answers", "links", "judgements", "log")]
            except AskalikeError as error:
                if len(str(error).split()) < 4:
                    wrong.append(f"{name} {what}: {error}")
            except Exception as error:  # noqa: BLE001
                wrong.append(f"{name} {what}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)
