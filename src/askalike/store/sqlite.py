"""A forum's store in one SQLite file: what differs from PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import filelock

from askalike.errors import BusyForumError, DamagedForumError, ForumExistsError, ForumNotFoundError, ForumVersionError
from askalike.files import narrow, sync_folder, writing_named
from askalike.store import sqlite_file, tables
from askalike.store.base import Store
from askalike.store.layout import identity, not_found
from askalike.store.load import Staging
from askalike.store.sqlite_file import (
    Schema,
    SqliteFile,
    Synchronous,
    copy_content,
    open_reader,
    roll_back,
)

SCHEMA: Final = Schema(
    tuple(tables.statements(number="INTEGER PRIMARY KEY AUTOINCREMENT", data="BLOB", clustered=" WITHOUT ROWID")),
    format=9,
    application=0x41736B41,  # "AskA"
    remedy="restore it from a backup, or index the archive into a new folder; nothing was changed",
    outdated=ForumVersionError,
    renewal='index the archive again into a new folder: "askalike index ARCHIVE --into FORUM"',
)

TRUNCATE_TIMEOUT_S: Final = 0.2
"""Who empties the write-ahead log waits so long for those who read it, and keeps everybody from writing meanwhile."""


class SqliteStore(SqliteFile, Store):
    """A store in one file.

    Args:
        synchronous: as ``SqliteFile`` takes it.
    """

    ordered_join = "CROSS JOIN"

    def __init__(self, path: Path, synchronous: Synchronous = "FULL") -> None:
        if not path.is_file():
            raise not_found(path)
        self.opened = path, identity(path)
        super().__init__(path, SCHEMA, self.check_folder, synchronous=synchronous)
        if not self.is_made():
            self.close()
            raise ForumNotFoundError(f"the forum at {path.parent} was not created completely", "create it again")

    @classmethod
    def create(cls, path: Path, settings: Mapping[str, str]) -> SqliteStore:
        """Make a new, empty file; an unfinished one of a killed process is finished, and one that is there stays."""
        put = "INSERT INTO settings (key, value) VALUES (?, ?)"
        with contextlib.closing(SqliteFile(path, SCHEMA)) as file:
            file.make(lambda connection: connection.executemany(put, sorted(settings.items())))
        return cls(path)

    @property
    def name(self) -> str:
        """Return the file's path."""
        return str(self.path)

    def close(self, name: str = "") -> None:
        """Close every connection; the store must not be used after."""
        super().close(name or f"the forum at {self.path.parent}")

    @contextlib.contextmanager
    def lock_if_empty(self) -> Iterator[bool]:
        """Keep everybody from writing for as long as nothing is stored here; False at once where that cannot be."""
        with self.patience(0), contextlib.ExitStack() as locks:
            try:
                locks.enter_context(self.write())
            except BusyForumError:
                yield False
            else:
                yield not self.count_questions() and not self.is_loading()

    def backup(self, path: Path) -> None:
        """Write the store as it is at this moment to a new file; others go on reading and writing meanwhile."""
        if os.path.lexists(path):
            raise ForumExistsError(f"{path} exists", "choose another file for the backup")
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        with writing_named(path), self.errors():
            open(temporary, "xb", opener=narrow).close()
            try:
                copy_content(self.connection, temporary)
                with contextlib.closing(open_reader(temporary)) as copy:
                    verdict = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
                if verdict != "ok":
                    raise DamagedForumError(f"{self.path} is damaged: {verdict}", "restore it from a backup")
                temporary.rename(path)
                sync_folder(path.parent)
            finally:
                temporary.unlink(missing_ok=True)

    # -- loads ---------------------------------------------------------------------------------------------------

    def is_loading(self) -> bool:
        """Return whether an archive is loaded into this forum."""
        try:
            with self.loading(is_waiting=False):
                return False
        except BusyForumError:
            return True

    @contextlib.contextmanager
    def loading(self, *, is_waiting: bool = True) -> Iterator[Path]:
        """Keep other loads out; the staging file lies beside the archive, on a disk that has room for both."""
        lock = filelock.FileLock(self.path.with_name("loading.lock"), thread_local=False)
        with contextlib.ExitStack() as locks:
            with writing_named(self.path):
                try:
                    locks.enter_context(lock.acquire(timeout=sqlite_file.BUSY_TIMEOUT_S if is_waiting else 0))
                except filelock.Timeout as error:
                    raise BusyForumError(
                        f"another process is loading an archive into {self.path.parent}", "wait until it has finished"
                    ) from error
            with self.errors():
                yield self.path.with_name("loading.sqlite")

    @contextlib.contextmanager
    def staged(self, staging: Staging) -> Iterator[sqlite3.Connection]:
        """Give a connection, this thread's, that joins the tables of a staging file with those of the store."""
        connection = self.connection
        connection.execute("ATTACH ? AS staging", (str(staging.path),))
        try:
            connection.execute("PRAGMA staging.journal_mode = OFF")
            connection.execute("PRAGMA staging.synchronous = OFF")
            if staging.path is not None and os.name != "nt":
                staging.path.unlink()  # it is open: a process that is killed leaves nothing behind
            yield connection
        finally:
            roll_back(connection)
            connection.execute("DETACH staging")

    def after_load(self) -> None:
        """Move the write-ahead log into the file: it has grown by as much as was loaded."""
        self.rows("PRAGMA wal_checkpoint(PASSIVE)")  # takes long and lets others write
        with self.patience(TRUNCATE_TIMEOUT_S):
            self.rows("PRAGMA wal_checkpoint(TRUNCATE)")


_LEFT_OUT: Final = ("keys.json", "training", "*.lock", "*.sqlite", "*-wal", "*-shm", "*-journal")
_DATABASES_LEFT_OUT: Final = ("loading.sqlite", "follow.sqlite")


def copy_forum(folder: Path, into: Path) -> None:
    """Copy a forum's folder, each database as it is at a moment; without keys and what is under way.

    Raises:
        OSError, sqlite3.Error: something cannot be read or written.
    """
    shutil.copytree(folder, into, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    for path in folder.rglob("*.sqlite"):
        copy = into / path.relative_to(folder)
        if path.name not in _DATABASES_LEFT_OUT and copy.parent.is_dir():
            with contextlib.closing(open_reader(path)) as source:
                copy_content(source, copy)
