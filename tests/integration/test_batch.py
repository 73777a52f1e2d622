"""Batches: a forum's own pairs, groups and vectors, of Parquet files too, here or on Ray, ended and gone on with."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.ray_server import ray_environment
from tests.tiny_models import synonym_model

from askalike import Answer, Forum, Link, Question, batch
from askalike.errors import AskalikeError, ForumExistsError, InputError, ModelError, SettingError
from askalike.executors.ray import Order, run_part
from askalike.store import copy_forum

pytestmark = pytest.mark.slow

parquet = pytest.importorskip("pyarrow.parquet")
pyarrow = pytest.importorskip("pyarrow")

THINGS = ("printer", "scanner", "keyboard", "monitor", "router", "laptop", "camera", "speaker")
TROUBLES = ("does not start", "is slow", "makes noise", "loses the connection", "has no sound", "shows a black screen")


def questions(count: int = 90) -> list[Question]:
    listed = []
    for number in range(count):
        thing, trouble = THINGS[number % 8], TROUBLES[number // 8 % 6]
        verb = ("How do I mend", "What to do when", "Help,")[number // 48 % 3]
        listed.append(Question(f"q{number}", f"{verb} my {thing} {trouble}", f"The {thing} {trouble} since {number}."))
    return [*listed, Question("copy", listed[3].title, listed[3].body), Question("empty", "Is it?")]


def write(path: Path, listed: list[Question]) -> Path:
    rows = [
        {"id": question.id, "title": question.title, "body": question.body or None, "markup": question.markup}
        for question in listed
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    listed = questions()
    return [write(tmp_path / f"{at}.parquet", listed[at : at + 40]) for at in range(0, len(listed), 40)]


@pytest.fixture(scope="module")
def forum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forum]:
    """A forum with what its people have said of its questions."""
    with Forum.create(tmp_path_factory.mktemp("batch") / "forum") as forum:
        forum.add(questions())
        forum.encode()
        forum.judge("q0", "q48", "different", "eva")
        forum.judge("empty", "q5", "duplicate", "eva")
        forum.store.put_links([Link("q6", "q89", "duplicate")])
        forum.store.add_answers([Answer("a", "q7", "Turn it off and on again.", is_accepted=True)])
        forum.pairs.compare()
        yield forum


def rows(path: Path) -> list[dict[str, Any]]:
    return list(parquet.read_table(path).to_pylist())


def check_same(written: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Check that rows are the same but for the last bits of numbers, which depend on batches and processors."""
    assert expected
    for row, other in zip(written, expected, strict=True):
        assert row.keys() == other.keys()
        for name, value in row.items():
            assert value == pytest.approx(other[name], abs=1e-3)


def test_a_batch_of_a_forum_writes_what_the_forum_finds(forum: Forum, tmp_path: Path) -> None:
    done = batch.pairs(forum.path, tmp_path, 0.2, workers=1)
    known = [
        {"id": pair.question.id, "original_id": pair.candidate.id, "score": pair.score, "exact": pair.is_exact}
        for pair in forum.pairs.duplicates(0.2)
    ]
    assert (done.questions, done.count) == (len(forum), len(known))
    check_same([{name: row[name] for name in known[0]} for row in rows(done.path)], known)
    assert len(known) > 20
    grouped = batch.groups(forum.path, tmp_path, 0.6, workers=1)
    assert [(row["id"], row["group"]) for row in rows(grouped.path)] == [
        (name, number) for number, group in enumerate(forum.groups.find(0.6), start=1) for name in group.members
    ]
    assert grouped.count == len(forum.groups.find(0.6)) > 1


def test_a_batch_of_a_forums_export_finds_the_same_pairs_and_groups(forum: Forum, tmp_path: Path) -> None:
    forum.export(tmp_path / "export")
    done = batch.pairs(tmp_path / "export", tmp_path / "out", 0.1, workers=1)
    check_same(rows(done.path), rows(batch.pairs(forum.path, tmp_path / "own", 0.1, workers=1).path))
    far = batch.groups(tmp_path / "export", tmp_path / "out", 0.6, workers=1)
    check_same(rows(far.path), rows(batch.groups(forum.path, tmp_path / "own", 0.6, workers=1).path))


def test_vectors_are_those_of_the_forum(files: list[Path], forum: Forum, tmp_path: Path) -> None:
    done = batch.encode(files, tmp_path / "out", workers=1)
    assert (done.questions, done.count) == (92, 92)
    ids, vectors = forum.models.vectors()
    assert [row["id"] for row in rows(done.path)] == ids == [question.id for question in questions()]
    np.testing.assert_allclose([row["vector"] for row in rows(done.path)], vectors, atol=0.01)


def test_files_may_change_come_and_go(files: list[Path], tmp_path: Path) -> None:
    assert batch.pairs(files, tmp_path / "out", workers=1).questions == 92
    write(files[0], [Question("q0", "My cat purrs"), Question("new", "My cat purrs")])
    done = batch.pairs(files[:2], tmp_path / "out", workers=1)
    assert done.questions == 42
    pairs = {frozenset((row["id"], row["original_id"])) for row in rows(done.path)}
    assert frozenset(("q0", "new")) in pairs
    fresh = batch.pairs(files[:2], tmp_path / "fresh", workers=1)
    assert pairs == {frozenset((row["id"], row["original_id"])) for row in rows(fresh.path)}


