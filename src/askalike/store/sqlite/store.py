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

from askalike.errors import BusyForumError, DamagedForumError, ForumError, ForumNotFoundError
from askalike.files import narrow, writing_named
from askalike.progress import Progress, SilentProgress
from askalike.store import rows
from askalike.store.layout import not_found
from askalike.store.load import load
from askalike.store.protocol import LoadReport, SourceCounts
from askalike.store.sql import SqlStore, ThreadConnections
from askalike.store.sqlite import schema
from askalike.store.sqlite.beside import PREFIX, drop_all, is_replaced, posts, unfinished_source
from askalike.store.sqlite.staging import is_loading, not_loading, staging
from askalike.store.writes import Connection
from askalike.types import Record, Reject, Source

SHORTENED_WITHIN_S: Final = 0.2
"""Who empties the write-ahead log waits so long for those who read it, and keeps everybody from writing meanwhile."""


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
        self._connections.close(f"the forum at {self.path.parent}")

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

    def append(
        self, connection: Connection, table: str, columns: Sequence[str], values: Iterable[Sequence[object]]
    ) -> None:
        """Append rows to a table, with their own numbers."""
        marks = ", ".join("?" * len(columns))
        for row in values:
            connection.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", row)

    def last_number(self, connection: Connection, table: str, column: str) -> int:
        """Return the last number that a table has ever given."""
        found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        highest = connection.execute(f"SELECT max({column}) FROM {table}").fetchone()[0] or 0
        return max(highest, found[0] if found else 0)

    def keep_last_number(self, connection: Connection, table: str, column: str, number: int) -> None:
        """Let a table give greater numbers alone."""
        connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, number))

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Return all rows that a statement finds.

        Raises:
            ForumError: the file cannot be read, or is damaged.
        """
        try:
            return self._connections.get().execute(statement, values).fetchall()
        except schema.FAULTS as error:
            raise schema.refusal(self.path, error) or error from error

    def source_counts(self) -> list[SourceCounts]:
        """Return how much came from each source, in the order of ``sources``; nothing of one that is not seen yet."""
        unfinished = unfinished_source(self.connection)
        found = super().source_counts()
        return [one for one in found if one.name != unfinished or one.questions or one.answers or one.links]

    def sources(self) -> tuple[str, ...]:
        """Return the names of the sources that records came from, in the order of their first use."""
        if unfinished_source(self.connection):
            return tuple(one.name for one in self.source_counts())
        return super().sources()

    def delete_source(self, name: str) -> SourceCounts:
        """Delete all records of a source, and what a killed load of it has left; return how many there were."""
        with not_loading(self.path):  # which passes over what it finds unchanged
            if unfinished_source(self.connection) == name or is_replaced(self.connection):  # refers to all sources
                drop_all(self.connection, self)
            return super().delete_source(name)

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
        """Make the store hold what ``records`` holds for ``source``, in one step."""
        rows.check_source(source)
        with staging(self.path, self.connection, self, source) as staged:
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
        with contextlib.suppress(ForumError):  # what was loaded is on disk already, in the write-ahead log
            self.rows("PRAGMA wal_checkpoint(PASSIVE)")  # takes long and lets others write
            with self._patience(SHORTENED_WITHIN_S):
                self.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        return report

    @contextlib.contextmanager
    def _patience(self, seconds: float) -> Iterator[None]:
        """Let this thread's connection wait no longer than this for others."""
        self.connection.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")
        try:
            yield
        finally:
            self.connection.execute(f"PRAGMA busy_timeout = {round(1000 * schema.BUSY_TIMEOUT_S)}")

    def is_loading(self) -> bool:
        """Return whether an archive is loaded into this forum."""
        return is_loading(self.path)

    @contextlib.contextmanager
    def held_if_empty(self) -> Iterator[bool]:
        """Keep everybody from writing for as long as nothing is stored here; False at once where that cannot be."""
        with self._patience(0), contextlib.ExitStack() as held:
            try:
                held.enter_context(self.write())
            except BusyForumError:
                yield False
            else:
                is_empty = not self.count_questions() and not posts(self.connection, PREFIX)
                yield is_empty and not self.is_loading()

    def check(self) -> None:
        """Read the whole file and check its structure."""
        try:
            found = self.rows("PRAGMA quick_check(1)")[0][0]
        except DamagedForumError as error:
            found = error.message
        if found != "ok":
            raise DamagedForumError(f"{self.path} is damaged: {found}", "restore it from a backup")
