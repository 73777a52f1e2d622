"""A forum of the service: its handlers, threads and background work while it is open, and whether it is ready.

Background work indexes, encodes and compares what was stored. Of several workers, the one that holds the lock of a task
does it. Work is done in slices, and hardly any while searches run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from askalike.errors import AskalikeError, BusyForumError, ForumNotFoundError, ModelNotFoundError
from askalike.forum import Forum
from askalike.server.guards import Access
from askalike.server.handlers import Handlers
from askalike.server.metrics import Metrics
from askalike.server.pool import Pool
from askalike.server.problem import Refused, refusal_of
from askalike.server.settings import ServeSettings

LOG: Final = logging.getLogger("askalike.server")

WRITE_THREADS: Final = 16
CLOSE_S: Final = 5.0
"""Time for calls that still run when the last connection is closed."""
PROBE_EVERY_S: Final = 1.0
PROBE_TIMEOUT_S: Final = 5.0
REST_S: Final = 1.0
"""Shortest pause between two tries to open a forum."""
PAUSE_S: Final = 0.5
SLICE_S: Final = 0.2
"""Time spent comparing between two pauses."""
SHORT_PAUSE_S: Final = 0.05
REST: Final = 20
"""Pause after a slice of comparing, in multiples of the slice, for each search that runs: a slice delays them all."""
SOON: Final = {"Retry-After": "1"}


class _Stopped(Exception):
    """The service stops."""


class MaintenanceWorker:
    """A thread that keeps a forum's indexes, vectors and pairs in step.

    Args:
        under_way: returns how many searches run; 1 where another is likely.
        turn: held during a slice, so that the forums of a service work one at a time.
    """

    def __init__(self, forum: Forum, under_way: Callable[[], int], turn: threading.Lock | None = None) -> None:
        self._forum = forum
        self._under_way = under_way
        self._turn = turn or threading.Lock()
        self._rests_until_s = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="maintenance", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, wait_s: float) -> bool:
        """Stop after the current slice; return whether that took at most ``wait_s``."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(max(0.0, wait_s))
        return not self._thread.is_alive()

    def _run(self) -> None:
        pause_s = PAUSE_S
        logged = ""
        while not self._stop.wait(pause_s):
            try:
                with self._holding_turn():
                    pause_s = SHORT_PAUSE_S if self.do_slice() else PAUSE_S
                logged = ""
            except _Stopped:
                return
            except Exception as error:
                if str(error) != logged:
                    logged = str(error)
                    trace = None if isinstance(error, AskalikeError) else error
                    LOG.error("keeping the forum in step failed: %s", error, exc_info=trace)
                pause_s = 10 * PAUSE_S

    @contextlib.contextmanager
    def _holding_turn(self) -> Iterator[None]:
        """Wait for the turn, and hold it inside.

        Raises:
            _Stopped: the service stops meanwhile.
        """
        while not self._turn.acquire(timeout=PAUSE_S):
            if self._stop.is_set():
                raise _Stopped
        try:
            if self._stop.is_set():
                raise _Stopped
            yield
        finally:
            self._turn.release()

    def do_slice(self) -> bool:
        """Do a slice of the work; return whether more is left."""
        forum = self._forum
        if forum.indexes.behind():
            forum.catch_up(is_waiting=False)
        if forum.indexes.state().is_behind:
            with contextlib.suppress(BusyForumError, ModelNotFoundError):  # another process is at it
                forum.encode(progress=_StopProgress(self._stop))
        began_s = time.monotonic()
        if self._under_way() and began_s < self._rests_until_s:
            return False
        is_more = forum.pairs.advance(SLICE_S, lambda: self._stop.is_set() or self._under_way() > 0) > 0
        ended_s = time.monotonic()
        self._rests_until_s = ended_s + REST * max(1, self._under_way()) * (ended_s - began_s)
        return is_more


