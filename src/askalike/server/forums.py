"""Several forums in one service: each under a path of its own, opened when it is asked for, closed when it is idle.

::

    /                the forums, as a page; /v1/forums as JSON
    /NAME/…          a forum, as ``askalike serve FOLDER/NAME`` answers for it alone
    /healthz /readyz /metrics
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import logging
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from askalike import schemas
from askalike.server.app import CONTENT_POLICY, application, forum_routes, static_files
from askalike.server.guards import CHALLENGE, Keys, Rates, host_names, rights_of, rights_without_key
from askalike.server.handles import most_forums
from askalike.server.metrics import Counters, Metrics
from askalike.server.problem import Refused
from askalike.server.requests import JSON, admit
from askalike.server.routes import PROMETHEUS, ROUTES
from askalike.server.service import Service, rates_of
from askalike.server.settings import Network, ServeSettings
from askalike.server.status import gauges
from askalike.store.layout import forum_names, holds_forum

LOG: Final = logging.getLogger("askalike.server")

LOOK_S: Final = 5.0
"""Between two looks for forums that are idle."""
OPENED_AT_ONCE: Final = 2
UNOPENED: Final = ("", "/healthz", "/openapi.json")
"""Paths of routes that answer while the forum is closed; "" where there is no route."""

_PAGE: Final = """<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Forums · askalike</title>
    <link rel="icon" href="icon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="style.css">
  </head>
  <body>
    <main class="frame"><h1>Forums</h1>{content}</main>
  </body>
