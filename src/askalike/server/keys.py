"""The keys of a service: who holds one may read, or read and write.

A key is 256 random bits; its SHA-256 is stored in the forum's folder, so that who reads the file cannot use it. A slow
hash would protect keys that can be guessed, which these cannot. A file that was changed is read again at once.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import threading
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import filelock

from askalike.errors import DamagedForumError, SettingError, UnknownIdError
from askalike.files import replace_whole
from askalike.store import Layout

Right = Literal["read", "write"]
PREFIX: Final = "ask_"
FORMAT: Final = 1

_HASH: Final = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it is stored.

    Args:
        id: names it, for who takes it back.
        sha256: of the key, in hexadecimal.
    """

    id: str
    name: str
    may: Right
    sha256: str
    created: str


class Keys:
    """The keys of one forum; any thread may ask."""

    def __init__(self, folder: Path) -> None:
        self._path = Layout(folder).keys
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
                self._keys = self._read()
                self._seen = (state.st_mtime_ns, state.st_ino)
            return self._keys

    def rights(self, secret: str) -> frozenset[str] | None:
        """Return what a key may do, None for one that is not known; who may write, may read."""
        given = _digest(secret)
        found: Key | None = None
        for key in self.all():
            if hmac.compare_digest(key.sha256, given):
                found = key
        if found is None:
            return None
        return frozenset(["read", "write"]) if found.may == "write" else frozenset(["read"])

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
        """Take a key back.

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
        content = {"format": FORMAT, "keys": [asdict(key) for key in keys]}
        replace_whole(self._path, json.dumps(content, indent=1).encode(), is_narrow=True)

    def _read(self) -> tuple[Key, ...]:
        try:
            found = json.loads(self._path.read_bytes())
            if found["format"] != FORMAT:
                raise ValueError(f"format {found['format']}")
            return tuple(_key(one) for one in found["keys"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DamagedForumError(
                f"{self._path} cannot be read: {error!r}", "delete it and make the keys anew"
            ) from error


def _key(found: dict[str, str]) -> Key:
    key = Key(**found)  # type: ignore[arg-type]  # checked below
    if not all(isinstance(value, str) for value in found.values()):
        raise ValueError("a value of a key is no text")
    if key.may not in ("read", "write"):
        raise ValueError(f"a key may {key.may!r}")
    if not _HASH.fullmatch(key.sha256):
        raise ValueError(f"the key {key.id} has a hash that is none")
    return key


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
