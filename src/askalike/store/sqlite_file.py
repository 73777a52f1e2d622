"""SQLite files: how each of the package's own is made, opened, written and read, and what SQLite's errors mean.

Triggers and views of others are refused, since their SQL would run with ours. A file that is in use is not a damaged
one, and one that may not be written is read as it is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from askalike.errors import BusyForumError, DamagedForumError, DiskFullError, ForumError, ReadOnlyError
from askalike.files import is_full, narrow, shortage, sync_file, writing_named
from askalike.store.database import ThreadConnections
from askalike.store.layout import identity

BUSY_TIMEOUT_S: Final = 30.0
"""How long somebody waits for another process that writes."""

FAULTS: Final = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; the second where it quotes a damaged name in what it says."""

Synchronous = Literal["FULL", "NORMAL", "OFF"]

_UNTRUSTED: Final = "trusted_schema = OFF"
_READING: Final = (_UNTRUSTED, "cache_size = -65536", "mmap_size = 1073741824", "temp_store = FILE")
_WRITING: Final = ("journal_mode = WAL", "foreign_keys = ON", "journal_size_limit = 67108864")
_UNWRITABLE: Final = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
_NO_ROOM: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_CODE: Final = 0xFF
"""The bits of an error that hold its code; the others hold details."""


@dataclass(frozen=True)
class Schema:
    """What one kind of the package's SQLite files holds.

    Args:
        statements: that make the tables.
        format: raised with each incompatible change of the tables.
        remedy: what to do where the file is damaged.
        application: marks the file in SQLite's header.
        damaged: what is raised where the file is damaged.
        outdated: what is raised where it has another format.
        renewal: what to do about another format.
    """

    statements: Sequence[str]
    format: int
    remedy: str
    application: int = 0
    damaged: type[DamagedForumError] = DamagedForumError
    outdated: type[ForumError] | None = None
    renewal: str = ""

    @cached_property
    def tables(self) -> frozenset[str]:
        """Return the names of the tables."""
        return frozenset(re.findall(r"CREATE TABLE (\w+)", ";".join(self.statements)))


class Connection(sqlite3.Connection):
    """A connection to an SQLite file.

    Args:
        is_reader: it cannot write.
        version: of a file that is taken as it is; None where SQLite sees by itself what others write.
        identity: of the file.
    """

    is_reader = False
    version: tuple[int, int] | None = None
    identity: tuple[int, int] | None = None

    def is_of(self, path: Path, *, follows: bool) -> bool:
        """Return whether it gives what is in the file now.

        Args:
            follows: another file may have taken the place of the one that was opened.
        """
        if self.version is not None and self.version != _version(path):
            return False
        return not follows or self.identity == identity(path)


