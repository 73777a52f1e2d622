"""Bulk load: makes the store hold what a stream of records holds, in one step.

Loading the same source again adds what is new, updates what was edited and deletes what has gone. Either all of it
happens or, after an error, an interruption or a kill, nothing: a store is never half-loaded. The records are read
first, into tables beside the store that go with the load; reading takes as long as the files are large, and nothing of
the store is locked meanwhile. Others wait only while the differences are applied, in one transaction. Where a store
that is empty is filled, everything is a difference: a staging may then have filled new tables in several short
transactions, and the last one puts them in the place of the empty ones. So may a replacement where the store holds
something, and the differences are many.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from askalike.errors import ForumError, InputError
from askalike.progress import Progress
from askalike.store import moderation, rows
from askalike.store.protocol import MANUAL_SOURCE, LoadCounts, LoadReport
from askalike.store.sql import SqlStore
from askalike.store.writes import (
    Connection,
    PostKind,
    delete_answer,
    delete_link,
    put_feedback,
    remove_question,
    source_number,
)
from askalike.types import Answer, Feedback, Link, LogEntry, Question, Record, Reject, Source

MASS_DELETE_SHARE: Final = 0.5
MASS_DELETE_FLOOR: Final = 5

STAGING: Final = "askalike_staging"
"""The schema of what was read: ``seen_questions``, ``seen_answers`` (id), ``seen_links`` (source_id, target_id, kind);
``questions`` and ``answers`` that are not in the store as they are, with their ``place`` in the stream and digest."""


class Staging(Protocol):
    """The records of a load: which there are, and those that are not in the store as they are."""

    def take(self, record: Question | Answer) -> bool:
        """Note a record; return whether it is the first with its id.

        Raises:
            InputError: a value cannot be stored.
        """

    def take_link(self, link: Link) -> None:
        """Note a link.

        Raises:
            InputError: a value cannot be stored.
        """

    def end(self) -> Sequence[tuple[str, str]]:
        """End the reading: the store can be written.

        Return (id, id of the question) of the answers that were left out since their question is nowhere.
        """

    @property
    def resumed(self) -> int:
        """Return how many of the records a load that was stopped had written already."""

    @property
    def filled(self) -> Filled | None:
        """Return the new tables that hold the records already; None where they are staged."""

    def replacement(self, gone: Gone) -> Replacement | None:
        """Return new tables that are to take the place of those of the store; None where one transaction does.

        Args:
            gone: what the source no longer holds.
        """


@dataclass(frozen=True, slots=True)
class Gone:
    """What a source no longer holds."""

    questions: Sequence[str] = ()
    answers: Sequence[str] = ()
    links: Sequence[Link] = ()


@dataclass(frozen=True, slots=True)
class Replaced:
    """What became of a table's records."""

    added: int
    edited: int
    deleted: int


class Replacement(Protocol):
    """New tables that hold what a store will hold after a load."""

    @property
    def resumed(self) -> int:
        """Return of how many of the records a load that was stopped had written the differences already."""

    def fill(self, progress: Progress) -> None:
        """Fill them, in short transactions; nobody sees them.

        Raises:
            InputError: an id stands for something else in another source.
        """

    def take_place(self, connection: Connection, undone: Sequence[Link]) -> list[tuple[str, str]]:
        """Put them in the place of those of the store, with what others have written meanwhile; return (id, id of
        the question) of the answers that were left out since their question is nowhere.

        Args:
            undone: links that were taken out of what was read.

        Raises:
            InputError: an id stands for something else in another source.
        """

    def clear(self, progress: Progress) -> None:
        """Empty those that were replaced, in short transactions."""

    def counts(self) -> Mapping[str, Replaced]:
        """Return table → what the load did to it."""


class Filled(Protocol):
    """Tables that were filled beside the empty ones of a store."""

    def known(self, connection: Connection, table: str) -> list[Known]:
        """Return which of its rows have an id that somebody has stored since."""

    def take_place(self, connection: Connection) -> Mapping[str, int]:
        """Put the new tables in the place of those of the store, whose few rows they take over; return table → how
        many rows of the load are new."""


@dataclass(frozen=True, slots=True)
class Known:
    """A record that is stored already under the id of one of a load.

    Args:
        owner: the name of its source.
        is_other: it differs.
    """

    id: str
    owner: str
    is_other: bool


