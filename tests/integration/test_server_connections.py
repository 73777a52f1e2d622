"""Connections of clients that keep the service waiting, or send what is no HTTP: each ends, and others are answered."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from askalike import Forum, Question
from askalike.server.admission import Share
from askalike.server.app import build
from askalike.server.server import Server, listen
from askalike.server.settings import Limits, ServeSettings

pytestmark = pytest.mark.usefixtures("words_alone")

PATIENCE_S = 120.0
SOON = 0.2
"""Of limits that a test waits for; all others are far longer than a test."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, words_alone: None) -> Path:
    path = tmp_path_factory.mktemp("connections") / "f.forum"
    with Forum.create(path) as forum:
        forum.add([Question("1", "Wifi drops at night", "All lights blink. " * 5_000)])
    return path


class Served:
    """A service on a thread of this process, and what a test does to it over sockets."""

    def __init__(self, server: Server, port: int) -> None:
        self.server, self.port = server, port

    def connect(self, address: str = "127.0.0.1") -> socket.socket:
        """Connect from an address of the loopback."""
        connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S, source_address=(address, 0))
        connection.settimeout(PATIENCE_S)
        return connection

    def ask(self, *parts: bytes) -> tuple[int, Any]:
        """Send bytes on a new connection; return the first answer's status and what its body holds."""
        with self.connect() as connection:
            for part in parts:
                connection.sendall(part)
            return answered(connection)

    def is_answered(self) -> bool:
        return self.ask(HEALTH) == (200, {"status": "ok"})

    @property
    def open(self) -> int:
        return len(self.server.server_state.connections)


