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
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from askalike.errors import (
    BusyForumError,
    DamagedForumError,
    DatabaseError,
    ForumNotFoundError,
    ForumVersionError,
    InputError,
    MissingExtraError,
    SettingError,
)
from askalike.progress import Progress, SilentProgress
from askalike.store import moderation, rows
from askalike.store.load import STAGING, Gone, load
from askalike.store.protocol import Contents, LoadReport, SourceCounts
from askalike.store.sql import HELPED, LANGUAGES, SqlStore, ThreadConnections
from askalike.store.writes import Cursor
from askalike.types import Answer, Link, Question, Record, Reject, Source

FORMAT: Final = 5
"""Format 2 keeps what became of suggestions, 3 languages, 4 what moderators do; older databases are brought to it."""
SCHEMES: Final = ("postgresql", "postgres")
WAIT = "30s"
LOADS_WAIT = WAIT
"""How long somebody waits who writes, and who loads."""
SENT_TOGETHER: Final = 1000
"""Records of a load."""
_SHAPE: Final = "expected postgresql://HOST/DATABASE"
WRITING, LOADING = 0x41736B4101, 0x41736B4102
"""Advisory locks: of who writes, and of who loads an archive."""

_ESCAPE = "\x01"
_MODERATION: Final = ";".join(moderation.statements("BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"))
_TABLES: Final = (
    """
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE sources (
    num BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    format TEXT NOT NULL
);
CREATE TABLE questions (
    num BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    markup TEXT NOT NULL,
    tags TEXT NOT NULL,
    created_us BIGINT,
    closed_us BIGINT,
    score BIGINT,
    url TEXT NOT NULL,
    author TEXT NOT NULL,
    source BIGINT NOT NULL REFERENCES sources (num),
    digest BYTEA NOT NULL
);
CREATE INDEX questions_by_source ON questions (source);
CREATE INDEX questions_by_created ON questions (created_us, num);
CREATE TABLE answers (
    num BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    question_id TEXT NOT NULL,
    body TEXT NOT NULL,
    markup TEXT NOT NULL,
    created_us BIGINT,
    score BIGINT,
    author TEXT NOT NULL,
    is_accepted INTEGER NOT NULL,
    source BIGINT NOT NULL REFERENCES sources (num),
    digest BYTEA NOT NULL
);
CREATE INDEX answers_by_question ON answers (question_id);
CREATE TABLE links (
    source_id TEXT NOT NULL,
    target_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    source BIGINT NOT NULL REFERENCES sources (num),
    PRIMARY KEY (source_id, target_id, kind)
);
CREATE INDEX links_by_target ON links (target_id);
CREATE TABLE changes (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at_us BIGINT NOT NULL,
    kind TEXT NOT NULL,
    operation TEXT NOT NULL,
    id TEXT NOT NULL,
    num BIGINT
);
CREATE TABLE feedback (
    num BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    question_id TEXT NOT NULL,
    candidate_id TEXT NOT NULL,
    verdict TEXT NOT NULL,
    judge TEXT NOT NULL,
    at_us BIGINT NOT NULL,
    draw TEXT NOT NULL,
    probability DOUBLE PRECISION,
    propensity DOUBLE PRECISION
);
CREATE INDEX feedback_by_question ON feedback (question_id);
CREATE INDEX feedback_by_candidate ON feedback (candidate_id);
CREATE TABLE format (version INTEGER NOT NULL);
"""
    + HELPED
    + LANGUAGES
    + _MODERATION
).replace(" TEXT", ' TEXT COLLATE "C"')
_POST = "place BIGINT PRIMARY KEY, digest BYTEA, id TEXT"
_STAGING_TABLES: Final = f"""
CREATE SCHEMA {STAGING};
CREATE UNLOGGED TABLE {STAGING}.seen_questions (id TEXT PRIMARY KEY);
CREATE UNLOGGED TABLE {STAGING}.seen_answers (id TEXT PRIMARY KEY);
CREATE UNLOGGED TABLE {STAGING}.seen_links (
    source_id TEXT, target_id TEXT, kind TEXT, PRIMARY KEY (source_id, target_id, kind)
);
CREATE UNLOGGED TABLE {STAGING}.questions ({_POST}, title TEXT, body TEXT, markup TEXT, tags TEXT, created_us BIGINT,
    closed_us BIGINT, score BIGINT, url TEXT, author TEXT, language TEXT, is_language_detected INTEGER);
CREATE UNLOGGED TABLE {STAGING}.answers ({_POST}, question_id TEXT, body TEXT, markup TEXT, created_us BIGINT,
    score BIGINT, author TEXT, is_accepted INTEGER)
""".replace(" TEXT", ' TEXT COLLATE "C"')


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


