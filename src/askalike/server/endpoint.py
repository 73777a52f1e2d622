"""A row of the table of routes as an endpoint: checks the request, lets a thread work, writes the answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from pydantic import TypeAdapter
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from askalike.server.call import Call, checked, parse_json, parse_query, path_values
from askalike.server.guards import WHO, check_origin, rights_of
from askalike.server.problem import Refused
from askalike.server.proxies import rate_key
from askalike.server.routes import Right, Route
from askalike.server.service import Service

JSON: Final = "application/json"
LARGE_BYTES: Final = 20_000
"""A search for a longer text takes its time: with 200 kB, some twenty times that of a title."""


def endpoint(route: Route) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers requests of a route."""
    adapter: TypeAdapter[Any] = TypeAdapter(route.returns)

    async def answer(request: Request) -> Response:
        service: Service = request.app.state.service
        may = admit(request, service, route.may)
        query = parse_query(route.query, request.scope["query_string"])
        body, content = None, b""
        if route.takes is not None:
            check_type(request, JSON)
            content = await read_body(request, service)
            body = checked(route.takes, parse_json(content, service.settings.limits.depth))
            if service.settings.has_titles_logged:
                request.scope["state"]["title"] = getattr(body, "title", "")
        call = Call(path_values(request.path_params), query, body, may)
        pool = service.writer if route.may == "write" else service.readers
        does = partial(route.does, service.engine, call)
        is_large = len(content) > LARGE_BYTES
        timeout_s = service.settings.limits.timeout_s
        found = await pool.run(does, timeout_s, client_key(request), is_large=is_large)
        return Response(adapter.dump_json(found), media_type=JSON)

    return answer


def admit(request: Request, service: Service, right: Right) -> frozenset[str]:
    """Return what a request may do, having counted it.

    Raises:
        Refused: 401 or 403, it may not do this; 429, its client asks too often.
    """
    wait_s = service.rates.wait_s(client_key(request), time.monotonic())
    if wait_s > 0:
        headers = {"Retry-After": str(max(1, round(wait_s + 0.5)))}
        raise Refused(429, "too many requests", "slow down; many questions at once go to /v1/questions:bulk", headers)
    may = rights_of(request.headers, service.settings, service.keys)
    has_key = bool(request.headers.get("authorization"))
    if right not in may:
        if has_key:
            raise Refused(403, f"this key may not {right}", 'make one that may with "askalike keys FORUM --add write"')
        raise Refused(401, "a key is needed", "send it as Authorization: Bearer KEY", WHO)
    if right == "write":
        check_origin(request.headers, has_key=has_key)
    return may


def client_key(request: Request) -> str:
    """Return under what a request's client is counted."""
    return rate_key(request.client.host) if request.client else ""


def check_type(request: Request, wanted: str) -> None:
    """Refuse a body of another type: one that a page's form can send could come from any site.

    Raises:
        Refused: 415.
    """
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != wanted:
        raise Refused(415, f"the content type is {given[:100]!r}", f"expected {wanted}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "the body is compressed", "send it as it is")


async def read_body(request: Request, service: Service) -> bytes:
    """Return a request's body.

    Raises:
        Refused: 413, it is too large; 408, it comes too slowly.
    """
    limits = service.settings.limits
    told = request.headers.get("content-length", "0")
    if told.isdigit() and int(told[:20]) > limits.body_bytes:
        raise _too_large(limits.body_bytes)
    content = bytearray()
    try:
        async with asyncio.timeout(limits.timeout_s):
            async for part in request.stream():
                content += part
                if len(content) > limits.body_bytes:
                    raise _too_large(limits.body_bytes)
    except TimeoutError as error:
        raise Refused(408, f"the body did not come within {limits.timeout_s:g} s", "send it at once") from error
    except ClientDisconnect as error:
        raise Refused(400, "the client went away") from error
    return bytes(content)


def _too_large(limit: int) -> Refused:
    return Refused(413, f"the body is larger than {limit} bytes", "send less, or many questions to /v1/questions:bulk")
