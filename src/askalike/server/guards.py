"""Who asks, who may, and how often: hosts, origins, proxies, keys and rates, as questions about a request's headers.

``X-Forwarded-For`` is a list to which each proxy appends the address that asked it. Whoever asks can write its
beginning, so that it is read from its end, for as long as the address that wrote an entry is trusted.

A key is 256 random bits; its SHA-256 is stored in the forum's folder, so that who reads the file cannot use it. A slow
hash would protect keys that can be guessed, which these cannot. A file that was changed is read again at once.

A service on the loopback is reached by every page that a browser of this machine has open: the page's own origin is
told by the browser (``Origin``, ``Sec-Fetch-Site``), and a name that was made to lead to the loopback by ``Host``.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import os
import re
import secrets
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import filelock
import msgspec
from msgspec import Meta, Struct

from askalike.errors import DamagedForumError, SettingError, UnknownIdError
from askalike.files import replace_whole
from askalike.operations import Right
from askalike.server.problem import Refused
from askalike.server.settings import Network, ServeSettings, is_loopback
from askalike.store import ForumLayout

LOG: Final = logging.getLogger("askalike.server")

MAX_HOPS: Final = 10
MOST_REMEMBERED: Final = 1_024
"""Parsed addresses that are cached."""
LONGEST_ENTRY: Final = 64
"""An IPv6 address in brackets with a port has 47 characters."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def client_of(peer: str, forwarded: str, proxies: Sequence[Network]) -> str:
    """Return the address that a request counts for.

    Args:
        peer: the address of the connection.
        forwarded: ``X-Forwarded-For``; "" where nobody says it.
        proxies: whose word counts; of what nobody trusted says, nothing does.

    >>> trusted = [ipaddress.ip_network("10.0.0.0/8")]
    >>> client_of("10.0.0.1", "1.2.3.4, 5.6.7.8, 10.0.0.2", trusted)
    '5.6.7.8'
    >>> client_of("9.9.9.9", "1.2.3.4", trusted), client_of("10.0.0.1", "<script>", trusted)
    ('9.9.9.9', '10.0.0.1')
    """
    address = _address(peer)
    if address is None:
        return peer
    entries = forwarded.rsplit(",", MAX_HOPS)[-MAX_HOPS:] if proxies and forwarded else []
    for entry in reversed(entries):
        if not any(address in network for network in proxies):
            break
        before = _address(entry.strip())
        if before is None:  # not an address: the last that is known passed it on
            break
        address = before
    return str(address)


def is_trusted(peer: str, proxies: Sequence[Network]) -> bool:
    """Return whether a connection comes from a trusted proxy.

    >>> is_trusted("::ffff:10.0.0.1", [ipaddress.ip_network("10.0.0.0/8")]), is_trusted("10.0.0.1", [])
    (True, False)
    """
    address = _address(peer) if proxies else None
    return address is not None and any(address in network for network in proxies)


@lru_cache(MOST_REMEMBERED)
def rate_key(client: str) -> str:
    """Return the key by which a client is counted: its address, or the /64 network of an IPv6 address.

    >>> rate_key("192.0.2.7"), rate_key("2001:db8:0:1::7")
    ('192.0.2.7', '2001:db8:0:1::/64')
    """
    address = _address(client)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
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
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


PREFIX: Final = "ask_"
_KEY_IN_ADDRESS: Final = re.compile(PREFIX + "[A-Za-z0-9_-]{43}")


class Key(Struct, frozen=True, forbid_unknown_fields=True):
    """A key as it is stored.

    Args:
        id: names it, for who takes it back.
        sha256: of the key, in hexadecimal.
    """

    id: str
    name: str
    may: Right
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    created: str


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    format: Literal[1]
    keys: tuple[Key, ...]


