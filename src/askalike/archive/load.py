"""Bulk load: makes the archive hold what a stream of records holds, in one transaction.

Loading the same source again adds what is new, updates what was edited and deletes what has gone. Either all of it
happens or, after an error, an interruption or a kill, nothing: an archive is never half-loaded.

Enters: an iterable of ``Question | Answer | Link`` in any order. Leaves: ``LoadReport``. May import: types, errors.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from askalike.archive import rows
from askalike.archive.archive import Archive
from askalike.archive.writes import (
    PostKind,
    delete_answer,
    delete_link,
    delete_question,
    log_change,
    owner_of_other_content,
    put_row,
    source_number,
)
from askalike.errors import InputError
from askalike.types import Answer, Link, Question, Record, Reject, Source

__all__ = ["LoadCounts", "LoadReport", "load"]

MASS_DELETE_SHARE = 0.5
MASS_DELETE_FLOOR = 5


@dataclass(slots=True)
class LoadCounts:
    """What happened to one kind of record.

    Args:
        kept: not in the source any more, and kept all the same, because some of its records could not be read.
        rejected: refused by the archive; what the reader refused is counted by the reader.
    """

    added: int = 0
    edited: int = 0
    deleted: int = 0
    unchanged: int = 0
    kept: int = 0
    rejected: int = 0

    def count(self, operation: str | None, times: int = 1) -> None:
        """Count one record that was added, edited or (None) left as it was."""
        if operation == "add":
            self.added += times
        elif operation == "edit":
            self.edited += times
        else:
            self.unchanged += times

    def uncount(self, operation: str | None) -> None:
        """Take back what ``count`` counted."""
        self.count(operation, -1)


@dataclass(slots=True)
class LoadReport:
    """What a load did, by kind of record."""

    questions: LoadCounts = field(default_factory=LoadCounts)
    answers: LoadCounts = field(default_factory=LoadCounts)
    links: LoadCounts = field(default_factory=LoadCounts)


def load(
    archive: Archive,
    records: Iterable[Record],
    source: Source,
    reject: Callable[[Reject], None],
    *,
    unread: Callable[[], int] = lambda: 0,
    is_mass_delete_allowed: bool = False,
) -> LoadReport:
    """Make the archive hold what ``records`` holds for ``source``.

    Questions, answers and links of other sources stay as they are: a load that would change one is refused whole. A
    record that cannot be stored (an id seen before in the same load, an answer without its question, a value that does
    not fit) is handed to ``reject`` and counted. Links may point to questions that are not there; they have no effect
    until the question comes.

    What has gone from the source is deleted only if every record of it could be read and stored: one that could not
    may be among those that seem to have gone.

    Args:
        records: in any order; held one at a time.
        source: what these records belong to; the same name at the next load.
        reject: called with each record that cannot be stored.
        unread: asked after the last record: how many records of the source could not be read.
        is_mass_delete_allowed: go on when more than half of the source's questions would be deleted.

    Raises:
        InputError: the stream has no question (nor links alone, between the questions of others), would delete more
            than half of the source's questions, or holds ids that another source has with other content.
        BusyForumError: another process is writing.
    """
    with archive.write() as connection:
        loading = _Loading(connection, source, reject)
        for record in records:
            loading.take(record)
        loading.finish(unread(), is_mass_delete_allowed)
    with contextlib.suppress(sqlite3.OperationalError):  # what was loaded is on disk already, in the write-ahead log
        archive.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return loading.report


class _Loading:
    """One load under way, inside its transaction."""

    def __init__(self, connection: sqlite3.Connection, source: Source, reject: Callable[[Reject], None]) -> None:
        self.connection = connection
        self.source = source
        self.reject = reject
        self.report = LoadReport()
        self.number = source_number(connection, source.name, source.format)
        self.unstorable = 0
        self.contested: Counter[str] = Counter()
        self.first_contested = ""
        for table in ("seen_questions", "seen_answers"):
            connection.execute(
                f"CREATE TEMP TABLE IF NOT EXISTS {table} (id TEXT PRIMARY KEY, operation TEXT) WITHOUT ROWID"
            )
            connection.execute(f"DELETE FROM temp.{table}")
        connection.execute(
            "CREATE TEMP TABLE IF NOT EXISTS seen_links"
            " (source_id TEXT, target_id TEXT, kind TEXT, PRIMARY KEY (source_id, target_id, kind)) WITHOUT ROWID"
        )
        connection.execute("DELETE FROM temp.seen_links")

    def take(self, record: Record) -> None:
        """Store one record, or reject it."""
        try:
            if isinstance(record, Question):
                self._put("question", record.id, rows.question_values(record), self.report.questions)
            elif isinstance(record, Answer):
                self._put("answer", record.id, rows.answer_values(record), self.report.answers)
            else:
                rows.check_link(record)
                self._take_link(record)
        except InputError as error:
            self.unstorable += 1
            counts, identifier = self._counts_of(record)
            self._refuse(counts, identifier, str(error))

    def finish(self, unread: int, is_mass_delete_allowed: bool) -> None:
        """Refuse what must not be, then delete what has gone from the source."""
        self._check_contested()
        self._check_not_empty()
        is_complete = not unread and not self.unstorable
        self._refuse_orphans(is_complete)
        gone = {
            "questions": self._gone("questions", "id"),
            "answers": self._gone("answers", "id"),
            "links": self._gone("links", "source_id, target_id, kind"),
        }
        if not is_complete:
            for kind, found in gone.items():
                getattr(self.report, kind).kept = len(found)
            return
        self._check_mass_delete(len(gone["questions"]), is_mass_delete_allowed)
        for row in gone["questions"]:
            delete_question(self.connection, row["id"])
        for row in gone["answers"]:
            delete_answer(self.connection, row["id"])
        for row in gone["links"]:
            delete_link(self.connection, Link(row["source_id"], row["target_id"], row["kind"]))
        for kind, found in gone.items():
            getattr(self.report, kind).deleted = len(found)

    def _put(self, kind: PostKind, identifier: str, values: tuple[rows.Value, ...], counts: LoadCounts) -> None:
        table = f"temp.seen_{kind}s"
        if not self.connection.execute(f"INSERT OR IGNORE INTO {table} (id) VALUES (?)", (identifier,)).rowcount:
            self._refuse(counts, identifier, "a record with this id came before in the same archive")
            return
        owner = owner_of_other_content(self.connection, kind, identifier, values, self.number)
        if owner is not None:
            self.contested[owner] += 1
            self.first_contested = self.first_contested or identifier
            return
        operation = put_row(self.connection, kind, identifier, values, self.number)
        counts.count(operation)
        self.connection.execute(f"UPDATE {table} SET operation = ? WHERE id = ?", (operation, identifier))

    def _check_not_empty(self) -> None:
        """Refuse a source without questions, but for one of links between the questions of others."""
        questions, links = self.report.questions, self.report.links
        if questions.added + questions.edited + questions.unchanged:
            return
        if links.added + links.unchanged:
            owners = {row["source"] for row in self.connection.execute("SELECT DISTINCT source FROM questions")}
            if not owners:
                found = f"{self.source.name} holds links alone, and the forum holds no question"
                raise InputError(found, "index the questions first")
            if self.number not in owners:
                return
        raise InputError(f"{self.source.name} holds no question", "name the right --format")

    def _check_contested(self) -> None:
        if self.contested:
            owner, _ = self.contested.most_common(1)[0]
            raise InputError(
                f"{sum(self.contested.values())} ids of {self.source.name}, such as {self.first_contested!r}, stand for"
                f" other questions or answers that came from {owner}",
                "nothing was changed; give this archive a forum of its own,"
                f' or say --source "{owner}" if it is a newer copy of that one',
            )

    def _gone(self, table: str, key: str) -> list[sqlite3.Row]:
        return self.connection.execute(
            f"SELECT {key} FROM {table} WHERE source = ? AND ({key}) NOT IN (SELECT {key} FROM temp.seen_{table})",
            (self.number,),
        ).fetchall()

    def _check_mass_delete(self, gone: int, is_allowed: bool) -> None:
        held = self.connection.execute("SELECT count(*) FROM questions WHERE source = ?", (self.number,)).fetchone()[0]
        if gone > max(MASS_DELETE_FLOOR, MASS_DELETE_SHARE * held) and not is_allowed:
            raise InputError(
                f"{gone} of the {held} questions that came from {self.source.name} are not in it any more",
                "nothing was changed; say --allow-mass-delete if they are to be deleted, or give it its own --source",
            )

    def _take_link(self, link: Link) -> None:
        key = (link.source_id, link.target_id, link.kind)
        if not self.connection.execute("INSERT OR IGNORE INTO temp.seen_links VALUES (?, ?, ?)", key).rowcount:
            self.report.links.unchanged += 1
            return
        if self.connection.execute("INSERT OR IGNORE INTO links VALUES (?, ?, ?, ?)", (*key, self.number)).rowcount:
            self.report.links.added += 1
            log_change(self.connection, "link", "add", link.source_id, None)
        else:
            self.report.links.unchanged += 1

    def _refuse_orphans(self, is_complete: bool) -> None:
        """Refuse answers whose question is not there, or goes with this load."""
        staying = "SELECT id FROM questions"
        if is_complete:
            staying += f" WHERE source <> {self.number} OR id IN (SELECT id FROM temp.seen_questions)"
        orphans = self.connection.execute(
            "SELECT answers.id, question_id, operation FROM answers JOIN temp.seen_answers AS seen"
            f" ON seen.id = answers.id WHERE question_id NOT IN ({staying})"
        ).fetchall()
        for row in orphans:
            delete_answer(self.connection, row["id"])
            self.report.answers.uncount(row["operation"])
            self._refuse(self.report.answers, row["id"], f"its question {row['question_id']!r} is not in the archive")

    def _counts_of(self, record: Record) -> tuple[LoadCounts, str]:
        if isinstance(record, Question):
            return self.report.questions, str(record.id)
        if isinstance(record, Answer):
            return self.report.answers, str(record.id)
        return self.report.links, str(record.source_id)

    def _refuse(self, counts: LoadCounts, identifier: str, reason: str) -> None:
        counts.rejected += 1
        self.reject(Reject(file=self.source.name, line=0, record_id=identifier, reason=reason))
