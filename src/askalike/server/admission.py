"""Which connections of a worker stay open when there are too many, and what its log tells of those that were closed.

Connections come first of what file handles a process may have. What they leave is for forums, which are closed and
opened again where they are many.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Iterator, MutableSequence, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar, Final, Literal, Protocol

from askalike.server.guards import is_trusted, rate_key
from askalike.server.settings import Limits, Network

LOG: Final = logging.getLogger("askalike.server")

UNLIMITED: Final = 1_000_000
"""Sentinel: no limit."""
MACOS_HANDLES: Final = 10_240
"""What macOS allows a process whose limit it calls infinite."""
RESERVED_HANDLES: Final = 256
"""File handles that a worker keeps for its work; connections get the rest."""
WORKER_HANDLES: Final = 64
"""Of the reserved handles, those that belong to no forum."""
MIN_CONNECTIONS: Final = 16
"""Connections that are allowed however few handles there are."""
FORUM_HANDLES: Final = 50
"""Handles of an open forum under load, most of them its writers' connections to the archive."""
THREAD_HANDLES: Final = 4
"""Handles of a forum for each search thread: connections to the archive and to the pairs."""

STRANGE_WEIGHT: Final = 100.0
"""Factor on the waiting time of a connection that was never answered, when one is chosen to be closed."""
NOTICE_S: Final = 10.0
"""Warnings that clients can cause at will are logged once in this time, with counts."""

MAX_LEFT: Final = 10
"""A worker leaves a connection to another at most so often in a row, ``LEFT_S`` each time."""
LEFT_S: Final = 0.005


class Closable(Protocol):
    """A connection, as the admission sees it."""

    def close_for_another(self) -> None:
        """Close at once."""


class Share:
    """How many connections a worker has, and each of the others, in memory that they share.

    The kernel wakes all workers for a connection, and the first takes it: without this, one of two workers held 8 of 8
    connections that came at once. While others have fewer, a worker leaves them to these; but for a moment only, since
    one that was killed, or has much to do, takes none.

    Args:
        counts: of all workers; ``ABSENT`` where none listens.
        own: the place of this one's.
    """

    ABSENT: ClassVar[int] = 2**31 - 1

    def __init__(self, counts: MutableSequence[int], own: int) -> None:
        self._counts = counts
        self._own = own
        self._left = 0
        self._is_over = False

    def note(self, count: int) -> None:
        """Note how many connections this worker has; nothing where it takes no part any more."""
        if not self._is_over:
            self._counts[self._own] = count

    def leaves_to_others(self) -> bool:
        """Return whether a connection is left to another worker, which has fewer, this time."""
        if self._left == MAX_LEFT or self._counts[self._own] <= min(self._counts):
            self._left = 0
            return False
        self._left += 1
        return True

    def end(self) -> None:
        """Take no part any more."""
        self._is_over = True
        self._counts[self._own] = self.ABSENT


@dataclass(slots=True)
class _Client:
    """The connections of one address, or of all trusted proxies; those that wait are in the order of their waiting."""

    name: str
    is_proxy: bool
    open: int = 0
    strange: dict[Closable, float] = field(default_factory=dict)
    known: dict[Closable, float] = field(default_factory=dict)

    @property
    def held(self) -> int:
        """Return how many connections count as its own: of proxies one, since each may be another visitor's."""
        return min(self.open, 1) if self.is_proxy else self.open

    def longest(self, now_s: float) -> Iterator[tuple[float, Closable]]:
        """Yield those that have waited longest, one that is strange and one that is known, with their weighted time."""
        for waiting, weight in ((self.strange, STRANGE_WEIGHT), (self.known, 1.0)):
            for connection, since_s in islice(waiting.items(), 1):
                yield (now_s - since_s) * weight, connection


