"""A forum's store in one SQLite file in WAL mode: how it is made and opened; a connection for each thread."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import filelock

from askalike.errors import (
    BusyForumError,
    DamagedForumError,
    DiskFullError,
    ForumError,
    ForumExistsError,
    ForumNotFoundError,
    ForumVersionError,
)
from askalike.files import is_full, narrow, shortage, sync_file, sync_folder, writing_named
from askalike.store import tables
from askalike.store.base import Store
from askalike.store.database import ThreadConnections
from askalike.store.layout import OpenedFile, not_found
from askalike.store.staging import Staging

FORMAT: Final = 9
"""Raised with each incompatible change of the tables."""

APPLICATION_ID: Final = 0x41736B41
"""Marks the file as askalike's own in SQLite's header ("AskA")."""

BUSY_TIMEOUT_S: Final = 30.0

WRITABLE: Final = "check the rights of the forum's folder, and how its disk is mounted; searches need not write"
"""What to do where a file cannot be written."""

TRUNCATE_TIMEOUT_S: Final = 0.2
"""Who empties the write-ahead log waits so long for those who read it, and keeps everybody from writing meanwhile."""

FAULTS: Final = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; the second where it quotes a damaged name in what it says."""

_READING: Final = ("trusted_schema = OFF", "cache_size = -65536", "mmap_size = 1073741824", "temp_store = FILE")
_SETTINGS: Final = (
    *_READING,
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "journal_size_limit = 67108864",
)
_OPTIONS: Final[Mapping[str, Any]] = {
    "timeout": BUSY_TIMEOUT_S,
    "isolation_level": None,
    "check_same_thread": False,
    "cached_statements": 256,
}
_UNWRITABLE: Final = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
_NO_ROOM: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_DETAILS: Final = 0xFF
"""An error's code is in these bits; the rest tells details."""


