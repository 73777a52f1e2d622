"""Entries that other processes prepare: the same as those made here, in order, whatever becomes of a worker."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice, product
from pathlib import Path

import pytest
from tests.tiny_models import synonym_model

from askalike import Forum, ForumSettings, Query, Question
from askalike.data import bundled_forum, default_model
from askalike.forum.duplicates import compare
from askalike.forum.pairs import Pairs, _side_by_side
from askalike.index import workers
from askalike.index.catchup import Steps
from askalike.index.vector_indexer import VectorIndexer
from askalike.index.word_indexer import WordIndexer, entries_of
from askalike.index.words.index import WordIndex
from askalike.progress import SilentProgress
from askalike.search import Searcher
from askalike.search.pool import Scored
from askalike.store import ForumLayout, open_store
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings

pytestmark = pytest.mark.slow

QUESTIONS = [
    (num, Question(f"q{num}", f"Wifi <b>drops</b> {num}", "<p>since the *update*, naïve café</p>", "html", ("home",)))
    for num in range(1, 61)
]
BATCHES = [(start, QUESTIONS[start : start + 7]) for start in range(0, 60, 7)]


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "cores", lambda: 2)
    monkeypatch.setattr(workers, "WORTH_IT", 10)


@pytest.fixture
def analyzer() -> Analyzer:
    return Analyzer(TextSettings(language="english"))


def indexer(analyzer: Analyzer, path: Path) -> WordIndexer:
    return WordIndexer(WordIndex.create(path, applied=0, fingerprint="x"), analyzer)


def refused(_: object) -> list[object]:
    raise AssertionError("this process was to prepare nothing")


@pytest.mark.usefixtures("two_cores")
def test_workers_prepare_the_same_words_in_the_same_order(analyzer: Analyzer, tmp_path: Path) -> None:
    remote = indexer(analyzer, tmp_path / "words").remote
    found = list(workers.prepared(BATCHES, 60, refused, remote))  # type: ignore[arg-type]
    assert [(start, batch) for start, batch, _ in found] == BATCHES
    for _, batch, entries in found:
        expected = entries_of(analyzer, batch)
        assert [(*_plain(one),) for one in entries] == [(*_plain(one),) for one in expected]


def _plain(entry: object) -> Iterator[object]:
    for name in ("num", "title", "body", "tags", "created_us", "text"):
        value = getattr(entry, name)
        yield list(value) if isinstance(value, tuple | list) else value


@pytest.mark.usefixtures("two_cores")
def test_a_forum_whose_questions_workers_encoded_has_the_vectors_of_one_that_did_all_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "general"
    synonym_model().save(folder)
    monkeypatch.setattr("askalike.index.encoder_settings.default_model", lambda: folder)
    asked = [question for _, question in QUESTIONS]
    found = []
    for name, worth_it in (("workers", 10), ("alone", 1000)):
        monkeypatch.setattr(workers, "WORTH_IT", worth_it)
        monkeypatch.setattr("askalike.index.vector_sets.AT_ONCE", 10)  # so that the set has a copy, which workers read
        with Forum.create(tmp_path / name) as forum:
            forum.put_unindexed(asked)
            forum.encode()
            assert forum.vectors.entries == 60
            answering = forum._indexes._answering()
            found.append(answering.index.vectors(range(1, 61))[1].tobytes())
            if name == "workers":
                remote = VectorIndexer(answering).remote
                assert len(list(workers.prepared(BATCHES, 60, refused, remote))) == len(BATCHES)  # type: ignore[arg-type]
    assert found[0] == found[1]


@pytest.mark.usefixtures("two_cores")
def test_changes_that_workers_prepared_are_found_as_if_one_process_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    for name, worth_it in (("workers", 10), ("alone", 1000)):
        monkeypatch.setattr(workers, "WORTH_IT", worth_it)
        steps = Steps(batch=3, scan=20, changes=11)
        monkeypatch.setattr("askalike.forum.indexes.WordIndexer", partial(WordIndexer, steps=steps))
        with Forum.create(tmp_path / name) as forum:
            forum.add([question for _, question in QUESTIONS[:5]])
            forum.put_unindexed([question for _, question in QUESTIONS[5:]])
            forum.put_unindexed([Question(f"q{num}", f"Antenna {num}") for num in range(1, 20)])
            with closing(open_store(ForumLayout(forum.path))) as other:
                other.put_questions((), [f"q{num}" for num in range(10, 30)])
            forum.catch_up()
            hits = forum.similar("antenna", k=50, ranker="lexical"), forum.similar("drops", k=50, ranker="lexical")
            shown.append([[(hit.question.id, hit.score) for hit in one] for one in hits])
            assert forum._indexes.lexical.numbers() == [*range(1, 10), *range(30, 61)]
        assert Forum.check(tmp_path / name).findings == ()
    assert shown[0] == shown[1]
    assert [len(one) for one in shown[0]] == [9, 31]


@pytest.mark.usefixtures("two_cores")
def test_likely_pairs_that_workers_found_are_those_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [
        Question(f"q{num}", f"{what} {verb} {where}")
        for num, (what, verb, where) in enumerate(
            product(("wifi", "printer", "modem"), ("drops", "stops", "fails"), ("daily", "upstairs", "in rain"))
        )
    ]
    asked += [Question(f"copy{num}", one.title) for num, one in enumerate(asked[:5])]
    shown = []
    for name, worth_it in (("workers", 10), ("alone", 1000)):
        monkeypatch.setattr(workers, "WORTH_IT", worth_it)
        with Forum.create(tmp_path / name) as forum:
            forum.add(asked)
            if name == "workers":
                monkeypatch.setattr(Pairs, "partners", refused)
            compare(forum, SilentProgress())
            assert forum.pairs.waiting() == 0
            found = forum.pairs.store.among(None, 0.0)  # the cosine is that of either direction, for equal scores
            shown.append([replace(one, score=round(one.score, 6), cosine=round(one.cosine or 0, 6)) for one in found])
    assert len(shown[0]) > 10
    assert shown[0] == shown[1]


@pytest.mark.parametrize("has_vectors", [True, False])
def test_pairs_of_a_block_are_those_of_each_question_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_vectors: bool
) -> None:
    settings = ForumSettings(has_vectors=has_vectors and default_model() is not None)
    sizes: list[int] = []
    closest = Searcher.closest

    def counted(self: Searcher, queries: Sequence[Query]) -> list[list[Scored]]:
        sizes.append(len(queries))
        return closest(self, queries)

    with Forum.create(tmp_path / "f", settings=settings) as forum:
        forum.load(bundled_forum())
        held = list(islice(forum.questions(), 60))
        forum.add([Question(f"copy{num}", one.title, one.body, markup=one.markup) for num, one in enumerate(held[:5])])
        forum.add([Question(f"title{num}", one.title) for num, one in enumerate(held[:5])])
        forum.add([Question(f"tie{num}", held[7].title, f"it is for number{num}") for num in range(9)])
        forum.add([Question("empty", "", "<p></p>", markup="html"), Question("stop", "the", "of")])
        forum.delete([one.id for one in held[20:25]])
        forum.pairs.read_texts()
        asked = forum.questions_by_number(forum._store.numbers())
        alone = {num: pairs for one in asked.items() for num, pairs in forum.pairs.partners([one]).items()}
        monkeypatch.setattr(Searcher, "closest", counted)
        monkeypatch.setattr("askalike.forum.pairs.BLOCK", 100)
        together = forum.pairs.partners(list(asked.items()))
        assert max(sizes) == 100
        ordered = forum._indexes.ask(partial(_side_by_side, nums=[*asked]))
        assert sorted(ordered) == sorted(asked)
        assert (ordered != [*asked]) == settings.has_vectors
    assert sum(map(len, alone.values())) > 60
    assert {num: {(one.first, one.second) for one in pairs} for num, pairs in together.items()} == {
        num: {(one.first, one.second) for one in pairs} for num, pairs in alone.items()
    }
    scores = [
        {(num, one.first, one.second): one.score for num in asked for one in some[num]} for some in (together, alone)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)


@pytest.mark.usefixtures("two_cores")
def test_reading_texts_starts_no_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.forum.pairs.AT_ONCE", 5)
    with Forum.create(tmp_path / "f") as forum:
        forum.add([question for _, question in QUESTIONS])
        monkeypatch.setattr(workers, "prepared", refused)
        assert forum.pairs.read_texts()
        assert forum.pairs.waiting() >= workers.WORTH_IT


@pytest.mark.usefixtures("two_cores")
def test_many_texts_are_read_by_workers_as_one_process_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.forum.pairs.TEXTS", 20)
    twice = [replace(question, id=f"{question.id} {turn}") for turn in (1, 2) for _, question in QUESTIONS]
    found = []
    for least in (10_000, 100):
        monkeypatch.setattr("askalike.forum.pairs.READ_BESIDE", least)
        if least == 100:
            monkeypatch.setattr("askalike.forum.pairs.hashes_by_number", refused)
        with Forum.create(tmp_path / str(least)) as forum:
            forum.add(twice)
            assert forum.pairs.read_texts()
            store = forum.pairs.store
            found.append((store.texts("hash"), store.texts("template"), store.among(None, 0.0)))
    assert found[0] == found[1]
    assert sorted(found[0][0]) == [[num, num + 60] for num in range(1, 61)]


@pytest.mark.usefixtures("two_cores")
def test_what_a_killed_worker_was_given_is_prepared_here(
    analyzer: Analyzer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    ask = workers._Worker.ask

    def killed(worker: workers._Worker, request: bytes) -> bytes:
        if worker not in started:
            started.append(worker)
            worker._process.kill()
            worker._process.wait()
        return ask(worker, request)

    monkeypatch.setattr(workers._Worker, "ask", killed)
    follower = indexer(analyzer, tmp_path / "words")
    found = list(workers.prepared(BATCHES, 60, follower.prepare, follower.remote))
    assert [(start, batch) for start, batch, _ in found] == BATCHES
    assert [one.num for *_, entries in found for one in entries] == list(range(1, 61))
    assert started


@pytest.mark.usefixtures("two_cores")
def test_where_no_program_can_be_started_all_is_prepared_here(
    analyzer: Analyzer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    follower = indexer(analyzer, tmp_path / "words")
    found = list(workers.prepared(BATCHES, 60, follower.prepare, follower.remote))
    assert [one.num for *_, entries in found for one in entries] == list(range(1, 61))


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize(("name", "value"), [("frozen", True), ("executable", "/usr/bin/uwsgi"), ("executable", None)])
def test_a_program_that_is_no_interpreter_is_not_started_again(
    name: str, value: object, analyzer: Analyzer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, name, value, raising=False)
    monkeypatch.setattr(subprocess, "Popen", refused)
    follower = indexer(analyzer, tmp_path / "words")
    found = list(workers.prepared(BATCHES, 60, follower.prepare, follower.remote))
    assert [one.num for *_, entries in found for one in entries] == list(range(1, 61))


@pytest.mark.usefixtures("two_cores")
def test_an_error_is_raised_as_if_there_were_no_workers(analyzer: Analyzer, tmp_path: Path) -> None:
    def broken(_: object) -> list[object]:
        raise ZeroDivisionError

    remote = workers.Remote("askalike.index.word_indexer", "{", lambda _: [])
    with pytest.raises(ZeroDivisionError):
        list(workers.prepared(BATCHES, 60, broken, remote))


@pytest.mark.usefixtures("two_cores")
def test_workers_end_with_the_work_also_when_it_is_left_early(
    analyzer: Analyzer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[subprocess.Popen[bytes]] = []
    begin = subprocess.Popen

    def watched(*given: object, **named: object) -> subprocess.Popen[bytes]:
        made.append(begin(*given, **named))  # type: ignore[call-overload]
        return made[-1]

    monkeypatch.setattr(subprocess, "Popen", watched)
    follower = indexer(analyzer, tmp_path / "words")
    course = workers.prepared(BATCHES, 60, follower.prepare, follower.remote)
    next(course)
    course.close()  # type: ignore[attr-defined]
    assert len(made) == 2
    assert all(one.poll() is not None for one in made)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes as Linux lists them")
def test_a_worker_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import os, signal
        from askalike.index.workers import _Worker
        worker = _Worker("askalike.index.word_indexer", '{}')
        print(worker._process.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    pid = int(done.stdout)
    for _ in range(600):
        if is_running(pid):
            time.sleep(0.1)
    assert not is_running(pid)


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
            from askalike.index import workers
            workers.WORTH_IT, workers.cores = 1, lambda: 2
            with Forum.create({str(tmp_path / "f")!r}) as forum:
                forum.add([Question(str(n), f"Wifi drops {{n}}") for n in range(50)])
                print(len(forum.similar("wifi")))
            """
        )
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert (done.stdout.split(), done.stderr) == (["once", "10"], "")