class Admission:
    """Counts connections by client, and keeps those that wait for their clients in the order of their waiting.

    Where there are too many, one of the client that holds most is closed: the one that has waited longest, where the
    time of those that are strange counts more. So a client that holds few keeps them whatever another opens.

    Args:
        proxies: whose connections are not counted as one client's.
        share: of the service's connections; told how many there are.
    """

    def __init__(self, limits: Limits, proxies: Sequence[Network] = (), share: Share | None = None) -> None:
        self.most = most_connections(limits)
        self._share = share
        self._most_of_one = limits.client_connections
        self._proxies = proxies
        self._clients: dict[str, _Client] = {}
        self._client_of: dict[Closable, _Client] = {}

    @property
    def open(self) -> int:
        """Return how many connections are open."""
        return len(self._client_of)

    def admit(self, connection: Closable, address: str) -> bool:
        """Count a connection; return whether there is room for it, for which another may have been closed."""
        is_proxy = is_trusted(address, self._proxies)
        name = "proxies" if is_proxy else rate_key(address)
        client = self._client_of[connection] = self._clients.setdefault(name, _Client(name, is_proxy))
        client.open += 1
        self._publish()
        if client.open > self._most_of_one and not is_proxy:
            return self._close_one([client])
        return len(self._client_of) <= self.most or self.make_room(client.held)

    def forget(self, connection: Closable) -> None:
        """Count a connection no longer: it is closed."""
        self.note(connection, "work")
        client = self._client_of.pop(connection, None)
        if client is not None:
            client.open -= 1
            if not client.open:
                del self._clients[client.name]
            self._publish()

    def note(self, connection: Closable, state: Literal["strange", "known", "work"]) -> None:
        """Note what a connection waits for from now on: that its client sends something, or that the service answers.

        Args:
            state: "work" where the service is to answer; else "strange" until something was answered and not refused,
                and "known" from then on.
        """
        client = self._client_of.get(connection)
        if client is not None:
            client.strange.pop(connection, None)
            client.known.pop(connection, None)
            if state != "work":
                (client.strange if state == "strange" else client.known)[connection] = time.monotonic()

    def make_room(self, least_held: int = 1) -> bool:
        """Close the connection that may go first; return whether there was one.

        Args:
            least_held: none of a client that holds fewer is closed.
        """
        waiting = [client for client in self._clients.values() if client.strange or client.known]
        most = max((client.held for client in waiting), default=0)
        return most >= least_held and self._close_one([client for client in waiting if client.held == most])

    def _publish(self) -> None:
        if self._share is not None:
            self._share.note(self.open)

    def _close_one(self, clients: Sequence[_Client]) -> bool:
        """Close the connection of these clients that has waited longest; return whether any waits."""
        now_s = time.monotonic()
        waiting = [candidate for client in clients for candidate in client.longest(now_s)]
        if not waiting:
            return False
        _, connection = max(waiting, key=lambda candidate: candidate[0])
        self.forget(connection)
        connection.close_for_another()
        return True


class Notices:
    """Warnings that clients can cause: the first at once, then one line for each time span, with counts."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._logged_s = -NOTICE_S
        self._timer: asyncio.TimerHandle | None = None

    def note(self, what: str) -> None:
        """Count something, and tell of it once it is time."""
        self._counts[what] += 1
        if self._timer is None:
            wait_s = max(0.0, self._logged_s + NOTICE_S - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._log)

    def _log(self) -> None:
        self._timer, self._logged_s = None, time.monotonic()
        counts = dict(self._counts)
        self._counts.clear()
        LOG.warning("", extra={"fields": {"message": "connections were closed or refused", "counts": counts}})


def raise_limit() -> None:
    """Let this process, and those that it starts, have as many file handles as the system lets it have."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        wanted = max(soft, MACOS_HANDLES) if hard == resource.RLIM_INFINITY else hard
        with contextlib.suppress(ValueError, OSError):  # the system may allow fewer than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections(limits: Limits) -> int:
    """Return how many connections this process keeps open at once."""
    return min(limits.connections, max(MIN_CONNECTIONS, _limit() - RESERVED_HANDLES))


def most_forums(limits: Limits) -> int:
    """Return how many forums of a folder this process keeps open at once."""
    left = _limit() - WORKER_HANDLES - most_connections(limits)
    return max(1, min(limits.open_forums, left // (FORUM_HANDLES + THREAD_HANDLES * limits.threads)))


def _limit() -> int:
    try:
        import resource
    except ImportError:  # not on Windows, where sockets are no file handles
        return UNLIMITED
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft
