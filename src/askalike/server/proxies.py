"""Whose request it is where a proxy passes it on: the address that the nearest trusted proxy says, and no other.

``X-Forwarded-For`` is a list to which each proxy appends the address that asked it. Whoever asks can write its
beginning, so that it is read from its end, for as long as the address that wrote an entry is trusted.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from askalike.server.settings import Network

MOST_HOPS: Final = 10
MOST_REMEMBERED: Final = 1_024
"""Addresses that are read once while their clients go on asking."""
LONGEST_ENTRY: Final = 64
"""An IPv6 address in brackets with a port has 47 characters."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def client_of(peer: str, forwarded: Sequence[str], proxies: Sequence[Network]) -> str:
    """Return the address that a request counts for.

    Args:
        peer: the address of the connection.
        forwarded: the values of ``X-Forwarded-For``, in their order.
        proxies: whose word counts; of what nobody trusted says, nothing does.

    >>> trusted = [ipaddress.ip_network("10.0.0.0/8")]
    >>> client_of("10.0.0.1", ["1.2.3.4, 5.6.7.8, 10.0.0.2"], trusted)
    '5.6.7.8'
    >>> client_of("9.9.9.9", ["1.2.3.4"], trusted), client_of("10.0.0.1", ["<script>"], trusted)
    ('9.9.9.9', '10.0.0.1')
    """
    found = _address(peer)
    if found is None:
        return peer
    entries = ",".join(forwarded).rsplit(",", MOST_HOPS)[-MOST_HOPS:] if proxies and forwarded else []
    for entry in reversed(entries):
        if not any(found in network for network in proxies):
            break
        before = _address(entry.strip())
        if before is None:  # not an address: the last that is known passed it on
            break
        found = before
    return str(found)


def is_trusted(peer: str, proxies: Sequence[Network]) -> bool:
    """Return whether a connection comes from a trusted proxy.

    >>> is_trusted("::ffff:10.0.0.1", [ipaddress.ip_network("10.0.0.0/8")]), is_trusted("10.0.0.1", [])
    (True, False)
    """
    found = _address(peer) if proxies else None
    return found is not None and any(found in network for network in proxies)


@lru_cache(MOST_REMEMBERED)
def rate_key(client: str) -> str:
    """Return under what a client's requests and connections are counted: its address, of IPv6 one customer's /64.

    >>> rate_key("192.0.2.7"), rate_key("2001:db8:0:1::7")
    ('192.0.2.7', '2001:db8:0:1::/64')
    """
    found = _address(client)
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((int(found) >> 64 << 64, 64)))
    return client


@lru_cache(MOST_REMEMBERED)
def _address(text: str) -> Address | None:
    """Return an address that may be in brackets, with a port or a zone; IPv4 as such where IPv6 wraps it."""
    if len(text) > LONGEST_ENTRY:
        return None
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
