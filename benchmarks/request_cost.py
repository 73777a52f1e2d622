"""What a framework costs a request: processor time at the ASGI boundary, the search itself left out.

Command: ``python -m benchmarks.request_cost`` (needs the bench group). Each application gets the same search as
JSON and answers the same empty result. The service's own application checks host, origin, rate, key, body and whether
its folder is still there, and counts; the others have one bare route, and nothing of that. Nobody writes a log.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from askalike import Forum, schemas
from askalike.server.app import Application
from askalike.server.guards import Access
from askalike.server.metrics import Metrics
from askalike.server.routes import forum_routes
from askalike.server.service import ServedForum, Service
from askalike.server.settings import Limits, ServeSettings
from benchmarks.record import option_parser, write

COMMAND = "python -m benchmarks.request_cost"
ROUNDS, REQUESTS = 9, 500
BODY: Final = b'{"title": "Wifi drops every night", "k": 2}'
HEADERS: Final = [
    (b"host", b"localhost:8765"),
    (b"content-type", b"application/json"),
    (b"content-length", str(len(BODY)).encode()),
    (b"accept", b"*/*"),
    (b"user-agent", b"benchmark"),
]
SCOPE: Final[Mapping[str, Any]] = {
    "type": "http",
    "asgi": {"version": "3.0"},
    "http_version": "1.1",
    "method": "POST",
    "scheme": "http",
    "path": "/v1/similar",
    "raw_path": b"/v1/similar",
    "query_string": b"",
    "root_path": "",
    "headers": HEADERS,
    "client": ("127.0.0.1", 5_000),
    "server": ("127.0.0.1", 8_765),
}
RESULT: Final = schemas.Similar("probability", 1.0, (), ())


def own(folder: str) -> Any:
    """Return the service's application, whose threads have no work."""
    settings = ServeSettings(folder, limits=Limits(rate=0))
    forum = ServedForum(Access(settings), Metrics())
    forum.service = Service.open(settings, forum.metrics)

    async def answer(*_: object, **__: object) -> schemas.Similar:
        return RESULT

    forum.service.readers.run = answer  # type: ignore[method-assign]
    return Application(forum, forum_routes(forum), {})


def starlette(_: str) -> Any:
    """Return a route of Starlette."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def similar(request: Request) -> Response:
        assert msgspec.json.decode(await request.body(), type=schemas.SimilarRequest).query.title
        return Response(msgspec.json.encode(RESULT), media_type="application/json")

    return Starlette(routes=[Route("/v1/similar", similar, methods=["POST"])])


def litestar(_: str) -> Any:
    """Return a route of Litestar."""
    from litestar import Litestar, post

    async def similar(data: schemas.SimilarRequest) -> schemas.Similar:
        assert data.query.title
        return RESULT

    return Litestar([post("/v1/similar", status_code=200)(similar)], openapi_config=None, logging_config=None)


APPLICATIONS: Final[Mapping[str, Callable[[str], Any]]] = {
    "askalike": own,
    "starlette": starlette,
    "litestar": litestar,
}


async def answer(app: Any) -> list[Any]:
    """Return what an application sends to one request."""
    messages: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": BODY, "more_body": False}

    async def send(message: Any) -> None:
        messages.append(message)

    await app({**SCOPE, "state": {}}, receive, send)
    return messages


async def measure(folder: str) -> dict[str, float]:
    """Return the median of processor time a request in microseconds, of applications in turns."""
    apps = {name: build(folder) for name, build in APPLICATIONS.items()}
    times: dict[str, list[float]] = {name: [] for name in apps}
    for _ in range(ROUNDS):
        for name, app in apps.items():
            begin, *_ = await answer(app)
            assert begin["status"] == 200, (name, begin)
            began_s = time.process_time()
            for _ in range(REQUESTS):
                await answer(app)
            times[name].append((time.process_time() - began_s) / REQUESTS)
    return {name: round(1e6 * statistics.median(seconds), 1) for name, seconds in times.items()}


def main() -> None:
    """Measure and record."""
    option_parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Forum.create(f"{folder}/f.forum").close()
        write("request-cost", COMMAND, {"cpu_us": asyncio.run(measure(f"{folder}/f.forum"))})


if __name__ == "__main__":
    main()