class PostgresStore(SqlStore):
    """``store.Store`` in one database of a PostgreSQL server; each thread has a connection of its own."""

    def __init__(self, address: str) -> None:
        self._address = check_address(address)
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
                f"{address} has format {version}, this version of askalike reads format {FORMAT}",
                "use the version that wrote it",
            )

    @classmethod
    def create(cls, address: str, settings: Mapping[str, str]) -> PostgresStore:
        """Make a forum's tables in a database where they are not there yet; a forum that is there stays as it is."""
        with _explained(check_address(address)), contextlib.closing(_Connection(address)) as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT pg_advisory_xact_lock(?)", (WRITING,))
            connection.execute("CREATE SCHEMA IF NOT EXISTS askalike")
            if connection.execute("SELECT to_regclass('format')").fetchone()[0] is None:
                for statement in filter(str.strip, _TABLES.split(";")):
                    connection.execute(statement)
                for key, value in sorted(settings.items()):
                    connection.execute("INSERT INTO settings VALUES (?, ?)", (key, value))
                connection.execute("INSERT INTO format VALUES (?)", (FORMAT,))
            connection.execute("COMMIT")
        return cls(address)

    @property
    def name(self) -> str:
        """Return the database's address."""
        return self._address

    def close(self) -> None:
        """Close every connection; the store must not be used after."""
        self._connections.close(self.name)

    @contextlib.contextmanager
    def write(self) -> Iterator[_Connection]:
        """Give a connection inside one transaction: committed and on disk at the end, or rolled back on any error.

        Raises:
            BusyForumError: somebody else has been writing for too long.
            DatabaseError: the server cannot be reached, or refuses.
        """
        with self._transaction("SELECT pg_advisory_xact_lock(?)") as (connection, _):
            yield connection

    @contextlib.contextmanager
    def _transaction(self, lock: str) -> Iterator[tuple[_Connection, Any]]:
        with _explained(self._address):
            connection = self._connection()
            try:
                connection.execute("BEGIN")
                found = connection.execute(lock, (WRITING,)).fetchone()[0]
                yield connection, found
                connection.execute("COMMIT")
            except BaseException:
                connection.roll_back()
                raise

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Return all rows that a statement finds; a connection that was lost is made again, but not during a load.

        Raises:
            DatabaseError: the server cannot be reached, or refuses.
        """
        with _explained(self._address):
            connection = self._connections.get()
            try:
                return connection.execute(statement, values).fetchall()
            except _psycopg().OperationalError:
                if not connection.is_lost or connection.is_writing or connection.is_staging:
                    raise
                return self._connection().execute(statement, values).fetchall()

    def _connection(self) -> _Connection:
        held = self._connections.get()
        if held.is_lost and not held.is_staging:
            self._connections.forget()
        return self._connections.get()

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """Keep every other machine, and thread, from doing what has this name, by a session of its own.

        Raises:
            BusyForumError: another one has been at it for too long.
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
    def held_if_empty(self) -> Iterator[bool]:
        """Keep everybody from writing for as long as nothing is stored here; False at once where that cannot be."""
        with self._transaction("SELECT pg_try_advisory_xact_lock(?)") as (_, is_held):
            yield bool(is_held) and not self.count_questions() and not self.is_loading()

    def is_loading(self) -> bool:
        """Return whether somebody loads an archive into this forum."""
        held = (  # asking for the lock would be granted to who has it
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = ? AND objid = ?"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return bool(self.rows(held, (LOADING >> 32, LOADING & 0xFFFFFFFF))[0][0])

    def load(
        self,
        records: Iterable[Record],
        source: Source,
        reject: Callable[[Reject], None],
        *,
        unread: Callable[[], int] = lambda: 0,
        is_mass_delete_allowed: bool = False,
        progress: Progress = SilentProgress(),  # noqa: B008 - it holds nothing
    ) -> LoadReport:
        """Make the store hold what ``records`` holds for ``source``, in one transaction."""
        rows.check_source(source)
        with _explained(self._address), _staging(self._connection()) as staged:
            report = load(
                self,
                staged,
                records,
                source,
                reject,
                unread,
                is_mass_delete_allowed=is_mass_delete_allowed,
                progress=progress,
            )
            self._connection().execute("ANALYZE questions, answers, links, changes")
        return report

    def delete_source(self, name: str) -> SourceCounts:
        """Delete all records of a source; return how many there were."""
        with _explained(self._address):
            connection = self._connection()
            held = "SELECT pg_try_advisory_lock(?)"
            if self.is_loading() or not connection.execute(held, (LOADING,)).fetchone()[0]:
                raise BusyForumError("somebody else is loading an archive", "wait until it has finished")
            try:
                return super().delete_source(name)
            finally:
                if not connection.is_lost:
                    connection.execute("SELECT pg_advisory_unlock(?)", (LOADING,))

    def check(self) -> None:
        """Read everything, and compare each question and answer with the digest of what was written."""
        for fault in self.faults(lambda _: None):
            raise DamagedForumError(f"{self._address}: {fault}", "restore the database from a backup")

    def faults(self, on_rows: Callable[[int], None]) -> Iterator[str]:
        """Yield each question and answer that is not what was written."""
        for kind, columns in (("question", rows.QUESTION_COLUMNS), ("answer", rows.ANSWER_COLUMNS)):
            last = 0
            wanted = f"SELECT num, digest, {', '.join(columns)} FROM {kind}s WHERE num > ? ORDER BY num LIMIT 500"
            while found := self.rows(wanted, (last,)):
                for row in found:
                    if rows.digest(row[column] for column in columns) != row["digest"]:
                        yield f"{kind} {row['id']!r} (number {row['num']}) does not hold what was written"
                last = found[-1]["num"]
                on_rows(len(found) if kind == "question" else 0)

    def contents(self) -> Contents:
        """Return what a check compares indexes with."""
        changes = self.rows("SELECT seq, num FROM changes WHERE kind = 'question' AND num IS NOT NULL")
        return Contents(
            frozenset(self.numbers()),
            self.last_change(),
            tuple((row[0], row[1]) for row in changes),
            self.settings(),
            self.languages_by_num(),
        )


class _Connection:
    """A connection that takes ``?`` for values and any text, and gives rows by place and by name."""

    is_staging = False
    """Whether an archive is being loaded through it: what was read of it goes with the connection."""

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
        found: Cursor = self._own.execute(_translated(statement), [_stored(value) for value in values])
        return found

    def copy(self, table: str, values: Iterable[Iterable[Any]]) -> None:
        """Append rows to a table."""
        with self._own.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for row in values:
                copy.write_row([_stored(value) for value in row])

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
def _staging(connection: _Connection) -> Iterator[_Staging]:
    """Give empty tables for what a load reads; one load at a time has them.

    Raises:
        BusyForumError: another load has been under way for too long.
    """
    try:
        connection.execute(f"SET lock_timeout = '{LOADS_WAIT}'")
        connection.execute("SELECT pg_advisory_lock(?)", (LOADING,))
    except _psycopg().errors.LockNotAvailable as error:
        raise BusyForumError("somebody else is loading an archive", "wait until it has finished") from error
    finally:
        connection.execute("RESET lock_timeout")
    try:
        connection.execute(f"DROP SCHEMA IF EXISTS {STAGING} CASCADE")  # of a load that was killed
        for statement in filter(str.strip, _STAGING_TABLES.split(";")):
            connection.execute(statement)
        connection.is_staging = True
        with contextlib.closing(sqlite3.connect("")) as seen:
            yield _Staging(connection, seen)
    finally:
        connection.is_staging = False
        if not connection.is_lost:
            connection.roll_back()
            connection.execute(f"DROP SCHEMA IF EXISTS {STAGING} CASCADE")
            connection.execute("SELECT pg_advisory_unlock(?)", (LOADING,))


class _Staging:
    """``load.Staging``: records are sent in batches; which ids there were is known here, without asking the server.

    Args:
        seen: an SQLite database that goes with the load.
    """

    resumed = 0  # what was read goes with the connection

    def __init__(self, connection: _Connection, seen: sqlite3.Connection) -> None:
        self._connection, self._seen = connection, seen
        self._waiting: dict[str, list[tuple[object, ...]]] = {"questions": [], "answers": [], "seen_links": []}
        self._place = 0
        for table, columns in (("questions", "id"), ("answers", "id"), ("seen_links", "a, b, c")):
            seen.execute(f"CREATE TABLE {table} ({columns}, PRIMARY KEY ({columns})) WITHOUT ROWID")

    def take(self, record: Question | Answer) -> bool:
        """Note a record; return whether it is the first with its id."""
        if isinstance(record, Question):
            table, values = "questions", rows.question_values(record)
        else:
            table, values = "answers", rows.answer_values(record)
        self._place += 1
        return self._note(table, (record.id,), (self._place, rows.digest(values), *values))

    def take_link(self, link: Link) -> None:
        """Note a link."""
        rows.check_link(link)
        key = (link.source_id, link.target_id, link.kind)
        self._note("seen_links", key, key)

    def end(self) -> Sequence[tuple[str, str]]:
        """Send what waits, and leave out what the store has already as it is."""
        execute = self._connection.execute
        for table in self._waiting:
            self._send(table)
        for table in ("questions", "answers"):
            staged = f"{STAGING}.{table}"
            execute(f"INSERT INTO {STAGING}.seen_{table} SELECT id FROM {staged}")
            execute(f"ANALYZE {staged}, {STAGING}.seen_{table}")
            execute(
                f"DELETE FROM {staged} AS staged USING {table} AS known WHERE known.id = staged.id"
                " AND known.digest = staged.digest"
            )
            execute(f"ANALYZE {staged}")
        execute(f"ANALYZE {STAGING}.seen_links")
        return ()

    @property
    def filled(self) -> None:
        """Return None: whoever writes waits for the last step, and nobody's log grows."""

    def replacement(self, gone: Gone) -> None:
        """Return None, for the same reason."""

    def _note(self, table: str, key: tuple[str, ...], values: tuple[object, ...]) -> bool:
        marks = ", ".join("?" * len(key))
        if not self._seen.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", key).rowcount:
            return False
        self._waiting[table].append(values)
        if len(self._waiting[table]) == SENT_TOGETHER:
            self._send(table)
        return True

    def _send(self, table: str) -> None:
        waiting, self._waiting[table] = self._waiting[table], []
        if waiting:
            self._connection.copy(f"{STAGING}.{table}", waiting)


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
        raise DatabaseError(
            f"{address} cannot be used: {str(error).strip()[:300]}",
            "check that the server runs and that PGUSER and PGPASSWORD, or ~/.pgpass, give access to it",
        ) from error


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtraError(
            "the package psycopg is not installed, which speaks to PostgreSQL", "postgresql"
        ) from error
    return psycopg


@lru_cache(maxsize=1024)
def _translated(statement: str) -> str:
    return statement.replace("%", "%%").replace("?", "%s")


def _stored(value: Any) -> Any:
    """Return a value as it is stored.

    >>> _stored("a\\x00b\\x01")
    'a\\x010b\\x011'
    """
    if isinstance(value, str) and ("\x00" in value or _ESCAPE in value):
        return value.replace(_ESCAPE, f"{_ESCAPE}1").replace("\x00", f"{_ESCAPE}0")
    return value


def _read(value: Any) -> Any:
    """Return a stored value as it was given.

    >>> _read(_stored("a\\x00b\\x01")) == "a\\x00b\\x01"
    True
    """
    if isinstance(value, str) and _ESCAPE in value:
        return value.replace(f"{_ESCAPE}0", "\x00").replace(f"{_ESCAPE}1", _ESCAPE)
    return value


class _Row(tuple[Any, ...]):
    """A row; ``names`` is set in the class of each set of columns."""

    names: Mapping[str, int] = {}

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.names[key] if isinstance(key, str) else key)


@lru_cache(maxsize=256)
def _row_class(names: tuple[str, ...]) -> type[_Row]:
    return type("_Row", (_Row,), {"names": {name: place for place, name in enumerate(names)}})


def _row_factory(cursor: Any) -> Callable[[Iterable[Any]], _Row]:
    row = _row_class(tuple(column.name for column in cursor.description or ()))
    return lambda values: row(map(_read, values))