class SqliteStore(Store):
    """A store in one file; each thread has a connection of its own.

    A file that may not be written, or whose folder may not, is read as it is, and every change is refused.
    """

    ordered_join = "CROSS JOIN"

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise not_found(path)
        self.path = path
        self._file = OpenedFile(path)
        self._is_writable = may_be_written(path)
        self._connections = ThreadConnections(self._connect)
        self._turn = threading.Lock()
        if not _is_finished(self.connection):
            self.close()
            raise ForumNotFoundError(f"the forum at {path.parent} was not created completely", "create it again")

    @classmethod
    def create(cls, path: Path, settings: Mapping[str, str]) -> SqliteStore:
        """Make a new, empty file; an unfinished one of a killed process is finished."""
        with writing_named(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            open(path, "ab", opener=narrow).close()  # SQLite gives its write-ahead log the same rights
        with contextlib.closing(connect(path)) as connection, _explained(path):
            if not _is_finished(connection):
                _create_tables(connection, settings)
        return cls(path)

    def _connect(self) -> sqlite3.Connection:
        """Open a connection; one that cannot write where nothing may be written, or the disk has no room to begin."""
        if self._is_writable:
            with contextlib.suppress(DiskFullError):
                return connect(self.path)
        return connect_reader(self.path)

    @property
    def name(self) -> str:
        """Return the file's path."""
        return str(self.path)

    @property
    def connection(self) -> sqlite3.Connection:
        """Return this thread's connection; it is closed when the thread ends."""
        connection = self._connections.get()
        if isinstance(connection, Reader) and connection.is_old(self.path):
            self._connections.forget()
            return self._connections.get()
        return connection

    def close(self) -> None:
        """Close every connection; the store must not be used after."""
        self._connections.close(f"the forum at {self.path.parent}")

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Give a connection inside one transaction: committed and on disk at the end, or rolled back on any error.

        Raises:
            BusyForumError: another process has been writing for longer than the busy timeout.
            ForumNotFoundError: the file was moved, deleted or replaced since it was opened.
            ForumError: the file cannot be written, or is damaged.
        """
        if not self._is_writable:
            raise ForumError(f"{self.path} cannot be written", WRITABLE)
        connection = self._connections.get()
        if isinstance(connection, Reader):
            self._connections.forget()
            connection = self._connections.get()
        if isinstance(connection, Reader):
            raise _full(self.path)
        if not self._turn.acquire(timeout=BUSY_TIMEOUT_S):  # who waits for SQLite's lock sleeps too long
            raise _busy(self.path)
        try:
            connection.execute("BEGIN IMMEDIATE")
            self.check_folder()  # a write to a deleted file would be lost
            yield connection
            connection.execute("COMMIT")
        except FAULTS as error:
            _roll_back(connection)
            raise refusal(self.path, error) or error from error
        except BaseException:
            _roll_back(connection)
            raise
        finally:
            self._turn.release()

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Return all rows that a statement finds.

        Raises:
            ForumNotFoundError: the file was moved, deleted or replaced since it was opened.
            ForumError: the file cannot be read, or is damaged.
        """
        self.check_folder()
        try:
            return self.connection.execute(statement, values).fetchall()
        except FAULTS as error:
            raise refusal(self.path, error) or error from error

    @contextlib.contextmanager
    def _patience(self, seconds: float) -> Iterator[None]:
        """Let this thread's connection wait no longer than this for others."""
        self.connection.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")
        try:
            yield
        finally:
            self.connection.execute(f"PRAGMA busy_timeout = {round(1000 * BUSY_TIMEOUT_S)}")

    @contextlib.contextmanager
    def lock_if_empty(self) -> Iterator[bool]:
        """Keep everybody from writing for as long as nothing is stored here; False at once where that cannot be."""
        with self._patience(0), contextlib.ExitStack() as locks:
            try:
                locks.enter_context(self.write())
            except BusyForumError:
                yield False
            else:
                yield not self.count_questions() and not self.is_loading()

    def backup(self, path: Path) -> None:
        """Write the store as it is at this moment to a new file; others go on reading and writing meanwhile.

        Raises:
            ForumExistsError: there is something at ``path``.
            ForumError: the file cannot be written.
        """
        if os.path.lexists(path):
            raise ForumExistsError(f"{path} exists", "choose another file for the backup")
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        with writing_named(path), _explained(path):
            open(temporary, "xb", opener=narrow).close()
            try:
                with contextlib.closing(sqlite3.connect(temporary)) as copy:
                    self.connection.backup(copy)
                    copy.execute("PRAGMA journal_mode = DELETE")  # the file is whole without another beside it
                    result = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
                    if result != "ok":
                        raise DamagedForumError(f"{self.path} is damaged: {result}", "restore it from a backup")
                sync_file(temporary)
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
                    locks.enter_context(lock.acquire(timeout=BUSY_TIMEOUT_S if is_waiting else 0))
                except filelock.Timeout as error:
                    raise BusyForumError(
                        f"another process is loading an archive into {self.path.parent}", "wait until it has finished"
                    ) from error
            with _explained(self.path):
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
            _roll_back(connection)
            connection.execute("DETACH staging")

    def after_load(self) -> None:
        """Move the write-ahead log into the file: it has grown by as much as was loaded."""
        self.rows("PRAGMA wal_checkpoint(PASSIVE)")  # takes long and lets others write
        with self._patience(TRUNCATE_TIMEOUT_S):
            self.rows("PRAGMA wal_checkpoint(TRUNCATE)")


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raise errors of SQLite as those of ``askalike.errors``, which name the file."""
    try:
        yield
    except FAULTS as error:
        raise refusal(path, error) or error from error


def connect(path: Path) -> sqlite3.Connection:
    """Open the store's file as every writer must: WAL, full synchronisation, foreign keys.

    A commit returns only when its pages are on disk (``synchronous=FULL`` in WAL mode), so that what was
    acknowledged survives a killed process and a lost power supply.

    Raises:
        DamagedForumError: the file is not an SQLite database.
        ForumVersionError: it is one of another program or format.
        BusyForumError: another process keeps it locked.
        ForumError: the file or its folder cannot be written.
    """
    with _explained(path):
        connection: sqlite3.Connection = sqlite3.connect(path, **_OPTIONS)
        return _checked(path, connection, _SETTINGS)


class Reader(sqlite3.Connection):
    """A connection that cannot write.

    Args:
        version: of a file that is read as it is; None where SQLite sees by itself what others write.
    """

    version: tuple[int, int] | None = None

    def is_old(self, path: Path) -> bool:
        """Return whether a file that is read as it is has changed since it was opened."""
        return self.version is not None and self.version != version_of(path)


_Reader = TypeVar("_Reader", bound=Reader)


def connect_reader(path: Path) -> Reader:
    """Open the store's file where it cannot be written, as on a disk that is mounted read-only.

    Raises:
        ForumError: as ``connect``.
    """
    with _explained(path):
        return _checked(path, open_reader(path, Reader, **_OPTIONS), _READING)


def open_reader(path: Path, kind: type[_Reader], **options: Any) -> _Reader:
    """Open an SQLite file in a way in which nothing can be written to it, also on a disk that may only be read.

    Where SQLite can neither use nor make a write-ahead log, nobody writes: it takes the file as it is.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    address = f"{path.resolve().as_uri()}?mode=ro"
    reader = sqlite3.connect(address, factory=kind, uri=True, **options)
    try:
        reader.execute("PRAGMA schema_version").fetchone()
    except sqlite3.OperationalError as error:
        reader.close()
        code = error.sqlite_errorcode & _DETAILS
        if code != sqlite3.SQLITE_CANTOPEN and not (code in _NO_ROOM and is_full(path)):
            raise
        version = version_of(path)
        reader = sqlite3.connect(f"{address}&immutable=1", factory=kind, uri=True, **options)
        reader.version = version
    except BaseException:
        reader.close()
        raise
    return reader


def may_be_written(path: Path) -> bool:
    """Return whether an SQLite file is there and can be written: the file, and its folder for the write-ahead log."""
    return path.is_file() and all(os.access(needed, os.W_OK) for needed in (path, path.parent))


def version_of(path: Path) -> tuple[int, int] | None:
    """Return what changes with a file that is read as it is; None while somebody writes it."""
    if path.with_name(f"{path.name}-wal").exists():
        return None
    status = path.stat()
    return status.st_mtime_ns, status.st_size


_Connection = TypeVar("_Connection", bound=sqlite3.Connection)


def _checked(path: Path, connection: _Connection, settings: Sequence[str]) -> _Connection:
    """Return a connection with its settings, after a look at whose file it is."""
    with contextlib.ExitStack() as opened:
        opened.callback(connection.close)
        connection.row_factory = sqlite3.Row
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version and (application != APPLICATION_ID or version != FORMAT):
            raise ForumVersionError(
                f"{path} has format {version}, expected {FORMAT}",
                'index the archive again into a new folder: "askalike index ARCHIVE --into FORUM"',
            )
        if foreign := foreign_schema(connection):
            raise DamagedForumError(
                f"{path} holds {foreign[0]}, which askalike does not make",
                "remove it with SQLite, or index the archive again into a new folder",
            )
        opened.pop_all()
    return connection


def foreign_schema(connection: sqlite3.Connection) -> list[str]:
    """Return what an SQLite file of the package never holds, by its kind and name: its SQL would run with ours."""
    listed = connection.execute("SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY name")
    return [f"the {kind} {name!r:.200}" for kind, name in listed.fetchall()]


def _busy(path: Path) -> BusyForumError:
    """Return the error of a file that others write."""
    return BusyForumError(f"{path.parent} is being written by another process", "wait until it has finished")


def _full(path: Path) -> DiskFullError:
    """Return the error of a disk without room."""
    return DiskFullError(f"{path} cannot be written: its disk is full", "nothing was changed; free space on its disk")


def refusal(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> ForumError | None:
    """Return what an error of SQLite means for the user, or None where it is a mistake of this program."""
    if isinstance(error, UnicodeDecodeError):
        return DamagedForumError(f"{path} is damaged: {error}", "restore it from a backup; nothing was changed")
    if not isinstance(error, sqlite3.DatabaseError):
        return None
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _DETAILS
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return _busy(path)
    if code == sqlite3.SQLITE_NOTADB:
        hint = "restore it from a backup, or index the archive into a new folder"
        return DamagedForumError(f"{path} cannot be read as a database: {error}", hint)
    if code == sqlite3.SQLITE_CANTOPEN and may_be_written(path):  # SQLite does not pass on that handles ran out
        return shortage(f"{path} cannot be opened", errno.EMFILE)
    if code in _UNWRITABLE:
        return ForumError(f"{path} cannot be opened for writing: {error}", WRITABLE)
    if code in _NO_ROOM and (code == sqlite3.SQLITE_FULL or is_full(path)):
        return _full(path)
    if code == sqlite3.SQLITE_IOERR:
        hint = "nothing was changed; check the disk, and that it has free space"
        return ForumError(f"{path} cannot be read or written: {error}", hint)
    if code == sqlite3.SQLITE_CORRUPT or isinstance(error, sqlite3.OperationalError):  # such as a table that is missing
        return DamagedForumError(f"{path} is damaged: {error}", "restore it from a backup; nothing was changed")
    return None


def _is_finished(connection: sqlite3.Connection) -> bool:
    """Return whether the tables were created completely: a process may have been killed before."""
    return bool(connection.execute("PRAGMA user_version").fetchone()[0])


def _create_tables(connection: sqlite3.Connection, settings: Mapping[str, str]) -> None:
    """Create all tables with the given settings, in one transaction: all or nothing.

    Where another process has created them meanwhile, its settings stay.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _is_finished(connection):
            connection.execute("ROLLBACK")
            return
        for statement in tables.statements(
            number="INTEGER PRIMARY KEY AUTOINCREMENT", data="BLOB", clustered=" WITHOUT ROWID"
        ):
            connection.execute(statement)
        connection.executemany("INSERT INTO settings (key, value) VALUES (?, ?)", sorted(settings.items()))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _roll_back(connection: sqlite3.Connection) -> None:
    """Undo the open transaction; SQLite has already done so after some errors, such as a full disk."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
