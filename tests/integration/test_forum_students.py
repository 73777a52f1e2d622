"""A student of a forum's encoder: trained, taken where it agrees, asked in the encoder's place."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from numpy.typing import NDArray
from starlette.testclient import TestClient
from tests.command import Run
from tests.embedding_server import serving

from askalike import Forum, Query, Question
from askalike.data import bundled_forum
from askalike.errors import BusyForumError, EncoderError, NotLearnedError, SettingError
from askalike.evaluation.forum.links import duplicate_task
from askalike.index.encoder_settings import EncoderSettings
from askalike.models.folder import digest
from askalike.models.student import Student
from askalike.server.app import build
from askalike.server.settings import Limits, ServeSettings
from askalike.store import ForumLayout
from askalike.training.teaching import TeachingResult
from askalike.training.work_folder import work_folder

torch = pytest.importorskip("torch")
Array = NDArray[np.float32]
DIMENSIONS = 32
TITLE = "Laptop drops off the wireless every few minutes"


class Sums:
    """A text is the sum of its words' vectors: easily learned. What it is asked is kept."""

    name = "sums@1"
    dimensions = DIMENSIONS

    def __init__(self, stop_after: int = 10**9) -> None:
        self.queries: list[str] = []
        self.documents: list[str] = []
        self._left = stop_after

    def encode_query(self, texts: Sequence[str]) -> Array:
        self._left -= 1
        if self._left < 0:
            raise EncoderError("the encoder is tired", "let it rest")
        self.queries += texts
        return np.stack([self.vector(text) for text in texts])

    def encode_document(self, texts: Sequence[str]) -> Array:
        self.documents += texts
        return np.stack([self.vector(text) for text in texts])

    def vector(self, text: str) -> Array:
        rows = [_drawn(word) * min(1, len(word) / 6) for word in text.lower().split()]
        return np.asarray(sum(rows, np.full(DIMENSIONS, 1e-3)), dtype=np.float32)


class Noise(Sums):
    """A text's vector tells nothing of its words: nothing can be learned."""

    name = "noise@1"

    def vector(self, text: str) -> Array:
        return _drawn(text)


def _drawn(text: str) -> Array:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    return np.random.default_rng(seed).normal(0, 1, DIMENSIONS).astype(np.float32)


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words_alone: None) -> None:
    """Have a home of one's own, and no general model."""
    for name in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TeachingResult]:
    """Return a forum with a student that was taken, not to be changed."""
    path = tmp_path_factory.mktemp("taught") / "forum"
    filled(path)
    with Forum.open(path) as forum:
        return path, forum.train_student(Sums())


def filled(path: Path) -> None:
    with Forum.create(path) as forum:
        forum.load(bundled_forum())


def copied(taught: tuple[Path, TeachingResult], place: Path) -> Path:
    shutil.copytree(taught[0], place / "forum")
    return place / "forum"


def vector_files(path: Path) -> dict[str, tuple[int, int]]:
    return {
        str(one): (one.stat().st_mtime_ns, one.stat().st_size)
        for one in sorted(ForumLayout(path).vectors.rglob("*"))
        if one.is_file() and one.suffix != ".lock"
    }


def test_a_student_that_agrees_with_its_teacher_is_taken_for_drafts(taught: tuple[Path, TeachingResult]) -> None:
    path, found = taught
    assert found.is_taken
    assert found.queries == "both"
    assert found.gain.low > 0
    assert found.agreement.low <= found.agreement.mean <= found.agreement.high
    assert not ForumLayout(path).training("student").joinpath("model").exists()
    with Forum.open(path, encoder=Sums()) as forum:
        assert (forum.vectors.queries, forum.vectors.student) == ("both", found.student)
        assert forum.vectors.model.startswith("python:sums@1") or "sums@1" in forum.vectors.model


def test_choosing_who_encodes_queries_encodes_nothing_anew(taught: tuple[Path, TeachingResult], tmp_path: Path) -> None:
    path = copied(taught, tmp_path)
    before, encoder = vector_files(path), Sums()
    with Forum.open(path, encoder=encoder) as forum:
        encoder.documents.clear()
        for by in ("student", "teacher", "both", "student"):
            forum.use_queries(by)
            forum.encode()
            assert forum.vectors.queries == by
            assert forum.similar(TITLE, k=1)[0].question.title == TITLE
    assert vector_files(path) == before
    assert encoder.documents == []


@pytest.mark.parametrize(
    ("by", "draft", "submitted"),
    [("teacher", 1, 1), ("student", 0, 0), ("both", 0, 1)],
    ids=["teacher", "student", "both"],
)
def test_the_choice_says_when_the_teacher_is_asked(
    taught: tuple[Path, TeachingResult], tmp_path: Path, by: str, draft: int, submitted: int
) -> None:
    encoder = Sums()
    with Forum.open(copied(taught, tmp_path), encoder=encoder) as forum:
        forum.use_queries(by)
        encoder.queries.clear()
        first = forum.search(Query(TITLE, is_draft=True))
        assert len(encoder.queries) == draft
        second = forum.search(Query(TITLE))
        assert len(encoder.queries) == draft + submitted
    for found in (first, second):
        assert found.hits[0].question.title == TITLE
        assert found.has_vectors
        assert not found.notice
        assert found.hits[0].score > 0.5  # as probable through the student as through its teacher


def test_where_the_teacher_cannot_be_had_its_student_answers_and_it_is_said(
    taught: tuple[Path, TeachingResult], tmp_path: Path
) -> None:
    with Forum.open(copied(taught, tmp_path)) as forum:  # a program's encoder that is not given
        found = forum.search(Query(TITLE))
        assert found.notice.startswith("found by a student: ")
        assert "cosine" in found.hits[0].components
        forum.use_queries("student")
        found = forum.search(Query(TITLE))
        assert not found.notice
        assert "cosine" in found.hits[0].components
        forum.use_queries("teacher")
        assert forum.search(Query(TITLE)).notice.startswith("found by words alone: ")
        forum.use_queries("student")
        forum.add(Question("new", "Xylophone strings are out of tune"))
        assert forum.vectors.waiting == 1
        assert "sums@1" in forum.vectors.problem
        assert forum.similar("xylophone tune", k=1)[0].question.id == "new"  # by its words


def test_a_student_that_finds_less_than_words_is_left_unless_it_is_to_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "forum"
    filled(path)
    with Forum.open(path) as forum:
        found = forum.train_student(Noise())
        assert not found.is_taken
        assert found.gain.low <= 0
        assert forum.vectors.queries == "teacher"
        with pytest.raises(NotLearnedError, match="has no student"):
            forum.use_queries("student")
        again = forum.train_student(is_kept=True)
        assert again.is_taken
        assert again.student == found.student  # nothing is trained again
        assert forum.vectors.queries == "both"


def test_no_text_of_the_test_split_reaches_the_teacher_as_a_query(tmp_path: Path) -> None:
    path, encoder = tmp_path / "forum", Sums()
    filled(path)
    with Forum.open(path) as forum:
        forum.train_student(encoder, is_test_held_out=True)
        test = duplicate_task(forum, "test").queries
    assert test
    assert not {one.title for one in test.values()} & set(encoder.queries)
    assert not [text for text in encoder.queries for one in test.values() if text.startswith(f"{one.title}\n")]


def test_training_that_failed_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    for path in (whole, stopped):
        filled(path)
    first = Sums()
    with Forum.open(whole) as forum:
        expected = forum.train_student(first)
    tired, rested = Sums(stop_after=2), Sums()
    with Forum.open(stopped) as forum:
        with pytest.raises(EncoderError, match="tired"):
            forum.train_student(tired)
        found = forum.train_student(rested)
    assert found.student == expected.student
    assert len(tired.queries) + len(rested.queries) == len(first.queries)


