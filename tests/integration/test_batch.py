"""Batches: parts in, parts out, whoever schedules; ended and gone on with; and as a forum finds its own pairs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ray_server import ray_environment
from tests.tiny_models import gated_model, synonym_model

from askalike import Answer, Forum, Link, Question, batch
from askalike.batch.tasks import linked
from askalike.errors import (
    AskalikeError,
    BusyForumError,
    DamagedInputError,
    ForumExistsError,
    InputError,
    ModelError,
    SettingError,
)
from askalike.forum.linkage import Evidence, Linkage
from askalike.store.pairs import Pair

pytestmark = pytest.mark.slow

parquet = pytest.importorskip("pyarrow.parquet")
pyarrow = pytest.importorskip("pyarrow")

THINGS = ("printer", "scanner", "keyboard", "monitor", "router", "laptop", "camera", "speaker")
TROUBLES = ("does not start", "is slow", "makes noise", "loses the connection", "has no sound", "shows a black screen")


def questions(count: int = 90) -> list[Question]:
    found = []
    for number in range(count):
        thing, trouble = THINGS[number % 8], TROUBLES[number // 8 % 6]
        verb = ("How do I mend", "What to do when", "Help,")[number // 48 % 3]
        found.append(Question(f"q{number}", f"{verb} my {thing} {trouble}", f"The {thing} {trouble} since {number}."))
    return [*found, Question("copy", found[3].title, found[3].body), Question("empty", "")]


def write(path: Path, listed: list[Question]) -> Path:
    rows = [{"id": one.id, "title": one.title, "body": one.body or None, "markup": one.markup} for one in listed]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    listed = questions()
    return [write(tmp_path / f"{at}.parquet", listed[at : at + 40]) for at in range(0, len(listed), 40)]


@pytest.fixture(scope="module")
def forum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forum]:
    with Forum.create(tmp_path_factory.mktemp("batch") / "forum") as made:
        made.add(questions())
        made.encode()
        yield made


def rows(path: Path) -> list[dict[str, Any]]:
    return list(parquet.read_table(path).to_pylist())


def members(path: Path) -> list[set[str]]:
    found: dict[int, set[str]] = {}
    for row in rows(path):
        found.setdefault(row["group"], set()).add(row["id"])
    return list(found.values())


def test_each_part_has_the_vectors_that_the_forum_has(forum: Forum, tmp_path: Path) -> None:
    done = batch.encode(forum.path, tmp_path / "out", workers=1, part_size=40)
    assert (done.questions, done.parts, done.made, done.count) == (92, 3, 3, 92)
    found = [row for part in sorted(done.path.iterdir()) for row in rows(part)]
    ids, vectors = forum.question_vectors()
    assert [row["id"] for row in found] == ids
    assert np.allclose([row["vector"] for row in found], vectors, atol=2e-3)


def test_pairs_and_probabilities_are_those_of_the_forum(forum: Forum, tmp_path: Path) -> None:
    forum.compare()
    done = batch.pairs(forum.path, tmp_path / "out", workers=1, part_size=40)
    found = {frozenset((row["id"], row["original_id"])): row for row in rows(done.path)}
    known = list(forum.duplicates(0.3))
    assert len(known) > 20
    for one in known:
        row = found[frozenset((one.question.id, one.candidate.id))]
        assert row["probability"] == pytest.approx(one.score, abs=0.03)
        assert row["exact"] == one.is_exact
    first = rows(done.path)[0]
    assert (first["id"], first["original_id"], first["exact"], first["probability"]) == ("copy", "q3", True, 1.0)


def test_several_cells_lose_nothing_that_words_share(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = batch.pairs(files, tmp_path / "one", cluster=_Here())
    monkeypatch.setattr("askalike.batch.tasks.IN_CELL", 20)
    several = batch.pairs(files, tmp_path / "several", cluster=_Here())
    assert len(list((tmp_path / "several" / "compared").iterdir())) == round(92 / 20)

    def likely(path: Path) -> set[tuple[str, str]]:
        return {(row["id"], row["original_id"]) for row in rows(path) if row["probability"] >= 0.3}

    assert len(likely(one.path)) > 20
    assert len(likely(one.path) & likely(several.path)) >= 0.95 * len(likely(one.path))


class _Here:
    """A cluster that does each task at once, in this process."""

    workers = 1

    def answers(self, requests: Any) -> Iterator[bytes]:
        from askalike.batch import tasks

        for cached in (tasks._rows, tasks._analyzer, tasks.encoder_in):
            cached.cache_clear()
        yield from map(tasks.answer, requests)

    def close(self) -> None:
        raise AssertionError("it is closed by who opened it")


def test_groups_are_those_of_all_pairs_at_once(files: list[Path], tmp_path: Path) -> None:
    done = batch.groups(files, tmp_path / "out", 0.5, workers=1)
    table = rows(tmp_path / "out" / "pairs.parquet")
    pairs = [
        Pair(row["original_number"], row["number"], row["probability"]) for row in table if row["probability"] >= 0.5
    ]
    texts = [[row["original_number"], row["number"]] for row in table if row["exact"]]
    nodes = Linkage(Evidence([pair for pair in pairs if pair.score < 1], texts=texts), 0.5).nodes
    ids = [one.id for one in questions()]
    wanted = {frozenset(ids[num] for num in node.nums) for whole in nodes for node in whole.cut(0.5)}
    assert {frozenset(one) for one in members(done.path)} == wanted
    assert done.count == len(wanted) >= 3


def test_groups_of_a_forum_follow_what_its_people_said(tmp_path: Path) -> None:
    path, written = tmp_path / "forum", ("kind", "probability", "weakest_id", "other_weakest_id")
    with Forum.create(path) as made:
        made.add(questions())
        made.compare()
        before = next(group for group in made.groups(0.5) if group.kind == "same question")
        first, second = before.members[:2]
        made.judge(first, second, "different", "eva")
        made.add_answers([Answer("a", second, "Turn it off and on again.", is_accepted=True)])
        made.judge("empty", "q5", "duplicate", "eva")
        made.add_links([Link("q6", "q89", "duplicate")])
        made.compare()
        wanted = list(made.groups(0.5))
    done = batch.groups(path, tmp_path / "out", 0.5, workers=1, part_size=40)
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows(done.path):
        found.setdefault(row["group"], []).append(row)
    assert any({"empty", "q5"} <= set(group.members) for group in wanted)
    assert not any({first, second} <= set(group.members) for group in wanted)
    assert {tuple(row["id"] for row in one) for one in found.values()} == {group.members for group in wanted}
    assert {one[0]["id"]: one[0]["kind"] for one in found.values()} == {one.canonical: one.kind for one in wanted}
    assert all(len({tuple(row[name] for name in written) for row in one}) == 1 for one in found.values())


def test_a_chain_of_pairs_is_no_group() -> None:
    columns = {
        "original_number": np.array([0, 1, 3]),
        "number": np.array([1, 2, 4]),
        "probability": np.array([0.9, 0.8, 1.0]),
        "exact": np.array([False, False, True]),
    }
    assert [node.nums for node in linked(columns, 6, 0.5)] == [(0, 1), (3, 4)]
    assert linked({name: column[:0] for name, column in columns.items()}, 6, 0.5) == []


def test_a_batch_goes_on_with_what_is_missing(files: list[Path], tmp_path: Path) -> None:
    batch.encode(files, tmp_path / "out", workers=1)
    part = tmp_path / "out" / "vectors" / "part-00001.parquet"
    kept = {path.name: path.stat().st_mtime_ns for path in part.parent.iterdir() if path != part}
    part.rename(part.with_name(f".part-00001.parquet.{'0' * 32}.tmp"))  # as a worker that was killed leaves it
    done = batch.encode(files, tmp_path / "out", workers=1)
    assert (done.made, done.count) == (1, 92)
    assert {path.name: path.stat().st_mtime_ns for path in part.parent.iterdir() if path != part} == kept
    assert batch.pairs(files, tmp_path / "out", workers=1).made > 0
    assert batch.pairs(files, tmp_path / "out", workers=1).made == 0


def test_what_is_killed_with_its_workers_goes_on(files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["batch", "encode", *map(str, files), "--into", str(out), "--workers", "1", "--json"]
    command = [sys.executable, "-m", "askalike", *words]
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + 120
    while not (out / "vectors" / "part-00000.parquet").exists() and time.monotonic() < until:
        time.sleep(0.01)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    before = {path.name for path in (out / "vectors").glob("part-*")}
    done = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert done["made"] == 3 - len(before)
    found = [row["id"] for part in sorted((out / "vectors").glob("part-*")) for row in rows(part)]
    assert found == [one.id for one in questions()]


def test_ray_makes_the_same(files: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    words = ["batch", "groups", *map(str, files), "--into", str(tmp_path / "far"), "--cluster", "ray", "--min", "0.6"]
    with ray_environment() as joined:
        if not joined:
            pytest.skip("Ray did not start on this machine")
        subprocess.run([sys.executable, "-m", "askalike", *words], check=True, env=os.environ | joined)
    here = batch.groups(files, tmp_path / "here", 0.6, workers=1)
    for name in ("groups.parquet", "pairs.parquet"):
        assert rows(tmp_path / "far" / name) == rows(here.path.parent / name)


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
    ("change", "error", "told"),
    [
        ({"cluster": "dask"}, SettingError, "no cluster 'dask'"),
        ({"workers": 0}, SettingError, "at least 1"),
        ({"model": "no-such-folder"}, ModelError, "no-such-folder"),
    ],
)
def test_wrong_arguments_are_named(
    files: list[Path], tmp_path: Path, change: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        batch.encode(files, tmp_path / "out", **change)


def test_wrong_files_are_named(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    (tmp_path / "empty").mkdir()
    for source, told in (("no.parquet", "no file"), ("bad.parquet", "bad.parquet"), ("empty", "no Parquet files")):
        with pytest.raises(InputError, match=told):
            batch.encode(tmp_path / source, tmp_path / "a", workers=1)
    parquet.write_table(pyarrow.table({"number": [1]}), tmp_path / "other.parquet")
    with pytest.raises(AskalikeError, match="no column id, title"):
        batch.encode(tmp_path / "other.parquet", tmp_path / "b", workers=1)
    parquet.write_table(pyarrow.table({"id": ["1"], "title": [["x"]]}), tmp_path / "list.parquet")
    with pytest.raises(AskalikeError, match=r"list\.parquet cannot be read as questions"):
        batch.encode(tmp_path / "list.parquet", tmp_path / "c", workers=1)
    with pytest.raises(AskalikeError, match="'q0' is there twice"):
        batch.pairs([files[0], files[0]], tmp_path / "d", workers=1)
    with pytest.raises(ForumExistsError, match="holds no batch"):
        batch.encode(files, tmp_path, workers=1)
    with pytest.raises(SettingError, match="minimum"):
        batch.groups(files, tmp_path / "e", 0.2)
    assert issubclass(DamagedInputError, InputError)


def test_a_file_without_questions_is_a_part_without_questions(tmp_path: Path) -> None:
    listed = questions(20)
    full, none = write(tmp_path / "full.parquet", listed), tmp_path / "none.parquet"
    parquet.write_table(parquet.read_table(full).slice(0, 0), none)
    done = batch.pairs([full, none], tmp_path / "out", workers=1)
    assert (done.questions, done.parts) == (len(listed), 2)
    alone = batch.pairs(full, tmp_path / "alone", workers=1)
    assert rows(done.path) == rows(alone.path) != []
    assert batch.groups(none, tmp_path / "nothing", workers=1).count == 0


def test_a_batch_that_was_not_begun_wholly_leaves_no_encoder_behind(files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Forum.create(tmp_path / "forum") as forum:
        forum.add(questions(10))
        forum.encode()
    batch.encode(files[0], out, workers=1)
    (out / "batch.json").unlink()
    (out / "encoder.json").write_text("{}", encoding="utf-8")
    (out / "model").mkdir()
    batch.encode(tmp_path / "forum", out, workers=1)
    assert not (out / "encoder.json").exists()
    assert not (out / "model").exists()


def test_another_model_under_the_same_name_is_noticed(files: list[Path], tmp_path: Path) -> None:
    model, out = tmp_path / "model", tmp_path / "out"
    synonym_model().save(model)
    batch.encode(files, out, model=str(model), workers=1)
    assert batch.encode(files, out, model=str(model), workers=1).made == 0
    (out / "vectors" / "part-00001.parquet").unlink()
    shutil.rmtree(model)
    gated_model().save(model)
    with pytest.raises(SettingError, match=f"another model than {model} is now"):
        batch.encode(files, out, model=str(model), workers=1)
    shutil.rmtree(model)  # the batch has a copy
    assert batch.encode(files, out, model=str(model), workers=1).made == 1


def test_numbers_are_ids_by_their_digits(tmp_path: Path) -> None:
    table = pyarrow.table({"id": [7, 8, 9], "title": ["Wifi drops", "Wifi drops", "My cat purrs"]})
    parquet.write_table(table, tmp_path / "numbered.parquet")
    done = batch.pairs(tmp_path / "numbered.parquet", tmp_path / "out", workers=1)
    assert [(row["id"], row["original_id"]) for row in rows(done.path)] == [("8", "7")]


def test_a_folder_is_of_one_batch_and_one_process(files: list[Path], tmp_path: Path) -> None:
    batch.encode(files, tmp_path / "out", workers=1)
    with pytest.raises(SettingError, match="the language english, and german is given"):
        batch.encode(files, tmp_path / "out", language="german", workers=1)
    with pytest.raises(SettingError, match="other questions"):
        batch.encode(files[:2], tmp_path / "out", workers=1)
    with pytest.raises(SettingError, match="another model"):
        batch.encode(files, tmp_path / "out", model="minilm", workers=1)
    import filelock

    with (
        filelock.FileLock(tmp_path / "out" / "batch.lock"),
        pytest.raises(BusyForumError, match="another process"),
    ):
        batch.encode(files, tmp_path / "out", workers=1)
