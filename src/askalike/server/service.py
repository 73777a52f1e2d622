"""What answers for a forum: its engine, threads and background work while it is open, and whether it is ready."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from askalike.errors import AskalikeError, DatabaseError
from askalike.forum import Forum
from askalike.server.engine import Engine
from askalike.server.guards import Access
from askalike.server.maintenance import MaintenanceWorker
from askalike.server.metrics import Metrics
from askalike.server.pool import Pool
from askalike.server.problem import Refused, refusal_of
from askalike.server.settings import ServeSettings

LOG: Final = logging.getLogger("askalike.server")

WRITERS: Final = 16
CLOSE_S: Final = 5.0
"""For what is still under way when the last connection is closed."""
PROBE_EVERY_S: Final = 1.0
PROBE_TIMEOUT_S: Final = 5.0
FIRST_REST_S: Final = 0.5
MAX_REST_S: Final = 5.0
"""Between two tries to open a forum whose database is away when the service starts."""
SOON: Final = {"Retry-After": "1"}


@dataclass(slots=True)
class Service:
    """What answers for a forum while it is open: its engine, its threads, and its work in the background.

    Args:
        readers: threads that search.
        writer: threads that write; the archive takes one write at a time, and what several have stored meanwhile is
            indexed together.
    """

    settings: ServeSettings
    engine: Engine
    metrics: Metrics
    readers: Pool
    writer: Pool
    maintenance: MaintenanceWorker
    is_ready: bool = False
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    began_s: float = field(default_factory=time.monotonic)
    _probing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _probed_s: float = -math.inf
    _refusal: Refused | None = None

    @classmethod
    def open(
        cls,
        settings: ServeSettings,
        metrics: Metrics | None = None,
        is_busy: Callable[[], bool] = lambda: False,
        turn: threading.Lock | None = None,
    ) -> Service:
        """Open a forum and begin to answer for it, once a first search has read the model.

        Args:
            metrics: of a forum among several.
            is_busy: whether other forums of the service are being searched.
            turn: whose turn it is to work in the background.

        Raises:
            ForumError: it cannot be opened.
        """
        metrics, limits = metrics or Metrics(), settings.limits
        engine = Engine(Forum.open(settings.folder), metrics)
        together = None if bool(engine.forum.indexes.engine) else engine.similar_many
        readers = Pool("search", limits.threads, limits.waiting, together)
        maintenance = MaintenanceWorker(engine, lambda: readers.busy or engine.is_searched or is_busy(), turn)
        service = cls(settings, engine, metrics, readers, Pool("write", WRITERS, limits.waiting), maintenance)
        try:
            engine.warm_up()
            maintenance.start()
            service.is_ready = True
        except BaseException:
            service.close()
            raise
        return service

    async def check_ready(self) -> None:
        """Return where the service can answer, tried by a search for one of its questions.

        Who watches a service asks without a key, so that asking costs next to nothing however often it is done.

        Raises:
            Refused: 503, with what is wrong.
        """
        if not self.is_ready:
            raise not_ready()
        async with self._probing:
            if time.monotonic() - self._probed_s >= PROBE_EVERY_S:
                before, self._refusal = self._refusal, await self._probe()
                self._probed_s = time.monotonic()
                if self._refusal is not None and before is None:
                    LOG.error("not ready: %s", self._refusal)
        if self._refusal is not None:
            raise self._refusal

    async def _probe(self) -> Refused | None:
        try:
            await self.readers.run(self.engine.probe, PROBE_TIMEOUT_S)
        except (AskalikeError, Refused) as error:
            return unavailable(error)
        return None

    def stop_soon(self) -> None:
        """Answer no longer that it is ready, and begin nothing new in the background."""
        self.is_ready = False
        self.maintenance.stop(0)

    def close(self) -> None:
        """Finish what is under way, then close the forum.

        What takes too long is left as it is, since everything that was acknowledged is on disk; the forum is closed
        after it, where the process goes on with other forums.
        """
        self.stop_soon()
        end_s = time.monotonic() + CLOSE_S
        are_ended = [
            close(end_s - time.monotonic()) for close in (self.maintenance.stop, self.readers.close, self.writer.close)
        ]
        if all(are_ended):
            self.engine.forum.close()
        else:
            LOG.warning("stopped while something was still under way; it is done again when the service starts")
            threading.Thread(target=self._close_later, name="close", daemon=True).start()

    def _close_later(self) -> None:
        for close in (self.maintenance.stop, self.readers.close, self.writer.close):
            while not close(CLOSE_S):
                pass
        self.engine.forum.close()


def unavailable(error: BaseException) -> Refused:
    """Return what a request is answered with while a forum cannot answer."""
    problem = refusal_of(error)
    return Refused(503, problem.error, problem.hint, SOON)


def not_ready() -> Refused:
    """Return what a request is answered with before the service answers, and while it stops."""
    return Refused(503, "the service is not ready", "try again soon", SOON)


class ServedForum:
    """A forum of the service, open or not: who may ask it, what is counted, and what answers while it is open.

    Args:
        open_service: opens it for a request, where it is one of several; one alone is opened when the service starts.
    """

    def __init__(
        self, access: Access, metrics: Metrics, open_service: Callable[[], Awaitable[Service]] | None = None
    ) -> None:
        self.access, self.metrics = access, metrics
        self.service: Service | None = None
        self.opening: asyncio.Task[None] | None = None
        self.busy = 0
        """Requests that it answers now, or will once it is open."""
        self.used_s = time.monotonic()
        self.failure: AskalikeError | None = None
        """Why it is not waited for any longer."""
        self._open_service = open_service
        self._refusal = not_ready()

    async def opened(self) -> Service:
        """Return what answers for it.

        Raises:
            AskalikeError: it cannot be opened.
            Refused: 503, it is not open.
        """
        if self.service is not None:
            return self.service
        if self._open_service is None:
            raise self._refusal
        return await self._open_service()

    def stop_soon(self) -> None:
        """Answer no longer that it is ready, and begin nothing new in the background."""
        if self.service is not None:
            self.service.stop_soon()

    async def wait_for_database(self, error: AskalikeError) -> None:
        """Open the forum once its database answers, which is tried less and less often; ``failure`` says why not."""
        settings, rest_s = self.access.settings, FIRST_REST_S
        end_s = time.monotonic() + settings.wait_s
        LOG.error("not ready: %s; tried again for %g s", error, settings.wait_s)
        while self.service is None and self.failure is None:
            self._refusal = unavailable(error)
            await asyncio.sleep(rest_s)
            try:
                self.service = await asyncio.to_thread(Service.open, settings, self.metrics)
            except AskalikeError as another:
                error = another
                if not isinstance(error, DatabaseError) or time.monotonic() > end_s:
                    self.failure = error
            rest_s = min(2 * rest_s, MAX_REST_S)
