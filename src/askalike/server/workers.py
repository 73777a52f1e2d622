"""Several processes that answer on the same sockets: started, watched, started again, stopped, and never left alone."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Final

from uvicorn.config import STARTUP_FAILURE

from askalike.processes import end_with_parent
from askalike.server.http import build
from askalike.server.logs import set_up_logs
from askalike.server.multiprocess_metrics import MultiprocessMetrics
from askalike.server.server import GRACE_S, Server
from askalike.server.settings import ServeSettings

LOG: Final = logging.getLogger("askalike.server")

LOOK_S: Final = 0.5
AGAIN_S: Final = 1.0
"""A worker that has ended is started again no sooner than so long after it was started."""


def answer(settings: ServeSettings, listening: list[socket.socket], board: MultiprocessMetrics) -> None:
    """Answer in this process until it is told to stop."""
    app = build(settings, board)
    Server(app, settings.limits, settings.proxies, lambda: app.state.service.stop_soon()).run(sockets=listening)


def work(settings: ServeSettings, listening: list[socket.socket]) -> None:
    """Let ``settings.workers`` processes answer until SIGTERM or SIGINT.

    Raises:
        SystemExit: a worker cannot start.
    """
    stop = threading.Event()
    before = {one: signal.signal(one, lambda *_: stop.set()) for one in (signal.SIGTERM, signal.SIGINT)}
    board = MultiprocessMetrics(settings.workers)
    try:
        workers = [_Worker(settings, listening, board, place) for place in range(settings.workers)]
        is_failed = False
        while not stop.is_set() and not is_failed:
            wait([one.process.sentinel for one in workers], LOOK_S)
            is_failed = not all(one.is_kept() for one in workers if not stop.is_set())
        for one in workers:
            one.process.terminate()
        for one in workers:
            one.end()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if is_failed:
        sys.exit(STARTUP_FAILURE)


class _Worker:
    """One of the processes, and those that are started in its place."""

    def __init__(
        self, settings: ServeSettings, listening: list[socket.socket], board: MultiprocessMetrics, place: int
    ) -> None:
        self._given = (settings, listening, board)
        self._place = place
        self.process = self._started()

    def is_kept(self) -> bool:
        """Start it again if it has ended; return False where it cannot start at all."""
        if self.process.exitcode is None:
            return True
        if self.process.exitcode == STARTUP_FAILURE:
            return False
        LOG.warning("worker %s ended with %s; another takes its place", self.process.pid, self.process.exitcode)
        time.sleep(max(0.0, self._began_s + AGAIN_S - time.monotonic()))
        self.process = self._started()
        return True

    def end(self) -> None:
        """Wait until it has ended; one that takes too long is killed."""
        self.process.join(2 * GRACE_S)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()

    def _started(self) -> SpawnProcess:
        settings, listening, board = self._given
        board.place = self._place
        self._began_s = time.monotonic()
        process = multiprocessing.get_context("spawn").Process(target=_answer, args=(settings, listening, board))
        process.start()
        return process


def _answer(settings: ServeSettings, listening: list[socket.socket], board: MultiprocessMetrics) -> None:
    set_up_logs()
    end_with_parent(_stop)
    try:
        answer(settings, listening, board)
    except KeyboardInterrupt:  # the terminal tells every process; this one has finished what was under way
        return


def _stop() -> None:
    """Finish what is under way, as if somebody had asked for it."""
    os.kill(os.getpid(), signal.SIGTERM)
