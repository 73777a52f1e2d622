"""What is asked for beside the table of routes: streams, and what watches the service."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from askalike.server import schemas, states
from askalike.server.endpoint import admit, check_type, client_key
from askalike.server.openapi import openapi_document
from askalike.server.problem import Refused
from askalike.server.requests import RecordRequest
from askalike.server.routes import ROUTES, Described, Right
from askalike.server.service import Service
from askalike.server.status import metrics_text, status
from askalike.server.streams import NDJSON, BulkResponse, stream

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Special:
    """Something that is asked for in a way of its own.

    Args:
        described: how the OpenAPI document tells of it.
    """

    described: Described
    answer: Callable[[Request], Awaitable[Response]]

    @property
    def method(self) -> str:
        """Return the method."""
        return self.described.method

    @property
    def path(self) -> str:
        """Return the path."""
        return self.described.path


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _ready(request: Request) -> Response:
    service = _service(request)
    if not service.is_ready:
        raise Refused(503, "the service is not ready", "try again soon", {"Retry-After": "1"})
    await service.readiness.check()
    return JSONResponse({"status": "ready"})


async def _metrics(request: Request) -> Response:
    service = _service(request)
    admit(request, service, "read")
    tell = partial(metrics_text, service)
    text = await service.readers.run(tell, service.settings.limits.timeout_s, client_key(request))
    return Response(text, media_type=TEXT)


async def _status(request: Request) -> Response:
    service = _service(request)
    may = admit(request, service, "read")
    tell = partial(status, service, may)
    found = await service.readers.run(tell, service.settings.limits.timeout_s, client_key(request))
    return Response(_STATUS.dump_json(found), media_type="application/json")


async def _openapi(request: Request) -> Response:
    return Response(_document(), media_type="application/json")


async def _bulk(request: Request) -> Response:
    service = _service(request)
    admit(request, service, "write")
    check_type(request, NDJSON)
    return BulkResponse(service, request, client_key(request))


async def _feedback(request: Request) -> Response:
    service = _service(request)
    may = admit(request, service, "read")
    return stream(
        service, partial(service.engine.labels, is_named="write" in may), schemas.FeedbackView, client_key(request)
    )


def service_document() -> dict[str, object]:
    """Return the OpenAPI document of the service."""
    return openapi_document([*(row.described() for row in ROUTES), *(one.described for one in SPECIALS)])


@cache
def _document() -> bytes:
    return json.dumps(service_document()).encode()


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


_STATUS: Final[TypeAdapter[states.StatusAnswer]] = TypeAdapter(states.StatusAnswer)


def _row(
    path: str,
    about: str,
    returns: type,
    answer: Callable[[Request], Awaitable[Response]],
    *,
    right: Right | None = "read",
    media: str = "application/json",
) -> Special:
    refusals = (503,) if right is None else ()
    return Special(Described("GET", path, about, returns, may=right, media=media, refusals=refusals), answer)


SPECIALS: Final[tuple[Special, ...]] = (
    Special(
        Described(
            "POST",
            "/v1/questions:bulk",
            "Add or replace many questions: a JSON object a line, and for each a line once it is on disk.",
            str,
            takes=RecordRequest,
            may="write",
            media=NDJSON,
        ),
        _bulk,
    ),
    _row(
        "/v1/feedback",
        "All verdicts, oldest first, a JSON object a line; who judged is sent to keys that may write.",
        str,
        _feedback,
        media=NDJSON,
    ),
    _row("/v1/status", "What the forum holds, and how the service does.", states.StatusAnswer, _status),
    _row("/metrics", "Counts and times, as Prometheus reads them.", str, _metrics, media="text/plain"),
    _row("/healthz", "Whether the service lives.", states.HealthAnswer, _health, right=None),
    _row("/readyz", "Whether the service is ready to answer.", states.HealthAnswer, _ready, right=None),
    _row("/openapi.json", "This document.", dict, _openapi, right=None),
)
