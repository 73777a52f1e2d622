"""Where a load keeps what it has read until all of it is there: a database beside the archive, gone with the load.

Reading takes as long as the files are large. Nothing of the archive is locked meanwhile; others write to it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from typing import Final

import filelock

from askalike.errors import BusyForumError
from askalike.files import narrow, writing_named
from askalike.store import rows
from askalike.store.archive import Archive
from askalike.store.schema import BUSY_TIMEOUT_S, refusal, roll_back
from askalike.types import Answer, Link, Question

COMMITTED_EACH: Final = 20_000
"""Records; until then the archive is read as it was at the first of them, which keeps its log from being shortened."""

_TABLES: Final = (
    "CREATE TABLE staging.seen_questions (id TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE staging.seen_answers (id TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE staging.seen_links (source_id TEXT, target_id TEXT, kind TEXT,"
    " PRIMARY KEY (source_id, target_id, kind)) WITHOUT ROWID",
    f"CREATE TABLE staging.questions (digest BLOB, {', '.join(rows.QUESTION_COLUMNS)})",
    f"CREATE TABLE staging.answers (digest BLOB, {', '.join(rows.ANSWER_COLUMNS)})",
)


def is_loading(archive: Archive) -> bool:
    """Return whether another process, or another part of this one, loads an archive into this forum."""
    try:
        with _lock(archive).acquire(timeout=0):
            return False
    except filelock.Timeout:
        return True


@contextlib.contextmanager
def staging(archive: Archive) -> Iterator[Staging]:
    """Give an empty staging database, attached to this thread's connection; one load at a time has it.

    Raises:
        BusyForumError: another load has been under way for too long.
        ForumError: the forum's folder cannot be written.
    """
    path = archive.path.with_name("loading.sqlite")
    with contextlib.ExitStack() as held:
        with writing_named(path):
            try:
                held.enter_context(_lock(archive).acquire(timeout=BUSY_TIMEOUT_S))
            except filelock.Timeout as error:
                raise BusyForumError(
                    f"another process is loading an archive into {archive.path.parent}", "wait until it has finished"
                ) from error
        connection = archive.connection
        with writing_named(path):
            path.unlink(missing_ok=True)  # of a load that was killed
            open(path, "xb", opener=narrow).close()
        try:
            connection.execute("ATTACH ? AS staging", (str(path),))
            connection.execute("PRAGMA staging.journal_mode = OFF")  # what fails here is thrown away
            connection.execute("PRAGMA staging.synchronous = OFF")
            if os.name != "nt":
                path.unlink()  # it is open: a process that is killed leaves nothing behind
            for table in _TABLES:
                connection.execute(table)
            yield Staging(connection)
        except sqlite3.Error as error:
            raise refusal(path, error) or error from error
        finally:
            roll_back(connection)
            with contextlib.suppress(sqlite3.OperationalError):  # was never attached
                sqlite3.Cursor(connection).execute("DETACH staging")
            path.unlink(missing_ok=True)


class Staging:
    """The records of a load: which there are, and those that are not in the archive as they are."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._cursor = sqlite3.Cursor(connection)  # a plain one: there are several calls a record
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
        if not execute(f"INSERT OR IGNORE INTO staging.seen_{table} VALUES (?)", (record.id,)).rowcount:
            return False
        digest = rows.digest(values)
        known = execute(f"SELECT digest FROM main.{table} WHERE id = ?", (record.id,)).fetchone()
        if known is None or known[0] != digest:
            marks = ", ".join("?" * (1 + len(values)))
            execute(f"INSERT INTO staging.{table} VALUES ({marks})", (digest, *values))
        return True

    def take_link(self, link: Link) -> bool:
        """Note a link; return whether it is the first between these two of its kind.

        Raises:
            InputError: a value cannot be stored.
        """
        rows.check_link(link)
        self._begin()
        key = (link.source_id, link.target_id, link.kind)
        insert = "INSERT OR IGNORE INTO staging.seen_links VALUES (?, ?, ?)"
        return bool(self._cursor.execute(insert, key).rowcount)

    def end(self) -> None:
        """End the reading: the archive can be written."""
        if self._uncommitted:
            self._cursor.execute("COMMIT")
        self._uncommitted = 0

    def _begin(self) -> None:
        if self._uncommitted == COMMITTED_EACH:
            self.end()
        if not self._uncommitted:
            self._cursor.execute("BEGIN")
        self._uncommitted += 1


def _lock(archive: Archive) -> filelock.FileLock:
    return filelock.FileLock(archive.path.with_name("loading.lock"), thread_local=False)
