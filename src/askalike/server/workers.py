"""Starts the service in one process or several on the same sockets; one that ends is replaced."""

from __future__ import annotations

import contextlib
import ctypes
import json
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, MutableSequence
from datetime import UTC, datetime
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any, Final

from uvicorn.config import STARTUP_FAILURE

from askalike.errors import DatabaseError, SettingError
from askalike.forum import Forum
from askalike.processes import end_with_parent, keep_one_native_thread
from askalike.server.admission import Share, raise_limit
from askalike.server.app import build
from askalike.server.forums import ForumsApplication
from askalike.server.guards import Keys
from askalike.server.metrics import SHARED
from askalike.server.server import SHUTDOWN_S, Server, listen
from askalike.server.settings import ServeSettings, is_loopback
from askalike.store.layout import forum_names
from askalike.text.characters import safe

LOG: Final = logging.getLogger("askalike.server")

LOOK_S: Final = 0.5
AGAIN_S: Final = 1.0
"""Shortest time between two starts of a worker."""
ARENAS: Final = 2
VARIABLE: Final = "MALLOC_ARENA_MAX"
M_ARENA_MAX: Final = -8
"""The parameter's number in glibc's malloc.h."""


def run(settings: ServeSettings, on_start: Callable[[int], None] = lambda port: None) -> None:
    """Serve until SIGTERM or SIGINT; then finish what is under way.

    Args:
        on_start: called with the port once it listens.

    Raises:
        SettingError: it would be open to others without a key, or nobody can listen at the address.
        ForumError: the forum cannot be opened, and not because its database is away.
    """
    check_open(settings)
    if not forum_names(settings.folder):
        with contextlib.suppress(DatabaseError):  # the service answers 503 until it is there
            Forum.open(settings.folder).close()  # refused here, with a message, rather than in a worker
    listening = listen(settings.host, settings.port)
    on_start(listening[0].getsockname()[1])
    raise_limit()
    limit_arenas()
    keep_one_native_thread()
    set_up_logs(is_json=settings.has_json_log)
    if settings.workers == 1:
        run_worker(settings, listening)
    else:
        run_workers(settings, listening)


def check_open(settings: ServeSettings) -> None:
    """Refuse to serve others than this machine's users without a key, unless that is said to be wanted.

    Where reading is open, no key is needed to begin with: until there is one, nobody changes the forum over HTTP.

    Raises:
        SettingError: there is no key.
    """
    folders = [settings.folder / name for name in forum_names(settings.folder)] or [settings.folder]
    keyless = [folder for folder in folders if not Keys(folder).all()]
    if settings.needs_keys and not settings.is_read_open and keyless and not Keys(settings.folder).all():
        where = settings.host if not is_loopback(settings.host) else ", ".join(settings.allow_hosts)
        raise SettingError(
            f"refusing to listen on {where} without an API key",
            f'create one with "askalike keys {keyless[0]} --add write", or say --open-read if everyone may '
            "read, or --insecure if everyone may read and change the forum",
        )


def limit_arenas() -> None:
    """Let this process and those that it starts allocate from few arenas, unless the environment says how many.

    glibc gives nearly every thread an arena to allocate from, and what a thread frees stays in its own: a service that
    is written to for hours grows though nothing is kept. With two arenas it stays level (LOG.md). Nothing happens where
    the C library is not glibc.
    """
    if not sys.platform.startswith("linux") or VARIABLE in os.environ:
        return
    os.environ[VARIABLE] = str(ARENAS)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, ARENAS)


class Lines(logging.Formatter):
    """Writes a record as one line: words for people, or a JSON object.

    ::

        2026-11-26T12:00:00.000Z info worker 17: method POST, path /v1/similar, status 200
    """

    def __init__(self, *, is_json: bool) -> None:
        super().__init__()
        self._is_json = is_json

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line: dict[str, Any] = {"at": moment, "level": record.levelname.lower(), "worker": os.getpid()}
        fields = getattr(record, "fields", None)
        line |= fields if isinstance(fields, dict) else {"message": record.getMessage()}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        if self._is_json:
            return json.dumps(line, ensure_ascii=True)
        at, level, worker = (line.pop(name) for name in ("at", "level", "worker"))
        words = line.get("message") or ", ".join(f"{name} {value}" for name, value in line.items() if name != "trace")
        trace = f"\n{line['trace']}" if "trace" in line else ""
        return f"{at} {level} worker {worker}: {' '.join(safe(str(words)).split())}{trace}"


