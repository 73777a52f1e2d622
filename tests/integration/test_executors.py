"""Work that other processes do: the same as is done here, in order, whatever becomes of a process."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest

from askalike import Forum, ForumSettings, Query, Question
from askalike.data import bundled_forum, general_folder
from askalike.executors import Task
from askalike.executors.processes import Processes
from askalike.forum.groups import text_hashes
from askalike.forum.pairs import side_by_side
from askalike.index.catchup import Steps
from askalike.index.vector_sets import OWN_PACE
from askalike.index.word_indexer import word_indexer
from askalike.search import Candidates, Searcher

pytestmark = pytest.mark.slow

QUESTIONS = [
    (num, Question(f"q{num}", f"Wifi <b>drops</b> {num}", "<p>since the *update*, naïve café</p>", "html", ("home",)))
    for num in range(1, 61)
]
PARTS = [(start, QUESTIONS[start : start + 7]) for start in range(0, 60, 7)]
HERE, BESIDE = Processes(1), Processes(2, worth_it=10)


def refused(_: object) -> list[object]:
    raise AssertionError("this process was to do nothing")


def task_of(forum_folder: Path) -> Task[Any]:
    """Return the task that makes the entries of a word index."""
    with Forum.create(forum_folder) as forum:
        return word_indexer(forum.indexes.words.index, forum.analyzer).task


def test_processes_do_the_same_in_the_same_order(tmp_path: Path) -> None:
    task = task_of(tmp_path / "f")
    results = list(BESIDE.map(replace(task, run=refused), PARTS, 60))
    assert [(start, part) for start, part, _ in results] == PARTS
    for _, part, entries in results:
        assert [entry.num for entry in entries] == [num for num, _ in part]
        assert [_plain(entry) for entry in entries] == [_plain(entry) for entry in task.run(part)]


def _plain(entry: object) -> list[object]:
    values = [getattr(entry, name) for name in ("num", "title", "body", "tags", "created_us", "text")]
    return [list(value) if isinstance(value, tuple | list) else value for value in values]


def test_a_forum_that_processes_encoded_has_the_vectors_of_one_that_did_all_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # fewer than there are, so that the set has a copy of the model, which workers read
    monkeypatch.setattr("askalike.index.vector_sets.OWN_PACE", OWN_PACE._replace(at_once=10))
    vectors = []
    for name, executor in (("beside", BESIDE), ("here", HERE)):
        with Forum.create(tmp_path / name, executor=executor) as forum:
            forum.put_unindexed([question for _, question in QUESTIONS])
            forum.encode()
            assert forum.indexes.state().entries == 60
            vectors.append(forum.models.vectors()[1].tobytes())
    assert vectors[0] == vectors[1]


def test_changes_that_processes_prepared_are_found_as_if_one_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    steps = Steps(batch=3, scan=20, changes=11)
    monkeypatch.setattr("askalike.index.word_indexer.STEPS", steps)
    for name, executor in (("beside", BESIDE), ("here", HERE)):
        with Forum.create(tmp_path / name, executor=executor) as forum:
            forum.add([question for _, question in QUESTIONS[:5]])
            forum.put_unindexed([question for _, question in QUESTIONS[5:]])
            forum.put_unindexed([Question(f"q{num}", f"Antenna {num}") for num in range(1, 20)])
            forum.put_unindexed((), gone=[f"q{num}" for num in range(10, 30)])
            forum.catch_up()
            hits = forum.similar("antenna", k=50, ranker="words"), forum.similar("drops", k=50, ranker="words")
            shown.append([[(hit.question.id, hit.score) for hit in hits_of_query] for hits_of_query in hits])
        assert Forum.check(tmp_path / name).findings == ()
    assert shown[0] == shown[1]
    assert [len(batch) for batch in shown[0]] == [9, 31]


def test_texts_and_likely_pairs_that_processes_found_are_those_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.forum.pairs.TEXTS", 20)
    questions = [
        Question(f"q{num}", f"{what} {verb} {where}")
        for num, (what, verb, where) in enumerate(
            product(("wifi", "printer", "modem"), ("drops", "stops", "fails"), ("daily", "upstairs", "in rain"))
        )
    ]
    questions += [Question(f"copy{num}", question.title) for num, question in enumerate(questions[:5])]
    shown, texts = [], []
    for name, executor in (("beside", BESIDE), ("here", HERE)):
        with Forum.create(tmp_path / name, executor=executor) as forum:
            forum.add(questions)
            shown.append({(pair.question.id, pair.candidate.id): pair.score for pair in forum.pairs.duplicates(0.1)})
            assert forum.pairs.waiting() == 0
            texts.append(forum.pairs.store.texts())
    assert len(shown[0]) > 10
    assert shown[0] == pytest.approx(shown[1], abs=1e-3)
    assert texts[0] == texts[1]
    assert sorted(texts[0]) == [[num, num + 27] for num in range(1, 6)]


@pytest.mark.parametrize("has_vectors", [True, False])
def test_pairs_of_a_block_are_those_of_each_question_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_vectors: bool
) -> None:
    settings = ForumSettings(has_vectors=has_vectors and general_folder() is not None)
    sizes: list[int] = []
    closest = Searcher.closest

    def counted(self: Searcher, queries: Sequence[Query]) -> list[Candidates]:
        sizes.append(len(queries))
        return closest(self, queries)

    with Forum.create(tmp_path / "f", settings=settings) as forum:
        forum.load(bundled_forum())
        questions = list(islice(forum.questions(), 60))
        forum.add(
            [
                Question(f"copy{num}", question.title, question.body, markup=question.markup)
                for num, question in enumerate(questions[:5])
            ]
        )
        forum.add([Question(f"title{num}", question.title) for num, question in enumerate(questions[:5])])
        forum.add([Question(f"tie{num}", questions[7].title, f"it is for number{num}") for num in range(9)])
        forum.store.add_questions([Question("empty", "", "<p></p>", markup="html"), Question("stop", "the", "of")])
        forum.catch_up()
        forum.delete([question.id for question in questions[20:25]])
        forum.pairs.read_texts()
        waiting = forum.store.questions_by_num(
            list(forum.store.nums_by_id([question.id for question in forum.questions()]).values())
        )
        alone = {num: pairs for numbered in waiting.items() for num, pairs in forum.pairs.partners([numbered]).items()}
        monkeypatch.setattr(Searcher, "closest", counted)
        monkeypatch.setattr("askalike.forum.pairs.BLOCK", 100)
        together = forum.pairs.partners(list(waiting.items()))
        assert max(sizes) == 100
        ordered = forum.indexes.with_searcher(partial(side_by_side, nums=[*waiting]))
        assert sorted(ordered) == sorted(waiting)
        assert (ordered != [*waiting]) == settings.has_vectors
    assert sum(map(len, alone.values())) > 60
    assert {num: {(pair.first, pair.second) for pair in pairs} for num, pairs in together.items()} == {
        num: {(pair.first, pair.second) for pair in pairs} for num, pairs in alone.items()
    }
    scores = [
        {(num, pair.first, pair.second): pair.score for num in waiting for pair in partners[num]}
        for partners in (together, alone)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)


def test_what_a_killed_process_was_given_is_done_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin, killed = subprocess.Popen, []

    def broken(*arguments: object, **named: object) -> subprocess.Popen[bytes]:
        process = begin(*arguments, **named)  # type: ignore[call-overload]
        process.kill()
        process.wait()
        killed.append(process)
        return process  # type: ignore[no-any-return]

    monkeypatch.setattr(subprocess, "Popen", broken)
    results = list(BESIDE.map(task_of(tmp_path / "f"), PARTS, 60))
    assert [(start, part) for start, part, _ in results] == PARTS
    assert [entry.num for *_, entries in results for entry in entries] == list(range(1, 61))
    assert killed


@pytest.mark.parametrize(
    ("name", "value"),
    [("executable", "/no/python"), ("frozen", True), ("executable", "/usr/bin/uwsgi"), ("executable", None)],
)
def test_where_python_cannot_be_started_again_all_is_done_here(
    name: str, value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_of(tmp_path / "f")
    monkeypatch.setattr(sys, name, value, raising=False)
    if value != "/no/python":
        monkeypatch.setattr(subprocess, "Popen", refused)
    results = list(BESIDE.map(task, PARTS, 60))
    assert [entry.num for *_, entries in results for entry in entries] == list(range(1, 61))


def test_an_error_is_raised_as_if_there_were_no_processes() -> None:
    def broken(_: object) -> list[object]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(BESIDE.map(Task(broken, "askalike.index.word_indexer", "{", lambda _: []), PARTS, 60))


def test_processes_end_with_the_work_also_when_it_is_left_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes: list[subprocess.Popen[bytes]] = []
    begin = subprocess.Popen

    def watched(*arguments: object, **named: object) -> subprocess.Popen[bytes]:
        processes.append(begin(*arguments, **named))  # type: ignore[call-overload]
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", watched)
    course = BESIDE.map(task_of(tmp_path / "f"), PARTS, 60)
    next(course)
    course.close()  # type: ignore[attr-defined]
    assert len(processes) == 2
    assert all(process.poll() is not None for process in processes)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes as Linux lists them")
def test_a_worker_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import os, signal, subprocess
        from askalike import Question
        from askalike.executors.processes import Processes
        from askalike.forum.groups import HASHING
        begin, pids = subprocess.Popen, []
        def started(*given, **named):
            process = begin(*given, **named)
            print(process.pid, flush=True)
            return process
        subprocess.Popen = started
        part = [(1, Question("a", "Wifi"))]
        next(Processes(2, worth_it=1).map(HASHING, [(0, part)] * 9, 9))
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    for _ in range(600):
        if any(map(is_running, pids)):
            time.sleep(0.1)
    assert not any(map(is_running, pids))


def is_running(pid: int) -> bool:
    """Return whether a process runs; one that has ended and that nobody asked for its exit code does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_script_without_a_guard_may_index(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            f"""
            print("once")
            from askalike import Forum, Question
            from askalike.executors.processes import Processes
            with Forum.create({str(tmp_path / "f")!r}, executor=Processes(2, worth_it=1)) as forum:
                forum.add([Question(str(n), f"Wifi drops {{n}}") for n in range(50)])
                print(len(forum.similar("wifi")))
            """
        )
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert (done.stdout.split(), done.stderr) == (["once", "10"], "")


def test_hashes_need_no_processes_for_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", refused)
    task = Task(text_hashes, "askalike.forum.groups", "", lambda _: {})
    assert [num for *_, numbers in Processes(2).map(task, PARTS, 60) for num in numbers] == list(range(1, 61))
