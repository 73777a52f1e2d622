"""A forum's folder is moved, deleted or replaced while the library or a service has it open."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.postgres_server import new_database

from askalike import Forum, Query, Question
from askalike.errors import ForumError, ForumNotFoundError
from askalike.server.app import build
from askalike.server.forums import ForumsApplication
from askalike.server.settings import Limits, ServeSettings

BASE = "http://localhost:8765"
LIMITS = Limits(rate=0, timeout_s=120)
PATIENCE_S = 120.0


def forum_of(path: Path, *titles: str) -> Path:
    with Forum.create(path) as forum:
        forum.add([Question(f"{path.name} {number}", title) for number, title in enumerate(titles)])
    return path


def move(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def delete(path: Path) -> None:
    shutil.rmtree(path)


def replace(path: Path) -> None:
    shutil.rmtree(path)
    forum_of(path.with_name("another"), "Zebra crossing").rename(path)


OPERATIONS: dict[str, Callable[[Forum], object]] = {
    "search": lambda forum: forum.search(Query("zebra printer")),
    "search by meaning": lambda forum: forum.search(Query("zebra printer", ranker="meaning")),
    "question": lambda forum: forum.question("f 0"),
    "length": len,
    "add": lambda forum: forum.add(Question("new", "Toaster burns")),
    "catch up": lambda forum: forum.catch_up(),
    "encode": lambda forum: forum.encode(),
    "compare": lambda forum: forum.pairs.compare(),
    "pairs": lambda forum: forum.pairs.advance(1.0),
    "groups": lambda forum: forum.groups.find(),
    "info": lambda forum: forum.info(),
    "export": lambda forum: forum.export(forum.path.with_name("exported")),
}


@pytest.mark.parametrize("happens", [move, delete, replace])
def test_a_forum_that_was_moved_deleted_or_replaced_while_open_answers_no_more(
    tmp_path: Path, happens: Callable[[Path], None]
) -> None:
    path = forum_of(tmp_path / "f", "Printer prints blank pages", "Printer prints only blank pages")
    with Forum.open(path) as forum:
        forum.search(Query("printer"))
        happens(path)
        before = sorted(path.rglob("*"))
        for name, operation in OPERATIONS.items():
            with pytest.raises(ForumError):
                print(name, operation(forum))
        with pytest.raises(ForumNotFoundError, match="was moved, deleted or replaced while it was open"):
            forum.search("printer")
    left = [path for path in sorted(path.rglob("*")) if path.suffix != ".lock"]
    assert left == [path for path in before if path.suffix != ".lock"], "something was written where it stood"
    if happens is replace:
        with Forum.open(path) as other:
            assert [hit.question.id for hit in other.similar("zebra")] == ["another 0"]


def test_a_forum_in_a_database_whose_folder_was_moved_answers_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    path = tmp_path / "f"
    with Forum.attach(path, new_database()) as forum:
        forum.add(Question("1", "Printer prints blank pages"))
        path.rename(tmp_path / "g")
        for operation in (lambda: forum.search("printer"), lambda: forum.add(Question("2", "Toaster")), forum.catch_up):
            with pytest.raises(ForumError, match=r"was moved|is not there"):
                operation()
        assert not path.exists()
    with Forum.open(tmp_path / "g") as forum:
        assert [question.id for question in forum.questions()] == ["1"]


def first_title(client: TestClient, path: str) -> str:
    """Return the title of the best hit; a service that has no forum for the moment is asked again."""
    end_s = time.monotonic() + PATIENCE_S
    while True:
        answer = client.post(path, json={"title": "zebra printer"})
        if answer.status_code == 200:
            return str(answer.json()["hits"][0]["question"]["title"])
        assert answer.status_code in (404, 503), answer.text
        assert time.monotonic() < end_s, answer.text
        time.sleep(0.05)


def test_a_service_refuses_without_its_folder_and_answers_for_what_stands_there_then(tmp_path: Path) -> None:
    path = forum_of(tmp_path / "f", "Printer prints blank pages")
    with TestClient(build(ServeSettings(str(path), limits=LIMITS)), base_url=BASE) as client:
        assert first_title(client, "/v1/similar") == "Printer prints blank pages"
        path.rename(tmp_path / "elsewhere")
        for answer in (client.post("/v1/similar", json={"title": "printer"}), client.get("/readyz")):
            assert answer.status_code == 503
            assert "there is no forum" in answer.json()["error"]
        assert client.put("/v1/questions/new", json={"title": "Toaster"}).status_code == 503
        assert not path.exists()
        forum_of(path, "Zebra crossing")
        assert first_title(client, "/v1/similar") == "Zebra crossing"
        assert client.get("/readyz").status_code == 200


def test_of_several_forums_one_that_was_replaced_is_opened_again(tmp_path: Path) -> None:
    for name in ("f", "g"):
        forum_of(tmp_path / "all" / name, "Printer prints blank pages")
    with TestClient(ForumsApplication(ServeSettings(str(tmp_path / "all"), limits=LIMITS)), base_url=BASE) as client:
        assert first_title(client, "/f/v1/similar") == "Printer prints blank pages"
        (tmp_path / "all" / "f").rename(tmp_path / "elsewhere")
        assert client.get("/f/v1/status").status_code == 404
        assert [forum["name"] for forum in client.get("/v1/forums").json()["forums"]] == ["g"]
        forum_of(tmp_path / "all" / "f", "Zebra crossing")
        assert first_title(client, "/f/v1/similar") == "Zebra crossing"
        replace(tmp_path / "all" / "f")
        assert first_title(client, "/f/v1/similar") == "Zebra crossing"
        assert client.get("/f/v1/questions/another%200").status_code == 200
