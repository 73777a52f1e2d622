"""The outermost door: every request comes in here, and every answer goes out with its headers, counted and logged."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections.abc import Mapping
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from askalike.server.guards import allowed_origin, check_host
from askalike.server.logs import log_request
from askalike.server.problem import Problem, problem_of
from askalike.server.proxies import client_of
from askalike.server.service import Service

LOG: Final = logging.getLogger("askalike.server")

NO_ERRORS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)

HEADERS: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
"""Of every answer that does not say otherwise."""


class Middleware:
    """Wraps the application: refuses wrong hosts, answers preflights, turns errors into JSON, sets headers, counts."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        # parts of a path stay percent-encoded until they were told apart: an id may hold a slash
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        path = raw.partition(b"?")[0].decode("latin-1").replace("%3A", ":").replace("%3a", ":")
        scope = {**scope, "path": path, "state": {**scope.get("state", {}), "route": ""}}
        peer = scope.get("client")
        answer = _Answer(scope, send, Headers(scope=scope))
        try:
            service: Service = scope["app"].state.service
            answer.service = service
            if peer:
                forwarded = answer.asked.getlist("x-forwarded-for")
                scope["client"] = (client_of(peer[0], forwarded, service.proxies), peer[1])
            check_host(answer.asked, service.settings)
            answer.origin = allowed_origin(answer.asked, service.settings)
            if scope["method"] == "OPTIONS" and "access-control-request-method" in answer.asked:
                await _preflight()(scope, receive, answer.send)
            else:
                await self.app(scope, receive, answer.send)
        except NO_ERRORS:
            raise
        except BaseException as error:  # a panic of a library in Rust is no Exception
            problem = problem_of(error)
            if problem.status == 500:
                LOG.exception("request %s", answer.id)
            if answer.status:
                raise  # the answer has begun: the connection is cut, so that nobody takes a part for the whole
            await problem_response(problem)(scope, receive, answer.send)
        finally:
            log_request(answer.service, scope, answer.id, answer.status, time.perf_counter() - began)


class _Answer:
    """The way out of one request."""

    def __init__(self, scope: Scope, send: Send, asked: Headers) -> None:
        self.id = secrets.token_hex(8)
        self.asked = asked
        self.status = 0
        self.origin: str | None = None
        self.service: Service | None = None
        self._send = send

    async def send(self, message: Message) -> None:
        """Send on, with the headers that every answer has."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers["X-Request-Id"] = self.id
            headers.add_vary_header("Origin")
            if self.origin is not None:
                headers["Access-Control-Allow-Origin"] = self.origin
                headers["Access-Control-Expose-Headers"] = "Retry-After, X-Request-Id"
        await self._send(message)


def problem_response(problem: Problem) -> Response:
    """Return why a request was refused, as JSON."""
    content = json.dumps({"error": problem.error, "hint": problem.hint}).encode()
    return Response(content, problem.status, dict(problem.headers), media_type="application/json")


def _preflight() -> Response:
    return Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE",
            "Access-Control-Allow-Headers": "Authorization, Content-Type",
            "Access-Control-Max-Age": "600",
        },
    )
