"""Bulk streams and clients that do not read while they send: none waits for the other for ever."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from askalike import Forum
from askalike.client import Client, ServiceError
from askalike.schemas import Written
from askalike.server import streams
from askalike.server.app import build
from askalike.server.service import Service
from askalike.server.settings import Limits, ServeSettings
from askalike.server.streams import BulkResponse, lines_of

pytestmark = pytest.mark.usefixtures("words_alone")

PATIENCE_S = 60


@pytest.fixture
def service(tmp_path: Path, words_alone: None) -> Iterator[Service]:
    Forum.create(tmp_path / "f").close()
    app = build(ServeSettings(str(tmp_path / "f"), limits=Limits(stream_s=0.2)))
    with TestClient(app):
        yield app.state.forum.service


class Sender:
    """A client that sends ``count`` records one by one, then reads; or stops in the middle of one."""

    def __init__(self, count: int, *, stops: bool = False) -> None:
        self._left = count
        self._stops = stops
        self._is_sent = asyncio.Event()
        self._received = bytearray()

    async def receive(self) -> dict[str, Any]:
        if self._left:
            self._left -= 1
            return {"type": "http.request", "body": b'{"id": "a"' if self._stops else b"{}\n", "more_body": True}
        if self._stops:
            self._is_sent.set()
            await asyncio.Event().wait()
        self._is_sent.set()
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.body":
            await self._is_sent.wait()
            self._received += message["body"]

    def told(self, service: Service) -> list[Any]:
        """Return what it reads in the end."""
        scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
        response = BulkResponse(service, Request(scope, self.receive), "client")

        async def answer() -> None:
            await asyncio.wait_for(response(scope, self.receive, self.send), PATIENCE_S)

        asyncio.run(answer())
        return [json.loads(line) for line in self._received.splitlines()]


def test_a_client_that_sends_all_before_it_reads_is_served(service: Service) -> None:
    told = Sender(300).told(service)
    assert told[-1] == {"done": True, "stored": 0, "refused": 300}
    assert [one["line"] for one in told[:-1]] == list(range(1, 301))


def test_a_record_that_never_ends_ends_the_stream(service: Service) -> None:
    told = Sender(3, stops=True).told(service)
    assert set(told[0]) == {"error", "hint"}
    assert told[-1] == {"done": False, "stored": 0, "refused": 0}


def test_what_a_client_does_not_read_is_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_WAITING", 100)
    reads = asyncio.Event()

    async def send(_: Any) -> None:
        await reads.wait()

    async def steps() -> None:
        outbox = streams._Outbox(send)
        sending = asyncio.create_task(outbox.send_all())
        outbox.put(b"x" * 50)
        await asyncio.wait_for(outbox.room(), PATIENCE_S)
        outbox.put(b"x" * 101)
        waiting = asyncio.create_task(outbox.room())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        reads.set()
        await asyncio.wait_for(waiting, PATIENCE_S)
        outbox.close(b"")
        await asyncio.wait_for(sending, PATIENCE_S)

    asyncio.run(steps())


def test_lines_are_the_same_however_they_are_cut() -> None:
    content = b"one\n\n  \ntwo" + b"o" * 30 + b"\nthree\nlast"
    limits = Limits(record_bytes=20)

    async def lines(size: int) -> list[Any]:
        async def parts() -> Any:
            for start in range(0, len(content), size):
                yield content[start : start + size]

        read = [line async for part in lines_of(parts(), limits) for line in part]
        return [(number, line if isinstance(line, bytes) else line.status) for number, line in read]

    expected = asyncio.run(lines(len(content)))
    assert [number for number, _ in expected] == [1, 4, 5, 6]
    assert all(asyncio.run(lines(size)) == expected for size in range(1, 20))


def test_the_client_leaves_out_what_it_does_not_know_and_says_what_it_cannot_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client("http://localhost")
    newer = b'{"id": "a", "operation": "added", "indexed": true, "since": {"version": [2]}}'
    monkeypatch.setattr(Client, "_send", lambda *_: newer)
    assert client.put("a", "Title") == Written("a", "added", indexed=True)
    for other in (b"<html>", b"[]", b'{"id": 1}', b"", b"\xff"):
        monkeypatch.setattr(Client, "_send", lambda *_, other=other: other)
        with pytest.raises(ServiceError, match="cannot be read"):
            client.put("a", "Title")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (
            b'{"error": "no whole line came for 60 s", "hint": "x"}\n{"done": false, "stored": 1, "refused": 0}\n',
            "no whole",
        ),
        (b'{"line": 2, "id": null, "err', "cut"),
        (b"", "cut"),
    ],
)
def test_the_client_says_why_a_stream_was_ended(monkeypatch: pytest.MonkeyPatch, answer: bytes, error: str) -> None:
    first = b'{"line": 1, "id": "a", "operation": "added"}\n'
    monkeypatch.setattr(Client, "_send", lambda *_: first + answer)
    acknowledged = Client("http://localhost").put_many([{"id": "a", "title": "a"}])
    assert next(acknowledged).id == "a"
    with pytest.raises(ServiceError, match=error):
        next(acknowledged)