class Keys:
    """The keys of one forum, or of a folder of forums; any thread may ask.

    Args:
        service: the keys of all forums of the service, which are taken too.
    """

    def __init__(self, folder: Path, service: Keys | None = None) -> None:
        self._path = ForumLayout(folder).keys
        self._service = service
        self._guard = threading.Lock()
        self._seen: tuple[int, int] | None = None
        self._keys: tuple[Key, ...] = ()

    def all(self) -> tuple[Key, ...]:
        """Return the keys as they are on disk now.

        Raises:
            DamagedForumError: the file is not as it was written.
        """
        with self._guard:
            try:
                state = self._path.stat()
            except FileNotFoundError:
                self._seen, self._keys = None, ()
                return ()
            if self._seen != (state.st_mtime_ns, state.st_ino):
                if os.name == "posix" and state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                    LOG.warning("%s may be written by others, who can give themselves keys: chmod 600 it", self._path)
                self._keys = self._read()
                self._seen = (state.st_mtime_ns, state.st_ino)
            return self._keys

    def get(self, secret: str) -> Key | None:
        """Return a key as it is stored, None for one that is not known."""
        digest = _digest(secret)
        known: Key | None = None
        for key in self.all():
            if hmac.compare_digest(key.sha256, digest):
                known = key
        return self._service.get(secret) if known is None and self._service is not None else known

    def add(self, name: str, may: Right) -> tuple[Key, str]:
        """Make a key; return it with its secret, which is kept nowhere."""
        if may not in ("read", "write"):
            raise SettingError(f"a key cannot have the right to {may!r}", "expected read or write")
        secret = PREFIX + secrets.token_urlsafe(32)
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        key = Key(secrets.token_hex(4), name, may, _digest(secret), now)
        with self._changing():
            self._write((*self.all(), key))
        return key, secret

    def remove(self, identifier: str) -> None:
        """Revoke a key.

        Raises:
            UnknownIdError: there is no such key.
        """
        with self._changing():
            kept = tuple(key for key in self.all() if key.id != identifier)
            if len(kept) == len(self.all()):
                raise UnknownIdError(f"there is no key with the id {identifier!r}", 'see "askalike keys FORUM"')
            self._write(kept)

    def _changing(self) -> filelock.BaseFileLock:
        return filelock.FileLock(self._path.with_suffix(".lock"), timeout=10)

    def _write(self, keys: tuple[Key, ...]) -> None:
        content = msgspec.json.format(msgspec.json.encode(_File(1, keys)), indent=1)
        replace_whole(self._path, content, is_narrow=True)

    def _read(self) -> tuple[Key, ...]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_File).keys
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DamagedForumError(
                f"{self._path} cannot be read: {error}", "delete it and make the keys anew"
            ) from error


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


LOOPBACK_NAMES: Final = frozenset(["localhost", "127.0.0.1", "[::1]"])
ALL: Final = frozenset(["read", "write"])
CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="askalike"'}
_SEND: Final = "send it as Authorization: Bearer KEY"
MAX_CLIENTS: Final = 10_000
"""Clients whose buckets are kept, the latest ones; a dropped client starts with a full bucket."""


def host_names(settings: ServeSettings) -> frozenset[str]:
    """Return the host names that are allowed; empty, where any is, off the loopback."""
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


def check_origin(headers: Mapping[str, str], allowed: Sequence[str] = ()) -> None:
    """Refuse a change that a page of another origin asks for.

    Args:
        allowed: origins whose pages may ask for it.

    Raises:
        Refused: 403.
    """
    origin = headers.get("origin")
    if origin is not None and origin in allowed:
        return
    is_foreign = origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower()
    if is_foreign or headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refused(403, "a page of another site may not change the forum", "send a key")


def check_no_key(address: str) -> None:
    """Refuse a request that has a key in its address, which proxies and browsers keep.

    Raises:
        Refused: 400.
    """
    if _KEY_IN_ADDRESS.search(address):
        raise Refused(
            400,
            "a key in an address is seen by all who keep logs of it",
            "send it as Authorization: Bearer KEY, and replace this one with askalike keys FORUM",
        )


