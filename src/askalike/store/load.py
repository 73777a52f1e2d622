"""Bulk load: makes the archive hold what a stream of records holds, in one transaction.

Loading the same source again adds what is new, updates what was edited and deletes what has gone. Either all of it
happens or, after an error, an interruption or a kill, nothing: an archive is never half-loaded. The records are read
first, beside the archive; others wait only while the differences are applied.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from askalike.errors import ForumError, InputError
from askalike.store import rows
from askalike.store.archive import Archive
from askalike.store.staging import Staging, staging
from askalike.store.writes import PostKind, delete_answer, delete_link, remove_question, source_number
from askalike.types import Answer, Link, Question, Record, Reject, Source

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


@dataclass(slots=True)
class LoadReport:
    """What a load did, by kind of record.

    Args:
        links_without_question: how many of the source's links lack a question at one of their ends.
    """

    questions: LoadCounts = field(default_factory=LoadCounts)
    answers: LoadCounts = field(default_factory=LoadCounts)
    links: LoadCounts = field(default_factory=LoadCounts)
    links_without_question: int = 0


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

    Questions, answers and links of other sources stay as they are: a load that would change one is refused whole. So do
    people's judgements; those on a question that has gone have no effect until it is there again, by its id. A
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
    with staging(archive) as staged:
        loading = _Loading(archive, staged, source, reject)
        for record in records:
            loading.take(record)
        staged.end()
        loading.compare(unread(), is_mass_delete_allowed)
        with archive.write() as connection:
            loading.apply(connection)
        report = loading.finished_report()
    with contextlib.suppress(ForumError):  # what was loaded is on disk already, in the write-ahead log
        for mode in ("PASSIVE", "TRUNCATE"):  # the first takes long and lets others write
            archive.connection.execute(f"PRAGMA wal_checkpoint({mode})")
    return report


class _Loading:
    """One load under way: its records are read, compared with the archive, and the differences applied."""

    def __init__(self, archive: Archive, staged: Staging, source: Source, reject: Callable[[Reject], None]) -> None:
        self.connection = archive.connection
        self.staged = staged
        self.source = source
        self.reject = reject
        self.report = LoadReport()
        self.unstorable = 0
        self.gone_questions: list[str] = []
        self.gone_answers: list[str] = []
        self.gone_links: list[Link] = []

    # -- reading -----------------------------------------------------------------------------------------------

    def take(self, record: Record) -> None:
        """Note one record, or reject it. All are counted as unchanged until the differences are applied."""
        counts, identifier = self._counts_of(record)
        try:
            if isinstance(record, Link):
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
        row = self.connection.execute("SELECT num FROM sources WHERE name = ?", (self.source.name,)).fetchone()
        return 0 if row is None else int(row["num"])

    def _check_not_empty(self, number: int) -> None:
        """Refuse a source without questions, but for one of links between the questions of others."""
        if self.report.questions.unchanged:
            return
        if self.report.links.unchanged:
            owners = {row["source"] for row in self.connection.execute("SELECT DISTINCT source FROM questions")}
            if not owners:
                found = f"{self.source.name} contains only links, and the forum has no questions"
                raise InputError(found, "index the questions first")
            if number not in owners:
                return
        raise InputError(f"{self.source.name} contains no questions", "name the right --format")

    def _gone(self, table: str, key: str, number: int) -> list[sqlite3.Row]:
        return self.connection.execute(
            f"SELECT {key} FROM main.{table} WHERE source = ? AND ({key}) NOT IN"
            f" (SELECT {key} FROM staging.seen_{table})",
            (number,),
        ).fetchall()

    def _check_mass_delete(self, gone: int, number: int, is_allowed: bool) -> None:
        held = self.connection.execute("SELECT count(*) FROM questions WHERE source = ?", (number,)).fetchone()[0]
        if gone > max(MASS_DELETE_FLOOR, MASS_DELETE_SHARE * held) and not is_allowed:
            raise InputError(
                f"{gone} of the {held} questions that came from {self.source.name} are not in it any longer",
                "nothing was changed; use --allow-mass-delete to delete them, or give this archive its own --source",
            )

    # -- applying, in one transaction ----------------------------------------------------------------------------

    def apply(self, connection: sqlite3.Connection) -> None:
        """Apply the differences."""
        report = self.report
        self._check_contested()
        number = source_number(connection, self.source.name, self.source.format)
        self._put("question", number, report.questions)
        report.questions.deleted = sum(remove_question(connection, one) for one in self.gone_questions)
        self._refuse_orphans()
        self._put("answer", number, report.answers)
        report.answers.deleted = sum(delete_answer(connection, one) for one in self.gone_answers)
        self._put_links(number)
        report.links.deleted = sum(delete_link(connection, one) for one in self.gone_links)

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
            self._refuse(self.report.answers, row["id"], f"its question {row['question_id']!r} is not in the archive")

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

    # -- what was done -------------------------------------------------------------------------------------------

    def finished_report(self) -> LoadReport:
        """Return what the load did."""
        self.report.links_without_question = self.connection.execute(
            "SELECT count(*) FROM staging.seen_links WHERE source_id NOT IN (SELECT id FROM main.questions)"
            " OR target_id NOT IN (SELECT id FROM main.questions)"
        ).fetchone()[0]
        return self.report

    def _counts_of(self, record: Record) -> tuple[LoadCounts, str]:
        if isinstance(record, Question):
            return self.report.questions, str(record.id)
        if isinstance(record, Answer):
            return self.report.answers, str(record.id)
        return self.report.links, str(record.source_id)

    def _refuse(self, counts: LoadCounts, identifier: str, reason: str) -> None:
        counts.rejected += 1
        self.reject(Reject(file=self.source.name, line=0, record_id=identifier, reason=reason))
