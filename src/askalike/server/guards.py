"""Who may ask: hosts, origins and keys, as plain questions about a request's headers.

A service on the loopback is reached by every page that a browser of this machine has open: the page's own origin is
told by the browser (``Origin``, ``Sec-Fetch-Site``), and a name that was made to lead to the loopback by ``Host``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from askalike.server.keys import Keys
from askalike.server.problem import Refused
from askalike.server.settings import ServeSettings, is_loopback

LOOPBACK_NAMES: Final = frozenset(["localhost", "127.0.0.1", "[::1]"])
ALL: Final = frozenset(["read", "write"])


def check_host(headers: Mapping[str, str], settings: ServeSettings) -> None:
    """Refuse a request whose ``Host`` is none of this service's names; off the loopback, only where names were given.

    Raises:
        Refused: 421.
    """
    allowed = {name.lower() for name in settings.allow_hosts}
    if is_loopback(settings.host):
        allowed |= LOOPBACK_NAMES
    elif not allowed:
        return
    host = headers.get("host", "").strip().lower()
    if host not in allowed and _without_port(host) not in allowed:
        raise Refused(421, "this service is not known under that name", "name it with --allow-host when it is started")


def allowed_origin(headers: Mapping[str, str], settings: ServeSettings) -> str | None:
    """Return the origin of a page that may read answers from elsewhere, None for any other request."""
    origin = headers.get("origin")
    return origin if origin in settings.allow_origins else None


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


def rights_of(headers: Mapping[str, str], settings: ServeSettings, keys: Keys) -> frozenset[str]:
    """Return what a request may do.

    Raises:
        Refused: 401, a key was sent that is none.
    """
    given = headers.get("authorization", "")
    if given:
        kind, _, secret = given.partition(" ")
        found = keys.rights(secret.strip()) if kind.lower() == "bearer" else None
        if found is None:
            raise Refused(401, "the key is not known", 'create one with "askalike keys FORUM --add read"', WHO)
        return found
    if not settings.needs_keys:
        return ALL
    return frozenset(["read"]) if settings.is_read_open else frozenset()


WHO: Final = {"WWW-Authenticate": 'Bearer realm="askalike"'}


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
