"""What a load has read so far, in an SQLite file beside the archive that goes with the load; and how an empty archive
is filled in several short transactions.

A load into an archive that holds neither questions nor answers would write everything in one transaction: the
write-ahead log grows to the size of the archive, and others wait for seconds before they can write. So once
``WRITTEN_EACH`` records were read they are written to new tables in the archive's file, ``loaded_questions`` and so on,
with numbers that nobody else is given; nothing reads those. At the end one short transaction moves over the few rows
that others have written meanwhile, drops the old tables and gives the new ones their names. What a killed load has left
is gone on with by the next load of the same source, as far as that gives the same records in the same order; any other
load drops it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import filelock

from askalike.errors import BusyForumError, ForumError
from askalike.files import narrow, writing_named
from askalike.store import rows, writes
from askalike.store.load import STAGING, Gone, Known
from askalike.store.sql import SqlStore
from askalike.store.sqlite import replacement
from askalike.store.sqlite.beside import (
    KINDS,
    LEFT_OUT,
    PREFIX,
    TABLES,
    are_alike,
    drop_all,
    is_replaced,
    make,
    named,
    reserve,
)
from askalike.store.sqlite.replacement import Replacement
from askalike.store.sqlite.schema import BUSY_TIMEOUT_S, refusal, roll_back
from askalike.types import Answer, Link, Question, Source

WRITTEN_EACH: Final = 20_000
"""Records; until then the store is read as it was at the first of them, which keeps its log from being shortened."""
WRITTEN_CHARACTERS: Final = 16_000_000
"""The same, of texts."""
FEW: Final = 10_000
"""Links, and changes, of an archive that counts as empty: the last transaction of a load moves them over."""
_LOOKED_AT: Final = 1_000
_LOG: Final = f"INSERT INTO {PREFIX}changes (at_us, kind, operation, id, num)"

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
        with not_loading(path):
            return False
    except BusyForumError:
        return True


def _lock(path: Path) -> filelock.FileLock:
    return filelock.FileLock(path.with_name("loading.lock"), thread_local=False)


@contextlib.contextmanager
def staging(path: Path, connection: sqlite3.Connection, store: SqlStore, source: Source) -> Iterator[SqliteStaging]:
    """Give an empty staging database, attached to this thread's connection; one load at a time has it.

    Args:
        path: of the store's file.
        source: what is loaded.

    Raises:
        BusyForumError: another load has been under way for too long.
        ForumError: the forum's folder cannot be written.
    """
    archive, path, is_stopped = path, path.with_name("loading.sqlite"), False
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
            if not _can_go_on(connection, source):
                drop_all(connection, store)
            yield SqliteStaging(connection, store, source)
        except sqlite3.Error as error:
            raise refusal(archive, error) or error from error
        except KeyboardInterrupt:
            is_stopped = True  # and is gone on with
            raise
        finally:
            try:
                roll_back(connection)
                with contextlib.suppress(ForumError, sqlite3.Error):  # such as a full disk: the next load does it
                    if not is_stopped or not _can_go_on(connection, source):
                        drop_all(connection, store)
            finally:  # also where somebody is in a hurry
                roll_back(connection)
                with contextlib.suppress(sqlite3.OperationalError):  # was never attached
                    connection.execute(f"DETACH {STAGING}")
                path.unlink(missing_ok=True)


class SqliteStaging:
    """``load.Staging`` in a file of its own, attached to the connection of the store."""

    def __init__(self, connection: sqlite3.Connection, store: SqlStore, source: Source) -> None:
        self._connection, self._store, self._source = connection, store, source
        self._cursor = connection.cursor()  # one for all: there are several calls a record
        self._records = self._characters = 0
        self._is_first = False if is_replaced(connection) else None  # else seen once much was read
        self._is_read = False
        self.resumed = 0
        self.filled: SqliteFilled | None = None
        self._left: dict[str, _Left] = {}
        if named(connection, PREFIX) and self._is_first is None:
            self.filled = SqliteFilled(connection, store, source, is_begun=True)
            self._left = {table: _Left(connection, table) for table in KINDS}

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
        if known is not None and known[0] == digest:
            return True
        if self.filled is not None and table in self._left and self._left[table].has_next(record.id, digest):
            self.filled.added[table] += 1
            self.resumed += 1
        else:
            marks = ", ".join("?" * (1 + len(values)))
            execute(f"INSERT INTO {STAGING}.{table} VALUES (NULL, {marks})", (digest, *values))
            self._characters += len(record.body)
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

    def end(self) -> Sequence[tuple[str, str]]:
        """End the reading: the store can be written.

        Return (id, id of the question) of the answers that were left out since their question is nowhere.
        """
        self._commit()
        if self.filled is None:
            return ()
        self._is_read = True
        self._fill(self.filled)
        left_out = self.filled.leave_out_orphans()
        self.filled.log_posts()
        self.filled.fill_links()
        return left_out

    def replacement(self, gone: Gone) -> Replacement | None:
        """Return new tables for an archive whose differences are too many for one transaction; else None."""
        if self.filled is not None:
            return None
        count = "SELECT (SELECT count(*) FROM {0}questions) + (SELECT count(*) FROM {0}answers)"
        many = self._cursor.execute(count.format(f"{STAGING}.")).fetchone()[0]
        many += len(gone.questions) + len(gone.answers) + len(gone.links)
        if many < replacement.LEAST or many < replacement.SHARE * self._cursor.execute(count.format("")).fetchone()[0]:
            drop_all(self._connection, self._store)  # what a killed load has left
            return None
        return Replacement(self._connection, self._store, self._source, gone)

    def _begin(self) -> None:
        if self._records == WRITTEN_EACH or self._characters >= WRITTEN_CHARACTERS:
            self._commit()
            if self.filled is None and self._is_first is None:
                self._is_first = _is_empty(self._connection)
            if self.filled is None and self._is_first:
                self.filled = SqliteFilled(self._connection, self._store, self._source)
            if self.filled is not None:
                self._fill(self.filled)
        if not self._records:
            self._cursor.execute("BEGIN")
        self._records += 1

    def _fill(self, filled: SqliteFilled) -> None:
        """Write what is staged, in the place of what a killed load has left and this one does not hold."""
        has_some = f"SELECT EXISTS (SELECT 1 FROM {STAGING}.{{}})"  # wholly read: what is not locks all tables
        staged = [table for table in KINDS if self._cursor.execute(has_some.format(table)).fetchone()[0]]
        for table in KINDS:
            if table in self._left and (table in staged or self._is_read):
                filled.cut(table, self._left.pop(table).last)
        if staged or self._is_read:
            filled.fill()

    def _commit(self) -> None:
        if self._records:
            self._cursor.execute("COMMIT")
        self._records = self._characters = 0


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Return whether an archive holds so little that new tables can take the place of its own."""
    most = {"questions": 0, "answers": 0, "moderation": 0, "links": FEW, "changes": FEW}
    held = "SELECT count(*) FROM (SELECT 1 FROM {} LIMIT {})"
    return all(connection.execute(held.format(table, few + 1)).fetchone()[0] <= few for table, few in most.items())