class _StopProgress:
    """Progress that ends its work once the service stops; vectors encoded so far are kept."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def start(self, phase: str, total: int, unit: str) -> None:
        """Begin a phase."""
        self._check()

    def advance(self, count: int) -> None:
        """Count work."""
        self._check()

    def notice(self, text: str) -> None:
        """Ignore a sentence."""

    def _check(self) -> None:
        if self._stop.is_set():
            raise _Stopped


@dataclass(slots=True)
class Service:
    """An open forum: its handlers, its threads, and its background work.

    Args:
        readers: threads that search.
        writers: threads that write; the archive takes one write at a time, and what several have stored meanwhile is
            indexed together.
    """

    settings: ServeSettings
    forum: Forum
    handlers: Handlers
    metrics: Metrics
    readers: Pool
    writers: Pool
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
        """Open a forum, let a first search read its model, and start its background work.

        Args:
            metrics: of a forum among several.
            is_busy: returns whether other forums of the service are searched.
            turn: held by the forum that works in the background.

        Raises:
            ForumError: it cannot be opened.
        """
        metrics, limits = metrics or Metrics(), settings.limits
        forum = Forum.open(settings.folder)
        handlers = Handlers(forum, metrics)
        batch = None if forum.indexes.engine_address else handlers.similar_many
        readers = Pool("search", limits.threads, limits.waiting, batch)
        writers = Pool("write", WRITE_THREADS, limits.waiting)
        maintenance = MaintenanceWorker(forum, lambda: readers.busy or handlers.is_searched or is_busy(), turn)
        service = cls(settings, forum, handlers, metrics, readers, writers, maintenance)
        try:
            handlers.warm_up()
            maintenance.start()
            service.is_ready = True
        except BaseException:
            service.close()
            raise
        return service

    @property
    def is_lost(self) -> bool:
        """Whether the forum's folder was moved, deleted or replaced since it was opened."""
        try:
            self.forum.store.check_folder()
        except ForumNotFoundError:
            return True
        return False

    async def check_ready(self) -> None:
        """Check by a search for one of its questions that the forum can be searched.

        Probes come without a key, so the search runs at most once in ``PROBE_EVERY_S``.

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
            await self.readers.run(self.handlers.probe, PROBE_TIMEOUT_S)
        except (AskalikeError, Refused) as error:
            problem = refusal_of(error)
            return Refused(503, problem.error, problem.hint, SOON)
        return None

    def stop_soon(self) -> None:
        """Report that the forum is not ready, and start no more background work."""
        self.is_ready = False
        self.maintenance.stop(0)

    def close(self) -> None:
        """Finish the calls that run, then close the forum.

        A call that exceeds ``CLOSE_S`` is not waited for, since everything acknowledged is on disk; the forum is then
        closed after it, in a thread.
        """
        self.stop_soon()
        end_s = time.monotonic() + CLOSE_S
        are_ended = [
            close(end_s - time.monotonic()) for close in (self.maintenance.stop, self.readers.close, self.writers.close)
        ]
        if all(are_ended):
            self.forum.close()
        else:
            LOG.warning("stopped while something was still under way; it is done again when the service starts")
            threading.Thread(target=self._close_later, name="close", daemon=True).start()

    def _close_later(self) -> None:
        for close in (self.maintenance.stop, self.readers.close, self.writers.close):
            while not close(CLOSE_S):
                pass
        self.forum.close()


def not_ready() -> Refused:
    """Return the refusal before the service is ready, and while it stops."""
    return Refused(503, "the service is not ready", "try again soon", SOON)


class ServedForum:
    """A forum of the service, open or not: its access rules, its counts, and its service while it is open.

    Args:
        room: held while it is opened: waits for its turn, and closes another forum for it.
        is_busy: returns whether other forums of the service are searched.
        turn: held by the forum that works in the background.
    """

    def __init__(
        self,
        access: Access,
        metrics: Metrics,
        room: Callable[[], AbstractAsyncContextManager[None]] = contextlib.nullcontext,
        is_busy: Callable[[], bool] = lambda: False,
        turn: threading.Lock | None = None,
    ) -> None:
        self.access, self.metrics = access, metrics
        self.service: Service | None = None
        self.opening: asyncio.Task[None] | None = None
        self.busy = 0
        """Requests under way, those that wait for it to open included."""
        self.used_s = time.monotonic()
        self._room, self._is_busy, self._turn = room, is_busy, turn
        self._error: AskalikeError | None = None
        self._again_s = 0.0

    async def ensure_open(self) -> Service:
        """Return its service, opened now where it was not; a forum whose folder was replaced is opened again.

        Raises:
            AskalikeError: it cannot be opened.
            Refused: 503, it is not open in time, or the service stops.
        """
        if self.service is None or self.service.is_lost:
            timeout_s = self.access.settings.limits.timeout_s
            try:
                async with asyncio.timeout(timeout_s):
                    await self.close()
                    while self.service is None:
                        await self.open()
            except TimeoutError as error:
                raise Refused(503, f"the forum was not open within {timeout_s:g} s", "try again soon", SOON) from error
        return self.service

    async def open(self) -> None:
        """Open it, together with whoever else waits for that; after an error it is not tried again for a moment.

        Raises:
            AskalikeError: it cannot be opened.
        """
        if self._error is not None and time.monotonic() < self._again_s:
            raise self._error
        if self.opening is None:
            self.opening = asyncio.create_task(self._open())
        await asyncio.shield(self.opening)

    async def _open(self) -> None:
        try:
            async with self._room():
                arguments = (self.access.settings, self.metrics, self._is_busy, self._turn)
                self.service = await asyncio.to_thread(Service.open, *arguments)
                self.used_s, self._error = time.monotonic(), None
        except AskalikeError as error:
            if self._error is None:
                LOG.error("not open: %s", error)
            self._error, self._again_s = error, time.monotonic() + REST_S
            raise
        finally:
            self.opening = None

    async def close(self) -> None:
        """Close it; it counts as closed at once."""
        service, self.service = self.service, None
        if service is not None:
            await asyncio.to_thread(service.close)

    def stop_soon(self) -> None:
        """Report that the forum is not ready, and start no more background work."""
        if self.service is not None:
            self.service.stop_soon()
