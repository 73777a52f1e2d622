"""What a load has read so far, in an SQLite file beside the archive that goes with the load."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import filelock

from askalike.errors import BusyForumError
from askalike.files import narrow, writing_named
from askalike.store import rows
from askalike.store.load import STAGING
from askalike.store.sqlite.schema import BUSY_TIMEOUT_S, refusal, roll_back
from askalike.types import Answer, Link, Question

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
