"""A forum's questions, answers, links and judgements in one SQLite file in WAL mode, with a log of every change."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import filelock

from askalike.errors import BusyForumError, DamagedForumError, ForumError, ForumNotFoundError
from askalike.files import narrow, writing_named
from askalike.store import rows
from askalike.store.layout import not_found
from askalike.store.load import STAGING, load
from askalike.store.protocol import (
    LoadReport,
)
from askalike.store.sql import SqlStore, ThreadConnections
from askalike.store.sqlite import schema
from askalike.store.sqlite.schema import BUSY_TIMEOUT_S, refusal, roll_back
from askalike.types import Answer, Link, Question, Record, Reject, Source

COMMITTED_EACH: Final = 20_000
"""Records; until then the store is read as it was at the first of them, which keeps its log from being shortened."""

_TABLES: Final = (
    f"CREATE TABLE {STAGING}.seen_questions (id TEXT PRIMARY KEY) WITHOUT ROWID",
    f"CREATE TABLE {STAGING}.seen_answers (id TEXT PRIMARY KEY) WITHOUT ROWID",
    f"CREATE TABLE {STAGING}.seen_links (source_id TEXT, target_id TEXT, kind TEXT,"
    " PRIMARY KEY (source_id, target_id, kind)) WITHOUT ROWID",
    f"CREATE TABLE {STAGING}.questions (place INTEGER PRIMARY KEY, digest BLOB, {', '.join(rows.QUESTION_COLUMNS)})",
    f"CREATE TABLE {STAGING}.answers (place INTEGER PRIMARY KEY, digest BLOB, {', '.join(rows.ANSWER_COLUMNS)})",
)


def is_loading(path: Path) -> bool:
    """Return whether another process, or another part of this one, loads an archive into the store's file."""
    try:
        with _lock(path).acquire(timeout=0):
            return False
    except filelock.Timeout:
        return True


def _lock(path: Path) -> filelock.FileLock:
    return filelock.FileLock(path.with_name("loading.lock"), thread_local=False)


@contextlib.contextmanager
def staging(path: Path, connection: sqlite3.Connection) -> Iterator[SqliteStaging]:
    """Give an empty staging database, attached to this thread's connection; one load at a time has it.

    Raises:
        BusyForumError: another load has been under way for too long.
        ForumError: the forum's folder cannot be written.
    """
    archive, path = path, path.with_name("loading.sqlite")
    with contextlib.ExitStack() as held:
        with writing_named(path):
            try:
                held.enter_context(_lock(archive).acquire(timeout=BUSY_TIMEOUT_S))
            except filelock.Timeout as error:
                raise BusyForumError(
                    f"another process is loading an archive into {archive.parent}", "wait until it has finished"
                ) from error
        with writing_named(path):
            path.unlink(missing_ok=True)  # of a load that was killed
            open(path, "xb", opener=narrow).close()
        try:
            connection.execute(f"ATTACH ? AS {STAGING}", (str(path),))
            connection.execute(f"PRAGMA {STAGING}.journal_mode = OFF")  # what fails here is thrown away
            connection.execute(f"PRAGMA {STAGING}.synchronous = OFF")
            if os.name != "nt":
                path.unlink()  # it is open: a process that is killed leaves nothing behind
            for table in _TABLES:
                connection.execute(table)
            yield SqliteStaging(connection)
        except sqlite3.Error as error:
            raise refusal(path, error) or error from error
        finally:
            roll_back(connection)
            with contextlib.suppress(sqlite3.OperationalError):  # was never attached
                connection.execute(f"DETACH {STAGING}")
            path.unlink(missing_ok=True)


