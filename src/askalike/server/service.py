"""One worker's service: forum, engine, threads, keys, counts and the page's files, opened and closed together."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from askalike.forum import Forum
from askalike.server.engine import Engine
from askalike.server.keys import Keys
from askalike.server.maintenance import MaintenanceWorker
from askalike.server.metrics import Metrics
from askalike.server.multiprocess_metrics import MultiprocessMetrics
from askalike.server.pool import Pool
from askalike.server.rates import Rates
from askalike.server.readiness import Readiness
from askalike.server.settings import Network, ServeSettings
from askalike.server.static import StaticFile, static_files

LOG: Final = logging.getLogger("askalike.server")

WRITERS = 16
CLOSE_S: Final = 5.0
"""For what is still under way when the last connection is closed."""


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
    files: dict[str, StaticFile]
    maintenance: MaintenanceWorker
    board: MultiprocessMetrics
    proxies: tuple[Network, ...]
    readiness: Readiness
    is_ready: bool = False
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    began_s: float = field(default_factory=time.monotonic)

    @classmethod
    def open(cls, settings: ServeSettings, board: MultiprocessMetrics) -> Service:
        """Open a forum and what answers for it.

        Raises:
            ForumError: it cannot be opened.
        """
        metrics, limits = Metrics(), settings.limits
        engine = Engine(Forum.open(settings.folder), metrics.stage)
        readers = Pool("search", limits.threads, limits.waiting)
        return cls(
            settings=settings,
            engine=engine,
            metrics=metrics,
            keys=Keys(settings.folder),
            rates=Rates(limits.rate / settings.workers, limits.burst),
            readers=readers,
            writer=Pool("write", WRITERS, limits.waiting),
            files=static_files(),
            maintenance=MaintenanceWorker(engine, lambda: readers.busy > 0, lambda: board.publish(metrics.text)),
            board=board,
            proxies=settings.proxies,
            readiness=Readiness(engine.probe, readers),
        )

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

        What takes too long is left as it is: everything that was acknowledged is on disk.
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
