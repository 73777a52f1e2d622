"""One worker's service: forum, engine, threads, keys and counts, opened and closed together; whether it is ready."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from askalike.errors import AskalikeError, DatabaseError
from askalike.forum import Forum
from askalike.schemas import Health
from askalike.server.engine import Engine
from askalike.server.guards import Keys, Rates, host_names, rights_without_key
from askalike.server.maintenance import MaintenanceWorker
from askalike.server.metrics import Metrics
from askalike.server.pool import Pool
from askalike.server.problem import Problem, Refused, problem_of
from askalike.server.settings import Network, ServeSettings

LOG: Final = logging.getLogger("askalike.server")

WRITERS = 16
CLOSE_S: Final = 5.0
"""For what is still under way when the last connection is closed."""
FRESH_S: Final = 1.0
"""Whether the service can answer is tried no more often, however often it is asked."""
LONGEST_S: Final = 5.0
"""For one such trial."""
FIRST_REST_S: Final = 0.5
LONGEST_REST_S: Final = 5.0
"""Until a database that is away at the start is asked again."""


class Readiness:
    """Whether the service can answer, tried by a search for one of its questions.

    Who watches a service asks without a key, so that asking must cost next to nothing however often it is done.

    Args:
        probe: searches; what it raises says what is wrong.
        readers: the threads that do it.
    """

    def __init__(self, probe: Callable[[], None], readers: Pool) -> None:
        self._probe = probe
        self._readers = readers
        self._trying = asyncio.Lock()
        self._tried_s = -FRESH_S
        self._refusal: Refused | None = None

    async def check(self) -> None:
        """Return where the service can answer.

        Raises:
            Refused: 503, with what is wrong.
        """
        async with self._trying:
            if time.monotonic() - self._tried_s >= FRESH_S:
                before, self._refusal = self._refusal, await self._tried()
                self._tried_s = time.monotonic()
                if self._refusal is not None and before is None:
                    LOG.error("not ready: %s", self._refusal)
        if self._refusal is not None:
            raise self._refusal

    async def _tried(self) -> Refused | None:
        try:
            await self._readers.run(self._probe, LONGEST_S)
        except (AskalikeError, Refused) as error:
            found = problem_of(error)
            return Refused(503, found.error, found.hint, {"Retry-After": "1"})
        return None


@dataclass(slots=True)
class Waiting:
    """What a worker answers with while its forum's database is away: that it lives, and that it is not ready.

    Args:
        problem: what every request but ``/healthz`` is answered with.
        failed: why it waits no longer.
    """

    settings: ServeSettings
    problem: Problem
    metrics: Metrics = field(default_factory=Metrics)
    failed: AskalikeError | None = None
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def proxies(self) -> tuple[Network, ...]:
        """Return the networks of the proxies that are trusted."""
        return self.settings.proxies

    @property
    def host_names(self) -> frozenset[str]:
        """Return the names under which the service is reached."""
        return host_names(self.settings)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            Refused: 503, with what is wrong.
        """
        if scope["path"] != "/healthz":
            raise Refused(503, self.problem.error, self.problem.hint, self.problem.headers)
        await Response(msgspec.json.encode(Health("ok")), media_type="application/json")(scope, receive, send)

    async def wait(self) -> Service | None:
        """Return the service once the database answers, which is asked less and less often.

        None where it was told to stop, or where ``failed`` says why the forum cannot be served.
        """
        end_s, rest_s = time.monotonic() + self.settings.wait_s, FIRST_REST_S
        LOG.error("not ready: %s; tried again for %g s", self.problem.error, self.settings.wait_s)
        while not self.stopped.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stopped.wait(), rest_s)
                return None
            try:
                return await asyncio.to_thread(Service.started_for, self.settings, self.metrics)
            except AskalikeError as error:
                self.problem = problem_of(error)
                if not isinstance(error, DatabaseError) or time.monotonic() > end_s:
                    self.failed = error
                    return None
            rest_s = min(2 * rest_s, LONGEST_REST_S)
        return None

    def stop_soon(self) -> None:
        """Wait no longer."""
        self.stopped.set()


def rates_of(settings: ServeSettings) -> Rates:
    """Return how often each client may ask one of the workers."""
    return Rates(settings.limits.rate / settings.workers, settings.limits.burst)


@dataclass(slots=True)
class Service:
    """What a worker answers with.

    Args:
        readers: threads that search.
        writer: threads that write; the archive takes one write at a time, and what several have stored meanwhile is
            indexed together.
    """

    settings: ServeSettings
    engine: Engine
    metrics: Metrics
    keys: Keys
    rates: Rates
    readers: Pool
    writer: Pool
    maintenance: MaintenanceWorker
    proxies: tuple[Network, ...]
    host_names: frozenset[str]
    rights_without_key: frozenset[str]
    readiness: Readiness
    is_ready: bool = False
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    began_s: float = field(default_factory=time.monotonic)

    @classmethod
    def open(
        cls,
        settings: ServeSettings,
        metrics: Metrics | None = None,
        keys: Keys | None = None,
        is_busy: Callable[[], bool] = lambda: False,
        turn: threading.Lock | None = None,
        rates: Rates | None = None,
    ) -> Service:
        """Open a forum and what answers for it.

        Args:
            metrics: of a forum among several.
            keys: taken beside the forum's own.
            is_busy: whether other forums of the service are being searched.
            turn: whose turn it is to work in the background.
            rates: of all forums of the service.

        Raises:
            ForumError: it cannot be opened.
        """
        metrics, limits = metrics or Metrics(), settings.limits
        engine = Engine(Forum.open(settings.folder), metrics)
        together = None if engine.forum.is_distant else engine.similar_many
        readers = Pool("search", limits.threads, limits.waiting, together)
        return cls(
            settings=settings,
            engine=engine,
            metrics=metrics,
            keys=Keys(settings.folder, keys),
            rates=rates or rates_of(settings),
            readers=readers,
            writer=Pool("write", WRITERS, limits.waiting),
            maintenance=MaintenanceWorker(engine, lambda: readers.busy or engine.is_searched or is_busy(), turn),
            proxies=settings.proxies,
            host_names=host_names(settings),
            rights_without_key=rights_without_key(settings),
            readiness=Readiness(engine.probe, readers),
        )

    @classmethod
    def started_for(cls, settings: ServeSettings, *given: Any) -> Service:
        """Open a forum with what ``open`` takes, and begin to answer for it.

        Raises:
            ForumError: as ``open``.
        """
        service = cls.open(settings, *given)
        try:
            service.start()
        except BaseException:
            service.close()
            raise
        return service

    def start(self) -> None:
        """Begin to answer, once a first search has read the model."""
        self.engine.warm_up()
        self.maintenance.start()
        self.is_ready = True

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
            one(end_s - time.monotonic()) for one in (self.maintenance.stop, self.readers.close, self.writer.close)
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
