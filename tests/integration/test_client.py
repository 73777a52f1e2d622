"""The client of the service: every route has a method, connections are kept, and a program may await it all."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tools.serving import serving

from askalike import Forum, Question
from askalike.client import Client, ServiceError, _refusal
from askalike.errors import SettingError
from askalike.follow.settings import FollowSettings
from askalike.follow.state import State
from askalike.operations import service_document
from askalike.schemas import Written
from askalike.server.app import build
from askalike.server.settings import ServeSettings
from askalike.store import ForumLayout

SECRET = "FOLLOWED_FORUM_SECRET"
WEBHOOK = b'{"post": {"topic_id": 7}}'
SIGNED = {
    "X-Discourse-Event-Id": "1",
    "X-Discourse-Event-Type": "post",
    "X-Discourse-Event-Signature": f"sha256={hmac.new(b'secret', WEBHOOK, hashlib.sha256).hexdigest()}",
}
ROUTE_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "similar": ("Wifi drops",),
    "shown": ("1",),
    "put": ("3", "Scanner is silent"),
    "put_answer": ("a", "3", "Restart it."),
    "delete_answer": ("a",),
    "mark": ("3", "1"),
    "unmark": ("3", "1"),
    "decide": ("1", "2", "duplicate", "ann"),
    "undo": (1, "ann"),
    "delete": ("3",),
    "helped": ("1",),
    "opened": ("1",),
    "follow": (WEBHOOK, SIGNED),
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("client") / "f.forum"
    with Forum.create(folder) as forum:
        forum.add([Question("1", "Wifi drops at night"), Question("2", "Printer prints blank pages", tags=("x",))])
    with State.create(ForumLayout(folder)) as state:
        followed = FollowSettings("https://forum.example.org", "discourse", secret_variable=SECRET)
        state.put(settings=followed.to_json())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SECRET, "secret")
        with serving(build(ServeSettings(str(folder)))) as address, Client(address) as client:
            yield client


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, http.client.HTTPConnection]]:
    """Return what was asked since: method, path, and the connection that it went over."""
    seen: list[tuple[str, str, http.client.HTTPConnection]] = []
    request = http.client.HTTPConnection.request

    def noted(self: http.client.HTTPConnection, method: str, url: str, *more: Any, **named: Any) -> None:
        seen.append((method, url, self))
        request(self, method, url, *more, **named)

    monkeypatch.setattr(http.client.HTTPConnection, "request", noted)
    return seen


def test_every_route_has_a_method_that_asks_it_over_one_connection(
    client: Client, sent: list[tuple[str, str, http.client.HTTPConnection]]
) -> None:
    document: Any = service_document()
    routes = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    client.close()
    for name in (*ROUTE_ARGUMENTS, "questions", "duplicates", "log", "groups", "status", "metrics"):
        getattr(client, name)(*ROUTE_ARGUMENTS.get(name, ()))
    client.health(), client.ready(), client.openapi()
    assert len({id(connection) for *_, connection in sent}) == 1
    requested = set()
    for method, url, _ in sent:
        path = url.partition("?")[0]
        fitting = [route for route in routes if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", route), f"{method} {path}")]
        requested.add(min(fitting, key=lambda route: route.count("{")))
    assert requested == routes


def test_an_answer_with_some_fields_is_read(client: Client) -> None:
    (hit, *_) = client.similar("Wifi drops", fields=["question.title"]).hits
    assert (hit.question.title, hit.question.body, hit.score) == ("Wifi drops at night", "", 0.0)


def test_a_connection_is_used_again_and_replaced_where_the_service_has_closed_it(
    client: Client, sent: list[tuple[str, str, http.client.HTTPConnection]]
) -> None:
    client.close()
    for _ in range(3):
        client.health()
    assert len({id(connection) for *_, connection in sent}) == 1
    sent[-1][2].sock.shutdown(2)
    assert client.health().status == "ok"
    with pytest.raises(ServiceError, match="no question"):
        client.question("none")
    assert len({id(connection) for *_, connection in sent}) == 1


@pytest.mark.parametrize(("seconds", "wanted"), [(b"7", 7.0), (b"\xb2", None), (b"", None), (b"soon", None)])
def test_a_refusal_has_the_seconds_after_which_to_try_again(seconds: bytes, wanted: float | None) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nRetry-After: " + seconds + b"\r\n\r\n")
        with http.client.HTTPResponse(ours) as answer:
            answer.begin()
            assert _refusal(answer, b"{}").retry_after_s == wanted


def test_the_client_leaves_out_what_it_does_not_know_and_says_what_it_cannot_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client("http://localhost")
    newer = b'{"id": "a", "operation": "added", "indexed": true, "since": {"version": [2]}}'
    monkeypatch.setattr(Client, "_send", lambda *_, **__: newer)
    assert client.put("a", "Title") == Written("a", "added", indexed=True)
    for other in (b"<html>", b"[]", b'{"id": 1}', b"", b"\xff"):
        monkeypatch.setattr(Client, "_send", lambda *_, other=other, **__: other)
        with pytest.raises(ServiceError, match="cannot be read"):
            client.put("a", "Title")


def test_many_threads_ask_with_one_client(client: Client) -> None:
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: client.similar("wifi", k=1), range(20)))
    assert [answer.hits[0].question.id for answer in answers] == ["1"] * 20


@pytest.mark.parametrize(
    "address", ["", "localhost", "ftp://host", "http://host:99999", "http://[::1", "http://host:x"]
)
def test_an_address_that_is_none_is_named(address: str) -> None:
    with pytest.raises(SettingError, match="is no address"):
        Client(address)


def test_a_service_that_is_not_there_is_named(tmp_path: Path) -> None:
    with Client("http://127.0.0.1:9") as nobody, pytest.raises(ServiceError, match="gave no answer"):
        nobody.health()
