"""The keys of a service: who holds one may read, or read and write.

A key is 256 random bits; its SHA-256 is stored in the forum's folder, so that who reads the file cannot use it. A slow
hash would protect keys that can be guessed, which these cannot. A file that was changed is read again at once.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Literal

import filelock
import msgspec
from msgspec import Meta, Struct

from askalike.errors import DamagedForumError, SettingError, UnknownIdError
from askalike.files import replace_whole
from askalike.store import ForumLayout

Right = Literal["read", "write"]
PREFIX: Final = "ask_"


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
            return None if self._service is None else self._service.rights(secret)
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
