"""Bulk load: makes the store hold what a stream of records holds, in one transaction.

Loading the same source again adds what is new, updates what was edited and deletes what has gone. Either all of it
happens or, after an error, an interruption or a kill, nothing: a store is never half-loaded. The records are read
first, into a database beside the store that goes with the load; reading takes as long as the files are large, and
nothing of the store is locked meanwhile. Others wait only while the differences are applied.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import filelock

from askalike.errors import BusyForumError, ForumError, InputError
from askalike.files import narrow, writing_named
from askalike.store import rows
from askalike.store.protocol import LoadCounts, LoadReport
from askalike.store.sqlite.schema import BUSY_TIMEOUT_S, refusal, roll_back
from askalike.store.writes import (
    PostKind,
    delete_answer,
    delete_link,
    put_feedback,
    remove_question,
    source_number,
)
from askalike.types import Answer, Feedback, Link, Question, Record, Reject, Source

if TYPE_CHECKING:
    from askalike.store.sqlite.store import SqliteStore

MASS_DELETE_SHARE: Final = 0.5
MASS_DELETE_FLOOR: Final = 5
COMMITTED_EACH: Final = 20_000
"""Records; until then the store is read as it was at the first of them, which keeps its log from being shortened."""

_TABLES: Final = (
    "CREATE TABLE staging.seen_questions (id TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE staging.seen_answers (id TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE staging.seen_links (source_id TEXT, target_id TEXT, kind TEXT,"
    " PRIMARY KEY (source_id, target_id, kind)) WITHOUT ROWID",
    f"CREATE TABLE staging.questions (digest BLOB, {', '.join(rows.QUESTION_COLUMNS)})",
    f"CREATE TABLE staging.answers (digest BLOB, {', '.join(rows.ANSWER_COLUMNS)})",
)


def load(
    store: SqliteStore,
    records: Iterable[Record],
    source: Source,
    reject: Callable[[Reject], None],
    unread: Callable[[], int],
    *,
    is_mass_delete_allowed: bool,
) -> LoadReport:
    """Make the store hold what ``records`` holds for ``source``; see ``Store.load``."""
    with _staging(store) as staged:
        loading = _Loading(store, staged, source, reject)
        for record in records:
            loading.take(record)
        staged.end()
        loading.compare(unread(), is_mass_delete_allowed)
        with store.write():
            loading.apply()
        report = loading.finished_report()
    with contextlib.suppress(ForumError):  # what was loaded is on disk already, in the write-ahead log
        for mode in ("PASSIVE", "TRUNCATE"):  # the first takes long and lets others write
            store.rows(f"PRAGMA wal_checkpoint({mode})")
    return report


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
def _staging(store: SqliteStore) -> Iterator[_Staging]:
    """Give an empty staging database, attached to this thread's connection; one load at a time has it.

    Raises:
        BusyForumError: another load has been under way for too long.
        ForumError: the forum's folder cannot be written.
    """
    path = store.path.with_name("loading.sqlite")
    with contextlib.ExitStack() as held:
        with writing_named(path):
            try:
                held.enter_context(_lock(store.path).acquire(timeout=BUSY_TIMEOUT_S))
            except filelock.Timeout as error:
                raise BusyForumError(
                    f"another process is loading an archive into {store.path.parent}", "wait until it has finished"
                ) from error
        connection = store.connection
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
            yield _Staging(connection)
        except sqlite3.Error as error:
            raise refusal(path, error) or error from error
        finally:
            roll_back(connection)
            with contextlib.suppress(sqlite3.OperationalError):  # was never attached
                connection.execute("DETACH staging")
            path.unlink(missing_ok=True)


class _Staging:
    """The records of a load: which there are, and those that are not in the store as they are."""

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


class _Loading:
    """One load under way: its records are read, compared with the store, and the differences applied."""

    def __init__(self, store: SqliteStore, staged: _Staging, source: Source, reject: Callable[[Reject], None]) -> None:
        self.rows = store.rows
        self.connection = store.connection
        self.staged = staged
        self.source = source
        self.reject = reject
        self.report = LoadReport()
        self.unstorable = 0
        self.gone_questions: list[str] = []
        self.gone_answers: list[str] = []
        self.gone_links: list[Link] = []
        self.judgements: list[Feedback] = []

    # -- reading -----------------------------------------------------------------------------------------------

    def take(self, record: Record) -> None:
        """Note one record, or reject it. All are counted as unchanged until the differences are applied."""
        counts, identifier = self._counts_of(record)
        try:
            if isinstance(record, Feedback):
                rows.check_feedback(record)
                self.judgements.append(record)
            elif isinstance(record, Link):
                self.staged.take_link(record)
            elif not self.staged.take(record):
                self._refuse(counts, identifier, "a record with this id came before in the same archive")
                return
            counts.unchanged += 1
        except InputError as error:
            self.unstorable += 1
            self._refuse(counts, identifier, str(error))

    # -- comparing: nothing is locked, and nobody else deletes or loads this source's records as a load ---------

    def compare(self, unread: int, is_mass_delete_allowed: bool) -> None:
        """Find what has gone from the source, and refuse what must not be."""
        number = self._source_number()
        self._check_not_empty(number)
        is_complete = not unread and not self.unstorable
        gone = {
            "questions": self._gone("questions", "id", number),
            "answers": self._gone("answers", "id", number),
            "links": self._gone("links", "source_id, target_id, kind", number),
        }
        if not is_complete:
            for kind, found in gone.items():
                getattr(self.report, kind).kept = len(found)
            return
        self._check_mass_delete(len(gone["questions"]), number, is_mass_delete_allowed)
        self.gone_questions = [row["id"] for row in gone["questions"]]
        self.gone_answers = [row["id"] for row in gone["answers"]]
        self.gone_links = [Link(row["source_id"], row["target_id"], row["kind"]) for row in gone["links"]]

    def _source_number(self) -> int:
        return next(
            (int(row[0]) for row in self.rows("SELECT num FROM sources WHERE name = ?", (self.source.name,))), 0
        )

    def _check_not_empty(self, number: int) -> None:
        """Refuse a source without questions, but for one of links between the questions of others."""
        if self.report.questions.unchanged:
            return
        if self.report.links.unchanged:
            owners = {row["source"] for row in self.rows("SELECT DISTINCT source FROM questions")}
            if not owners:
                found = f"{self.source.name} contains only links, and the forum has no questions"
                raise InputError(found, "index the questions first")
            if number not in owners:
                return
        raise InputError(f"{self.source.name} contains no questions", "name the right --format")

    def _gone(self, table: str, key: str, number: int) -> list[Any]:
        return self.rows(
            f"SELECT {key} FROM main.{table} WHERE source = ? AND ({key}) NOT IN"
            f" (SELECT {key} FROM staging.seen_{table})",
            (number,),
        )

    def _check_mass_delete(self, gone: int, number: int, is_allowed: bool) -> None:
        held = self.rows("SELECT count(*) FROM questions WHERE source = ?", (number,))[0][0]
        if gone > max(MASS_DELETE_FLOOR, MASS_DELETE_SHARE * held) and not is_allowed:
            raise InputError(
                f"{gone} of the {held} questions that came from {self.source.name} are not in it any longer",
                "nothing was changed; use --allow-mass-delete to delete them, or give this archive its own --source",
            )

    # -- applying, in one transaction ----------------------------------------------------------------------------

    def apply(self) -> None:
        """Apply the differences."""
        report, connection = self.report, self.connection
        self._check_contested()
        number = source_number(connection, self.source.name, self.source.format)
        self._put("question", number, report.questions)
        report.questions.deleted = sum(remove_question(connection, one) for one in self.gone_questions)
        self._refuse_orphans()
        self._put("answer", number, report.answers)
        report.answers.deleted = sum(delete_answer(connection, one) for one in self.gone_answers)
        self._put_links(number)
        report.links.deleted = sum(delete_link(connection, one) for one in self.gone_links)
        self._put_judgements()

    def _check_contested(self) -> None:
        """Refuse ids that another source has with other content."""
        count, owner, first = 0, "", ""
        for table in ("questions", "answers"):
            for row in self.connection.execute(
                f"SELECT name, count(*) AS times, staged.id, min(staged.rowid) FROM staging.{table} AS staged"
                f" CROSS JOIN main.{table} AS known ON known.id = staged.id JOIN sources ON sources.num = known.source"
                " WHERE name <> ? AND known.digest <> staged.digest GROUP BY name ORDER BY times DESC",
                (self.source.name,),
            ):
                count += row["times"]
                owner, first = owner or row["name"], first or row["id"]
        if count:
            raise InputError(
                f"{count} ids of {self.source.name}, such as {first!r}, stand for other questions or answers that came"
                f" from {owner}",
                "nothing was changed; give this archive a forum of its own,"
                f' or say --source "{owner}" if it is a newer copy of that one',
            )

    def _put(self, kind: PostKind, number: int, counts: LoadCounts) -> None:
        """Add what is new and edit what differs, each logged; what another source has too stays with it."""
        execute = self.connection.execute
        table = f"{kind}s"
        columns = rows.QUESTION_COLUMNS if kind == "question" else rows.ANSWER_COLUMNS
        names, now = ", ".join(columns), time.time_ns() // 1000
        log = "INSERT INTO main.changes (at_us, kind, operation, id, num)"
        last = execute(f"SELECT coalesce(max(num), 0) FROM main.{table}").fetchone()[0]
        edited = execute(
            f"{log} SELECT ?, ?, 'edit', staged.id, known.num FROM staging.{table} AS staged"
            f" CROSS JOIN main.{table} AS known ON known.id = staged.id WHERE known.digest <> staged.digest"
            " ORDER BY staged.rowid",
            (now, kind),
        ).rowcount
        changes = ", ".join(f"{name} = excluded.{name}" for name in (*columns, "digest"))
        written = execute(
            f"INSERT INTO main.{table} ({names}, source, digest) SELECT {names}, ?, digest FROM staging.{table}"
            f" WHERE true ORDER BY rowid ON CONFLICT (id) DO UPDATE SET {changes} WHERE digest <> excluded.digest",
            (number,),
        ).rowcount
        execute(f"{log} SELECT ?, ?, 'add', id, num FROM main.{table} WHERE num > ? ORDER BY num", (now, kind, last))
        counts.edited, counts.added = edited, written - edited
        counts.unchanged -= written

    def _refuse_orphans(self) -> None:
        """Refuse answers whose question is not there, or has gone with this load."""
        here = "EXISTS (SELECT 1 FROM main.questions WHERE id = {})"
        orphans = self.connection.execute(
            f"SELECT id, question_id FROM staging.answers WHERE NOT {here.format('question_id')}"
            " UNION SELECT known.id, known.question_id FROM staging.seen_answers AS seen"
            " CROSS JOIN main.answers AS known ON known.id = seen.id"
            f" WHERE NOT {here.format('known.question_id')} AND seen.id NOT IN (SELECT id FROM staging.answers)"
        ).fetchall()
        for row in orphans:
            self.connection.execute("DELETE FROM staging.answers WHERE id = ?", (row["id"],))
            delete_answer(self.connection, row["id"])
            self.report.answers.unchanged -= 1
            self._refuse(self.report.answers, row["id"], f"its question {row['question_id']!r} is not in the forum")

    def _put_links(self, number: int) -> None:
        """Add what is new, logged under its source's id."""
        new = (
            "FROM staging.seen_links WHERE (source_id, target_id, kind) NOT IN"
            " (SELECT source_id, target_id, kind FROM main.links)"
        )
        log = "INSERT INTO main.changes (at_us, kind, operation, id, num)"
        self.connection.execute(f"{log} SELECT ?, 'link', 'add', source_id, NULL {new}", (time.time_ns() // 1000,))
        added = self.connection.execute(
            "INSERT OR IGNORE INTO main.links SELECT source_id, target_id, kind, ? FROM staging.seen_links", (number,)
        ).rowcount
        self.report.links.added = added
        self.report.links.unchanged -= added

    def _put_judgements(self) -> None:
        """Add the judgements that are not there, at their own moments."""
        now, counts = time.time_ns() // 1000, self.report.judgements
        known = (
            "SELECT 1 FROM feedback WHERE question_id = ? AND candidate_id = ? AND verdict = ? AND judge = ?"
            " AND at_us = ?"
        )
        for one in self.judgements:
            at_us = rows.to_microseconds(one.at)
            values = (one.question_id, one.candidate_id, one.verdict, one.by, at_us)
            if not self.connection.execute(known, values).fetchone():
                put_feedback(self.connection, one, now if at_us is None else at_us)
                counts.added += 1
                counts.unchanged -= 1

    # -- what was done -------------------------------------------------------------------------------------------

    def finished_report(self) -> LoadReport:
        """Return what the load did."""
        self.report.links_without_question = self.rows(
            "SELECT count(*) FROM staging.seen_links WHERE source_id NOT IN (SELECT id FROM main.questions)"
            " OR target_id NOT IN (SELECT id FROM main.questions)"
        )[0][0]
        return self.report

    def _counts_of(self, record: Record) -> tuple[LoadCounts, str]:
        if isinstance(record, Question):
            return self.report.questions, str(record.id)
        if isinstance(record, Answer):
            return self.report.answers, str(record.id)
        if isinstance(record, Feedback):
            return self.report.judgements, str(record.question_id)
        return self.report.links, str(record.source_id)

    def _refuse(self, counts: LoadCounts, identifier: str, reason: str) -> None:
        counts.rejected += 1
        self.reject(Reject(file=self.source.name, line=0, record_id=identifier, reason=reason))
