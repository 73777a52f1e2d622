"""Which connections of a worker stay open when there are too many, and what its log tells of those that were closed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from itertools import islice
from typing import Final, Protocol

from askalike.server.settings import Limits

LOG: Final = logging.getLogger("askalike.server")

HANDLES_KEPT: Final = 256
"""File handles that a worker needs for the forum itself; connections get the others."""
FEWEST: Final = 16
STRANGE_WEIGHT: Final = 100.0
"""A connection whose client has never asked for anything goes as if it had waited so many times as long."""
NOTICE_S: Final = 10.0
"""What clients can cause as often as they like is told once in so long, with its count."""


class Closable(Protocol):
    """A connection, as the admission sees it."""

    def close_for_another(self) -> None:
        """Close at once."""


class Admission:
    """Keeps the connections that wait for their clients, in the order of their waiting.

    The one that has waited longest may be closed for another; the time of those that are strange counts more.
    """

    def __init__(self, limits: Limits) -> None:
        self.most = min(limits.connections, _handles())
        self._strange: dict[Closable, float] = {}
        self._known: dict[Closable, float] = {}

    def waits(self, connection: Closable, *, is_strange: bool) -> None:
        """Note that a connection waits for its client from now on.

        Args:
            is_strange: the client has never asked for anything that was answered.
        """
        self.works(connection)
        (self._strange if is_strange else self._known)[connection] = time.monotonic()

    def works(self, connection: Closable) -> None:
        """Note that a connection's client waits for the service, or that it is closed."""
        self._strange.pop(connection, None)
        self._known.pop(connection, None)

    def make_room(self) -> bool:
        """Close the connection that may go first; return whether there was one."""
        now = time.monotonic()
        longest = [
            ((now - since) * weight, connection)
            for waiting, weight in ((self._strange, STRANGE_WEIGHT), (self._known, 1.0))
            for connection, since in islice(waiting.items(), 1)
        ]
        if not longest:
            return False
        _, connection = max(longest, key=lambda one: one[0])
        self.works(connection)
        connection.close_for_another()
        return True


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