class SqliteFile:
    """One of the package's SQLite files in WAL mode; each thread has a connection of its own.

    Every method raises BusyForumError where another process writes for too long, the schema's error where the file is
    damaged, and ForumError where it cannot be read or written for another reason.

    Args:
        check: asked before each access; raises ForumNotFoundError where another forum stands at the path by now.
        synchronous: with "FULL" a commit returns when its pages are on disk, so that what was acknowledged survives
            a lost power supply; with the others it survives a killed process.
        is_rebuilt: the file can be made anew at any time: it is made where it is not there (in memory, where nothing
            may be written), and one that another process has put in its place is followed.
    """

    def __init__(
        self,
        path: Path,
        schema: Schema,
        check: Callable[[], None] = lambda: None,
        *,
        synchronous: Synchronous = "FULL",
        is_rebuilt: bool = False,
    ) -> None:
        self.path: Final = path
        self.schema: Final = schema
        self.is_writable: Final = may_be_written(path)
        self.was_damaged = False
        """Whether damage was met."""
        self._check = check
        self._synchronous = synchronous
        self._is_rebuilt = is_rebuilt
        self._threads = ThreadConnections(self._open)
        self._turn = threading.Lock()

    def close(self, name: str = "") -> None:
        """Close every connection; a later access opens another, or says that what has this name is closed."""
        self._threads.close(name)

    @property
    def connection(self) -> Connection:
        """Return this thread's connection; it is closed when the thread ends."""
        connection = self._threads.get()
        if not connection.in_transaction and not connection.is_of(self.path, follows=self._is_rebuilt):
            self._threads.forget()
            return self._threads.get()
        return connection

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Return all rows that a statement finds."""
        self._check()
        try:
            return self.connection.execute(statement, values).fetchall()
        except FAULTS as error:
            raise self.refusal(error) or error from error

    def run(self, statement: str, rows: Iterable[Sequence[object]] = ((),)) -> None:
        """Execute a statement once for each row of values."""
        self._check()
        try:
            self.connection.executemany(statement, rows)
        except FAULTS as error:
            raise self.refusal(error) or error from error

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """Give a connection inside one transaction: committed at the end, or rolled back on any error.

        One inside another is a part of it.
        """
        if not self.is_writable:
            raise unwritable(self.path)
        connection = self.connection
        if connection.in_transaction:
            yield connection
            return
        if connection.is_reader:  # the disk had no room when it was opened
            self._threads.forget()
            connection = self._threads.get()
        if connection.is_reader:
            raise _full(self.path)
        if not self._turn.acquire(timeout=BUSY_TIMEOUT_S):  # who waits for SQLite's lock sleeps too long
            raise _busy(self.path)
        try:
            with self.errors():
                connection.execute("BEGIN IMMEDIATE")
                self._check()  # a write to a deleted file would be lost
                yield connection
                connection.execute("COMMIT")
        except BaseException:
            roll_back(connection)
            raise
        finally:
            self._turn.release()

    @contextlib.contextmanager
    def patience(self, seconds: float) -> Iterator[None]:
        """Let this thread's connection wait no longer than this for others."""
        self.connection.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")
        try:
            yield
        finally:
            self.connection.execute(f"PRAGMA busy_timeout = {round(1000 * BUSY_TIMEOUT_S)}")

    # -- making and opening --------------------------------------------------------------------------------------

    def make(self, fill: Callable[[Connection], object] = lambda _: None) -> None:
        """Make the file and its tables, all or nothing, where another process has not done so.

        Args:
            fill: called inside the transaction that makes the tables.
        """
        self._make_empty()
        with self.errors():
            self._make_tables(self.connection, fill)

    def is_made(self) -> bool:
        """Return whether the tables were made: a process may have been killed before."""
        with self.errors():
            return bool(_number(self.connection, "user_version"))

    def _make_empty(self) -> None:
        """Make the file with rights for its owner alone, which SQLite gives its write-ahead log too."""
        with writing_named(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            open(self.path, "ab", opener=narrow).close()

    def _make_tables(self, connection: Connection, fill: Callable[[Connection], object]) -> None:
        if _number(connection, "user_version"):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not _number(connection, "user_version"):
                if _names(connection, "table"):
                    raise self._damage(f"{self.path} is damaged: it is a file of another program")
                for statement in self.schema.statements:
                    connection.execute(statement)
                fill(connection)
                connection.execute(f"PRAGMA application_id = {self.schema.application}")
                connection.execute(f"PRAGMA user_version = {self.schema.format}")
            connection.execute("COMMIT")
        except BaseException:
            roll_back(connection)
            raise

    def _open(self) -> Connection:
        with self.errors():
            if self.is_writable:
                with contextlib.suppress(DiskFullError):
                    return self._opened_to_write()
            if self._is_rebuilt and not self._has_tables():
                return self._checked(_connect(":memory:"), ())
            return self._checked(open_reader(self.path), _READING)

    def _has_tables(self) -> bool:
        """Return whether there is something to read: a disk may have filled before the tables were made."""
        if not self.path.exists():
            return False
        with contextlib.closing(open_reader(self.path)) as reader:
            return bool(_number(reader, "user_version"))

    def _opened_to_write(self) -> Connection:
        if self._is_rebuilt and not self.path.exists():
            self._make_empty()
        with self.errors():
            pragmas = (*_READING, f"synchronous = {self._synchronous}", *_WRITING)
            return self._checked(_connect(self.path), pragmas)

    def _checked(self, connection: Connection, pragmas: Iterable[str]) -> Connection:
        """Return a connection with its settings, after a look at whose file it is."""
        with contextlib.ExitStack() as opened:
            opened.callback(connection.close)
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}")
            if self._is_rebuilt:
                self._make_tables(connection, lambda _: None)
            self._check_content(connection)
            connection.identity = identity(self.path)
            opened.pop_all()
        return connection

    def _check_content(self, connection: Connection) -> None:
        version, application = _number(connection, "user_version"), _number(connection, "application_id")
        if version and (version, application) != (self.schema.format, self.schema.application):
            message = f"{self.path} has format {version}, expected {self.schema.format}"
            raise (
                self._damage(message)
                if self.schema.outdated is None
                else self.schema.outdated(message, self.schema.renewal)
            )
        if foreign := foreign_schema(connection):
            raise self._damage(f"{self.path} holds {foreign[0]}, which askalike does not make")
        if version and (missing := self.schema.tables - _names(connection, "table")):
            raise self._damage(f"{self.path} is damaged: no such table: {min(missing)}")

    # -- errors --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Raise errors of SQLite as those of ``askalike.errors``, which name the file."""
        try:
            yield
        except FAULTS as error:
            raise self.refusal(error) or error from error

    def refusal(self, error: sqlite3.Error | UnicodeDecodeError) -> ForumError | None:
        """Return what an error of SQLite means for the user, or None where it is a mistake of this program."""
        path = self.path
        if isinstance(error, UnicodeDecodeError):
            return self._damage(f"{path} is damaged: {error}")
        if not isinstance(error, sqlite3.DatabaseError):
            return None
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _CODE
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return _busy(path)
        if code == sqlite3.SQLITE_CANTOPEN and may_be_written(path):  # SQLite does not pass on that handles ran out
            return shortage(f"{path} cannot be opened", errno.EMFILE)
        if code in _UNWRITABLE:
            return unwritable(path, str(error))
        if code in _NO_ROOM and (code == sqlite3.SQLITE_FULL or is_full(path)):
            return _full(path)
        if code == sqlite3.SQLITE_IOERR:
            hint = "nothing was changed; check the disk, and that it has free space"
            return ForumError(f"{path} cannot be read or written: {error}", hint)
        is_damage = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
        if is_damage or isinstance(error, sqlite3.OperationalError):  # such as a table that is missing
            return self._damage(f"{path} is damaged: {error}")
        return None

    def _damage(self, message: str) -> DamagedForumError:
        self.was_damaged = True
        return self.schema.damaged(message, self.schema.remedy)


