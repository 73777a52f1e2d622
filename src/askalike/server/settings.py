"""How a service is run: where it listens, who may ask, and how much."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from askalike.errors import SettingError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_HOST: Final = re.compile(r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?")
"""What a browser may send as ``Host``."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request, a connection and a client may cost.

    Args:
        body_bytes: of a request.
        timeout_s: until a request is given up.
        rate: requests a second that one client may make; 0 for as many as it likes.
        burst: so many at once, before the rate counts.
        threads: searches at once in each worker.
        waiting: searches that may wait for a thread; more are refused.
        connections: open at once in each worker. Where there are as many, one of the client that holds most is closed
            for the next: the one that has let the service wait longest. Where the service owes all of them an answer,
            the next is refused, as is one of a client that holds more than all whose connections could be closed.
        client_connections: of one client, likewise, at once in each worker; trusted proxies have as many as they like.
        first_byte_s: from the connection to its first byte.
        head_s: from the first byte of a request to the end of its head.
        head_bytes: of a request's head.
        idle_s: from an answer to the next request of the same connection.
        linger_s: for what is left of a body once its request is answered.
        write_s: until a client that does not read its answer is cut off; in this time it must take 64 kB, or all.
        open_forums: of a folder of forums, open at once in each worker, or as many as it has file handles for; for the
            next, the one that was asked least recently is closed.
    """

    body_bytes: int = 1_000_000
    timeout_s: float = 10.0
    rate: float = 50.0
    burst: int = 200
    threads: int = 4
    waiting: int = 200
    connections: int = 512
    client_connections: int = 128
    first_byte_s: float = 10.0
    head_s: float = 10.0
    head_bytes: int = 16_384
    idle_s: float = 30.0
    linger_s: float = 5.0
    write_s: float = 20.0
    open_forums: int = 100


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """How a service is run.

    Args:
        forum: the forum's folder, or a folder of forums.
        host: the address that it listens on.
        allow_origins: other sites whose pages may ask, as "https://forum.example.org".
        allow_hosts: names under which it is reached, beside those of the loopback; keys are asked for then.
        is_insecure: no key is asked for, wherever it listens.
        is_read_open: reading needs no key, and writing does.
        has_json_log: the log is a JSON object a line, for programs.
        trusted_proxies: addresses and networks of proxies, as "10.0.0.0/8": what they say in X-Forwarded-For counts.
        ask_url: where somebody whose question is new asks it; ``{title}`` stands for its title.

    Raises:
        SettingError: an origin, a host or a proxy's address is none, or there is no worker.
    """

    forum: str
    host: str = "127.0.0.1"
    port: int = 8765
    workers: int = 1
    allow_origins: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    is_insecure: bool = False
    is_read_open: bool = False
    has_json_log: bool = False
    trusted_proxies: tuple[str, ...] = ()
    ask_url: str = ""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        for origin in self.allow_origins:
            parts = urlsplit(origin)
            if (
                parts.scheme not in ("http", "https")
                or not parts.netloc
                or origin != f"{parts.scheme}://{parts.netloc}"
            ):
                raise SettingError(f"{origin!r} is no origin", "expected one such as https://forum.example.org")
        for host in self.allow_hosts:
            if not _HOST.fullmatch(host):
                raise SettingError(f"{host!r} is no host's name", "expected one such as askalike.example.org")
        for proxy in self.trusted_proxies:
            _network(proxy)
        if self.ask_url and not re.match("https?://[^/]", self.ask_url):
            raise SettingError(
                f"{self.ask_url!r} is no address of the web", "expected one such as https://forum.example.org/ask"
            )
        if self.workers < 1:
            raise SettingError(f"{self.workers} workers", "expected 1 or more")

    @property
    def needs_keys(self) -> bool:
        """Whether requests need a key: where others than this machine's users may reach it, or reading alone is open.

        Who opens reading expects others: behind a proxy that says the loopback's name as ``Host``, nothing else tells.
        """
        return not self.is_insecure and (bool(self.allow_hosts) or self.is_read_open or not is_loopback(self.host))

    @property
    def folder(self) -> Path:
        """Return the forum's folder."""
        return Path(self.forum)

    @property
    def proxies(self) -> tuple[Network, ...]:
        """Return the networks of the proxies that are trusted."""
        return tuple(map(_network, self.trusted_proxies))


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "forum.example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise SettingError(
            f"{text!r} is no address or network of a proxy: {error}", "expected one such as 127.0.0.1 or 172.16.0.0/12"
        ) from error
