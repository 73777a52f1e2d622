"""One worker's service: the forum, its engine, threads, keys, counts and the page's files, opened and closed together.

Enters: ``ServeSettings``. Leaves: ``Service``. May import: archive, errors, forum, its own folder.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from askalike.forum import Forum
from askalike.serve.board import Board
from askalike.serve.engine import Engine
from askalike.serve.keeper import Keeper
from askalike.serve.keys import Keys
from askalike.serve.metrics import Metrics
from askalike.serve.pool import Pool
from askalike.serve.rates import Rates
from askalike.serve.settings import ServeSettings
from askalike.serve.static import StaticFile, static_files

__all__ = ["Service"]

WRITERS = 16


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
    keeper: Keeper
    board: Board
    is_ready: bool = False
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    began_s: float = field(default_factory=time.monotonic)

    @classmethod
    def open(cls, settings: ServeSettings) -> Service:
        """Open a forum and what answers for it.

        Raises:
            ForumError: it cannot be opened.
        """
        metrics, limits = Metrics(), settings.limits
        engine = Engine(Forum.open(settings.folder), metrics.stage)
        readers = Pool("search", limits.threads, limits.waiting)
        board = Board(settings.board)
        return cls(
            settings=settings,
            engine=engine,
            metrics=metrics,
            keys=Keys(settings.folder),
            rates=Rates(limits.rate / settings.workers, limits.burst),
            readers=readers,
            writer=Pool("write", WRITERS, limits.waiting),
            files=static_files(),
            keeper=Keeper(engine, lambda: readers.busy > 0, lambda: board.publish(metrics.text)),
            board=board,
        )

    def start(self) -> None:
        """Begin to answer, once a first search has read the model."""
        self.engine.warm_up()
        self.keeper.start()
        self.is_ready = True

    def close(self) -> None:
        """Finish what is under way, then close the forum."""
        self.is_ready = False
        self.keeper.stop()
        self.readers.close()
        self.writer.close()
        self.engine.forum.close()
