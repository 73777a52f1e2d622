"""The application: the table of routes, the page's files, and what watches a service."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from askalike.server.custom_routes import SPECIALS
from askalike.server.endpoint import endpoint
from askalike.server.middleware import Middleware, problem_response
from askalike.server.multiprocess_metrics import MultiprocessMetrics
from askalike.server.problem import Problem
from askalike.server.routes import ROUTES
from askalike.server.service import Service
from askalike.server.settings import ServeSettings
from askalike.server.static import CONTENT_POLICY, static_files

Endpoint = Callable[[Request], Awaitable[Response]]


def build(settings: ServeSettings, board: MultiprocessMetrics | None = None) -> Starlette:
    """Return the application of one worker; the forum is opened when it starts.

    Args:
        board: where it tells the others what it has counted.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service = Service.open(settings, board or MultiprocessMetrics(1))
        app.state.service = service
        service.start()
        try:
            yield
        finally:
            service.close()

    rows = [_route(path, answers) for path, answers in _endpoints().items()]
    app = Starlette(routes=rows, lifespan=lifespan, exception_handlers={HTTPException: _http_error})
    app.router.redirect_slashes = False
    app.add_middleware(Middleware)
    return app


def _endpoints() -> dict[str, dict[str, Endpoint]]:
    """Return path → method → what answers."""
    found: dict[str, dict[str, Endpoint]] = {}
    for row in ROUTES:
        found.setdefault(row.path, {})[row.method] = endpoint(row)
    for special in SPECIALS:
        found.setdefault(special.path, {})[special.method] = special.answer
    return found


def _route(path: str, answers: Mapping[str, Endpoint]) -> StarletteRoute:
    async def answer(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        request.scope["state"]["route"] = f"{method} {path}"
        return await answers[method](request)

    return StarletteRoute(path, answer, methods=list(answers))


async def _http_error(request: Request, error: Exception) -> Response:
    """Answer what no route takes: a file of the page, or a refusal."""
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and request.method in ("GET", "HEAD"):
        return _file(request)
    found = "this path does not know that method" if error.status_code == 405 else str(error.detail)
    return problem_response(Problem(error.status_code, found, "see /openapi.json", error.headers or {}))


def _file(request: Request) -> Response:
    service: Service = request.app.state.service
    files = static_files() if service.settings.is_page_reread else service.files
    found = files.get(request.scope["path"])
    if found is None:
        return problem_response(Problem(404, "there is nothing at this path", "the paths are in /openapi.json"))
    request.scope["state"]["route"] = "GET page"
    headers = {"ETag": found.tag, "Cache-Control": "no-cache", "Content-Security-Policy": CONTENT_POLICY}
    if found.is_embedded:
        headers |= {"Cross-Origin-Resource-Policy": "cross-origin", "Access-Control-Allow-Origin": "*"}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    return Response(found.content, headers=headers, media_type=found.type)