class SqliteStaging:
    """``load.Staging`` in a file of its own, attached to the connection of the store."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._cursor = connection.cursor()  # one for all: there are several calls a record
        self._uncommitted = 0

    def take(self, record: Question | Answer) -> bool:
        """Note a record; return whether it is the first with its id.

        Raises:
            InputError: a value cannot be stored.
        """
        if isinstance(record, Question):
            table, values = "questions", rows.question_values(record)
        else:
            table, values = "answers", rows.answer_values(record)
        self._begin()
        execute = self._cursor.execute
        if not execute(f"INSERT OR IGNORE INTO {STAGING}.seen_{table} VALUES (?)", (record.id,)).rowcount:
            return False
        digest = rows.digest(values)
        known = execute(f"SELECT digest FROM {table} WHERE id = ?", (record.id,)).fetchone()
        if known is None or known[0] != digest:
            marks = ", ".join("?" * (1 + len(values)))
            execute(f"INSERT INTO {STAGING}.{table} VALUES (NULL, {marks})", (digest, *values))
        return True

    def take_link(self, link: Link) -> None:
        """Note a link.

        Raises:
            InputError: a value cannot be stored.
        """
        rows.check_link(link)
        self._begin()
        key = (link.source_id, link.target_id, link.kind)
        self._cursor.execute(f"INSERT OR IGNORE INTO {STAGING}.seen_links VALUES (?, ?, ?)", key)

    def end(self) -> None:
        """End the reading: the store can be written."""
        if self._uncommitted:
            self._cursor.execute("COMMIT")
        self._uncommitted = 0

    def _begin(self) -> None:
        if self._uncommitted == COMMITTED_EACH:
            self.end()
        if not self._uncommitted:
            self._cursor.execute("BEGIN")
        self._uncommitted += 1


class SqliteStore(SqlStore):
    """``store.Store`` in one file; each thread has a connection of its own."""

    ordered_join = "CROSS JOIN"

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise not_found(path)
        for needed in (path, path.parent):  # SQLite would read it, and the indexes then fail as if they were damaged
            if not os.access(needed, os.W_OK):
                raise ForumError(f"{needed} cannot be written", schema.WRITABLE)
        self.path = path
        self._identity = schema.identity(path)
        self._connections = ThreadConnections(partial(schema.connect, path))
        self._turn = threading.Lock()
        if not schema.is_finished(self.connection):
            self.close()
            raise ForumNotFoundError(f"the forum at {path.parent} was not created completely", "create it again")

    @classmethod
    def create(cls, path: Path, settings: dict[str, str]) -> SqliteStore:
        """Make a new, empty file; an unfinished one of a killed process is finished."""
        with writing_named(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            open(path, "ab", opener=narrow).close()  # SQLite gives its write-ahead log the same rights
        with contextlib.closing(schema.connect(path)) as connection, schema.explained(path):
            if not schema.is_finished(connection):
                schema.create_tables(connection, settings)
        return cls(path)

    @property
    def name(self) -> str:
        """Return the file's path."""
        return str(self.path)

    @property
    def connection(self) -> sqlite3.Connection:
        """Return this thread's connection; it is closed when the thread ends."""
        return self._connections.get()

    def close(self) -> None:
        """Close every connection; the store must not be used after."""
        self._connections.close()

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Give a connection inside one transaction: committed and on disk at the end, or rolled back on any error.

        Raises:
            BusyForumError: another process has been writing for longer than the busy timeout.
            ForumNotFoundError: the file was deleted or replaced since it was opened.
            ForumError: the file cannot be written, or is damaged.
        """
        connection = self._connections.get()
        if not self._turn.acquire(timeout=schema.BUSY_TIMEOUT_S):  # who waits for SQLite's lock sleeps too long
            raise schema.busy(self.path)
        try:
            connection.execute("BEGIN IMMEDIATE")
            if schema.identity(self.path) != self._identity:  # a write to a deleted file would be lost
                raise ForumNotFoundError(f"{self.path} was deleted or replaced while it was open", "open it again")
            yield connection
            connection.execute("COMMIT")
        except schema.FAULTS as error:
            schema.roll_back(connection)
            raise schema.refusal(self.path, error) or error from error
        except BaseException:
            schema.roll_back(connection)
            raise
        finally:
            self._turn.release()

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Return all rows that a statement finds.

        Raises:
            ForumError: the file cannot be read, or is damaged.
        """
        try:
            return self._connections.get().execute(statement, values).fetchall()
        except schema.FAULTS as error:
            raise schema.refusal(self.path, error) or error from error

    def load(
        self,
        records: Iterable[Record],
        source: Source,
        reject: Callable[[Reject], None],
        *,
        unread: Callable[[], int] = lambda: 0,
        is_mass_delete_allowed: bool = False,
    ) -> LoadReport:
        """Make the store hold what ``records`` holds for ``source``, in one transaction."""
        with staging(self.path, self.connection) as staged:
            report = load(self, staged, records, source, reject, unread, is_mass_delete_allowed=is_mass_delete_allowed)
        with contextlib.suppress(ForumError):  # what was loaded is on disk already, in the write-ahead log
            for mode in ("PASSIVE", "TRUNCATE"):  # the first takes long and lets others write
                self.rows(f"PRAGMA wal_checkpoint({mode})")
        return report

    def is_loading(self) -> bool:
        """Return whether an archive is loaded into this forum."""
        return is_loading(self.path)

    @contextlib.contextmanager
    def held_if_empty(self) -> Iterator[bool]:
        """Keep everybody from writing for as long as nothing is stored here; False at once where that cannot be."""
        with contextlib.ExitStack() as held:
            self.connection.execute("PRAGMA busy_timeout = 0")
            try:
                held.enter_context(self.write())
            except BusyForumError:
                yield False
            else:
                yield not self.count_questions() and not self.is_loading()
            finally:
                self.connection.execute(f"PRAGMA busy_timeout = {round(1000 * schema.BUSY_TIMEOUT_S)}")

    def check(self) -> None:
        """Read the whole file and check its structure."""
        try:
            found = self.rows("PRAGMA quick_check(1)")[0][0]
        except DamagedForumError as error:
            found = error.message
        if found != "ok":
            raise DamagedForumError(f"{self.path} is damaged: {found}", "restore it from a backup")
