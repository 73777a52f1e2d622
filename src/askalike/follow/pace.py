"""How often a site is asked: requests have a distance in time, which grows where the site says that it is too short."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

FIRST_LIMIT_S: Final = 60.0
LONGEST_LIMIT_S: Final = 3_600.0
FORGOTTEN_S: Final = 600.0
"""So long after a limit, the next counts as the first again."""


class Stopped(Exception):
    """The process was told to stop; work that was not finished is done again by the next."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time, as whoever follows a site or writes to it sees it.

    Args:
        now: seconds since 1970, for what is kept on disk.
        steady: seconds that never go back, for the waits of this process.
        pause: waits so many seconds; raises Stopped where the process was told to stop.
    """

    now: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


class Pace:
    """Keeps requests apart, so that no minute has more than the rate, also where processes are killed and begin again.

    The distance counts from when an answer came, since its request may have reached the site at any moment before.

    Args:
        rate: requests a minute; 0 for no limit.
    """

    def __init__(self, rate: int, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self._distance_s = 60.0 / rate if rate else 0.0
        self._next_s = self.clock.steady() + self._distance_s
        self._limits, self._limit_ends_s = 0, self._next_s

    def wait_s(self) -> float:
        """Return in how many seconds a request may be sent; 0 for now."""
        return max(0.0, self._next_s - self.clock.steady())

    def begin(self) -> None:
        """Wait until a request may be sent."""
        while (wait_s := self.wait_s()) > 0:
            self.clock.pause(wait_s)

    def end(self) -> None:
        """Note that the answer to a request came, or will not come."""
        self.close(self._distance_s)

    def close(self, seconds: float) -> None:
        """Send nothing for so long."""
        self._next_s = max(self._next_s, self.clock.steady() + seconds)

    def limit(self, asked_s: float | None) -> float:
        """Send nothing for a while, since the site says that its limit is reached; return the seconds.

        It is as long as the site asks. Where it names no time, or refuses again soon after that time, it is a minute at
        least, and twice as long each time, also where other requests are answered meanwhile: writes have limits of
        their own.

        Args:
            asked_s: the seconds that the site asks to wait, or None.
        """
        if self.clock.steady() > self._limit_ends_s + FORGOTTEN_S:
            self._limits = 0
        repeats = self._limits - 1 if asked_s else self._limits
        own_s = min(FIRST_LIMIT_S * 2.0**repeats, LONGEST_LIMIT_S) if repeats >= 0 else 0.0
        seconds = max(asked_s or 0.0, own_s)
        self._limits += 1
        self._limit_ends_s = self.clock.steady() + seconds
        self.close(seconds)
        return seconds
