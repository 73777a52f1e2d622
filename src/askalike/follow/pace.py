"""How often a site is asked: never more than it allows in any minute, whoever was killed and began again."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

WINDOW_S: Final = 60.0
BACKGROUND: Final = 0.75
"""The share of a minute's requests that work may take which can wait: what is urgent finds the rest."""
POLLED: Final = 0.9
"""The share that what polls have found may take, so that it does not wait for what can."""

_LEAST_S: Final = 0.01
"""Nobody waits for less: seconds since 1970 have no finer steps that a clock could be trusted with."""


class Ledger(Protocol):
    """Remembers when requests were sent, also when the process is killed."""

    def requests(self, since_s: float) -> list[float]:
        """Return the moments of requests since one, oldest first."""

    def add_request(self, at_s: float, before_s: float) -> None:
        """Remember one, and forget those before a moment."""


class Pace:
    """Counts requests in a window of a minute that slides.

    A request counts from when its answer came, since it may have reached the site at any moment before.

    Args:
        rate: requests a minute; 0 for as many as there are.
        clock: seconds since 1970.
        pause: waits so many seconds.
    """

    def __init__(
        self,
        rate: int,
        ledger: Ledger,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.rate = rate
        self._ledger, self._clock, self._pause = ledger, clock, pause
        self._now_s = now = clock()
        begun = [min(one, now) for one in ledger.requests(now - WINDOW_S)] if rate else []
        self._sent = deque([*begun[1:], *([now] if begun else [])])  # one after the other; the last may be under way
        self._closed_until = 0.0

    def wait_s(self, share: float = 1.0, room: int = 1) -> float:
        """Return in how many seconds requests may be sent; 0 for now.

        Args:
            share: of the window that may be taken.
            room: so many, one after the other; half of what the window has, where that is less.
        """
        now = self._now()
        while self._sent and self._sent[0] <= now - WINDOW_S:
            self._sent.popleft()
        wait = max(0.0, self._closed_until - now)
        most = max(1, int(self.rate * share))
        room = min(room, (most + 1) // 2)
        if self.rate and len(self._sent) > most - room:
            wait = max(wait, self._sent[len(self._sent) - most + room - 1] + WINDOW_S - now)
        return max(wait, _LEAST_S) if wait > 0 else 0.0

    def begin(self) -> None:
        """Wait until a request may be sent, and remember that one is."""
        while (wait := self.wait_s()) > 0:
            self._pause(wait)
        if self.rate:
            self._ledger.add_request(self._clock(), self._clock() - WINDOW_S)

    def end(self) -> None:
        """Count the request that was sent last from now on."""
        if self.rate:
            self._sent.append(self._now())

    def close_until(self, at_s: float) -> None:
        """Send nothing before a moment: the site says that the limit is reached."""
        self._closed_until = max(self._closed_until, at_s)

    def _now(self) -> float:
        """Return the moment; where the clock was set back, what was before goes back with it."""
        now = self._clock()
        if (back_s := self._now_s - now) > 0:
            self._sent = deque(one - back_s for one in self._sent)
            self._closed_until -= back_s
        self._now_s = now
        return now