def test_a_training_that_was_killed_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "forum"
    filled(path)
    script = (
        "import os, signal, sys\n"
        "from tests.integration.test_forum_students import Sums\n"
        "from askalike import Forum\n"
        "class Killed(Sums):\n"
        "    def encode_query(self, texts):\n"
        "        if self.queries: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return super().encode_query(texts)\n"
        "with Forum.open(sys.argv[1]) as forum: forum.train_student(Killed())\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL
    assert list(ForumLayout(path).training("student").glob("0-*.safetensors"))
    rested = Sums()
    with Forum.open(path, encoder=rested) as forum:
        rested.queries.clear()
        assert forum.train_student().is_taken
        assert Forum.check(path).is_sound
    asked = list(rested.queries)
    assert 0 < len(asked) == len(set(asked))


def changed(folder: Path, name: str, data: bytes) -> None:
    """Change a file, and the manifest with it, as whoever means harm would."""
    (folder / name).write_bytes(data)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = digest(data)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_a_hostile_student_is_refused_and_words_answer(taught: tuple[Path, TeachingResult], tmp_path: Path) -> None:
    path = copied(taught, tmp_path)
    student = ForumLayout(path).student
    arrays = dict(safetensors.numpy.load((student / "weights.safetensors").read_bytes()))
    hostile = np.full_like(arrays["output"], np.nan)
    with Forum.open(path, encoder=Sums()) as forum:
        forum.use_queries("student")
        changed(student, "weights.safetensors", safetensors.numpy.save(arrays | {"output": hostile}))
        found = forum.search(Query(TITLE))
        assert "the forum's student cannot be used" in found.notice
        assert "cosine" not in found.hits[0].components
        assert "train" in forum.vectors.problem
        forum.use_queries("teacher")
        assert not forum.search(Query(TITLE)).notice
    report = Forum.check(path)
    assert [one.path for one in report.damaged("student")] == ["student"]


@pytest.mark.parametrize("written", ["[]", "{", '{"format": 9, "queries": "both"}', '{"format": 1, "queries": "me"}'])
def test_a_choice_that_cannot_be_read_is_said_and_the_teacher_answers(
    taught: tuple[Path, TeachingResult], tmp_path: Path, written: str
) -> None:
    path = copied(taught, tmp_path)
    ForumLayout(path).queries.write_text(written)
    with Forum.open(path, encoder=Sums()) as forum:
        assert not forum.search(Query(TITLE)).notice
        assert "queries.json cannot be read" in forum.search(Query(TITLE, is_draft=True)).notice
        assert "queries.json" in forum.vectors.problem
        forum.use_queries("student")
        assert not forum.search(Query(TITLE)).notice


def test_a_student_of_another_encoder_is_not_asked(taught: tuple[Path, TeachingResult], tmp_path: Path) -> None:
    encoder = Noise()
    with Forum.open(copied(taught, tmp_path), encoder=encoder) as forum:
        forum.encode()
        encoder.queries.clear()
        assert (forum.vectors.queries, forum.vectors.student) == ("teacher", "")
        forum.search(Query(TITLE, is_draft=True))
        assert encoder.queries == [TITLE]


def test_a_student_reads_the_directions_that_are_kept_of_its_teacher(tmp_path: Path) -> None:
    path = tmp_path / "forum"
    filled(path)
    with serving() as server, Forum.open(path) as forum:
        forum.use_encoder(EncoderSettings("tei", server.address, query_prompt="query: ", pca=8))
        found = forum.train_student(is_kept=True)
        assert Student.load(ForumLayout(path).student).dimensions == 32
        forum.use_queries("student")
        sent = len(server.requests)
        assert "cosine" in forum.similar(TITLE, k=1)[0].components
        assert len(server.requests) == sent
        assert found.teacher.endswith("'query: '")
        assert forum.answering_vectors().dimensions == 8  # type: ignore[union-attr]


def test_commands_and_service_train_choose_and_show_a_student(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "forum"
    filled(path)
    with serving() as server:
        teacher = f"tei:{server.address}"
        assert run("train", path, "--teacher", "general").code == 2
        assert run("train", path, "--teacher", teacher, "--recipe", "ramn").code == 2
        done = run("train", path, "--teacher", teacher, "--json")
        assert done.code == 0
        assert (done.json["is_taken"], done.json["queries"]) == (True, "both")
        again = run("train", path, "--teacher", teacher)
        assert "of the ten questions nearest to the teacher" in again.out
        assert "queries are encoded by: the student while one types" in again.out
        info = run("info", path, "--json").json
        assert (info["student"].split(":")[0], info["queries_by"]) == ("student", "both")
        with TestClient(
            build(ServeSettings(str(path), limits=Limits(rate=0))), base_url="http://localhost:8765"
        ) as client:
            shown = client.get("/v1/status").json()["vectors"]
            assert (shown["queries"], shown["student"]) == ("both", info["student"])
            sent = len(server.requests)
            for draft, calls in ((True, 0), (False, 1)):
                answer = client.post("/v1/similar", json={"title": TITLE, "k": 1, "draft": draft})
                assert answer.json()["hits"][0]["components"]["cosine"] > 0.3
                assert len(server.requests) == sent + calls
        assert run("encode", path, "--queries", "nobody").code == 2
        assert run("encode", path, "--queries", "student", "--json").json["queries"] == "student"
        sent = len(server.requests)
        assert run("search", path, TITLE, "--json").json[0]["question"]["title"] == TITLE
        assert len(server.requests) == sent


def test_what_cannot_be_taught_is_said(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "small", encoder=Sums()) as forum:
        forum.add(Question(str(number), f"question number {number}") for number in range(50))
        with pytest.raises(SettingError, match="50 questions with a title of two words"):
            forum.train_student()
        with pytest.raises(SettingError, match="expected one of teacher, student, both"):
            forum.use_queries("nobody")


def test_one_training_at_a_time(taught: tuple[Path, TeachingResult], tmp_path: Path) -> None:
    path = copied(taught, tmp_path)
    with (
        Forum.open(path, encoder=Sums()) as forum,
        work_folder(ForumLayout(path).training("student"), {"by": "another"}),
        pytest.raises(BusyForumError, match="another training runs"),
    ):
        forum.train_student()