def heard(connection: socket.socket) -> tuple[int, dict[bytes, bytes], Any]:
    """Return an answer's status, its headers, and the JSON that it holds, once all of it has come."""
    with connection.makefile("rb") as file:
        status = int(file.readline().split()[1])
        headers: dict[bytes, bytes] = {}
        while (line := file.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        content = file.read(int(headers[b"content-length"]))
    assert headers[b"content-type"] == b"application/json"
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert headers[b"x-request-id"]
    return status, headers, json.loads(content)


def answered(connection: socket.socket) -> tuple[int, Any]:
    """Return an answer's status and the JSON that it holds."""
    status, _, answer = heard(connection)
    return status, answer


@pytest.fixture
def serve(folder: Path) -> Iterator[Callable[..., Any]]:
    """Give a way to serve the forum by some settings."""

    @contextmanager
    def serving(
        trusted_proxies: tuple[str, ...] = (),
        listening: list[socket.socket] | None = None,
        share: Share | None = None,
        **limits: Any,
    ) -> Iterator[Served]:
        chosen = ServeSettings(str(folder), trusted_proxies=trusted_proxies, limits=Limits(**{"rate": 0, **limits}))
        server = Server(build(chosen), chosen.limits, chosen.proxies, share=share)
        listening = listening or listen("127.0.0.1", 0)
        thread = threading.Thread(target=server.run, args=(listening,))
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.01)
            yield Served(server, listening[0].getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(PATIENCE_S)
            assert not thread.is_alive()

    return serving


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


# -- clients that are slow ---------------------------------------------------------------------------------------------


def test_a_connection_that_sends_nothing_is_closed(serve: Any) -> None:
    with serve(first_byte_s=SOON) as served, served.connect() as silent:
        assert silent.recv(1) == b""


def test_a_head_that_comes_byte_by_byte_has_no_more_time(serve: Any) -> None:
    with serve(head_s=2 * SOON) as served, served.connect() as slow:
        slow.settimeout(0.01)
        received = b""
        end = time.monotonic() + PATIENCE_S
        while not received:
            assert time.monotonic() < end
            slow.sendall(b"G")
            try:
                received = slow.recv(12)
            except TimeoutError:
                continue
        assert received == b"HTTP/1.1 408"


def test_a_connection_that_asks_nothing_more_is_closed(serve: Any) -> None:
    with serve(idle_s=SOON) as served, served.connect() as idle:
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert answered(idle)[0] == 200
        assert idle.recv(1) == b""


def test_a_body_that_does_not_end_is_refused(serve: Any) -> None:
    with serve(timeout_s=SOON) as served:
        assert served.ask(POST + b"Content-Length: 9\r\n\r\n", b'{"tit')[0] == 408


def test_a_refused_body_that_does_not_end_is_waited_for_no_longer(serve: Any) -> None:
    with serve(linger_s=SOON) as served, served.connect() as slow:
        slow.sendall(b"POST /v1/similar HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n{")
        assert answered(slow)[0] == 415
        assert slow.recv(1) == b""


def test_a_client_that_never_reads_is_cut_off(serve: Any) -> None:
    """Its answers fill every buffer between it and the service, which then waits for it."""
    request = b"GET /v1/questions/1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serve(write_s=SOON) as served, served.connect() as deaf:
        deaf.sendall(request * 500)
        until(lambda: served.open == 1)
        until(lambda: served.open == 0)
        assert served.is_answered()


def test_a_client_that_reads_slowly_gets_all(serve: Any) -> None:
    with serve(write_s=1.0) as served, served.connect() as slow:
        slow.sendall(b"GET /v1/questions/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        received = 0
        while part := slow.recv(20_000):
            received += len(part)
            time.sleep(0.02)
        assert received > 250_000


def test_pipelined_requests_are_answered_in_their_order(serve: Any) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /none HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serve() as served, served.connect() as connection:
        connection.sendall(request * 200 + b"GET /healthz HTTP/1.0\r\n\r\n")
        received = b""
        while part := connection.recv(65_536):
            received += part
    assert re.findall(rb"HTTP/1\.1 (\d+)", received)[:400] == [b"200", b"404"] * 200


# -- clients that are many ---------------------------------------------------------------------------------------------


def test_of_too_many_connections_the_one_that_waits_longest_goes(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="askalike.server"), serve(connections=20) as served:
        silent = [served.connect() for _ in range(100)]
        assert all(served.is_answered() for _ in range(10))
        assert silent[0].recv(1) == b""
        assert served.open <= 20
        for connection in silent:
            connection.close()
    lines = [record.__dict__["fields"] for record in caplog.records if "fields" in record.__dict__]
    assert next(line["counts"] for line in lines if "counts" in line)["closed for another: new"] >= 1
    assert len(lines) <= 3, "one line for many connections"


def test_who_has_just_come_is_not_closed_for_those_who_send_slowly(serve: Any) -> None:
    with serve(connections=20) as served:
        slow = [served.connect() for _ in range(30)]
        for connection in slow:
            with contextlib.suppress(OSError):  # it may be closed already
                connection.sendall(POST + b"Content-Length: 900000\r\n\r\n{")
        assert all(served.is_answered() for _ in range(30))
        for connection in slow:
            connection.close()


REFUSED_BODY = b"POST /v1/similar HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n{"
"""A request that gets 415; its connection stays open for the rest of the body."""


@pytest.mark.parametrize("attacker", ["127.0.0.2", "127.0.0.1"])
def test_who_was_answered_is_not_closed_for_those_who_were_only_refused(
    serve: Any, attacker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.server.admission.STRANGE_WEIGHT", 1e9)  # whatever the clock does meanwhile
    with serve(connections=20) as served, served.connect() as known, contextlib.ExitStack() as attack:
        known.sendall(HEALTH)
        assert answered(known) == (200, {"status": "ok"})
        for _ in range(60):
            connection = attack.enter_context(served.connect(attacker))
            connection.sendall(REFUSED_BODY)
            assert answered(connection)[0] == 415
        known.sendall(HEALTH)
        assert answered(known) == (200, {"status": "ok"})


def test_one_address_has_no_more_connections_than_its_limit(serve: Any) -> None:
    with serve(client_connections=5) as served, contextlib.ExitStack() as several:
        many = [several.enter_context(served.connect()) for _ in range(30)]
        assert many[0].recv(1) == b""
        until(lambda: served.open == 5)
        assert served.is_answered()


def several(listening: socket.socket, count: int) -> list[socket.socket]:
    """Connect so many clients before anybody accepts one."""
    return [socket.create_connection(listening.getsockname(), PATIENCE_S) for _ in range(count)]


def test_workers_share_connections_that_come_at_once(serve: Any) -> None:
    counts = [Share.ABSENT] * 2
    with listen("127.0.0.1", 0)[0] as listening, contextlib.ExitStack() as end:
        workers = [end.enter_context(serve((), [listening.dup()], Share(counts, own))) for own in range(2)]
        for others in (8, 16):
            clients = [end.enter_context(connection) for connection in several(listening, 8)]
            until(lambda wanted=others: sum(worker.open for worker in workers) == wanted)
            assert [worker.open for worker in workers] == counts == [others / 2, others / 2]
        for client in clients[:3]:
            client.close()
        until(lambda: sum(counts) == 13)
        for client in several(listening, 5):
            end.enter_context(client)
        until(lambda: sum(counts) == 18)
        assert max(counts) - min(counts) <= 1
    assert counts == [Share.ABSENT] * 2


def test_a_worker_takes_the_connections_that_another_should_and_does_not(serve: Any) -> None:
    counts, [listening] = [Share.ABSENT, 0], listen("127.0.0.1", 0)  # the second was killed
    with serve((), [listening], Share(counts, 0)), contextlib.ExitStack() as end:
        for connection in [end.enter_context(opened) for opened in several(listening, 5)]:
            connection.sendall(HEALTH)
            assert answered(connection) == (200, {"status": "ok"})
        assert counts == [5, 0]


def test_a_connection_ends_with_its_last_answer_and_not_before_the_request_was_read(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.server.connection.MAX_ANSWERS", 2)
    with serve() as served, served.connect() as connection:
        for is_last in (False, True):
            connection.sendall(HEALTH)
            status, headers, _ = heard(connection)
            assert (status, headers.get(b"connection") == b"close") == (200, is_last)
        assert connection.recv(1) == b""
        monkeypatch.setattr("askalike.server.connection.MAX_ANSWERS", 1)
        body = b"x" * 8_000_000
        head = b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
        assert served.ask(head + body[:1_000], body[1_000:])[0] == 404


def test_where_all_connections_are_at_work_the_next_is_refused(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    is_free, searching = threading.Event(), threading.Semaphore(0)

    def search(*_: Any, **__: Any) -> None:
        searching.release()
        is_free.wait(PATIENCE_S)

    body = b'{"title":"wifi"}'
    request = (
        b"POST /v1/similar HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    )
    with serve(connections=2) as served:
        monkeypatch.setattr(Forum, "similar_many", search)
        busy = [served.connect() for _ in range(2)]
        for connection in busy:
            connection.sendall(request)
            assert searching.acquire(timeout=PATIENCE_S)
        with served.connect() as refused:
            status, answer = answered(refused)
        assert (status, set(answer)) == (503, {"error", "hint"})
        is_free.set()
        for connection in busy:
            connection.close()
        monkeypatch.undo()


# -- what is no HTTP ---------------------------------------------------------------------------------------------------

POST = b"POST /v1/similar HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

REFUSED: dict[str, tuple[bytes, int]] = {
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", 400),
    "no version": (b"GET /healthz\r\n\r\n", 400),
    "no Host": (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
    "two Hosts": (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n", 400),
    "a header without a name": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n", 400),
    "a space before the colon": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nA : x\r\n\r\n", 400),
    "NUL in a header": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: \x00\r\n\r\n", 400),
    "a head that is too large": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * 40_000, 431),
    "too many headers": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 9_000, 431),
    "an address that is too long": (b"GET /" + b"a" * 40_000, 431),
    "a length that is no number": (POST + b"Content-Length: ten\r\n\r\n", 400),
    "a negative length": (POST + b"Content-Length: -1\r\n\r\n", 400),
    "two lengths": (POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    "a length and chunks": (POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "chunks in HTTP/1.0": (
        b"POST /v1/similar HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "another transfer encoding": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
    "a chunk without a size": (POST + b"Transfer-Encoding: chunked\r\n\r\nsize\r\n", 400),
    "tiny chunks": (POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 3_000, 400),
}


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    settings = ServeSettings(str(folder), limits=Limits(rate=0))
    server = Server(build(settings), settings.limits)
    listening = listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=(listening,))
    thread.start()
    until(lambda: server.started)
    yield Served(server, listening[0].getsockname()[1])
    server.should_exit = True
    thread.join(PATIENCE_S)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_http_is_refused_as_all_else_is(served: Served, name: str) -> None:
    content, expected = REFUSED[name]
    status, answer = served.ask(content)
    assert (status, set(answer)) == (expected, {"error", "hint"})
    assert served.is_answered()


def test_a_smuggled_request_is_never_answered(served: Served) -> None:
    hidden = b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with served.connect() as connection:
        connection.sendall(POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden)
        received = b""
        while part := connection.recv(65_536):
            received += part
    assert received.count(b"HTTP/1.1 ") == 1


def test_a_request_line_may_name_the_whole_address_of_the_host_that_is_asked(served: Served) -> None:
    line = b"GET http://localhost/healthz HTTP/1.1\r\nHost: %s\r\n\r\n"
    assert served.ask(line % b"localhost") == (200, {"status": "ok"})
    assert served.ask(b"GET http://localhost HTTP/1.1\r\nHost: evil.example\r\n\r\n")[0] == 400
    evil = b"GET http://evil.example/v1/status HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    assert served.ask(evil)[0] == 421, "it is no name of this service"


def test_an_upgrade_is_not_taken(served: Served) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert served.ask(request) == (200, {"status": "ok"})


# -- whose request it is -----------------------------------------------------------------------------------------------


def asks(served: Served, *forwarded: str) -> int:
    headers = "".join(f"X-Forwarded-For: {address}\r\n" for address in forwarded)
    return served.ask(f"GET /v1/questions/1 HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())[0]


def test_nobody_can_say_that_somebody_else_asks(serve: Any) -> None:
    with serve(rate=0.001, burst=2) as served:
        statuses = [asks(served, f"10.0.0.{number}") for number in range(4)]
        assert statuses == [200, 200, 429, 429]


def test_behind_a_trusted_proxy_each_visitor_has_its_own_rate(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.INFO, logger="askalike.server.requests"),
        serve(("127.0.0.0/8",), rate=0.001, burst=1) as served,
    ):
        assert [asks(served, "192.0.2.1"), asks(served, "192.0.2.1")] == [200, 429]
        assert asks(served, "192.0.2.2") == 200
        assert asks(served, "192.0.2.9, 192.0.2.1") == 429, "what it wrote itself does not count"
        assert asks(served, "192.0.2.9", "192.0.2.1") == 429
        assert asks(served, "<script>" + "x" * 9_000) == 200
        assert asks(served, "not an address") == 429, "counted for the proxy, as the one before"
    clients = [record.__dict__["fields"]["client"] for record in caplog.records if "fields" in record.__dict__]
    assert set(clients) == {"192.0.2.1", "192.0.2.2", "127.0.0.1"}


@pytest.mark.parametrize("line", [b"Authorization : Bearer very-secret", b"X: \x00very-secret", b": very-secret"])
def test_an_illegal_header_is_refused_without_being_repeated(serve: Any, line: bytes) -> None:
    with serve() as served:
        status, answer = served.ask(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n" + line + b"\r\n\r\n")
    assert (status, answer["error"]) == (400, "the request is not HTTP/1.1: illegal header line")
