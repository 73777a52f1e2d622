"""uvicorn's server with a bound on its connections and on its shutdown, which survives a lack of file handles."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import uvicorn

from askalike.errors import SettingError
from askalike.processes import collect_rarely
from askalike.server.admission import Admission, Notices
from askalike.server.app import Application
from askalike.server.connection import Connection
from askalike.server.settings import Limits, Network

LOG: Final = logging.getLogger("askalike.server")

SHUTDOWN_S: Final = 10
"""Time for requests under way after the service was told to stop."""
BACKLOG: Final = 1_024
ACCEPTED_AT_ONCE: Final = 1
"""Connections accepted in one turn of the event loop: so excess ones are closed before more are taken, and workers that
listen on one socket take turns."""
EXHAUSTED: Final = frozenset([errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])


class Server(uvicorn.Server):
    """Answers on sockets that already listen.

    Args:
        app: the application.
        limits: of connections.
        proxies: whose connections are not counted as one client's.
        stopping: called when it is told to stop, before it waits for what is under way.
    """

    def __init__(
        self,
        app: Application,
        limits: Limits,
        proxies: Sequence[Network] = (),
        stopping: Callable[[], None] = lambda: None,
    ) -> None:
        self._admission, self._notices, self._stopping = Admission(limits, proxies), Notices(), stopping
        connection = partial(Connection, limits=limits, admission=self._admission, notices=self._notices)
        super().__init__(
            uvicorn.Config(
                app,
                http=connection,  # type: ignore[arg-type]  # what makes a connection is as good as its class
                loop="asyncio:SelectorEventLoop",
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                backlog=ACCEPTED_AT_ONCE,
                timeout_graceful_shutdown=SHUTDOWN_S,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then accept."""
        asyncio.get_running_loop().set_exception_handler(self._note_fault)
        await super().startup(sockets)
        collect_rarely()  # the model and the indexes stay: looking through them held up all searches for 30 ms
        for listening in sockets or ():
            listening.listen(BACKLOG)  # uvicorn's backlog bounds both what waits and what is accepted at once
        if sockets:
            host, port = sockets[0].getsockname()[:2]
            LOG.info("", extra={"fields": {"message": "listening", "host": host, "port": port}})

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, and finish the requests under way."""
        self._stopping()
        await super().shutdown(sockets)

    def _note_fault(self, _: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """Log an error of the event loop; where file handles have run out, close a connection that waits."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in EXHAUSTED and "socket" in context:  # it tries again soon
            self._notices.note(f"not accepted: {error.strerror}")
            self._admission.make_room()
        else:
            LOG.error("%s", context.get("message"), exc_info=error)


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
