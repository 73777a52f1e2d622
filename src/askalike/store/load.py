"""Bulk load: makes the store hold what a stream of records holds for a source, in one step.

Loading the same source again adds what is new, updates what was edited and deletes what has gone. Either all of it
happens or, after an error, an interruption or a kill, nothing, and the load begins again. The records are read into a
staging file first; reading takes as long as the files are large, and nobody waits for it. The differences are applied
in one transaction: who reads sees the store before it or after it, and who writes waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from askalike.errors import InputError
from askalike.store import judgements, rows, writes
from askalike.store.database import Connection, Database
from askalike.store.sqlite_file import open_scratch
from askalike.store.values import MANUAL_SOURCE, LoadCounts, LoadReport
from askalike.store.writes import PostKind
from askalike.types import Answer, Feedback, Link, LogEntry, Question, Record, Reject, Source

STAGED: Final = {
    **{table: ("place", "digest", *columns) for table, columns in rows.POSTS.items()},
    "links": ("source_id", "target_id", "kind"),
}
"""The columns of ``staged_questions`` and so on; ``place`` is the place in the stream."""
COMPARED: Final = {
    **{f"changed_{table}": ("place", "num") for table in rows.POSTS},
    **{f"gone_{table}": ("num",) for table in rows.POSTS},
    "gone_links": STAGED["links"],
}
"""The columns of what a load finds: the places of what is not in the store as it was read, with the numbers of what is
known and differs; and what is no longer in the source."""
MASS_DELETE_SHARE: Final = 0.5
MASS_DELETE_FLOOR: Final = 5

_SAME_LINK: Final = (
    "staged.source_id = known.source_id AND staged.target_id = known.target_id AND staged.kind = known.kind"
)
_FIND_CHANGES: Final = {
    f"changed_{table}": f"INSERT INTO changed_{table} SELECT place, known.num FROM staged_{table} AS staged"
    f" LEFT JOIN {table} AS known ON known.id = staged.id WHERE known.num IS NULL OR known.digest <> staged.digest"
    " ORDER BY place"
    for table in rows.POSTS
}
_FIND_GONE: Final = {
    table: f"INSERT INTO gone_{table} SELECT {', '.join(COMPARED[f'gone_{table}'])} FROM {table} AS known"
    f" WHERE source = ? AND NOT EXISTS (SELECT 1 FROM staged_{table} AS staged WHERE {same})"
    for table, same in {**dict.fromkeys(rows.POSTS, "staged.id = known.id"), "links": _SAME_LINK}.items()
}
_NEW_LINKS: Final = f"FROM staged_links AS staged WHERE NOT EXISTS (SELECT 1 FROM links AS known WHERE {_SAME_LINK})"
_COUNTED: Final[dict[type, tuple[str, str]]] = {
    Question: ("questions", "id"),
    Answer: ("answers", "id"),
    Link: ("links", "source_id"),
    Feedback: ("judgements", "question_id"),
    LogEntry: ("log", "question_id"),
}
"""Kind of record → where the report counts it, and its field that a reject names."""
_IS_COMPARED_SAME: Final = " AND ".join(
    f"(staged.{name} = known.{name} OR coalesce(staged.{name}, known.{name}) IS NULL)" for name in rows.COMPARED_COLUMNS
)
_LOG: Final = "INSERT INTO changes (at_us, kind, operation, id, num)"


class Staging:
    """The records of one load.

    Args:
        path: of the file; what a killed load has left there is removed. None for a private file of the system.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._connection = open_scratch(path)
        execute = self._connection.execute
        for table, columns in rows.POSTS.items():
            rest = ", ".join(columns[1:])
            execute(f"CREATE TABLE staged_{table} (place INTEGER PRIMARY KEY, digest, id NOT NULL UNIQUE, {rest})")
        key = ", ".join(STAGED["links"])
        execute(f"CREATE TABLE staged_links ({key}, PRIMARY KEY ({key})) WITHOUT ROWID")
        for name, columns in COMPARED.items():
            execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        execute("BEGIN")

    def add(self, record: Question | Answer) -> bool:
        """Note a record; return whether it is the first with its id.

        Raises:
            InputError: a value cannot be stored.
        """
        table, values = "questions" if isinstance(record, Question) else "answers", rows.values_of(record)
        marks = ", ".join("?" * (1 + len(values)))
        insert = f"INSERT OR IGNORE INTO staged_{table} VALUES (NULL, {marks})"
        return self._connection.execute(insert, (rows.digest(values), *values)).rowcount > 0

    def add_link(self, link: Link) -> None:
        """Note a link.

        Raises:
            InputError: a value cannot be stored.
        """
        rows.check_link(link)
        insert = "INSERT OR IGNORE INTO staged_links VALUES (?, ?, ?)"
        self._connection.execute(insert, (link.source_id, link.target_id, link.kind))

    def accept(self, ids: Iterable[str]) -> int:
        """Mark answers as accepted; return how many ids no answer has."""
        select = f"SELECT {', '.join(rows.ANSWER_COLUMNS)} FROM staged_answers WHERE id = ?"
        update = "UPDATE staged_answers SET is_accepted = 1, digest = ? WHERE id = ?"
        missing = 0
        for identifier in ids:
            values = self._connection.execute(select, (identifier,)).fetchone()
            if values is None:
                missing += 1
            else:
                self._connection.execute(update, (rows.digest((*values[:-1], 1)), identifier))
        return missing

    def finish(self) -> None:
        """Write what was noted into the file."""
        self._connection.execute("COMMIT")

    def read(self, table: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a staged table, in the order of ``STAGED``."""
        yield from self._connection.execute(f"SELECT {', '.join(STAGED[table])} FROM staged_{table}")

    def close(self) -> None:
        """Close the file, and remove it."""
        self._connection.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)


class Load:
    """One load under way: its records are read, compared with the store, and the differences applied."""

    def __init__(self, store: Database, source: Source, reject: Callable[[Reject], None]) -> None:
        self._store = store
        self._source = source
        self._on_reject = reject
        self.report = LoadReport()
        self._unstorable = 0
        self._is_complete = False
        self._last_change: int | None = None
        self._judgements: list[Feedback] = []
        self._log: list[LogEntry] = []

    # -- reading: nothing is locked --------------------------------------------------------------------------------

    def read(self, record: Record, staging: Staging) -> None:
        """Stage one record, or reject it. All are counted as unchanged until the differences are applied."""
        kind, name = _COUNTED[type(record)]
        counts, identifier = getattr(self.report, kind), str(getattr(record, name))
        try:
            if isinstance(record, Feedback):
                rows.check_feedback(record)
                self._judgements.append(record)
            elif isinstance(record, LogEntry):
                judgements.check_entry(record)
                self._log.append(record)
            elif isinstance(record, Link):
                staging.add_link(record)
            elif not staging.add(record):
                self._reject(counts, identifier, "a record with this id came before in the same archive")
                return
            counts.unchanged += 1
        except InputError as error:
            self._unstorable += 1
            self._reject(counts, identifier, str(error))

    def _reject(self, counts: LoadCounts, identifier: str, reason: str) -> None:
        counts.rejected += 1
        self._on_reject(Reject(file=self._source.name, line=0, record_id=identifier, reason=reason))

    # -- comparing: nothing is locked, and no other load is under way ----------------------------------------------

    def compare(self, connection: Connection, unread: int, is_mass_delete_allowed: bool) -> None:
        """Find what differs, and refuse what must not be loaded.

        What has gone from the source is deleted only if every record could be read and stored: one that could not may
        be among those that seem to have gone.

        Args:
            unread: how many records of the source could not be read.
        """
        self._last_change = self._value("SELECT max(seq) FROM changes")
        self._find_changes(connection)
        number = self._value("SELECT num FROM sources WHERE name = ?", self._source.name) or 0
        self._check_not_empty(number)
        gone = {table: connection.execute(statement, (number,)).rowcount for table, statement in _FIND_GONE.items()}
        self._is_complete = not unread and not self._unstorable
        if self._is_complete:
            self._check_mass_delete(gone["questions"], number, is_mass_delete_allowed)
        else:
            for table, count in gone.items():
                getattr(self.report, table).kept = count

    def _find_changes(self, connection: Connection) -> None:
        for name, statement in _FIND_CHANGES.items():
            connection.execute(f"DELETE FROM {name}")
            connection.execute(statement)

    def _value(self, statement: str, *values: object) -> Any:
        """Return the only value that a statement finds, None where it finds nothing."""
        return next((row[0] for row in self._store.rows(statement, values)), None)

    def _check_not_empty(self, number: int) -> None:
        """Refuse a source without questions, but for one of links between the questions of others."""
        if self.report.questions.unchanged:
            return
        if self.report.links.unchanged:
            owners = {row["source"] for row in self._store.rows("SELECT DISTINCT source FROM questions")}
            if not owners:
                only_links = f"{self._source.name} contains only links, and the forum has no questions"
                raise InputError(only_links, "index the questions first")
            if number not in owners:
                return
        raise InputError(f"{self._source.name} contains no questions", "name the right --format")

    def _check_mass_delete(self, gone: int, number: int, is_allowed: bool) -> None:
        stored = self._value("SELECT count(*) FROM questions WHERE source = ?", number)
        if gone > max(MASS_DELETE_FLOOR, MASS_DELETE_SHARE * stored) and not is_allowed:
            raise InputError(
                f"{gone} of the {stored} questions that came from {self._source.name} are not in it any longer",
                "nothing was changed; use --allow-mass-delete to delete them, or give this archive its own --source",
            )

    # -- applying, in one transaction ------------------------------------------------------------------------------

    def apply(self, connection: Connection) -> None:
        """Apply the differences."""
        report = self.report
        if self._value("SELECT max(seq) FROM changes") != self._last_change:  # somebody has written meanwhile
            self._find_changes(connection)
        known_links = self._check_log(connection)
        self._refuse_contested(connection)
        number = writes.source_number(connection, self._source.name, self._source.format)
        self._put(connection, "question", number, report.questions)
        report.questions.deleted = self._delete(connection, "questions")
        self._reject_orphans(connection)
        self._put(connection, "answer", number, report.answers)
        report.answers.deleted = self._delete(connection, "answers")
        self._put_links(connection, number)
        report.links.deleted = self._delete(connection, "links")
        claimed = self._claim_links(connection)
        self._put_judgements(connection)
        numbers: dict[int, int] = {}
        report.log.added = sum(
            judgements.put_entry(connection, entry, numbers, claimed, known_links) for entry in self._log
        )
        report.log.unchanged -= report.log.added

    def _edited(self, table: str) -> str:
        """Return what follows FROM: what is ``known`` of a table and differs from what was read, in its order."""
        return f"changed_{table} AS changed {self._store.ordered_join} {table} AS known ON known.num = changed.num"

    def _refuse_contested(self, connection: Connection) -> None:
        """Refuse ids that another source has with other content."""
        count, owner, example = 0, "", ""
        for table in rows.POSTS:
            for row in connection.execute(
                f"SELECT name, count(*) AS times, min(place) AS first FROM {self._edited(table)}"
                " JOIN sources ON sources.num = known.source WHERE name <> ? GROUP BY name ORDER BY times DESC",
                (self._source.name,),
            ).fetchall():
                count += row["times"]
                if not owner:
                    of_place = f"SELECT id FROM staged_{table} WHERE place = ?"
                    owner, example = row["name"], connection.execute(of_place, (row["first"],)).fetchone()["id"]
        if not count:
            return
        hint = "nothing was changed; give this archive a forum of its own"
        if owner == MANUAL_SOURCE:
            hint += ", or delete those that were added by hand"
        else:
            hint += f', or say --source "{owner}" if it is a newer copy of that one'
        raise InputError(
            f"{count} ids of {self._source.name}, such as {example!r}, stand for other questions or answers that came"
            f" from {owner}",
            hint,
        )

    def _put(self, connection: Connection, kind: PostKind, number: int, counts: LoadCounts) -> None:
        """Add what is new and edit what differs, each logged; what another source has too stays with it."""
        execute = connection.execute
        table = f"{kind}s"
        columns = ("digest", *rows.POSTS[table])
        now_us = time.time_ns() // 1000
        last = execute(f"SELECT coalesce(max(num), 0) FROM {table}").fetchone()[0]
        edited, logged = self._edited(table), writes.LOGGED[table]
        staged = f"{self._store.ordered_join} staged_{table} AS staged ON staged.place = changed.place"
        if kind == "answer":
            execute(
                f"{_LOG} SELECT ?, ?, 'delete', {logged.format('known')} FROM {edited} {staged}"
                " WHERE staged.question_id <> known.question_id ORDER BY changed.place",
                (now_us, kind),
            )
        names = ", ".join(columns)
        values = ", ".join(f"staged.{name}" for name in columns)
        changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name != "id")
        if kind == "question":  # before the rows differ no more
            counts.edited = execute(
                f"{_LOG} SELECT ?, CASE WHEN {_IS_COMPARED_SAME} THEN 'details' ELSE 'question' END, 'edit',"
                f" {logged.format('known')} FROM {edited} {staged} ORDER BY changed.place",
                (now_us,),
            ).rowcount
        written = execute(
            f"INSERT INTO {table} (source, {names}) SELECT ?, {values} FROM changed_{table} AS changed"
            f" {staged} WHERE true ORDER BY changed.place ON CONFLICT (id) DO UPDATE SET {changes}",
            (number,),
        ).rowcount
        if kind == "answer":
            counts.edited = execute(
                f"{_LOG} SELECT ?, ?, 'edit', {logged.format('known')} FROM {edited} ORDER BY place", (now_us, kind)
            ).rowcount
        counts.added = execute(
            f"{_LOG} SELECT ?, ?, 'add', {logged.format(table)} FROM {table} WHERE num > ? ORDER BY num",
            (now_us, kind, last),
        ).rowcount
        counts.unchanged -= written

    def _delete(self, connection: Connection, table: str) -> int:
        """Delete what has gone from the source; return how much that was."""
        if not self._is_complete:
            return 0
        key = ", ".join(COMPARED[f"gone_{table}"])
        return writes.delete_where(connection, table, f"({key}) IN (SELECT {key} FROM gone_{table})")

    def _reject_orphans(self, connection: Connection) -> None:
        """Reject answers whose question is not there, or has gone with this load."""
        orphans = (
            "FROM staged_answers AS staged"
            " WHERE NOT EXISTS (SELECT 1 FROM questions WHERE questions.id = staged.question_id)"
        )
        rejected = connection.execute(f"SELECT id, question_id {orphans} ORDER BY place").fetchall()
        if rejected:
            connection.execute(f"DELETE FROM changed_answers WHERE place IN (SELECT place {orphans})")
            writes.delete_where(connection, "answers", f"id IN (SELECT id {orphans})")
        for identifier, question in rejected:
            self.report.answers.unchanged -= 1
            self._reject(self.report.answers, identifier, f"its question {question!r} is not in the forum")

    def _put_links(self, connection: Connection, number: int) -> None:
        """Add what is new, logged under its source's id."""
        now_us = time.time_ns() // 1000
        connection.execute(f"{_LOG} SELECT ?, 'link', 'add', source_id, NULL {_NEW_LINKS}", (now_us,))
        added = connection.execute(
            f"INSERT INTO links (source_id, target_id, kind, source) SELECT source_id, target_id, kind, ? {_NEW_LINKS}",
            (number,),
        ).rowcount
        self.report.links.added = added
        self.report.links.unchanged -= added

    def _check_log(self, connection: Connection) -> set[Link]:
        """Leave out the links of decisions that were undone here since; return those of decisions that are here."""
        known_links = set[Link]()
        same = "WHERE source_id = ? AND target_id = ? AND kind = 'duplicate'"
        for entry in (entry for entry in self._log if entry.made_link):
            pair = (entry.question_id, entry.candidate_id)
            if connection.execute(f"SELECT 1 FROM links {same}", pair).fetchone():
                known_links.add(Link(*pair))
            elif (known := judgements.known_entry(connection, entry)) and known["undone"]:
                connection.execute(f"DELETE FROM staged_links {same}", pair)  # whoever undid it meant its link too
        return known_links

    def _claim_links(self, connection: Connection) -> set[int]:
        """Let what the source says too stay when a decision that made it is undone; return these decisions."""
        claimed = connection.execute(
            "UPDATE moderation SET made_link = 0 WHERE made_link = 1 AND EXISTS"
            " (SELECT 1 FROM staged_links AS staged WHERE staged.source_id = moderation.question_id"
            " AND staged.target_id = moderation.candidate_id AND staged.kind = 'duplicate') RETURNING num"
        )
        return {row["num"] for row in claimed.fetchall()}

    def _put_judgements(self, connection: Connection) -> None:
        """Add the judgements that are not there, at their own moments; without one, those that nobody has given."""
        now_us, counts = time.time_ns() // 1000, self.report.judgements
        known = "SELECT 1 FROM feedback WHERE question_id = ? AND candidate_id = ? AND verdict = ? AND judge = ?"
        last = connection.execute("SELECT coalesce(max(num), 0) FROM feedback").fetchone()[0]
        for judgement in self._judgements:
            at_us = rows.to_microseconds(judgement.at)
            which, value = ("num <= ?", last) if at_us is None else ("at_us = ?", at_us)
            values = (judgement.question_id, judgement.candidate_id, judgement.verdict, judgement.by, value)
            if not connection.execute(f"{known} AND {which}", values).fetchone():
                writes.put_feedback(connection, judgement, now_us if at_us is None else at_us)
                counts.added += 1
                counts.unchanged -= 1

    def count_links_without_question(self) -> None:
        """Count the source's links that lack a question at one of their ends."""
        here = "EXISTS (SELECT 1 FROM questions WHERE id = {})"
        self.report.links_without_question = self._value(
            f"SELECT count(*) FROM staged_links WHERE NOT ({here.format('source_id')} AND {here.format('target_id')})"
        )