def set_up_logs(*, is_json: bool) -> None:
    """Let the service's and the server's loggers write a line for each record."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(is_json=is_json))
    for name in ("askalike.server", "uvicorn", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.propagate = name == "uvicorn.error"
        logger.setLevel("INFO")


def run_worker(settings: ServeSettings, listening: list[socket.socket], share: Share | None = None) -> None:
    """Answer in this process until it is told to stop.

    Args:
        share: of the connections, where other workers listen too.
    """
    app = ForumsApplication(settings) if forum_names(settings.folder) else build(settings)
    Server(app, settings.limits, settings.proxies, app.stop_soon, share).run(sockets=listening)


def run_workers(settings: ServeSettings, listening: list[socket.socket]) -> None:
    """Let ``settings.workers`` processes answer until SIGTERM or SIGINT.

    Raises:
        SystemExit: a worker cannot start.
    """
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    counts = tempfile.mkdtemp(prefix="askalike-counts-")
    os.environ[SHARED] = counts
    try:
        connections = multiprocessing.get_context("spawn").RawArray("i", [Share.ABSENT] * settings.workers)
        workers = [_Worker(settings, listening, connections, number) for number in range(settings.workers)]
        is_failed = False
        while not stop.is_set() and not is_failed:
            wait([worker.process.sentinel for worker in workers], LOOK_S)
            is_failed = not all(worker.is_kept() for worker in workers if not stop.is_set())
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.end()
    finally:
        shutil.rmtree(counts, ignore_errors=True)
        for number, handler in before.items():
            signal.signal(number, handler)
    if is_failed:
        sys.exit(STARTUP_FAILURE)


class _Worker:
    """One of the processes, and those that are started in its place."""

    def __init__(
        self, settings: ServeSettings, listening: list[socket.socket], connections: MutableSequence[int], number: int
    ) -> None:
        self._arguments = (settings, listening, connections, number)
        self.process = self._started()

    def is_kept(self) -> bool:
        """Start it again if it has ended; return False where it cannot start at all."""
        if self.process.exitcode is None:
            return True
        if self.process.exitcode == STARTUP_FAILURE:
            return False
        connections, number = self._arguments[2:]
        connections[number] = Share.ABSENT  # it was killed, and others waited for it to take its part
        LOG.warning("worker %s ended with %s; another takes its place", self.process.pid, self.process.exitcode)
        time.sleep(max(0.0, self._began_s + AGAIN_S - time.monotonic()))
        self.process = self._started()
        return True

    def end(self) -> None:
        """Wait until it has ended; one that takes too long is killed."""
        self.process.join(2 * SHUTDOWN_S)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()

    def _started(self) -> SpawnProcess:
        self._began_s = time.monotonic()
        process = multiprocessing.get_context("spawn").Process(target=_run_started, args=self._arguments)
        process.start()
        return process


def _run_started(
    settings: ServeSettings, listening: list[socket.socket], connections: MutableSequence[int], number: int
) -> None:
    set_up_logs(is_json=settings.has_json_log)
    end_with_parent(_stop)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # uvicorn raises it again once it has stopped
    parent = multiprocessing.parent_process()
    try:
        run_worker(settings, listening, Share(connections, number))
    except KeyboardInterrupt:  # the terminal tells every process; this one has finished what was under way
        return
    finally:
        if parent is not None and not parent.is_alive():  # it was killed, and cannot clear this away
            shutil.rmtree(os.environ[SHARED], ignore_errors=True)


def _stop() -> None:
    """Stop this process as SIGTERM does."""
    os.kill(os.getpid(), signal.SIGTERM)