def load(
    store: SqlStore,
    staging: Staging,
    records: Iterable[Record],
    source: Source,
    reject: Callable[[Reject], None],
    unread: Callable[[], int],
    *,
    is_mass_delete_allowed: bool,
    progress: Progress,
) -> LoadReport:
    """Make the store hold what ``records`` holds for ``source``; see ``Store.load``."""
    loading = _Loading(store, staging, source, reject)
    for record in records:
        loading.take(record)
    for identifier, question in staging.end():
        loading.refuse_orphan(identifier, question)
    loading.compare(unread(), is_mass_delete_allowed)
    replacement = staging.replacement(loading.gone)
    if replacement is not None:
        replacement.fill(progress)
    with store.write() as connection:
        loading.apply(connection, replacement)
    with contextlib.suppress(ForumError):  # what was loaded is on disk already
        store.shorten_log()
    if replacement is not None:
        replacement.clear(progress)
    report = loading.finished_report(replacement)
    report.resumed = staging.resumed + (0 if replacement is None else replacement.resumed)
    return report


class _Loading:
    """One load under way: its records are read, compared with the store, and the differences applied."""

    connection: Connection

    def __init__(self, store: SqlStore, staged: Staging, source: Source, reject: Callable[[Reject], None]) -> None:
        self.rows = store.rows
        self.join = store.ordered_join
        self.staged = staged
        self.source = source
        self.reject = reject
        self.report = LoadReport()
        self.unstorable = 0
        self.gone = Gone()
        self.undone: list[Link] = []
        self.judgements: list[Feedback] = []
        self.log: list[LogEntry] = []
        self.claimed: set[int] = set()
        self.held: set[Link] = set()

    # -- reading -----------------------------------------------------------------------------------------------

    def take(self, record: Record) -> None:
        """Note one record, or reject it. All are counted as unchanged until the differences are applied."""
        counts, identifier = self._counts_of(record)
        try:
            if isinstance(record, Feedback):
                rows.check_feedback(record)
                self.judgements.append(record)
            elif isinstance(record, LogEntry):
                moderation.check_entry(record)
                self.log.append(record)
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
        self.gone = Gone(
            [row["id"] for row in gone["questions"]],
            [row["id"] for row in gone["answers"]],
            [Link(row["source_id"], row["target_id"], row["kind"]) for row in gone["links"]],
        )

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
            f"SELECT {key} FROM {table} WHERE source = ? AND ({key}) NOT IN (SELECT {key} FROM {STAGING}.seen_{table})",
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

    def apply(self, connection: Connection, replacement: Replacement | None) -> None:
        """Apply the differences."""
        report, self.connection = self.report, connection
        self._hold_links()
        if replacement is not None:
            for identifier, question in replacement.take_place(connection, self.undone):
                self.refuse_orphan(identifier, question)
        elif self.staged.filled is not None:
            self._replace(self.staged.filled)
        else:
            self._change()
        self._claim_links()
        self._put_judgements()
        numbers: dict[int, int] = {}
        report.log.added = sum(
            moderation.put_entry(connection, one, numbers, self.claimed, self.held) for one in self.log
        )
        report.log.unchanged -= report.log.added

    def _change(self) -> None:
        """Change the tables of the store."""
        report = self.report
        staged = {
            table: f"{STAGING}.{table} AS staged {self.join} {table} AS known ON known.id = staged.id"
            for table in ("questions", "answers")
        }
        refuse_contested(self.connection, self.source.name, staged)
        number = source_number(self.connection, self.source.name, self.source.format)
        self._put("question", number, report.questions)
        report.questions.deleted = sum(remove_question(self.connection, one) for one in self.gone.questions)
        self._refuse_orphans()
        self._put("answer", number, report.answers)
        report.answers.deleted = sum(delete_answer(self.connection, one) for one in self.gone.answers)
        self._put_links(number)
        report.links.deleted = sum(delete_link(self.connection, one) for one in self.gone.links)

    def _replace(self, filled: Filled) -> None:
        """Put tables that hold all records in the place of those of the store, which were empty a while ago."""
        connection, report = self.connection, self.report
        counts = {"questions": report.questions, "answers": report.answers, "links": report.links}
        known = {table: filled.known(connection, table) for table in ("questions", "answers")}
        others = [one for found in known.values() for one in found if one.is_other and one.owner != self.source.name]
        if others:
            owner = Counter(one.owner for one in others).most_common(1)[0][0]
            raise _contested(self.source.name, len(others), owner, next(one.id for one in others if one.owner == owner))
        report.questions.deleted = sum(remove_question(connection, one) for one in self.gone.questions)
        report.answers.deleted = sum(delete_answer(connection, one) for one in self.gone.answers)
        report.links.deleted = sum(delete_link(connection, one) for one in self.gone.links)
        for table, added in filled.take_place(connection).items():
            edited = sum(one.is_other for one in known.get(table, ()))
            counts[table].added, counts[table].edited = added, edited
            counts[table].unchanged -= added + edited

    def _put(self, kind: PostKind, number: int, counts: LoadCounts) -> None:
        """Add what is new and edit what differs, each logged; what another source has too stays with it."""
        execute = self.connection.execute
        table = f"{kind}s"
        columns = rows.QUESTION_COLUMNS if kind == "question" else rows.ANSWER_COLUMNS
        names, now = ", ".join(columns), time.time_ns() // 1000
        log = "INSERT INTO changes (at_us, kind, operation, id, num)"
        last = execute(f"SELECT coalesce(max(num), 0) FROM {table}").fetchone()[0]
        edited = execute(
            f"{log} SELECT ?, ?, 'edit', staged.id, known.num FROM {STAGING}.{table} AS staged"
            f" {self.join} {table} AS known ON known.id = staged.id WHERE known.digest <> staged.digest"
            " ORDER BY staged.place",
            (now, kind),
        ).rowcount
        changes = ", ".join(f"{name} = excluded.{name}" for name in (*columns[1:], "digest"))  # the id is the same
        written = execute(
            f"INSERT INTO {table} ({names}, source, digest) SELECT {names}, ?, digest FROM {STAGING}.{table}"
            f" WHERE true ORDER BY place ON CONFLICT (id) DO UPDATE SET {changes}"
            f" WHERE {table}.digest <> excluded.digest",
            (number,),
        ).rowcount
        execute(f"{log} SELECT ?, ?, 'add', id, num FROM {table} WHERE num > ? ORDER BY num", (now, kind, last))
        counts.edited, counts.added = edited, written - edited
        counts.unchanged -= written

    def _refuse_orphans(self) -> None:
        """Refuse answers whose question is not there, or has gone with this load."""
        here = "EXISTS (SELECT 1 FROM questions WHERE id = {})"
        orphans = self.connection.execute(
            f"SELECT id, question_id FROM {STAGING}.answers WHERE NOT {here.format('question_id')}"
            f" UNION SELECT known.id, known.question_id FROM {STAGING}.seen_answers AS seen"
            f" {self.join} answers AS known ON known.id = seen.id"
            f" WHERE NOT {here.format('known.question_id')} AND seen.id NOT IN (SELECT id FROM {STAGING}.answers)"
        ).fetchall()
        for row in orphans:
            self.connection.execute(f"DELETE FROM {STAGING}.answers WHERE id = ?", (row["id"],))
            delete_answer(self.connection, row["id"])
            self.refuse_orphan(row["id"], row["question_id"])

    def refuse_orphan(self, identifier: str, question: str) -> None:
        """Reject an answer whose question is not there."""
        self.report.answers.unchanged -= 1
        self._refuse(self.report.answers, identifier, f"its question {question!r} is not in the forum")

    def _hold_links(self) -> None:
        """Note which links of decisions are here, and leave out those that were undone here since."""
        execute = self.connection.execute
        this = "WHERE source_id = ? AND target_id = ? AND kind = 'duplicate'"
        for one in self.log:
            pair = (one.question_id, one.candidate_id)
            if one.made_link and execute(f"SELECT 1 FROM links {this}", pair).fetchone():
                self.held.add(Link(*pair))
            elif one.made_link and (known := moderation.known_entry(self.connection, one)) and known["undone"]:
                execute(f"DELETE FROM {STAGING}.seen_links {this}", pair)  # whoever undid the decision meant its link
                self.undone.append(Link(*pair))

    def _put_links(self, number: int) -> None:
        """Add what is new, logged under its source's id."""
        new = (
            f"FROM {STAGING}.seen_links WHERE (source_id, target_id, kind) NOT IN"
            " (SELECT source_id, target_id, kind FROM links)"
        )
        log = "INSERT INTO changes (at_us, kind, operation, id, num)"
        self.connection.execute(f"{log} SELECT ?, 'link', 'add', source_id, NULL {new}", (time.time_ns() // 1000,))
        added = self.connection.execute(
            f"INSERT INTO links SELECT source_id, target_id, kind, ? FROM {STAGING}.seen_links WHERE true"
            " ON CONFLICT DO NOTHING",
            (number,),
        ).rowcount
        self.report.links.added = added
        self.report.links.unchanged -= added

    def _claim_links(self) -> None:
        """Let what the source says too stay when a decision that made it is undone."""
        claimed = self.connection.execute(
            "UPDATE moderation SET made_link = 0 WHERE made_link = 1 AND EXISTS"
            f" (SELECT 1 FROM {STAGING}.seen_links AS seen WHERE seen.source_id = moderation.question_id"
            " AND seen.target_id = moderation.candidate_id AND seen.kind = 'duplicate') RETURNING num"
        )
        self.claimed = {row["num"] for row in claimed.fetchall()}

    def _put_judgements(self) -> None:
        """Add the judgements that are not there, at their own moments; without one, those that nobody has given."""
        now, counts = time.time_ns() // 1000, self.report.judgements
        known = "SELECT 1 FROM feedback WHERE question_id = ? AND candidate_id = ? AND verdict = ? AND judge = ?"
        last = self.connection.execute("SELECT coalesce(max(num), 0) FROM feedback").fetchone()[0]
        for one in self.judgements:
            at_us = rows.to_microseconds(one.at)
            which, value = ("num <= ?", last) if at_us is None else ("at_us = ?", at_us)
            values = (one.question_id, one.candidate_id, one.verdict, one.by, value)
            if not self.connection.execute(f"{known} AND {which}", values).fetchone():
                put_feedback(self.connection, one, now if at_us is None else at_us)
                counts.added += 1
                counts.unchanged -= 1

    # -- what was done -------------------------------------------------------------------------------------------

    def finished_report(self, replacement: Replacement | None) -> LoadReport:
        """Return what the load did."""
        for table, done in (replacement.counts() if replacement is not None else {}).items():
            counts: LoadCounts = getattr(self.report, table)
            counts.added, counts.edited, counts.deleted = done.added, done.edited, done.deleted
            counts.unchanged -= done.added + done.edited
        self.report.links_without_question = self.rows(
            f"SELECT count(*) FROM {STAGING}.seen_links WHERE source_id NOT IN (SELECT id FROM questions)"
            " OR target_id NOT IN (SELECT id FROM questions)"
        )[0][0]
        return self.report

    def _counts_of(self, record: Record) -> tuple[LoadCounts, str]:
        if isinstance(record, Question):
            return self.report.questions, str(record.id)
        if isinstance(record, Answer):
            return self.report.answers, str(record.id)
        if isinstance(record, Feedback):
            return self.report.judgements, str(record.question_id)
        if isinstance(record, LogEntry):
            return self.report.log, str(record.question_id)
        return self.report.links, str(record.source_id)

    def _refuse(self, counts: LoadCounts, identifier: str, reason: str) -> None:
        counts.rejected += 1
        self.reject(Reject(file=self.source.name, line=0, record_id=identifier, reason=reason))


def refuse_contested(connection: Connection, name: str, joined: Mapping[str, str]) -> None:
    """Refuse ids that another source has with other content.

    Args:
        name: of the source.
        joined: table → what follows FROM, with the records of the load as ``staged`` and those that are ``known``.

    Raises:
        InputError: there are some.
    """
    count, owner, first = 0, "", ""
    for table, source in joined.items():
        for row in connection.execute(
            f"SELECT name, count(*) AS times, min(staged.place) AS first FROM {source}"
            " JOIN sources ON sources.num = known.source"
            " WHERE name <> ? AND known.digest <> staged.digest GROUP BY name ORDER BY times DESC",
            (name,),
        ).fetchall():
            count += row["times"]
            if not owner:
                at = f"SELECT id FROM {STAGING}.{table} WHERE place = ?"
                owner, first = row["name"], connection.execute(at, (row["first"],)).fetchone()["id"]
    if count:
        raise _contested(name, count, owner, first)


def _contested(name: str, count: int, owner: str, first: str) -> InputError:
    hint = "nothing was changed; give this archive a forum of its own"
    if owner == MANUAL_SOURCE:
        hint += ", or delete those that were added by hand"
    else:
        hint += f', or say --source "{owner}" if it is a newer copy of that one'
    return InputError(
        f"{count} ids of {name}, such as {first!r}, stand for other questions or answers that came from {owner}", hint
    )
