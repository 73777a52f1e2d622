"""Several forums in one service: each under a path of its own, opened when it is asked for, closed for another.

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
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

import msgspec

from askalike import schemas
from askalike.operations import PROMETHEUS
from askalike.server.admission import most_forums
from askalike.server.app import CONTENT_POLICY, Application, static_files
from askalike.server.guards import CHALLENGE, Access, Keys
from askalike.server.metrics import Counters, Metrics
from askalike.server.problem import Refused
from askalike.server.requests import LONGEST_NAME, Reply, Request
from askalike.server.routes import forum_routes, health
from askalike.server.service import SOON, ServedForum, Service, not_ready
from askalike.server.settings import ServeSettings
from askalike.server.status import gauges
from askalike.store.layout import forum_names, holds_forum

LOG: Final = logging.getLogger("askalike.server")

OPENED_AT_ONCE: Final = 2

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


class ForumsApplication(Application):
    """The application of a folder of forums.

    Args:
        settings: whose ``forum`` is that folder.
    """

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        self.access = Access(settings)
        self.served: dict[str, ServedForum] = {}
        """Each forum that was requested, by name."""
        self._counters = Counters(is_by_forum=True)
        self._forum_files = static_files()
        self._apps: dict[str, Application] = {}
        self._most, wanted = most_forums(settings.limits), settings.limits.open_forums
        if self._most < min(wanted, len(forum_names(settings.folder))):
            LOG.warning("%d forums are open at once in place of %d: file handles are few", self._most, wanted)
        self._turns = asyncio.Semaphore(OPENED_AT_ONCE)
        self._background = threading.Lock()
        self._is_stopping = False
        endpoints = {
            "/": self._page,
            "/v1/forums": self._list,
            "/healthz": health,
            "/readyz": self._ready,
            "/metrics": self._metrics,
        }
        files = {path: file for path, file in self._forum_files.items() if not path.endswith(".html") and path != "/"}
        routes = {path: {"GET": endpoint} for path, endpoint in endpoints.items()}
        self._reserved = {path.split("/")[1] for path in (*routes, *files)}
        for name in self._reserved.intersection(forum_names(settings.folder)):
            LOG.warning("the forum %s is not served: its name is an address of the service; rename its folder", name)
        super().__init__(ServedForum(self.access, Metrics(self._counters, "-")), routes, files)

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """Answer a request: what lies under a forum's path, by that forum."""
        raw: bytes = (scope.get("raw_path") or scope.get("path", "").encode()).partition(b"?")[0]
        first, slash, rest = raw.removeprefix(b"/").partition(b"/")
        name = first.decode("latin-1")
        if scope["type"] != "http" or not slash or not self._holds(name):
            await super().__call__(scope, receive, send)
            if name in self.served and not self._holds(name):
                await self.served[name].close()
            return
        forum = self.forum_named(name)
        forum.busy += 1
        try:
            await self._apps[name]({**scope, "raw_path": b"/" + rest}, receive, send)
        finally:
            forum.busy -= 1
            forum.used_s = time.monotonic()

    def _holds(self, name: str) -> bool:
        return name not in self._reserved and holds_forum(self.settings.folder, name)

    async def _answer(self, request: Request) -> Reply:
        name = request.path.removeprefix("/")
        if self._holds(name):
            return Reply(b"", status=HTTPStatus.TEMPORARY_REDIRECT, headers={"Location": f"{name}/"})
        return await super()._answer(request)

    def _file(self, request: Request) -> Reply:
        name, slash, _ = request.path.removeprefix("/").partition("/")
        if name and slash and name not in self._reserved:
            raise Refused(404, f"there is no forum {name[:LONGEST_NAME]!r}", "/v1/forums lists them")
        if request.path not in self._files:
            raise Refused(404, "there is nothing at this path", "a forum's paths begin with its name: see /v1/forums")
        return super()._file(request)

    def stop_soon(self) -> None:
        """Report that the service is not ready, and start no more background work."""
        self._is_stopping = True
        for service in self.services.values():
            service.stop_soon()

    @property
    def services(self) -> dict[str, Service]:
        """Return the services of the open forums, by name."""
        return {name: forum.service for name, forum in self.served.items() if forum.service is not None}

    def forum_named(self, name: str) -> ServedForum:
        """Return a forum, open or not."""
        if name not in self.served:
            settings = replace(self.settings, forum=str(self.settings.folder / name))
            access = Access(settings, Keys(settings.folder, self.access.keys), self.access.rates)
            metrics = Metrics(self._counters, name)
            forum = self.served[name] = ServedForum(access, metrics, self._room, self._is_busy, self._background)
            self._apps[name] = Application(forum, forum_routes(forum), self._forum_files)
        return self.served[name]

    @contextlib.asynccontextmanager
    async def _room(self) -> AsyncIterator[None]:
        """Hold a turn to open a forum, once there is room for it.

        Raises:
            Refused: 503, the service stops.
        """
        async with self._turns:
            if self._is_stopping:
                raise Refused(503, "the service stops", "try again soon", SOON)
            while len(services := self.services) >= self._most:
                idle = [self.served[name] for name in services if not self.served[name].busy]
                if not idle:
                    break
                await min(idle, key=lambda forum: forum.used_s).close()
            yield

    def _is_busy(self) -> bool:
        return any(self.served[name].busy for name in self.services)

    async def start(self) -> None:
        """Open none yet: each is opened when it is asked for."""

    async def stop(self) -> None:
        """Close all forums when the service ends."""
        self.stop_soon()
        opening = [forum.opening for forum in self.served.values() if forum.opening is not None]
        await asyncio.gather(*opening, return_exceptions=True)
        await asyncio.gather(*(forum.close() for forum in self.served.values()))

    # -- what is answered for all of them ----------------------------------------------------------------------

    def _readable(self, request: Request) -> list[str]:
        """Return the names of the forums that the request may read.

        Raises:
            Refused: 401, a key was sent that opens none of them.
        """
        readable: list[str] = []
        refused: Refused | None = None
        for name in forum_names(self.settings.folder):
            if name in self._reserved:
                continue
            try:
                if "read" in self.forum_named(name).access.visitor(request.headers).rights:
                    readable.append(name)
            except Refused as error:
                refused = error
        if refused is not None and not readable:
            raise refused
        return readable

    async def _list(self, request: Request) -> Reply:
        self.access.check_rate(request.client_key)
        names, services = self._readable(request), self.services
        listed = schemas.Forums(tuple(schemas.ListedForum(name, f"/{name}/", name in services) for name in names))
        return Reply(msgspec.json.encode(listed))

    async def _page(self, request: Request) -> Reply:
        self.access.check_rate(request.client_key)
        names = self._readable(request)
        links = "".join(f'<li><a href="{html.escape(name)}/">{html.escape(name)}</a></li>' for name in names)
        content = f"<ul>{links}</ul>" if names else "<p>No forum can be read without a key.</p>"
        headers = {"Content-Security-Policy": CONTENT_POLICY}
        return Reply(_PAGE.replace("{content}", content).encode(), "text/html; charset=utf-8", headers=headers)

    async def _ready(self, request: Request) -> Reply:
        if self._is_stopping:
            raise not_ready()
        return Reply(msgspec.json.encode(schemas.Health("ready")))

    async def _metrics(self, request: Request) -> Reply:
        self.access.check_rate(request.client_key)
        if "read" not in self.access.visitor(request.headers).rights:
            raise Refused(
                401, "a key of the whole service is needed", "send it as Authorization: Bearer KEY", CHALLENGE
            )
        services = self.services
        for name in services:
            self.served[name].busy += 1  # none closes meanwhile
        try:
            text = await asyncio.to_thread(lambda: self._counters.text(gauges(list(services.values()))))
        finally:
            for name in services:
                self.served[name].busy -= 1
        return Reply(text, PROMETHEUS)