def rights_without_key(settings: ServeSettings) -> frozenset[str]:
    """Return what a request without a key may do."""
    if not settings.needs_keys:
        return ALL
    return frozenset(["read"]) if settings.is_read_open else frozenset()


class Rates:
    """A bucket for each client that holds ``burst`` tokens and gets ``rate`` new ones a second.

    >>> rates = Rates(rate=2.0, burst=1)
    >>> [rates.take_token("a", now) for now in (0.0, 0.0, 0.5)]
    [0.0, 0.5, 0.0]
    """

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take_token(self, client: str, now: float) -> float:
        """Take a token and return 0; where there is none, return in how many seconds there will be one.

        Args:
            now: seconds of a clock that never goes back.
        """
        if self._rate <= 0:
            return 0.0
        tokens, since = self._buckets.pop(client, (self._burst, now))
        tokens = min(self._burst, tokens + (now - since) * self._rate)
        is_allowed = tokens >= 1
        self._buckets[client] = (tokens - 1 if is_allowed else tokens, now)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if is_allowed else (1 - tokens) / self._rate


class Visitor(NamedTuple):
    """Who asks: what they may do, and the name of their key."""

    rights: frozenset[str]
    key_name: str = ""
    has_key: bool = False


class Access:
    """Who may ask for a forum, or for all forums of a service, and how often.

    Args:
        keys: the forum's own are read where none are named.
        rates: of all forums of the service, where it has several.
    """

    def __init__(self, settings: ServeSettings, keys: Keys | None = None, rates: Rates | None = None) -> None:
        self.settings = settings
        self.keys = keys or Keys(settings.folder)
        self.rates = rates or Rates(settings.limits.rate / settings.workers, settings.limits.burst)
        self.proxies = settings.proxies
        self.host_names = host_names(settings)
        self.rights_without_key = rights_without_key(settings)

    def visitor(self, headers: Mapping[str, str], right: Right = "read") -> Visitor:
        """Return what a request may do, and the name of its key.

        Args:
            right: what it needs, as a refusal says.

        Raises:
            Refused: 401, a key was sent that is not known.
        """
        authorization = headers.get("authorization", "")
        if not authorization:
            return Visitor(self.rights_without_key)
        kind, _, secret = authorization.partition(" ")
        if kind.lower() != "bearer":
            raise Refused(401, "the header Authorization holds no key", _SEND, CHALLENGE)
        key = self.keys.get(secret.strip())
        if key is None:
            hint = f'create one that may {right} with "askalike keys FORUM --add {right}"'
            raise Refused(401, "the key is not known", hint, CHALLENGE)
        return Visitor(ALL if key.may == "write" else frozenset(["read"]), key.name, has_key=True)

    def check_rate(self, client_key: str) -> None:
        """Count a request of a client, and refuse it where the client asks too often.

        Raises:
            Refused: 429.
        """
        wait_s = self.rates.take_token(client_key, time.monotonic())
        if wait_s > 0:
            headers = {"Retry-After": str(max(1, round(wait_s + 0.5)))}
            raise Refused(429, "too many requests", "slow down; index an archive with askalike index", headers)

    def admit(self, headers: Mapping[str, str], right: Right, *, is_change: bool = False) -> Visitor:
        """Return who asks for something, where they may.

        Args:
            right: what it needs.
            is_change: it changes something. Without a key, a page of another site may not ask for that; a page that was
                allowed may, where the right to read suffices.

        Raises:
            Refused: 401 or 403, they may not.
        """
        visitor = self.visitor(headers, right)
        if right not in visitor.rights:
            if visitor.has_key:
                hint = 'make one that may with "askalike keys FORUM --add write"'
                raise Refused(403, f"this key may not {right}", hint)
            raise Refused(401, f"a key that may {right} is needed", _SEND, CHALLENGE)
        if is_change and not visitor.has_key:
            check_origin(headers, self.settings.allow_origins if right == "read" else ())
        return visitor
