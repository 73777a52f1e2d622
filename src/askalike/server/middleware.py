"""What every request passes: wrong hosts refused, preflights answered, errors made JSON, answers counted and logged."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from askalike.schemas import Error
from askalike.server.guards import check_host, client_of, rate_key
from askalike.server.metrics import Metrics
from askalike.server.problem import Refused, refusal_of
from askalike.server.service import ServedForum
from askalike.server.settings import is_loopback

LOG: Final = logging.getLogger("askalike.server")
REQUESTS: Final = logging.getLogger("askalike.server.requests")

NO_ERRORS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)

PROBES: Final = ("/healthz", "/readyz")
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
_HEADERS: Final = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

PREFLIGHT: Final[Mapping[str, str]] = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type",
    "Access-Control-Max-Age": "600",
}


class Middleware:
    """Wraps the application."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        forum: ServedForum = scope["app"].state.forum
        access = forum.access
        # parts of a path stay percent-encoded until they were told apart: an id may hold a slash
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        path = raw.partition(b"?")[0].decode("latin-1").replace("%3A", ":").replace("%3a", ":")
        scope = {**scope, "path": path, "state": {**scope.get("state", {}), "route": "", "client": ""}}
        request_headers = Headers(scope=scope)
        identifier, status = secrets.token_hex(8), 0
        origin: str | None = None

        async def send_on(message: Message) -> None:
            """Send, with the headers that every answer has."""
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name for name, _ in message["headers"]}
                message["headers"].extend(pair for pair in _HEADERS if pair[0] not in own)
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = identifier
                headers.add_vary_header("Origin")
                if origin is not None:
                    headers["Access-Control-Allow-Origin"] = origin
                    headers["Access-Control-Expose-Headers"] = "Retry-After, X-Request-Id"
            await send(message)

        try:
            if peer := scope.get("client"):
                client = client_of(peer[0], request_headers.getlist("x-forwarded-for"), access.proxies)
                scope["client"], scope["state"]["client"] = (client, peer[1]), rate_key(client)
            if path not in PROBES or is_loopback(access.settings.host):  # whoever probes asks a bare address
                check_host(request_headers, access.host_names)
            page = request_headers.get("origin")
            origin = page if page in access.settings.allow_origins else None
            if scope["method"] == "OPTIONS" and "access-control-request-method" in request_headers:
                await Response(status_code=204, headers=PREFLIGHT)(scope, receive, send_on)
            else:
                await self.app(scope, receive, send_on)
        except NO_ERRORS:
            raise
        except BaseException as error:  # a panic of a library in Rust is no Exception
            problem = refusal_of(error)
            if problem.status == 500:
                LOG.exception("request %s", identifier)
            if status:
                raise  # the answer has begun: the connection is cut, so that nobody takes a part for the whole
            await problem_response(problem)(scope, receive, send_on)
        finally:
            log_request(forum.metrics, scope, identifier, status, time.perf_counter() - began)


def log_request(metrics: Metrics, scope: Mapping[str, Any], identifier: str, status: int, seconds: float) -> None:
    """Count and log a request that was answered; its path's values and its texts are left out."""
    route = scope["state"].get("route") or "none"
    metrics.request(route, status, seconds)
    fields = {
        "request": identifier,
        "route": route,
        "status": status,
        "took_ms": round(1000 * seconds, 2),
        "client": (scope.get("client") or ("",))[0],
    }
    REQUESTS.info("", extra={"fields": fields})


def problem_response(problem: Refused) -> Response:
    """Return why a request was refused, as JSON."""
    content = msgspec.json.encode(Error(problem.error, problem.hint))
    return Response(content, problem.status, dict(problem.headers), media_type="application/json")
