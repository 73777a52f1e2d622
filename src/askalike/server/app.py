"""The application: the table of routes, and the page's files: a fixed table, so that no request can read a path."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from askalike.errors import DatabaseError
from askalike.server.guards import Access
from askalike.server.metrics import Metrics
from askalike.server.middleware import Middleware, problem_response
from askalike.server.problem import Refused
from askalike.server.routes import ROUTES, Route, endpoint
from askalike.server.service import ServedForum, Service
from askalike.server.settings import ServeSettings

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

    While the forum's database is away then, it is waited for, and requests are refused.

    Args:
        give_up: called where that does not help; ``state.forum.failure`` says why.
    """
    forum = ServedForum(Access(settings), Metrics())

    async def wait(error: DatabaseError) -> None:
        await forum.wait_for_database(error)
        if forum.failure is not None:
            give_up()

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        waiting: asyncio.Task[None] | None = None
        try:
            forum.service = Service.open(settings, forum.metrics)
        except DatabaseError as error:
            if not settings.wait_s:
                raise
            waiting = asyncio.create_task(wait(error))
        try:
            yield
        finally:
            if waiting is not None:
                waiting.cancel()
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
