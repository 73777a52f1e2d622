"""Who may ask, and how often: hosts, origins, keys and rates, as plain questions about a request's headers.

A service on the loopback is reached by every page that a browser of this machine has open: the page's own origin is
told by the browser (``Origin``, ``Sec-Fetch-Site``), and a name that was made to lead to the loopback by ``Host``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from askalike.server.keys import Keys
from askalike.server.problem import Refused
from askalike.server.settings import ServeSettings, is_loopback

LOOPBACK_NAMES: Final = frozenset(["localhost", "127.0.0.1", "[::1]"])
ALL: Final = frozenset(["read", "write"])
CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="askalike"'}
MOST_CLIENTS: Final = 10_000
"""So many are remembered, those that asked last; one that is forgotten has a full bucket again."""


def host_names(settings: ServeSettings) -> frozenset[str]:
    """Return the names under which a service may be asked; none where it may be under any: off the loopback."""
    allowed = frozenset(name.lower() for name in settings.allow_hosts)
    return allowed | LOOPBACK_NAMES if is_loopback(settings.host) else allowed


def check_host(headers: Mapping[str, str], allowed: frozenset[str]) -> None:
    """Refuse a request whose ``Host`` is none of this service's names, with or without a port.

    Args:
        allowed: as ``host_names`` returns them.

    Raises:
        Refused: 421.
    """
    host = headers.get("host", "").strip().lower()
    name, colon, port = host.rpartition(":")
    if allowed and host not in allowed and not (name in allowed and colon and port.isdigit()):
        raise Refused(421, "this service is not known under that name", "name it with --allow-host when it is started")


def check_origin(headers: Mapping[str, str], *, has_key: bool) -> None:
    """Refuse a change that a page of another origin asks for without a key.

    Raises:
        Refused: 403.
    """
    if has_key:
        return
    origin = headers.get("origin")
    is_foreign = origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower()
    if is_foreign or headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refused(403, "a page of another site may not change the forum", "send a key that may write")


def rights_without_key(settings: ServeSettings) -> frozenset[str]:
    """Return what a request without a key may do."""
    if not settings.needs_keys:
        return ALL
    return frozenset(["read"]) if settings.is_read_open else frozenset()


def rights_of(headers: Mapping[str, str], keys: Keys, without_key: frozenset[str]) -> frozenset[str]:
    """Return what a request may do.

    Args:
        without_key: as ``rights_without_key`` returns it.

    Raises:
        Refused: 401, a key was sent that is none.
    """
    given = headers.get("authorization", "")
    if not given:
        return without_key
    kind, _, secret = given.partition(" ")
    found = keys.rights(secret.strip()) if kind.lower() == "bearer" else None
    if found is None:
        raise Refused(401, "the key is not known", 'create one with "askalike keys FORUM --add read"', CHALLENGE)
    return found


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
