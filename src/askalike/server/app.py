"""The application: the page's files, and what every request passes.

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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from askalike.errors import DatabaseError
from askalike.schemas import Error
from askalike.server.guards import Access, check_host, check_no_key
from askalike.server.metrics import Metrics
from askalike.server.problem import Refused, refusal_of
from askalike.server.requests import Reply, Request
from askalike.server.routes import Endpoint, Routes, forum_routes
from askalike.server.service import ServedForum
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
"""Files that pages of other sites load, besides those under /widget/."""

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
"""Headers of every reply that does not set its own."""

MOST_NAMED_ORIGINS: Final = 100
"""Of origins that are not allowed, so many are named in the log, each once."""

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


def build(settings: ServeSettings) -> Application:
    """Return the application of one worker for one forum."""
    forum = ServedForum(Access(settings), Metrics())
    return Application(forum, forum_routes(forum), static_files())


class Application:
    """Answers requests by a table of routes, and by files: an ASGI application.

    Args:
        forum: whose counts, keys and limits hold; it is opened when the server starts, and closed when it stops.
    """

    def __init__(self, forum: ServedForum, routes: Routes, files: Mapping[str, StaticFile]) -> None:
        self.forum = forum
        self._files = files
        self._plain = {path: methods for path, methods in routes.items() if "{" not in path}
        self._refused_origins: set[str] = set()
        self._patterns = [(path.split("/"), methods) for path, methods in routes.items() if "{" in path]

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """Answer one request, or run from the server's start to its end."""
        if scope["type"] != "http":
            await self._run_lifespan(receive, send)
            return
        began = time.perf_counter()
        access = self.forum.access
        request = Request(scope, receive, access.proxies)
        identifier, status = secrets.token_hex(8), 0
        try:
            try:
                reply = await self._answer(request)
            except NO_ERRORS:
                raise
            except BaseException as error:  # a panic of a library in Rust is no Exception
                refusal = refusal_of(error)
                if refusal.status == 500:
                    LOG.exception("request %s", identifier)
                content = msgspec.json.encode(Error(refusal.error, refusal.hint))
                reply = Reply(content, status=refusal.status, headers=refusal.headers)
            status = reply.status
            headers = {**HEADERS, "X-Request-Id": identifier, "Vary": "Origin", **reply.headers}
            page = request.headers.get("origin")
            if page is not None and page in access.settings.allow_origins:
                headers["Access-Control-Allow-Origin"] = page
                headers["Access-Control-Expose-Headers"] = "Retry-After, X-Request-Id"
            if status not in (204, 304):
                headers |= {"Content-Type": reply.media, "Content-Length": str(len(reply.content))}
            sent = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
            await send({"type": "http.response.start", "status": status, "headers": sent})
            await send({"type": "http.response.body", "body": reply.content})
        finally:
            log_request(self.forum.metrics, request, identifier, status, time.perf_counter() - began)

    async def _answer(self, request: Request) -> Reply:
        access = self.forum.access
        if request.path not in PROBES or is_loopback(access.settings.host):  # whoever probes asks a bare address
            check_host(request.headers, access.host_names)
        check_no_key(f"{request.path}?{request.query_string.decode('latin-1')}")
        if request.method == "OPTIONS" and "access-control-request-method" in request.headers:
            self._note_origin(request.headers.get("origin", "")[:200])
            return Reply(b"", status=204, headers=PREFLIGHT)
        path, methods = self._find(request)
        method = "GET" if request.method == "HEAD" else request.method
        if method in methods:
            request.route = f"{method} {path}"
            return await methods[method](request)
        if methods:
            taken = ", ".join(sorted({*methods, *(["HEAD"] if "GET" in methods else [])}))
            message = f"method not allowed: {request.method}; this path takes {taken}"
            raise Refused(405, message, "see /openapi.json", {"Allow": taken})
        return self._file(request)

    def _note_origin(self, origin: str) -> None:
        """Name an origin in the log whose pages ask for what they may not read: its browser tells its page nothing."""
        allowed, refused = self.forum.access.settings.allow_origins, self._refused_origins
        if origin not in allowed and origin not in refused and len(refused) < MOST_NAMED_ORIGINS:
            refused.add(origin)
            LOG.warning("pages of %r may not read answers; name their site with --allow-origin", origin)

    def _find(self, request: Request) -> tuple[str, Mapping[str, Endpoint]]:
        """Return the route of a path and what answers, by method; the request gets the values of the path's names."""
        if (methods := self._plain.get(request.path)) is not None:
            return request.path, methods
        parts = request.path.split("/")
        for names, methods in self._patterns:
            pairs = list(zip(names, parts, strict=False))
            if len(names) == len(parts) and all(name == part or (part and name[:1] == "{") for name, part in pairs):
                request.values = {name[1:-1]: part for name, part in pairs if name[:1] == "{"}
                return "/".join(names), methods
        return "", {}

    def _file(self, request: Request) -> Reply:
        file = self._files.get(request.path) if request.method in ("GET", "HEAD") else None
        if file is None:
            raise Refused(404, "there is nothing at this path", "the paths are in /openapi.json")
        request.route = "GET page"
        headers = {"ETag": file.tag, "Cache-Control": "no-cache", "Content-Security-Policy": CONTENT_POLICY}
        if file.is_embedded:
            headers |= {"Cross-Origin-Resource-Policy": "cross-origin", "Access-Control-Allow-Origin": "*"}
        if request.headers.get("if-none-match") == file.tag:
            return Reply(b"", status=304, headers=headers)
        return Reply(file.content, file.type, headers=headers)

    async def _run_lifespan(self, receive: Any, send: Any) -> None:
        """Open the forum when the server starts, and close it when the server stops."""
        await receive()
        try:
            await self.start()
        except BaseException as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def start(self) -> None:
        """Open the forum; where its database is away, requests are refused until it can be opened.

        Raises:
            AskalikeError: it cannot be opened.
        """
        with contextlib.suppress(DatabaseError):
            await self.forum.open()

    def stop_soon(self) -> None:
        """Report that the service is not ready, and start no more background work."""
        self.forum.stop_soon()

    async def stop(self) -> None:
        """Close the forum."""
        if self.forum.opening is not None:
            self.forum.opening.cancel()
        await self.forum.close()


def log_request(metrics: Metrics, request: Request, identifier: str, status: int, seconds: float) -> None:
    """Count and log a request that was answered; its path's values and its texts are left out."""
    route = request.route or "none"
    metrics.count_request(route, status, seconds)
    fields = {
        "request": identifier,
        "route": route,
        "status": status,
        "took_ms": round(1000 * seconds, 2),
        "client": request.client,
    }
    if metrics.forum:  # one of several
        fields["forum"] = metrics.forum
    REQUESTS.info("", extra={"fields": fields})
