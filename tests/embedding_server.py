"""A local server that speaks OpenAI's and Cohere's protocols, and fails as it is told."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["DIMENSIONS", "EmbeddingServer", "WordHashes", "serving"]

DIMENSIONS = 32
SAME = {"wireless": "wifi", "disconnects": "drops", "connection": "wifi"}
"""Words that this encoder reads as others."""


class WordHashes:
    """A ``TextEncoder``: the sum of a direction for each word, drawn by its hash; keeps the texts that it was given."""

    def __init__(self, name: str = "python:hashes@1", dimensions: int = DIMENSIONS) -> None:
        self.name = name
        self.dimensions = dimensions
        self.queries: list[str] = []
        self.documents: list[str] = []

    def encode_query(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.queries += texts
        return self.vectors(texts)

    def encode_document(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.documents += texts
        return self.vectors(texts)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row] += direction_of(self.name + SAME.get(word, word), self.dimensions)
        return vectors


@lru_cache(1 << 16)
def direction_of(word: str, dimensions: int) -> NDArray[np.float64]:
    """Return numbers drawn by the hash of a word.  # (D,)"""
    seed = hashlib.sha256(word.encode()).digest()[:4]
    return np.random.default_rng(list(seed)).standard_normal(dimensions)


class EmbeddingServer(ThreadingHTTPServer):
    """Answers with ``WordHashes``; each planned failure is used by one request, in order."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.encoder = WordHashes("served")
        self.plan: list[str] = []
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.most_texts = 10_000
        self.on_request: Callable[[int], None] = lambda _: None
        self.guard = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def named(self) -> str:
        """Return it as a user names it as an encoder."""
        return f"openai:{self.address}/v1#served"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that go are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: EmbeddingServer

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.guard:
            self.server.requests.append((self.path, dict(self.headers), request))
            failure = self.server.plan.pop(0) if self.server.plan else ""
            self.server.on_request(len(self.server.requests))
        if self.path.endswith("/rerank"):
            return self._rerank(request, failure)
        texts = request["input"]
        if len(texts) > self.server.most_texts:
            return self._say(413, b"too large")
        if failure == "nothing":
            self.close_connection = True
            return None
        if failure.isdigit() or failure.startswith("429"):
            status, _, after = failure.partition(" ")
            return self._say(int(status), b'{"error": "not now"}', {"Retry-After": after} if after else {})
        if failure == "redirect":
            return self._say(307, b"", {"Location": self.server.address + "/elsewhere"})
        if failure == "garbage":
            return self._say(200, b"<html>oops")
        rows = self.server.encoder.vectors(texts).tolist()
        if failure == "nan":
            rows[-1][0] = float("nan")
        elif failure == "fewer":
            rows = rows[:-1]
        elif failure == "wider":
            rows = [[*row, 1.0] for row in rows]
        elif failure == "ragged":
            rows[0] = rows[0][:-1]
        return self._say(200, json.dumps(self._shaped(rows)).encode())

    def _rerank(self, request: Any, failure: str) -> None:
        """Say how many words of each text the query has, among those that it has."""
        texts = request["documents"]
        words = set(request["query"].lower().split())
        scores = [len(words & set(text.lower().split())) / len(text.split()) for text in texts]
        if failure == "nothing":
            self.close_connection = True
            return None
        if failure.isdigit():
            return self._say(int(failure), b'{"error": "not now"}')
        if failure == "nan":
            scores[-1] = float("nan")
        rows: Any = [{"index": place, "relevance_score": score} for place, score in enumerate(scores)][::-1]
        rows = {"garbage": "oops", "fewer": rows[1:], "twice": [*rows, rows[0]]}.get(failure, rows)
        return self._say(200, json.dumps({"results": rows}).encode())

    def _shaped(self, rows: list[list[float]]) -> Any:
        data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
        return {"object": "list", "data": data[::-1], "model": "served", "usage": {"total_tokens": 1}}

    def _say(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving(port: int = 0) -> Iterator[EmbeddingServer]:
    """Give a server that runs until the end."""
    server = EmbeddingServer(port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
