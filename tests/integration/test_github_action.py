"""The GitHub Action against a server that answers as GitHub does, and a real service; payloads have GitHub's shape."""

from __future__ import annotations

import http.server
import importlib.util
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.serving import serving

from askalike import Forum, Question
from askalike.server.app import build
from askalike.server.settings import Limits, ServeSettings

ACTION = Path(__file__).resolve().parents[2] / "integrations" / "github-action"
_SPEC = importlib.util.spec_from_file_location("duplicates", ACTION / "duplicates.py")
assert _SPEC is not None
assert _SPEC.loader is not None
action = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(action)

ISSUE: dict[str, Any] = {
    "id": 73464126,
    "node_id": "MDU6SXNzdWU3MzQ2NDEyNg==",
    "number": 9,
    "title": "Printer prints only blank pages after the update",
    "body": None,
    "user": {"login": "baxterthehacker", "type": "User"},
    "labels": [],
    "state": "open",
    "comments": 0,
}
SAME = "Printer prints only blank pages after the update"


class GitHub:
    """What the action asks of GitHub: the comments of one issue."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.asked: list[str] = []
        github = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def _answer(self, status: int, value: object) -> None:
                content = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def _take(self) -> None:
                github.asked.append(f"{self.command} {self.path}")
                sent = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
                if self.headers["Authorization"] != "Bearer token":
                    return self._answer(401, {"message": "Bad credentials"})
                if self.command == "POST":
                    comment_made = {
                        "id": len(github.comments) + 1,
                        "user": {"login": "github-actions[bot]", "type": "Bot"},
                    }
                    github.comments.append({**comment_made, **sent})
                    return self._answer(201, comment_made)
                if self.command == "PATCH":
                    number = int(self.path.rpartition("/")[2])
                    comment = next(comment for comment in github.comments if comment["id"] == number)
                    return self._answer(200, comment.update(sent))
                page = int(re.search(r"[?&]page=(\d+)", self.path)[1])  # type: ignore[index]
                return self._answer(200, github.comments[100 * page - 100 : 100 * page])

            do_GET = do_POST = do_PATCH = _take  # noqa: N815 - as http.server names them

            def log_message(self, format: str, *args: object) -> None:
                """Keep still."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def github() -> Iterator[GitHub]:
    server = GitHub()
    thread = threading.Thread(target=server.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.server.shutdown()
    server.server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("action") / "issues.forum"
    with Forum.create(path) as forum:
        others = [Question(str(number), f"Feature {number}: export of view {number}") for number in range(10, 40)]
        mention = Question("4", f"{SAME} @ann [urgent]")
        forum.add([Question("3", SAME), mention, Question("9", SAME), Question("x1", SAME), *others])
    with serving(build(ServeSettings(str(path), limits=Limits(rate=0)))) as address:
        yield address


@pytest.fixture
def run(tmp_path: Path, github: GitHub, service: str) -> Callable[..., int]:
    def called(kind: str = "opened", settings: dict[str, str] | None = None, **issue: Any) -> int:
        event = tmp_path / "event.json"
        shape = {"action": kind, "issue": {**ISSUE, **issue}, "repository": {"full_name": "octo/app"}}
        event.write_text(json.dumps(shape), encoding="utf-8")
        return int(
            action.main(
                {
                    "GITHUB_EVENT_PATH": str(event),
                    "GITHUB_REPOSITORY": "octo/app",
                    "GITHUB_API_URL": github.address,
                    "GITHUB_TOKEN": "token",
                    "ASKALIKE_URL": f"{service}/",
                    "ASKALIKE_SILENT_LABEL": "not-a-duplicate",
                    **(settings or {}),
                }
            )
        )

    return called


def test_likely_duplicates_are_commented_once_and_never_the_issue_itself(
    run: Callable[..., int], github: GitHub
) -> None:
    assert run() == run() == run("reopened") == 0
    (comment,) = github.comments
    lines = comment["body"].splitlines()
    assert lines[0] == action.MARKER
    named = re.findall(r"https://redirect\.github\.com/octo/app/issues/(\S+?)\)", comment["body"])
    assert named[0] == "3"
    assert not {"9", "x1"} & set(named)
    assert {request.partition(" ")[0] for request in github.asked} == {"GET", "POST"}
    assert all(re.search(r"/issues/9/comments", request) for request in github.asked)


def test_nobody_is_mentioned_and_titles_are_no_markup(run: Callable[..., int], github: GitHub) -> None:
    run(title=f"{SAME} @ann [urgent]")
    body = github.comments[0]["body"]
    assert "@\u200bann" in body
    assert "@ann" not in body
    assert r"\[urgent\]" in body


def test_the_comment_follows_the_issue_as_it_is_edited(run: Callable[..., int], github: GitHub) -> None:
    run()
    run("edited", title="How do I change the colours of the map")
    (comment,) = github.comments
    assert comment["body"] == f"{action.MARKER}\n{action.NOTHING}"
    run("edited")
    assert "issues/3" in github.comments[0]["body"]
    assert [request.partition(" ")[0] for request in github.asked].count("PATCH") == 2


def test_nothing_is_said_where_nothing_keeps_the_promise(run: Callable[..., int], github: GitHub) -> None:
    run(title="How do I change the colours of the map")
    assert github.comments == []


@pytest.mark.parametrize(
    ("kind", "issue"),
    [
        ("opened", {"labels": [{"id": 1, "name": "not-a-duplicate"}]}),
        ("opened", {"pull_request": {"url": "https://api.github.com/repos/octo/app/pulls/9"}}),
        ("closed", {}),
        ("edited", {"state": "closed"}),
    ],
)
def test_it_is_silent_when_told_and_for_what_is_no_open_issue(
    run: Callable[..., int], github: GitHub, kind: str, issue: dict[str, Any]
) -> None:
    assert run(kind, **issue) == 0
    assert github.asked == []


def test_a_marker_that_somebody_else_wrote_is_not_edited(run: Callable[..., int], github: GitHub) -> None:
    github.comments = [{"id": 1, "body": f"{action.MARKER} mine", "user": {"login": "eve", "type": "User"}}]
    github.comments += [{"id": number, "body": "?", "user": {"type": "User"}} for number in range(2, 131)]
    run()
    assert github.comments[0]["body"].endswith("mine")
    assert len(github.comments) == 131
    run()
    assert len(github.comments) == 131


@pytest.mark.parametrize(
    "settings",
    [{"ASKALIKE_URL": "http://127.0.0.1:9"}, {"GITHUB_TOKEN": "wrong"}, {"ASKALIKE_PRECISION": "2"}],
)
def test_what_fails_is_a_warning_and_no_failed_workflow(
    run: Callable[..., int], github: GitHub, capsys: pytest.CaptureFixture[str], settings: dict[str, str]
) -> None:
    assert run(settings=settings) == 0
    assert "::warning title=askalike::" in capsys.readouterr().out
    assert github.comments == []