@contextlib.contextmanager
def not_loading(path: Path) -> Iterator[None]:
    """Let nobody load an archive into the store's file meanwhile.

    Raises:
        BusyForumError: a load is under way.
    """
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(_lock(path).acquire(timeout=0))
        except filelock.Timeout as error:
            raise BusyForumError(
                f"another process is loading an archive into {path.parent}", "wait until it has finished"
            ) from error
        yield


def _can_go_on(connection: sqlite3.Connection, source: Source) -> bool:
    """Return whether a killed load of the same source has left tables that can still be filled."""
    if is_replaced(connection):
        return replacement.can_go_on(connection, source)
    held = set(named(connection, PREFIX))
    if not {f"{PREFIX}{table}" for table in TABLES} <= held or not _is_empty(connection):
        return False
    begun = f"SELECT name, format FROM sources WHERE num = (SELECT source FROM {PREFIX}questions LIMIT 1)"
    found = connection.execute(begun).fetchone()
    return found is not None and (*found,) == (source.name, source.format) and are_alike(connection, PREFIX)


class _Left:
    """The rows that a killed load has left in a table, in the order in which they were read."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        self._connection, self._table = connection, f"{PREFIX}{table}"
        self._next: list[tuple[int, str, bytes]] = []
        self._is_over = False
        self.last = 0
        """Number of the last row that was met again."""

    def has_next(self, identifier: str, digest: bytes) -> bool:
        """Return whether the next row is this one; no further one is looked for once that was not so."""
        if not self._next and not self._is_over:
            chosen = f"SELECT num, id, digest FROM {self._table} WHERE num > ? ORDER BY num LIMIT {_LOOKED_AT}"
            self._next = [(*row,) for row in self._connection.execute(chosen, (self.last,)).fetchall()][::-1]
        found = self._next.pop() if self._next else None
        if found is None or found[1:] != (identifier, digest):
            self._next, self._is_over = [], True
            return False
        self.last = found[0]
        return True


class SqliteFilled:
    """``load.Filled``: tables like those of the archive, in its file, that are filled in short transactions.

    Args:
        is_begun: a killed load has left them; their links, and the log, are written again.
    """

    def __init__(
        self, connection: sqlite3.Connection, store: SqlStore, source: Source, *, is_begun: bool = False
    ) -> None:
        self._connection, self._store = connection, store
        self.added = dict.fromkeys(TABLES[:3], 0)
        self._at_us = time.time_ns() // 1000
        if is_begun:
            self._delete("changes", "seq", 0)
            self._delete("links", "(source_id, target_id, kind)", ("", "", ""))
        with store.write():
            self._number = writes.source_number(connection, source.name, source.format)
            for table in () if is_begun else TABLES:
                make(connection, table, f"{PREFIX}{table}")
            self._first_change = LEFT_OUT + store.last_number(connection, "changes", "seq")
            store.keep_last_number(connection, f"{PREFIX}changes", "seq", self._first_change)

    def fill(self) -> None:
        """Write what is staged."""
        execute = self._connection.execute
        with self._store.write():
            for table, columns in (("questions", rows.QUESTION_COLUMNS), ("answers", rows.ANSWER_COLUMNS)):
                filled, names = f"{PREFIX}{table}", ", ".join(columns)
                self._reserved(table)
                self.added[table] += execute(
                    f"INSERT INTO {filled} ({names}, source, digest) SELECT {names}, ?, digest FROM {STAGING}.{table}"
                    " ORDER BY place",
                    (self._number,),
                ).rowcount
                self._reserved(table)
        for table in ("questions", "answers"):
            execute(f"DELETE FROM {STAGING}.{table}")

    def cut(self, table: str, last: int) -> None:
        """Delete the rows with greater numbers."""
        self._delete(table, "num", last)

    def _delete(self, table: str, key: str, last: object) -> None:
        """Delete the rows of a table with greater keys, in short transactions."""
        values = last if isinstance(last, tuple) else (last,)
        chosen = f"SELECT {key.strip('()')} FROM {PREFIX}{table} WHERE {key} > ({', '.join('?' * len(values))})"
        deleted = 1
        while deleted:
            with self._store.write():
                deleted = self._connection.execute(
                    f"DELETE FROM {PREFIX}{table} WHERE {key} IN ({chosen} LIMIT {WRITTEN_EACH})", values
                ).rowcount

    def leave_out_orphans(self) -> list[tuple[str, str]]:
        """Delete the answers whose question is nowhere; return (id, id of the question) of each."""
        here = "EXISTS (SELECT 1 FROM {} WHERE id = question_id)"
        found = self._connection.execute(
            f"SELECT num, id, question_id FROM {PREFIX}answers WHERE NOT {here.format(f'{PREFIX}questions')}"
            f" AND NOT {here.format('questions')} ORDER BY num"
        ).fetchall()
        for start in range(0, len(found), WRITTEN_EACH):
            with self._store.write():
                for row in found[start : start + WRITTEN_EACH]:
                    self._connection.execute(f"DELETE FROM {PREFIX}answers WHERE num = ?", (row["num"],))
        self.added["answers"] -= len(found)
        return [(row["id"], row["question_id"]) for row in found]

    def log_posts(self) -> None:
        """Log the questions and the answers: only now, so that no log can hold other rows than the tables do."""
        for table, kind in KINDS.items():
            chosen = f"FROM {PREFIX}{table} WHERE num > ? ORDER BY num LIMIT {WRITTEN_EACH}"
            last: int | None = 0
            while last is not None:
                before = last
                last = self._connection.execute(f"SELECT max(num) FROM (SELECT num {chosen})", (before,)).fetchone()[0]
                if last is not None:
                    with self._store.write():
                        log = f"{_LOG} SELECT ?, '{kind}', 'add', id, num {chosen}"
                        self._connection.execute(log, (self._at_us, before))

    def fill_links(self) -> None:
        """Write the links, and the log of them."""
        execute = self._connection.execute
        last = ("", "", "")
        while found := execute(
            f"SELECT source_id, target_id, kind FROM {STAGING}.seen_links"
            " WHERE (source_id, target_id, kind) > (?, ?, ?)"
            f" ORDER BY source_id, target_id, kind LIMIT {WRITTEN_EACH}",
            last,
        ).fetchall():
            with self._store.write():
                self._connection.executemany(
                    f"INSERT INTO {PREFIX}links VALUES (?, ?, ?, {self._number})", (tuple(row) for row in found)
                )
                self._connection.executemany(
                    f"{_LOG} VALUES ({self._at_us}, 'link', 'add', ?, NULL)", ((row[0],) for row in found)
                )
            self.added["links"] += len(found)
            last = tuple(found[-1])

    def known(self, connection: writes.Connection, table: str) -> list[Known]:
        """Return which of its rows have an id that somebody has stored since."""
        found = connection.execute(
            f"SELECT known.id, name, known.digest <> staged.digest FROM {table} AS known"
            f" CROSS JOIN {PREFIX}{table} AS staged ON staged.id = known.id JOIN sources ON sources.num = known.source"
            " ORDER BY staged.num"
        )
        return [Known(identifier, owner, bool(is_other)) for identifier, owner, is_other in found.fetchall()]

    def take_place(self, connection: writes.Connection) -> Mapping[str, int]:
        """Put the new tables in the place of those of the store, whose few rows they take over; return table → how
        many rows of the load are new."""
        execute = connection.execute
        for table, kind in KINDS.items():
            both = f"FROM {table} AS known CROSS JOIN {PREFIX}{table} AS staged ON staged.id = known.id"
            for num, identifier, source in execute(f"SELECT known.num, known.id, known.source {both}").fetchall():
                execute(f"UPDATE {PREFIX}{table} SET source = ? WHERE id = ?", (source, identifier))
                execute(f"DELETE FROM {table} WHERE num = ?", (num,))
                writes.log_change(connection, kind, "delete", identifier, num)
                self.added[table] -= 1
            execute(f"INSERT INTO {PREFIX}{table} SELECT * FROM {table}")
        self.added["links"] -= execute(
            f"SELECT count(*) FROM links CROSS JOIN {PREFIX}links AS staged USING (source_id, target_id, kind)"
        ).fetchone()[0]
        execute(
            f"INSERT INTO {PREFIX}links SELECT * FROM links WHERE true"
            " ON CONFLICT DO UPDATE SET source = excluded.source"
        )
        tables = list(TABLES)
        if self._store.last_number(connection, "changes", "seq") <= self._first_change:
            execute(f"INSERT INTO {PREFIX}changes SELECT * FROM changes")
        else:  # others have written so much meanwhile that the load's changes have to be numbered again
            tables.remove("changes")
            names = "at_us, kind, operation, id, num"
            execute(f"INSERT INTO changes ({names}) SELECT {names} FROM {PREFIX}changes ORDER BY seq")
            execute(f"DROP TABLE {PREFIX}changes")
        for table in tables:
            if table in ("questions", "answers"):
                self._reserved(table)
            execute(f"DROP TABLE {table}")
            execute(f"ALTER TABLE {PREFIX}{table} RENAME TO {table}")
        return self.added

    def _reserved(self, table: str) -> int:
        return reserve(self._store, self._connection, table, f"{PREFIX}{table}")
