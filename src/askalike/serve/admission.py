"""Which connections of a worker stay open when there are too many, and what its log tells of those that were closed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from typing import Final, Protocol

from askalike.serve.settings import Limits

LOG: Final = logging.getLogger("askalike.serve")

HANDLES_KEPT: Final = 256
"""File handles that a worker needs for the forum itself; connections get the others."""
FEWEST: Final = 16
NOTICE_S: Final = 10.0
"""What clients can cause as often as they like is told once in so long, with its count."""


class Closable(Protocol):
    """A connection, as the admission sees it."""

    def close_for_another(self) -> None:
        """Close at once."""


class Admission:
    """Keeps the connections that wait for their clients, in the order in which they may be closed for others.

    Those that never sent a whole request go before those that did, and among each those that have waited longest.
    """

    def __init__(self, limits: Limits) -> None:
        self.most = min(limits.connections, _handles())
        self._strangers: dict[Closable, None] = {}
        self._known: dict[Closable, None] = {}

    def waits(self, connection: Closable, *, is_known: bool) -> None:
        """Note that a connection waits for its client from now on."""
        self.works(connection)
        (self._known if is_known else self._strangers)[connection] = None

    def works(self, connection: Closable) -> None:
        """Note that a connection's client waits for the service, or that it is closed."""
        self._strangers.pop(connection, None)
        self._known.pop(connection, None)

    def make_room(self) -> bool:
        """Close the connection that may go first; return whether there was one."""
        for waiting in (self._strangers, self._known):
            if waiting:
                connection = next(iter(waiting))
                self.works(connection)
                connection.close_for_another()
                return True
        return False


class Notices:
    """Warnings that clients can cause: the first at once, then one line for each time span, with counts."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._told_s = -NOTICE_S
        self._timer: asyncio.TimerHandle | None = None

    def note(self, what: str) -> None:
        """Count something, and tell of it once it is time."""
        self._counts[what] += 1
        if self._timer is None:
            wait_s = max(0.0, self._told_s + NOTICE_S - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._tell)

    def _tell(self) -> None:
        self._timer, self._told_s = None, time.monotonic()
        counts = dict(self._counts)
        self._counts.clear()
        LOG.warning("", extra={"fields": {"message": "connections were closed or refused", "counts": counts}})


def _handles() -> int:
    """Return how many connections this process has file handles for."""
    try:
        import resource
    except ImportError:  # not on Windows, where sockets are no file handles
        return 10_000
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 10_000 if soft == resource.RLIM_INFINITY else max(FEWEST, soft - HANDLES_KEPT)
