"""A site for tests: a server whose answers a function gives, and a clock that only waits move."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from askalike.follow.site import Clock

Answer = tuple[int, Mapping[str, str], bytes | None]
"""Status, headers and body; None for a connection that is hung up."""


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    """Their names in lower case."""
    content: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.content) if self.content else None


class FakeClock:
    """Seconds that pass when somebody waits."""

    def __init__(self) -> None:
        self.now_s = 1_750_000_000.0
        self.waits_s: list[float] = []
        self.clock = Clock(lambda: self.now_s, lambda: self.now_s, self.pause)

    def pause(self, seconds: float) -> None:
        assert seconds >= 0
        self.now_s += seconds
        self.waits_s.append(seconds)


def as_json(value: Any, status: int = 200, **headers: str) -> Answer:
    """Return an answer; underscores in the names of headers stand for hyphens."""
    return status, {name.replace("_", "-"): text for name, text in headers.items()}, json.dumps(value).encode()


@contextmanager
def serving(answer: Callable[[Request], Answer]) -> Iterator[str]:
    """Give the address at which a function answers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def _answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, answered, body = answer(Request(self.command, self.path, headers, content))
            if body is None:
                return
            self.send_response(status)
            named = {"Content-Type": "application/json", "Content-Length": str(len(body)), **answered}
            for name, value in named.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(ConnectionError):  # who asked was killed
                self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - the names of the standard library

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
