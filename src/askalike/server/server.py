"""uvicorn's server with its own accept loop, which survives a lack of file handles, and a bounded shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import uvicorn

from askalike.errors import SettingError
from askalike.processes import collect_rarely
from askalike.server.admission import LEFT_S, Admission, Notices, Share
from askalike.server.app import Application
from askalike.server.connection import Connection
from askalike.server.settings import Limits, Network

LOG: Final = logging.getLogger("askalike.server")

SHUTDOWN_S: Final = 10
"""Time for requests under way after the service was told to stop."""
BACKLOG: Final = 1_024
AT_ONCE: Final = 4
"""Connections accepted in one turn of the event loop: what was sent over those before is read, and excess ones are
closed, before more are accepted."""
PAUSE_S: Final = 0.5
"""Pause in accepting when file handles or memory run out."""
EXHAUSTED: Final = frozenset([errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])


class Server(uvicorn.Server):
    """Answers on sockets that already listen.

    Args:
        app: the application.
        limits: of connections.
        proxies: whose connections are not counted as one client's.
        stopping: called when it is told to stop, before it waits for what is under way.
        share: of the connections that several workers take from the same sockets; None where there is one.
    """

    def __init__(
        self,
        app: Application,
        limits: Limits,
        proxies: Sequence[Network] = (),
        stopping: Callable[[], None] = lambda: None,
        share: Share | None = None,
    ) -> None:
        admission, notices = Admission(limits, proxies, share), Notices()
        self._connection = partial(Connection, limits=limits, admission=admission, notices=notices)
        super().__init__(
            uvicorn.Config(
                app,
                http=self._connection,  # type: ignore[arg-type]  # what makes a connection is as good as its class
                loop="asyncio:SelectorEventLoop",
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=SHUTDOWN_S,
            )
        )
        self._admission, self._notices = admission, notices
        self._stopping = stopping
        self._share = share
        self._listening: Sequence[socket.socket] = ()
        self._accepting: set[asyncio.Task[Any]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then accept."""
        asyncio.get_running_loop().set_exception_handler(_log_fault)
        await super().startup(sockets=[])
        collect_rarely()  # the model and the indexes stay: looking through them held up all searches for 30 ms
        self._listening = sockets or []
        if self._share is not None:
            self._share.note(0)  # from now on it takes some
        for listening in self._listening:
            listening.setblocking(False)
            self._accept_from(listening)
        if self._listening:
            host, port = self._listening[0].getsockname()[:2]
            LOG.info("", extra={"fields": {"message": "listening", "host": host, "port": port}})

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, and finish the requests under way."""
        for listening in self._listening:
            asyncio.get_running_loop().remove_reader(listening)
        if self._share is not None:
            self._share.end()
        self._stopping()
        await super().shutdown(sockets)

    def _accept_from(self, listening: socket.socket) -> None:
        if not self.should_exit:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept_later(self, listening: socket.socket, wait_s: float) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening)
        loop.call_later(wait_s, self._accept_from, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(AT_ONCE):
            if self._share is not None and self._share.leaves_to_others():
                self._accept_later(listening, LEFT_S)
                return
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError as error:
                if error.errno not in EXHAUSTED:
                    raise
                self._notices.note(f"not accepted: {error.strerror}")
                self._admission.make_room()
                self._accept_later(listening, PAUSE_S)
                return
            accepted.setblocking(False)
            task = asyncio.get_running_loop().create_task(self._connect(accepted))
            self._accepting.add(task)
            task.add_done_callback(self._accepting.discard)
            if self._share is not None:
                self._share.note(self._admission.open + len(self._accepting))

    async def _connect(self, accepted: socket.socket) -> None:
        make = partial(
            self._connection,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        with contextlib.suppress(OSError):  # the client is gone already
            await asyncio.get_running_loop().connect_accepted_socket(make, accepted)


def listen(host: str, port: int) -> list[socket.socket]:
    """Return the socket that listens at an address.

    Raises:
        SettingError: nobody can listen there.
    """
    address = host.strip("[]")
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [socket.create_server((address, port), family=family, backlog=BACKLOG)]
    except OSError as error:
        raise SettingError(
            f"nobody can listen at {host}, port {port}: {error.strerror}",
            "stop what is there, or name another with --port or --host",
        ) from error


def _log_fault(_: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    """Log an error of the event loop in the service's own format."""
    LOG.error("%s", context.get("message"), exc_info=context.get("exception"))