def test_what_is_killed_goes_on(files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["batch", "pairs", *map(str, files), "--into", str(out), "--json"]
    command = [sys.executable, "-m", "askalike", *words]
    for _ in range(3):
        driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while not (out / "forum").exists() and driver.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.3)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    subprocess.run(command, capture_output=True, check=True)
    check_same(rows(out / "pairs.parquet"), rows(batch.pairs(files, tmp_path / "whole", workers=1).path))


def test_ray_makes_the_same_with_a_worker_killed(files: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    words = [*map(str, files), "--into", str(tmp_path / "far"), "--cluster", "ray"]
    with ray_environment() as joined:
        if not joined:
            pytest.skip("Ray did not start on this machine")
        command = [sys.executable, "-m", "askalike", "batch"]
        driver = subprocess.Popen([*command, "groups", *words, "--min", "0.6"], env=os.environ | joined)
        killed = _kill_a_ray_worker(driver)
        assert driver.wait() == 0
        subprocess.run([*command, "pairs", *words], check=True, env=os.environ | joined)
        subprocess.run([*command, "encode", *words], check=True, env=os.environ | joined)
    assert killed
    batch.groups(files, tmp_path / "here", 0.6, workers=1)
    batch.pairs(files, tmp_path / "here", workers=1)
    batch.encode(files, tmp_path / "here", workers=1)
    for name in ("groups.parquet", "pairs.parquet", "vectors.parquet"):
        check_same(rows(tmp_path / "far" / name), rows(tmp_path / "here" / name))


def _kill_a_ray_worker(driver: subprocess.Popen[bytes]) -> bool:
    """Kill the first process that works at one of our tasks."""
    while driver.poll() is None:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if b"ray::run_part" in (folder / "cmdline").read_bytes() and folder.stat().st_uid == os.getuid():
                    os.kill(int(folder.name), signal.SIGKILL)
                    return True
            except OSError:
                continue
        time.sleep(0.01)
    return False


def test_another_machine_reads_a_copy_of_the_forum(
    forum: Forum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where a machine has its copy
    task = forum.pairs.task
    part = [(num, question) for num, question in forum.store.questions_by_num(range(1, 30)).items()]
    packed = msgspec.msgpack.encode(part)
    copy_forum(forum.path, tmp_path / "copy")
    order = Order(tmp_path.parent.name, task.module, task.order, True, "elsewhere", str(tmp_path / "copy"))
    content, message, _ = run_part(order, packed)
    assert not message
    assert task.unpack(content) == task.run(part)
    shutil.rmtree(tmp_path / "copy")
    _, message, hint = run_part(order._replace(name=f"{order.name}-2"), packed)
    assert str(tmp_path / "copy") in message
    assert "under this very path" in hint
    assert "joined" in run_part(order._replace(name="late", copy=""), packed)[1]
    assert "0.0.1" in run_part(order._replace(version="0.0.1"), packed)[1]


def test_a_cluster_that_is_not_there_is_named_at_once(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    with pytest.raises(AskalikeError, match=r"ray://127\.0\.0\.1:1 does not answer"):
        batch.encode(files, tmp_path / "out", cluster="ray://127.0.0.1:1")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(AskalikeError, match=r"127\.0\.0\.1:1 does not answer"):
        batch.encode(files, tmp_path / "out", cluster="ray")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"cluster": "dask"}, SettingError, "no cluster 'dask'"),
        ({"workers": 0}, SettingError, "at least 1"),
        ({"model": "no-such-folder"}, ModelError, "no-such-folder"),
    ],
)
def test_wrong_arguments_are_named(
    files: list[Path], tmp_path: Path, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        batch.encode(files, tmp_path / "out", **change)


def test_what_cannot_be_a_batch_is_named(files: list[Path], forum: Forum, tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    (tmp_path / "empty").mkdir()
    for source, message in (("no.parquet", "no Parquet file"), ("bad.parquet", "bad.parquet"), ("empty", "no Parquet")):
        with pytest.raises(InputError, match=message):
            batch.encode(tmp_path / source, tmp_path / "a", workers=1)
    with pytest.raises(SettingError, match="its own model"):
        batch.encode(forum.path, tmp_path / "b", model="general")
    batch.encode(files, tmp_path / "c", workers=1)
    with pytest.raises(SettingError, match="is in english"):
        batch.encode(files, tmp_path / "c", language="german", workers=1)
    (tmp_path / "d" / "forum").mkdir(parents=True)
    (tmp_path / "d" / "forum" / "letter.txt").touch()
    with pytest.raises(ForumExistsError):
        batch.encode(files, tmp_path / "d", workers=1)


def test_files_are_encoded_by_the_model_that_is_named(files: list[Path], tmp_path: Path) -> None:
    synonym_model().save(tmp_path / "model")
    batch.encode(files, tmp_path / "out", workers=1)
    bundled = len(rows(tmp_path / "out" / "vectors.parquet")[0]["vector"])
    batch.encode(files, tmp_path / "out", model=str(tmp_path / "model"), workers=1)
    assert len(rows(tmp_path / "out" / "vectors.parquet")[0]["vector"]) == synonym_model().dimensions != bundled
    batch.encode(files, tmp_path / "out", model="general", workers=1)
    assert len(rows(tmp_path / "out" / "vectors.parquet")[0]["vector"]) == bundled