def unwritable(path: Path, reason: str = "") -> ReadOnlyError:
    """Return the error of a file that may not be written."""
    hint = "check the rights of the forum's folder, and how its disk is mounted; searches need not write"
    return ReadOnlyError(f"{path} cannot be written{reason and ': '}{reason}", hint)


def _busy(path: Path) -> BusyForumError:
    return BusyForumError(f"{path} is locked by another process", "try again when it has finished")


def _full(path: Path) -> DiskFullError:
    return DiskFullError(f"{path} cannot be written: its disk is full", "nothing was changed; free space on its disk")


def may_be_written(path: Path) -> bool:
    """Return whether an SQLite file can be written or made: the file, and its folder for the write-ahead log."""
    return all(os.access(needed, os.W_OK) for needed in (path, path.parent) if needed.exists())


def roll_back(connection: sqlite3.Connection) -> None:
    """Undo the open transaction; SQLite has already done so after some errors, such as a full disk."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def open_reader(path: Path) -> Connection:
    """Open an SQLite file, whatever it holds, so that nothing can be written to it, also on a disk that is read-only.

    Where SQLite can neither use nor make a write-ahead log, nobody writes: it takes the file as it is.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    address = f"{path.resolve().as_uri()}?mode=ro"
    reader = _connect(address)
    try:
        reader.execute("PRAGMA schema_version").fetchone()
        reader.execute(f"PRAGMA {_UNTRUSTED}")
    except sqlite3.OperationalError as error:
        reader.close()
        code = error.sqlite_errorcode & _CODE
        if code != sqlite3.SQLITE_CANTOPEN and not (code in _NO_ROOM and is_full(path)):
            raise
        version = _version(path)
        reader = _connect(f"{address}&immutable=1")
        reader.version = version
    except BaseException:
        reader.close()
        raise
    reader.is_reader = True
    return reader


def open_scratch(path: Path | None) -> sqlite3.Connection:
    """Open a new file that goes with its process: nothing in it survives a kill, and nobody else has it open.

    Args:
        path: None for a private file of the system.
    """
    if path is not None:
        with writing_named(path):
            path.unlink(missing_ok=True)
            open(path, "xb", opener=narrow).close()
    connection = _connect("" if path is None else path)
    for pragma in ("journal_mode = OFF", "synchronous = OFF"):  # what fails here is thrown away
        connection.execute(f"PRAGMA {pragma}")
    return connection


def copy_content(source: sqlite3.Connection, path: Path) -> None:
    """Write what a file holds at this moment into another, new or empty, and onto the disk.

    Others go on reading and writing meanwhile.
    """
    with contextlib.closing(_connect(path)) as copy:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # the file is whole without another beside it
    sync_file(path)


def foreign_schema(connection: sqlite3.Connection) -> list[str]:
    """Return what an SQLite file of the package never holds, by its kind and name."""
    return [f"the {kind} {name!r:.200}" for kind in ("trigger", "view") for name in sorted(_names(connection, kind))]


def _connect(address: str | Path) -> Connection:
    connection = sqlite3.connect(
        address,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        factory=Connection,
        uri=str(address).startswith("file:"),
    )
    connection.row_factory = sqlite3.Row
    return connection


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _names(connection: sqlite3.Connection, kind: str) -> set[str]:
    return {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = ?", (kind,))}


def _version(path: Path) -> tuple[int, int] | None:
    """Return what changes with a file that is taken as it is; None while somebody writes it."""
    if path.with_name(f"{path.name}-wal").exists():
        return None
    status = path.stat()
    return status.st_mtime_ns, status.st_size
