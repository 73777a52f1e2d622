"""A disk that fills while questions are encoded and compared, and one that may only be read."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.disks import fill, mounted

from askalike import Forum, ForumSettings, Query, Question
from askalike.data import bundled_forum
from askalike.errors import DiskFullError, ForumError
from askalike.server.app import build
from askalike.server.settings import ServeSettings

pytestmark = pytest.mark.slow

WORDS = ForumSettings(has_vectors=False)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Give a disk that has room for the bundled forum with vectors and pairs."""
    with mounted(tmp_path / "disk", "size=30m") as folder:
        yield folder


QUERIES = ("wifi drops in the evening", "printer is offline", "laptop finds no network")


Scores = dict[tuple[str, str], float]


def answers(forum: Forum) -> Scores:
    return {(title, hit.question.id): hit.score for title in QUERIES for hit in forum.search(Query(title)).hits}


def found_pairs(forum: Forum) -> Scores:
    return {(pair.question.id, pair.candidate.id): pair.score for pair in forum.pairs.duplicates(0.3)}


@pytest.fixture
def undisturbed(encoded_homenet: Path, tmp_path: Path) -> tuple[Scores, Scores]:
    """Return what a forum answers, and its pairs, whose disk was never full."""
    with Forum.open(shutil.copytree(encoded_homenet, tmp_path / "undisturbed")) as forum:
        return answers(forum), found_pairs(forum)


@pytest.mark.parametrize("left", [0, 16, 64, 256])
def test_a_disk_that_fills_while_questions_are_encoded_and_compared_costs_nothing_but_time(
    disk: Path, undisturbed: tuple[Scores, Scores], left: int
) -> None:
    with Forum.create(disk / "f", settings=WORDS) as forum:
        forum.load(bundled_forum())
    fill(disk, left * 1024)
    for work in (Forum.encode, lambda forum: forum.pairs.compare()):
        with suppress(DiskFullError), Forum.open(disk / "f") as forum:
            work(forum)
        with Forum.open(disk / "f") as forum:
            assert answers(forum)
    (disk / "other").unlink()
    assert Forum.check(disk / "f").is_sound
    with Forum.open(disk / "f") as forum:
        forum.encode()
        assert answers(forum) == pytest.approx(undisturbed[0], abs=1e-3)
        assert found_pairs(forum) == pytest.approx(undisturbed[1], abs=1e-3)


def test_a_forum_on_a_disk_that_may_only_be_read_is_searched_and_served(disk: Path) -> None:
    with Forum.create(disk / "f") as forum:
        forum.load(bundled_forum())
        before, questions = answers(forum), len(forum)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with Forum.open(disk / "f") as forum:
        assert answers(forum) == before
        assert forum.info().counts.questions == questions
        assert list(forum.groups.find()) == []
        with pytest.raises(ForumError, match=r"archive\.sqlite cannot be written"):
            forum.add(Question("new", "printer is offline"))
    assert Forum.check(disk / "f").is_sound
    settings = ServeSettings(str(disk / "f"))
    with TestClient(build(settings), base_url="http://localhost:8765") as client:
        assert client.get("/readyz").status_code == 200
        assert client.post("/v1/similar", json={"title": QUERIES[0]}).json()["hits"]
        for path in ("/v1/status", "/v1/duplicates", "/v1/duplicates/groups", "/v1/questions/q1001"):
            assert client.get(path).status_code == 200, path
        answer = client.put("/v1/questions/new", json={"title": "printer"})
        assert "cannot be written" in answer.json()["error"]
