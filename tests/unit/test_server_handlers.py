"""The service without HTTP: what it answers, and what it changes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.tiny_models import gated_model

from askalike import Answer, Forum, Question
from askalike.errors import ModelError, SettingError
from askalike.schemas import PairsQuery, SimilarRequest
from askalike.server.handlers import TYPING_S, Handlers
from askalike.server.service import MaintenanceWorker
from askalike.store import ForumLayout

pytestmark = pytest.mark.usefixtures("words_alone")


def day(number: int) -> datetime:
    return datetime(2024, 5, number, tzinfo=UTC)


@pytest.fixture
def handlers(tmp_path: Path) -> Iterator[Handlers]:
    with Forum.create(tmp_path / "home.forum") as forum:
        forum.add(
            [
                Question(
                    "1", "Wifi drops 🙂 at night", "<p>The <b>wifi</b> drops.</p>", "html", created=day(1), score=3
                ),
                Question("2", "Wireless goes away", "Wifi drops <script>x</script>", "plain", created=day(2)),
                Question("3", "Printer offline", created=day(3)),
            ]
        )
        forum.store.add_answers(
            [
                Answer("x", "1", "<p onclick='x()'>Move it<img src=y></p>", "html", score=1),
                Answer("y", "1", "*Sure*", "markdown", is_accepted=True),
            ]
        )
        yield Handlers(forum)


def test_a_forum_counts_as_searched_for_a_moment_after_a_search(
    handlers: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not handlers.is_searched
    handlers.questions(1)
    assert not handlers.is_searched, "to look at a page is no search"
    handlers.similar(SimilarRequest("printer"))
    assert handlers.is_searched
    now = time.perf_counter()
    monkeypatch.setattr("askalike.server.handlers.time", SimpleNamespace(perf_counter=lambda: now + TYPING_S))
    assert not handlers.is_searched


def test_while_searches_are_under_way_comparing_rests_twenty_times_as_long_as_it_took_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, compared = [100.0], list[float]()

    def advance(seconds: float, is_stopped: object) -> int:
        compared.append(clock[0])
        clock[0] += 0.1
        return 5

    pairs = SimpleNamespace(advance=advance)
    state = SimpleNamespace(is_behind=False)
    indexes = SimpleNamespace(behind=lambda: 0, state=lambda: state)
    forum = SimpleNamespace(indexes=indexes, pairs=pairs)
    monkeypatch.setattr("askalike.server.service.time", SimpleNamespace(monotonic=lambda: clock[0]))
    busy = [1]
    worker = MaintenanceWorker(forum, lambda: busy[0])  # type: ignore[arg-type]
    assert worker.do_slice()
    for _ in range(19):  # each 0.1 s later
        assert not worker.do_slice()
        clock[0] += 0.1
    assert compared == [100.0]
    clock[0] += 0.2
    assert worker.do_slice()
    busy[0] = 0  # nobody searches: it goes on at once
    assert worker.do_slice()
    assert compared == pytest.approx([100.0, 102.2, 102.3])
    busy[0] = 3
    clock[0] += 2.1
    assert worker.do_slice()
    clock[0] += 5.9
    assert not worker.do_slice()
    clock[0] += 0.2
    assert worker.do_slice()


def test_pairs_and_groups_come_page_by_page(handlers: Handlers) -> None:
    for number in range(4):
        handlers.put(Question(f"p{number}", "Printer offline again", created=day(10 + number)))
    handlers.forum.store.add_answers([Answer("z", "p2", "Restart it")])
    handlers.put(Question("w", "Wifi drops at night"))
    while MaintenanceWorker(handlers.forum, lambda: False).do_slice():
        pass
    assert handlers.comparison_progress().done == handlers.comparison_progress().questions == 8
    page = handlers.pairs(PairsQuery(limit=2, minimum=0.1))
    assert all(pair.score == 1.0 and pair.cosine is None for pair in page.pairs)
    assert [(pair.question.id, pair.candidate.id) for pair in page.pairs] == [("p1", "p0"), ("p2", "p0")]
    seen = [(pair.question.id, pair.candidate.id) for pair in page.pairs]
    while page.next:
        page = handlers.pairs(PairsQuery(page.next, 2, 0.1))
        seen += [(pair.question.id, pair.candidate.id) for pair in page.pairs]
    assert len(seen) == len(set(seen)) == handlers.forum.pairs.store.count()

    groups = handlers.groups(None, 1, 0.5)
    (largest,) = groups.groups
    members = {question.id for question in largest.questions}
    assert (largest.size, largest.canonical.id) == (len(members), "p2")  # it alone is answered
    assert {"p0", "p1", "p2", "p3"} <= members <= {"3", "p0", "p1", "p2", "p3"}
    assert largest.kind == ("same question" if "3" in members else "same text")
    if groups.next:
        rest = handlers.groups(groups.next, 5, 0.5)
        assert not any(members & {question.id for question in group.questions} for group in rest.groups)
        assert rest.next is None


@pytest.fixture
def compared(handlers: Handlers) -> Handlers:
    for number in range(4):
        handlers.put(Question(f"p{number}", "Printer offline again"))
    while MaintenanceWorker(handlers.forum, lambda: False).do_slice():
        pass
    return handlers


def test_groups_that_are_brought_in_step_hold_up_no_request_for_others(
    compared: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    touched = compared.forum.pairs.store.touched
    has_begun, may_end = threading.Event(), threading.Event()

    def slow(after: int) -> list[int]:
        has_begun.set()
        assert may_end.wait(60)
        return touched(after)

    def size() -> int:
        return compared.groups(None, 5, 0.5).groups[0].size

    before = size()
    compared.put(Question("p4", "Printer offline again"))
    while MaintenanceWorker(compared.forum, lambda: False).do_slice():
        pass
    monkeypatch.setattr(compared.forum.pairs.store, "touched", slow)
    with ThreadPoolExecutor(1) as others:
        making = others.submit(size)
        assert has_begun.wait(60)
        assert size() == before
        may_end.set()
        assert making.result(60) == before + 1
    assert size() == before + 1


@pytest.mark.parametrize("cursor", ["x", "1", "nan,1,2", "1e999,1,2", ",", "0.5,1,2],[0", "0.5,99999999999999999999,1"])
def test_a_cursor_of_nobody_is_refused(handlers: Handlers, cursor: str) -> None:
    with pytest.raises(SettingError):
        handlers.pairs(PairsQuery(cursor, 2, 0.3))
    with pytest.raises(SettingError):
        handlers.groups(cursor, 2, 0.6)


def test_the_maintenance_worker_indexes_what_another_process_left(handlers: Handlers) -> None:
    handlers.forum.put_unindexed([Question("4", "Toaster burns")])
    assert handlers.similar(SimilarRequest("toaster"))["hits"] == []
    MaintenanceWorker(handlers.forum, lambda: False).do_slice()
    assert [hit["question"]["id"] for hit in handlers.similar(SimilarRequest("toaster"))["hits"]] == ["4"]


def test_the_maintenance_worker_reports_failures(tmp_path: Path) -> None:
    gated_model().save(tmp_path / "model")
    with Forum.create(tmp_path / "f") as forum:
        forum.add([Question("1", "router")])
        forum.models.use_model(tmp_path / "model")
        (ForumLayout(tmp_path / "f").model / "weights.safetensors").write_bytes(b"")
        with pytest.raises(ModelError):
            MaintenanceWorker(forum, lambda: False).do_slice()


USES = """
import sys
from askalike import Answer, Forum, Question
from askalike.schemas import PairsQuery, SimilarRequest
from askalike.server.handlers import Handlers

with Forum.open(sys.argv[1]) as forum:
    handlers = Handlers(forum)
    handlers.warm_up()
    before = set(sys.modules)
    for number in range(30):
        title = f"printer {number}"
        handlers.similar(SimilarRequest(title, "It *stops* | a", "markdown", minimum="default", order="help"))
    handlers.put(Question("new", "Printer hums", "<p>It hums</p>", "html"))
    handlers.put_answer(Answer("z", "new", "| a |\\n|--|\\n| b |", "markdown"))
    handlers.question("new")
    handlers.pairs(PairsQuery())
    print(sorted(set(sys.modules) - before))
"""


def test_after_the_warm_up_nothing_is_imported(handlers: Handlers) -> None:
    handlers.forum.close()
    command = [sys.executable, "-c", USES, str(handlers.forum.path)]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert shown.stdout == "[]\n"