</html>
"""


@dataclass(slots=True)
class _ServedForum:
    """One of the forums: what its application has for a service while the forum is closed.

    Args:
        keys: its own and those of the whole service.
        busy: requests that it answers now, or will once it is open.
    """

    app: Starlette
    settings: ServeSettings
    metrics: Metrics
    keys: Keys
    rates: Rates
    rights_without_key: frozenset[str]
    proxies: tuple[Network, ...]
    host_names: frozenset[str]
    busy: int = 0
    used_s: float = field(default_factory=time.monotonic)


class Forums:
    """The application of a folder of forums.

    Args:
        settings: whose ``forum`` is that folder.
    """

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        self.proxies: tuple[Network, ...] = settings.proxies
        self.host_names = host_names(settings)
        self._counters = Counters(is_by_forum=True)
        self.metrics = Metrics(self._counters, "-")
        self.keys, self.rates = Keys(settings.folder), rates_of(settings)
        self.rights_without_key = rights_without_key(settings)
        self._routes, self._files = forum_routes(), static_files()
        self._forums: dict[str, _ServedForum] = {}
        self._open: dict[str, Service] = {}
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._most, wanted = most_forums(settings.limits), settings.limits.open_forums
        if self._most < min(wanted, len(forum_names(settings.folder))):
            LOG.warning("%d forums are open at once in place of %d: file handles are few", self._most, wanted)
        self._turns = asyncio.Semaphore(OPENED_AT_ONCE)
        self._background = threading.Lock()
        self._is_stopping = False
        paths = {
            "/": self._page,
            "/v1/forums": self._list,
            "/healthz": self._health,
            "/readyz": self._ready,
            "/metrics": self._metrics,
        }
        files = {path: file for path, file in self._files.items() if not path.endswith(".html") and path not in paths}
        routes = [Route(path, answer, methods=["GET", "HEAD"]) for path, answer in paths.items()]
        self._root = application(routes, files, self._lifespan)
        self._root.state.service = self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request: what lies under a forum's path, by that forum."""
        raw: bytes = (scope.get("raw_path") or scope.get("path", "").encode()).partition(b"?")[0]
        first, slash, rest = raw.removeprefix(b"/").partition(b"/")
        name = first.decode("latin-1")
        if scope["type"] != "http" or not holds_forum(self.settings.folder, name):
            await self._root(scope, receive, send)
        elif not slash:
            await RedirectResponse(f"{name}/", HTTPStatus.TEMPORARY_REDIRECT)(scope, receive, send)
        else:
            forum = self._served(name)
            under = {**scope, "path": f"/{rest.decode('latin-1')}", "raw_path": b"/" + rest}
            forum.busy += 1
            try:
                await forum.app(under, receive, send)
            finally:
                forum.busy -= 1
                forum.used_s = time.monotonic()

    def stop_soon(self) -> None:
        """Answer no longer that it is ready, and begin nothing new in the background."""
        self._is_stopping = True
        for service in self._open.values():
            service.stop_soon()

    def _served(self, name: str) -> _ServedForum:
        """Return a forum, open or not."""
        if (found := self._forums.get(name)) is None:
            app = application(self._routes, self._files, before=partial(self._open_for, name))
            metrics = Metrics(self._counters, name)
            settings = replace(self.settings, forum=str(self.settings.folder / name))
            keys = Keys(settings.folder, self.keys)
            guards = (keys, self.rates, self.rights_without_key, self.proxies, self.host_names)
            found = _ServedForum(app, settings, metrics, *guards)
            app.state.service = self._forums[name] = found
        return found

    async def _open_for(self, name: str, scope: Scope) -> None:
        """Open a forum for a request that it would not refuse and that needs it open.

        Raises:
            AskalikeError: it cannot be opened.
            Refused: 401, 403 or 429, as the forum would refuse it; 503, it is not open in time, or the service stops.
        """
        if name in self._open or not self._needs_open(name, Request(scope)):
            return
        timeout_s = self.settings.limits.timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                await self._opened(name)
        except TimeoutError as error:
            found = f"the forum was not open within {timeout_s:g} s"
            raise Refused(503, found, "try again soon", {"Retry-After": "1"}) from error

    def _needs_open(self, name: str, request: Request) -> bool:
        """Return whether a request needs an open forum, as none does for a file of the page.

        Raises:
            Refused: 401, 403 or 429.
        """
        path = next((one.path for one in self._routes if one.matches(request.scope)[0] is Match.FULL), "")
        if path in UNOPENED:
            return False
        method = "GET" if request.method == "HEAD" else request.method
        row = next(row for row in ROUTES if (row.method, row.path) == (method, path))
        taken = 0 if row.permission else 1  # what needs a right is counted once the forum is open
        admit(request, self._served(name), row.permission, taken, is_change=row.is_change)
        return True

    async def _opened(self, name: str) -> Service:
        """Return the service of a forum that is open, whoever opened it.

        Raises:
            AskalikeError: it cannot be opened.
            Refused: the service stops.
        """
        while (found := self._open.get(name)) is None:
            if (task := self._opening.get(name)) is None:
                task = self._opening[name] = asyncio.create_task(self._open_forum(name))
                task.add_done_callback(lambda _: self._opening.pop(name, None))
            await asyncio.shield(task)
        return found

    async def _open_forum(self, name: str) -> None:
        async with self._turns:
            if self._is_stopping:
                raise Refused(503, "the service stops", "try again soon", {"Retry-After": "1"})
            while len(self._open) >= self._most:
                idle = [other for other in self._open if not self._forums[other].busy]
                if not idle:
                    break
                await self._close(min(idle, key=lambda other: self._forums[other].used_s))
            forum, service = self._served(name), await asyncio.to_thread(self._begin, name)
            forum.used_s = time.monotonic()
            forum.app.state.service = self._open[name] = service

    def _begin(self, name: str) -> Service:
        forum = self._served(name)
        given = (forum.metrics, self.keys, self._is_busy, self._background, self.rates)
        return Service.started_for(forum.settings, *given)

    def _is_busy(self) -> bool:
        return any(self._forums[name].busy for name in list(self._open))

    async def _close(self, name: str) -> None:
        """Close a forum that nobody asks now, which is no longer open as soon as this is awaited."""
        if (going := self._open.pop(name, None)) is not None:
            self._forums[name].app.state.service = self._forums[name]
            await asyncio.to_thread(going.close)

    async def _close_idle(self) -> None:
        """Close what nobody has asked for some time, again and again."""
        while True:
            await asyncio.sleep(LOOK_S)
            latest_s = time.monotonic() - self.settings.limits.forum_idle_s
            for name in list(self._open):  # others may be asked, or go, while one closes: each is looked at in its turn
                if not self._forums[name].busy and self._forums[name].used_s < latest_s:
                    await self._close(name)

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        closing = asyncio.create_task(self._close_idle())
        try:
            yield
        finally:
            closing.cancel()
            self.stop_soon()
            await asyncio.gather(*self._opening.values(), return_exceptions=True)
            await asyncio.gather(*map(self._close, list(self._open)))

    # -- what is answered for all of them ----------------------------------------------------------------------

    def _readable(self, request: Request) -> list[str]:
        """Return the names of the forums that the request may read.

        Raises:
            Refused: 401, a key was sent that opens none of them.
        """
        folder, without_key = self.settings.folder, self.rights_without_key
        found: list[str] = []
        refused: Refused | None = None
        for name in forum_names(folder):
            try:
                if "read" in rights_of(request.headers, Keys(folder / name, self.keys), without_key):
                    found.append(name)
            except Refused as error:
                refused = error
        if refused is not None and not found:
            raise refused
        return found

    async def _list(self, request: Request) -> Response:
        admit(request, self, None)
        names = await asyncio.to_thread(self._readable, request)
        listed = schemas.Forums(tuple(schemas.ServedForum(name, f"/{name}/", name in self._open) for name in names))
        return Response(msgspec.json.encode(listed), media_type=JSON)

    async def _page(self, request: Request) -> Response:
        admit(request, self, None)
        names = await asyncio.to_thread(self._readable, request)
        links = "".join(f'<li><a href="{html.escape(name)}/">{html.escape(name)}</a></li>' for name in names)
        content = f"<ul>{links}</ul>" if names else "<p>No forum can be read without a key.</p>"
        headers = {"Content-Security-Policy": CONTENT_POLICY}
        return Response(_PAGE.replace("{content}", content), headers=headers, media_type="text/html; charset=utf-8")

    async def _health(self, request: Request) -> Response:
        return Response(msgspec.json.encode(schemas.Health("ok")), media_type=JSON)

    async def _ready(self, request: Request) -> Response:
        if self._is_stopping:
            raise Refused(503, "the service is not ready", "try again soon", {"Retry-After": "1"})
        return Response(msgspec.json.encode(schemas.Health("ready")), media_type=JSON)

    async def _metrics(self, request: Request) -> Response:
        admit(request, self, None)
        if "read" not in rights_of(request.headers, self.keys, self.rights_without_key):
            raise Refused(
                401, "a key of the whole service is needed", "send it as Authorization: Bearer KEY", CHALLENGE
            )
        services = list(self._open.values())
        asked = [self._forums[name] for name in self._open]
        for forum in asked:
            forum.busy += 1
        try:
            text = await asyncio.to_thread(lambda: self._counters.text(gauges(services)))
        finally:
            for forum in asked:
                forum.busy -= 1
        return Response(text, media_type=PROMETHEUS)
