"""How often a client may ask: a bucket of tokens for each."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

MOST_CLIENTS: Final = 10_000
"""So many are remembered, those that asked last; one that is forgotten has a full bucket again."""


class Rates:
    """A bucket for each client that holds ``burst`` tokens and gets ``rate`` new ones a second.

    >>> rates = Rates(rate=2.0, burst=1)
    >>> rates.wait_s("a", now=0.0), rates.wait_s("a", now=0.0), rates.wait_s("a", now=0.5)
    (0.0, 0.5, 0.0)
    """

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, client: str, now: float) -> float:
        """Take a token and return 0, or return in how many seconds there will be one.

        Args:
            now: seconds of a clock that never goes back.
        """
        if self._rate <= 0:
            return 0.0
        held, since = self._buckets.pop(client, (self._burst, now))
        held = min(self._burst, held + (now - since) * self._rate)
        is_allowed = held >= 1
        self._buckets[client] = (held - 1 if is_allowed else held, now)
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if is_allowed else (1 - held) / self._rate
