"""A disk that is full: what is indexed is found, what is written is refused or stored, and each says which."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.disks import fill, mounted

from askalike import Forum, ForumSettings, Question
from askalike.errors import DiskFullError
from askalike.server.app import build
from askalike.server.settings import ServeSettings

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("words_alone")]

WORDS = ForumSettings(has_vectors=False)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Give a disk of two megabytes."""
    with mounted(tmp_path / "disk", "size=2m") as folder:
        yield folder


def ids(forum: Forum, title: str) -> set[str]:
    return {hit.question.id for hit in forum.search(title).hits}


@pytest.fixture
def forum(disk: Path) -> Iterator[Forum]:
    with Forum.create(disk / "f", settings=WORDS) as forum:
        forum.add([Question(f"q{number}", f"wifi drops {number}", "text " * 20) for number in range(50)])
        yield forum


def test_a_write_on_a_full_disk_changes_nothing_and_searches_go_on(forum: Forum, disk: Path) -> None:
    before = ids(forum, "wifi drops")
    fill(disk, 0)
    with pytest.raises(DiskFullError, match="its disk is full"):
        forum.add(Question("new", "printer is offline"))
    assert ids(forum, "wifi drops") == before
    with Forum.open(forum.path, settings=WORDS) as opened:
        assert ids(opened, "wifi drops") == before
    (disk / "other").unlink()
    forum.add(Question("new", "printer is offline"))
    assert ids(forum, "printer offline") == {"new"}


def test_what_is_stored_and_not_indexed_is_said_to_be_and_found_once_there_is_room(forum: Forum, disk: Path) -> None:
    with TestClient(build(ServeSettings(str(forum.path))), base_url="http://localhost:8765") as client:
        assert client.put("/v1/questions/first", json={"title": "printer is offline"}).status_code == 200
        number = 0
        for kilobytes in range(48, 256, 16):  # until it is enough for the archive, and too little for the index
            fill(disk, kilobytes * 1024)
            while (answer := client.put(f"/v1/questions/new{number}", json={"title": f"printer {number}"})).is_success:
                number += 1
            assert answer.status_code == 507
            if (error := answer.json()["error"]).startswith("stored"):
                break
            assert "archive.sqlite cannot be written: its disk is full" in error
        assert error.startswith("stored, not yet indexed: the word index")
        assert client.get("/readyz").status_code == 200
        assert client.post("/v1/similar", json={"title": "wifi drops"}).json()["hits"]
    last = f"new{number}"
    with closing(Forum.open(forum.path, settings=WORDS)) as opened:
        assert opened.question(last)
        assert opened.info().behind > 0
        assert ids(opened, "wifi drops")
        (disk / "other").unlink()
        opened.catch_up()
        assert last in ids(opened, f"printer {number}")
