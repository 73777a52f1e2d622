"""The application: the table of routes, the page's files, and what every request passes.

The files are a fixed table, so that no request can read a path. Of every request, wrong hosts are refused, preflights
answered, errors made JSON, and its answer is counted and logged.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from askalike.errors import DatabaseError
from askalike.schemas import Error
from askalike.server.guards import Access, check_host, check_no_key, client_of, rate_key
from askalike.server.metrics import Metrics
from askalike.server.problem import Refused, refusal_of
from askalike.server.routes import ROUTES, Route, endpoint
from askalike.server.service import ServedForum, Service
from askalike.server.settings import ServeSettings, is_loopback

LOG: Final = logging.getLogger("askalike.server")
REQUESTS: Final = logging.getLogger("askalike.server.requests")

PAGE: Final = Path(__file__).parent / "page"

TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
"""Suffix → content type; other files are not served."""

CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

EMBEDDED: Final = ("/widget.js", "/widget.css")
"""What pages of other sites load, and every file under /widget/."""

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


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file as it is sent.

    Args:
        tag: changes when the content does.
        is_embedded: pages of other sites may load it.
    """

    content: bytes
    type: str
    tag: str
    is_embedded: bool


def static_files(folder: Path = PAGE) -> dict[str, StaticFile]:
    """Return each path that is served, with its file; index.html under "/" too."""
    files: dict[str, StaticFile] = {}
    for file in sorted(folder.rglob("*")):
        if file.suffix not in TYPES or not file.is_file() or file.is_symlink():
            continue
        path = f"/{file.relative_to(folder).as_posix()}"
        content = file.read_bytes()
        tag = hashlib.sha256(content).hexdigest()[:16]
        is_embedded = path in EMBEDDED or path.startswith("/widget/")
        files[path] = StaticFile(content, TYPES[file.suffix], f'"{tag}"', is_embedded)
    if "/index.html" in files:
        files["/"] = files["/index.html"]
    return files


def build(settings: ServeSettings, give_up: Callable[[], None] = lambda: None) -> Starlette:
    """Return the application of one worker for one forum, which is opened when it starts.

    While the forum's database is away then, or its folder later on, it is waited for, and requests are refused.

    Args:
        give_up: called where that does not help; ``state.forum.failure`` says why.
    """
    forum = ServedForum(Access(settings), Metrics(), give_up=give_up)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            forum.service = Service.open(settings, forum.metrics)
        except DatabaseError as error:
            if not settings.wait_s:
                raise
            forum.opening = asyncio.create_task(forum.wait(error, DatabaseError))
        try:
            yield
        finally:
            if forum.opening is not None:
                forum.opening.cancel()
            if forum.service is not None:
                forum.service.close()

    return application(forum, forum_routes(), static_files(), lifespan)


def forum_routes() -> list[StarletteRoute]:
    """Return what is answered for a forum."""
    paths: dict[str, dict[str, Route]] = {}
    for row in ROUTES:
        paths.setdefault(row.path, {})[row.method] = row
    return [StarletteRoute(path, endpoint(rows), methods=list(rows)) for path, rows in paths.items()]


def application(
    forum: ServedForum,
    routes: Sequence[StarletteRoute],
    files: Mapping[str, StaticFile],
    lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]] | None = None,
) -> Starlette:
    """Return an application of these routes and files."""
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _without_route})
    app.state.forum, app.state.files = forum, files
    app.router.redirect_slashes = False
    app.add_middleware(Middleware)
    return app


async def _without_route(request: Request, error: Exception) -> Response:
    """Answer what no route takes: a file of the page, or a refusal."""
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and request.method in ("GET", "HEAD"):
        return _file(request)
    message = str(error.detail)
    if error.status_code == 405:
        taken = ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
        message = f"method not allowed: {request.method}; this path takes {taken}"
    return problem_response(Refused(error.status_code, message, "see /openapi.json", error.headers or {}))


def _file(request: Request) -> Response:
    files: Mapping[str, StaticFile] = request.app.state.files
    file = files.get(request.scope["path"])
    if file is None:
        return problem_response(Refused(404, "there is nothing at this path", "the paths are in /openapi.json"))
    request.scope["state"]["route"] = "GET page"
    headers = {"ETag": file.tag, "Cache-Control": "no-cache", "Content-Security-Policy": CONTENT_POLICY}
    if file.is_embedded:
        headers |= {"Cross-Origin-Resource-Policy": "cross-origin", "Access-Control-Allow-Origin": "*"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.type)


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
        path = raw.partition(b"?")[0].decode("latin-1")
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
            check_no_key(raw + b"?" + scope["query_string"])
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
