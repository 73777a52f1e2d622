"""A forum's questions, answers, links and judgements in PostgreSQL (15 or newer, no extension), for several machines.

Each machine keeps indexes of its own, which follow the log of changes as those beside an SQLite file do. Writers take
one advisory lock for the length of their transaction, so that the order of the log is that in which changes become
visible; without it a follower would pass over what commits late. A database holds one forum, in the schema
``askalike``; texts are compared by code points. PostgreSQL keeps no zero bytes: they are stored as two characters.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from askalike.errors import (
    BusyForumError,
    DatabaseError,
    ForumError,
    ForumNotFoundError,
    ForumVersionError,
    InputError,
    SettingError,
    optional_module,
)
from askalike.progress import Progress
from askalike.store import tables
from askalike.store.base import Store
from askalike.store.database import Cursor, ThreadConnections
from askalike.store.layout import identity
from askalike.store.load import COMPARED, STAGED, Staging
from askalike.store.soundness import read_contents, row_faults
from askalike.store.values import Contents

FORMAT: Final = 7
SCHEMES: Final = ("postgresql", "postgres")
WAIT = "30s"
LOADS_WAIT = WAIT
"""How long somebody waits who writes, and who loads."""
_SHAPE: Final = "expected postgresql://HOST/DATABASE"
WRITING, LOADING = 0x41736B4101, 0x41736B4102
"""Advisory locks: of who writes, and of who loads an archive."""

_EXHAUSTED: Final = ("too many connections", "too many clients", "remaining connection slots")
"""How the server says that it takes no more connections; the client does not pass its code on."""
_TEXT: Final = 'TEXT COLLATE "C"'
_TYPES: Final = dict.fromkeys(
    ("place", "num", "created_us", "closed_us", "score", "is_accepted", "is_language_detected"), "BIGINT"
) | {"digest": "BYTEA"}
"""The types of staged columns that hold no text."""


def check_address(address: str) -> str:
    """Return the address of a database as it is kept, such as "postgresql://host/travel".

    Raises:
        SettingError: it is none, or holds a password.
    """
    try:
        parts = urlsplit(address)
        has_password = bool(parts.password) or "password" in parse_qs(parts.query)
    except ValueError as error:
        raise SettingError(
            f"{address[:200]!r} is no address: {error}", "expected postgresql://HOST/DATABASE"
        ) from error
    if parts.scheme not in SCHEMES or not parts.path.strip("/"):
        raise SettingError(f"{address[:200]!r} is no database's address", _SHAPE)
    if has_password:
        raise SettingError(
            "the database's address holds a password", "leave it out, and set PGPASSWORD or write it into ~/.pgpass"
        )
    return address


class PostgresStore(Store):
    """A store in one database of a PostgreSQL server; each thread has a connection of its own.

    Every method raises DatabaseError where the server cannot be reached, or refuses.

    Args:
        named_in: the file of a forum's folder that names the database; None where the database is opened by itself.
    """

    def __init__(self, address: str, named_in: Path | None = None) -> None:
        self._address = check_address(address)
        self.opened = None if named_in is None else (named_in, identity(named_in))
        self._connections = ThreadConnections(lambda: _Connection(self._address))
        with _explained(self._address):
            connection = self._connections.get()
            if connection.execute("SELECT to_regclass('format')").fetchone()[0] is None:
                self.close()
                raise ForumNotFoundError(f"there is no forum in {address}", 'make one with "askalike attach"')
            version = connection.execute("SELECT version FROM format").fetchone()[0]
        if version != FORMAT:
            self.close()
            raise ForumVersionError(
                f"{address} has format {version}, expected {FORMAT}",
                'index the archive again into another database: "askalike attach DATABASE --into FORUM"',
            )

    @classmethod
    def create(cls, address: str, settings: Mapping[str, str]) -> PostgresStore:
        """Make a forum's tables in a database where they are not there yet; a forum that is there stays as it is."""
        with _explained(check_address(address)), contextlib.closing(_Connection(address)) as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT pg_advisory_xact_lock(?)", (WRITING,))
            connection.execute("CREATE SCHEMA IF NOT EXISTS askalike")
            if connection.execute("SELECT to_regclass('format')").fetchone()[0] is None:
                number = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
                for statement in tables.statements(number=number, data="BYTEA", text=_TEXT):
                    connection.execute(statement)
                connection.execute("CREATE TABLE format (version INTEGER NOT NULL)")
                for key, value in sorted(settings.items()):
                    connection.execute("INSERT INTO settings VALUES (?, ?)", (key, value))
                connection.execute("INSERT INTO format VALUES (?)", (FORMAT,))
            connection.execute("COMMIT")
        return cls(address)

    @property
    def name(self) -> str:
        """Return the database's address."""
        return self._address

    def place(self) -> str:
        """Return what no database restored from this one has; its standby, which takes over, has the same."""
        database = self.rows("SELECT oid FROM pg_database WHERE datname = current_database()")[0][0]
        cluster = self.rows(
            "SELECT CASE WHEN has_function_privilege('pg_control_system()', 'EXECUTE')"
            " THEN (SELECT system_identifier FROM pg_control_system())::text ELSE '' END"
        )[0][0]
        return f"{cluster}/{database}"

    def close(self) -> None:
        """Close every connection; the store must not be used after."""
        self._connections.close(self.name)

    @contextlib.contextmanager
    def write(self) -> Iterator[_Connection]:
        """Give a connection inside one transaction: committed and on disk at the end, or rolled back on any error."""
        with self._transaction("SELECT pg_advisory_xact_lock(?)") as (connection, _):
            yield connection

    @contextlib.contextmanager
    def _transaction(self, lock: str) -> Iterator[tuple[_Connection, Any]]:
        self.check_folder()
        with _explained(self._address):
            connection = self._connection()
            try:
                connection.execute("BEGIN")
                is_free = connection.execute(lock, (WRITING,)).fetchone()[0]
                yield connection, is_free
                connection.execute("COMMIT")
            except BaseException:
                connection.roll_back()
                raise

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Return all rows that a statement finds; a connection that was lost is made again, but not during a load."""
        self.check_folder()
        with _explained(self._address):
            connection = self._connections.get()
            try:
                return connection.execute(statement, values).fetchall()
            except _psycopg().OperationalError:
                if not connection.is_lost or connection.is_writing or connection.is_loading:
                    raise
                return self._connection().execute(statement, values).fetchall()

    def _connection(self) -> _Connection:
        connection = self._connections.get()
        if connection.is_lost and not connection.is_loading:
            self._connections.forget()
        return self._connections.get()

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Keep every other machine, and thread, from doing what has this name, by a session of its own.

        Raises:
            DatabaseError: the server went away meanwhile, so that another one may have begun.
        """
        number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True)
        with _explained(self._address), contextlib.closing(_Connection(self._address)) as connection:
            try:
                connection.execute("SELECT pg_advisory_lock(?)", (number,))
            except _psycopg().errors.LockNotAvailable as error:
                raise BusyForumError(f"another machine has {name} in hand", "wait until it has finished") from error
            yield
            connection.execute("SELECT 1")

    @contextlib.contextmanager
    def lock_if_empty(self) -> Iterator[bool]:
        """Keep everybody from writing for as long as nothing is stored here; False at once where that cannot be."""
        with self._transaction("SELECT pg_try_advisory_xact_lock(?)") as (_, is_held):
            yield bool(is_held) and not self.count_questions() and not self.is_loading()

    def is_loading(self) -> bool:
        """Return whether somebody loads an archive into this forum."""
        is_locked = (  # asking for the lock would be granted to who has it
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = ? AND objid = ?"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return bool(self.rows(is_locked, (LOADING >> 32, LOADING & 0xFFFFFFFF))[0][0])

    def backup(self, path: Path) -> None:
        """Refuse: a database has programs of its own for that."""
        hint = f"write the database with pg_dump --format=custom --file={path} {self._address}"
        raise SettingError("the forum's records are in a database", hint)

    @contextlib.contextmanager
    def loading(self, *, is_waiting: bool = True) -> Iterator[None]:
        """Keep other loads out; what is read lies in the system's folder for temporary files."""
        with _explained(self._address):
            connection = self._connection()
            try:
                connection.execute(f"SET lock_timeout = '{LOADS_WAIT if is_waiting else '1ms'}'")
                connection.execute("SELECT pg_advisory_lock(?)", (LOADING,))
            except _psycopg().errors.LockNotAvailable as error:
                raise BusyForumError("somebody else is loading an archive", "wait until it has finished") from error
            finally:
                connection.execute("RESET lock_timeout")
            connection.is_loading = True
            try:
                yield
            except sqlite3.Error as error:
                raise ForumError(
                    f"what is loaded cannot be kept in the meantime: {error}",
                    "free space where temporary files are, or name another folder by TMPDIR",
                ) from error
            finally:
                connection.is_loading = False
                if not connection.is_lost:
                    connection.roll_back()
                    connection.execute("SELECT pg_advisory_unlock(?)", (LOADING,))

    @contextlib.contextmanager
    def staged(self, staging: Staging) -> Iterator[_Connection]:
        """Copy what was read into tables of this connection, which go with it."""
        connection = self._connection()
        key = {"questions": "UNIQUE (id)", "answers": "UNIQUE (id)", "links": f"UNIQUE ({', '.join(STAGED['links'])})"}
        try:
            for table, columns in STAGED.items():
                typed = ", ".join(f"{name} {_TYPES.get(name, _TEXT)}" for name in columns)
                connection.execute(f"CREATE TEMPORARY TABLE staged_{table} ({typed}, {key[table]})")
                connection.copy(f"staged_{table} ({', '.join(columns)})", staging.read(table))
                connection.execute(f"ANALYZE staged_{table}")
            for name, columns in COMPARED.items():
                typed = ", ".join(f"{column} {_TYPES.get(column, _TEXT)}" for column in columns)
                connection.execute(f"CREATE TEMPORARY TABLE {name} ({typed})")
            yield connection
        finally:
            if not connection.is_lost:
                connection.roll_back()
                for name in (*(f"staged_{table}" for table in STAGED), *COMPARED):
                    connection.execute(f"DROP TABLE IF EXISTS {name}")

    def after_load(self) -> None:
        """Renew the statistics by which statements are planned."""
        with _explained(self._address):
            self._connection().execute("ANALYZE questions, answers, links, changes")

    def faults(self, progress: Progress) -> Iterator[str]:
        """Yield what is wrong with the rows."""
        return row_faults(self.rows, progress)

    def contents(self) -> Contents:
        """Return what a check compares indexes with."""
        return read_contents(self.rows)


class _Connection:
    """A connection that takes ``?`` for values and any text, and gives rows by place and by name."""

    is_loading = False
    """Whether an archive is being loaded through it: its lock and what was staged go with the connection."""

    def __init__(self, address: str) -> None:
        psycopg = _psycopg()
        self._own: Any = psycopg.connect(
            address,
            autocommit=True,
            connect_timeout=10,
            row_factory=_row_factory,
            options=f"-c search_path=askalike -c lock_timeout={WAIT} -c client_encoding=UTF8",
        )
        if self.execute("SHOW synchronous_commit").fetchone()[0] == "off":  # a commit would be no acknowledgement
            self.execute("SET synchronous_commit = on")

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Cursor:
        """Run one statement."""
        cursor: Cursor = self._own.execute(_translated(statement), values)
        return cursor

    def copy(self, table: str, values: Iterable[Iterable[Any]]) -> None:
        """Append rows to a table."""
        with self._own.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for row in values:
                copy.write_row(row)

    @property
    def is_lost(self) -> bool:
        """Return whether the server has gone away."""
        return bool(self._own.closed)

    @property
    def is_writing(self) -> bool:
        """Return whether a transaction is open, or was when the server went away."""
        return self._own.info.transaction_status.name in ("INTRANS", "INERROR", "ACTIVE")

    def roll_back(self) -> None:
        """Undo the open transaction, if there is one."""
        with contextlib.suppress(_psycopg().Error):
            self._own.rollback()

    def close(self) -> None:
        """Close it."""
        self._own.close()


@contextlib.contextmanager
def _explained(address: str) -> Iterator[None]:
    """Raise the errors of the client as those of ``askalike.errors``."""
    psycopg = _psycopg()
    try:
        yield
    except psycopg.errors.LockNotAvailable as error:
        raise BusyForumError(f"{address} is being written by somebody else", "wait until it has finished") from error
    except psycopg.errors.ProgramLimitExceeded as error:
        raise InputError(f"a value is too long for {address}: {error}", "shorten the ids") from error
    except (psycopg.OperationalError, psycopg.errors.InsufficientPrivilege) as error:
        reason = str(error).strip()[:300]
        if any(words in reason for words in _EXHAUSTED):
            hint = "raise max_connections, or run fewer workers or threads: each thread has a connection of its own"
        else:
            hint = "check that the server runs and that PGUSER and PGPASSWORD, or ~/.pgpass, give access to it"
        raise DatabaseError(f"{address} cannot be used: {reason}", hint) from error


def _psycopg() -> Any:
    missing = "the package psycopg is not installed, which speaks to PostgreSQL"
    return optional_module("psycopg", missing, "postgresql")


@lru_cache(maxsize=1024)
def _translated(statement: str) -> str:
    return statement.replace("%", "%%").replace("?", "%s")


class _Row(tuple[Any, ...]):
    """A row; ``names`` is set in the class of each set of columns."""

    names: Mapping[str, int] = {}

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.names[key] if isinstance(key, str) else key)


@lru_cache(maxsize=256)
def _row_class(names: tuple[str, ...]) -> type[_Row]:
    return type("_Row", (_Row,), {"names": {name: place for place, name in enumerate(names)}})


def _row_factory(cursor: Any) -> Callable[[Iterable[Any]], _Row]:
    return _row_class(tuple(column.name for column in cursor.description or ()))
