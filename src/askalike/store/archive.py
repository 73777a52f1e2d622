"""A forum's questions, answers and links on disk, with a log of every change."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from askalike.errors import ForumError, ForumNotFoundError, InputError
from askalike.files import narrow, writing_named
from askalike.store import rows, schema
from askalike.store.layout import not_found
from askalike.store.schema import ThreadConnections
from askalike.store.writes import (
    Operation,
    delete_question,
    has_question,
    log_change,
    put_row,
    require_question,
    source_number,
    unknown_id,
)
from askalike.types import Answer, Link, Question

MANUAL_SOURCE = "manual"
"""The source of what was added by hand or by a program; loading an archive never deletes it."""

_QUESTION = ", ".join(rows.QUESTION_COLUMNS)
_ANSWER = ", ".join(rows.ANSWER_COLUMNS)
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the log: the question ``num`` was added, edited or deleted by change ``seq``."""

    seq: int
    operation: Operation
    num: int


class Archive:
    """The tables of one forum.

    Reading is safe from any thread (each gets its own connection); writes go one at a time, over all processes.
    Every write is durable when the method returns.
    """

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
    def create(cls, path: Path, settings: dict[str, str]) -> Archive:
        """Make a new, empty archive file; an unfinished one of a killed process is finished."""
        with writing_named(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            open(path, "ab", opener=narrow).close()  # SQLite gives its write-ahead log the same rights
        with contextlib.closing(schema.connect(path)) as connection:
            if not schema.is_finished(connection):
                schema.create_tables(connection, settings)
        return cls(path)

    @property
    def connection(self) -> schema.Connection:
        """Return this thread's connection; it is closed when the thread ends."""
        return self._connections.get()

    def close(self) -> None:
        """Close every connection; the archive must not be used after."""
        self._connections.close()

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Give a connection inside one transaction: committed and on disk at the end, or rolled back on any error.

        Raises:
            BusyForumError: another process has been writing for longer than the busy timeout.
            ForumNotFoundError: the file was deleted or replaced since it was opened.
            ForumError: the file cannot be written, or is damaged.
        """
        connection = self.connection
        if not self._turn.acquire(timeout=schema.BUSY_TIMEOUT_S):  # who waits for SQLite's lock sleeps too long
            raise schema.busy(self.path)
        try:
            connection.execute("BEGIN IMMEDIATE")
            if schema.identity(self.path) != self._identity:  # a write to a deleted file would be lost
                raise ForumNotFoundError(f"{self.path} was deleted or replaced while it was open", "open it again")
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            schema.roll_back(connection)
            raise
        finally:
            self._turn.release()

    # -- settings ----------------------------------------------------------------------------------------------

    def settings(self) -> dict[str, str]:
        """Return the forum's settings as they were stored."""
        return {row["key"]: row["value"] for row in self.connection.execute("SELECT key, value FROM settings")}

    # -- writes ------------------------------------------------------------------------------------------------

    def add_questions(self, questions: Sequence[Question], links: Sequence[Link] = ()) -> None:
        """Add new questions, and links of them, in one durable transaction.

        Raises:
            InputError: an id is taken already, or a value cannot be stored; nothing is stored then.
            UnknownIdError: an end of a link is not there; nothing is stored then.
        """
        for link in links:
            rows.check_link(link)
        ids = [question.id for question in questions]
        for question in questions:
            rows.question_values(question)  # an id that cannot be stored cannot be looked up
        with self.write() as connection:
            taken = next((one for one in ids if has_question(connection, one)), None)
            if taken is not None or len(set(ids)) < len(ids):
                twice = taken if taken is not None else next(one for one in ids if ids.count(one) > 1)
                raise InputError(f"the id {twice!r} is taken already", "edit that question, or choose another id")
            self._put(connection, questions)
            self._link(connection, links)

    def edit_questions(self, questions: Sequence[Question]) -> None:
        """Replace questions that the archive holds, in one durable transaction.

        Raises:
            UnknownIdError: an id is not there; nothing is stored then.
            InputError: a value cannot be stored; nothing is stored then.
        """
        with self.write() as connection:
            for question in questions:
                require_question(connection, question.id)
            self._put(connection, questions)

    def put_questions(self, questions: Sequence[Question], gone: Sequence[str] = ()) -> dict[str, Operation]:
        """Add new questions, edit those whose id is known, and delete others, in one durable transaction.

        Returns:
            for each id that changed, whether it was added or edited; unchanged ones are left out.

        Raises:
            InputError: a value cannot be stored; nothing is changed then.
            UnknownIdError: one that is to be deleted is not there; nothing is changed then.
        """
        with self.write() as connection:
            done = self._put(connection, questions)
            self._delete(connection, gone)
            return done

    def _put(self, connection: sqlite3.Connection, questions: Sequence[Question]) -> dict[str, Operation]:
        source = source_number(connection, MANUAL_SOURCE, "manual")
        done: dict[str, Operation] = {}
        for question in questions:
            operation = put_row(connection, "question", question.id, rows.question_values(question), source)
            if operation is not None:
                done.setdefault(question.id, operation)
        return done

    def add_answers(self, answers: Sequence[Answer]) -> None:
        """Add new answers to questions that the archive holds, in one durable transaction.

        Raises:
            UnknownIdError: an answer's question is not there; nothing is stored then.
            InputError: an id is taken, or a value cannot be stored; nothing is stored then.
        """
        with self.write() as connection:
            source = source_number(connection, MANUAL_SOURCE, "manual")
            for answer in answers:
                values = rows.answer_values(answer)
                require_question(connection, answer.question_id)
                if connection.execute("SELECT 1 FROM answers WHERE id = ?", (answer.id,)).fetchone():
                    raise InputError(f"the answer id {answer.id!r} is taken already", "choose another id")
                put_row(connection, "answer", answer.id, values, source)

    def put_links(self, links: Sequence[Link]) -> int:
        """Store links between questions that the archive holds; return how many were new.

        Raises:
            UnknownIdError: an end of a link is not there; nothing is stored then.
        """
        for link in links:
            rows.check_link(link)
        with self.write() as connection:
            return self._link(connection, links)

    def _link(self, connection: sqlite3.Connection, links: Sequence[Link]) -> int:
        source = source_number(connection, MANUAL_SOURCE, "manual")
        added = 0
        for link in links:
            require_question(connection, link.source_id)
            require_question(connection, link.target_id)
            key = (link.source_id, link.target_id, link.kind)
            if connection.execute("INSERT OR IGNORE INTO links VALUES (?, ?, ?, ?)", (*key, source)).rowcount:
                added += 1
                log_change(connection, "link", "add", link.source_id, None)
        return added

    def delete_questions(self, ids: Sequence[str]) -> None:
        """Delete questions with their answers, links and judgements, in one durable transaction.

        Raises:
            UnknownIdError: one of them is not there; nothing is deleted then.
        """
        with self.write() as connection:
            self._delete(connection, ids)

    def _delete(self, connection: sqlite3.Connection, ids: Sequence[str]) -> None:
        for identifier in ids:
            require_question(connection, identifier)
            delete_question(connection, identifier)

    # -- reads -------------------------------------------------------------------------------------------------

    def last_change(self) -> int:
        """Return the sequence number of the newest change, 0 when there is none."""
        return int(self.connection.execute("SELECT coalesce(max(seq), 0) FROM changes").fetchone()[0])

    def sources(self) -> tuple[str, ...]:
        """Return the names of the sources that records came from, in the order of their first use."""
        return tuple(row["name"] for row in self.connection.execute("SELECT name FROM sources ORDER BY num"))

    def question_changes(self, after: int, limit: int) -> list[Change]:
        """Return the changes of questions with seq > ``after``, oldest first, at most ``limit``."""
        found = self.connection.execute(
            "SELECT seq, operation, num FROM changes WHERE seq > ? AND kind = 'question' ORDER BY seq LIMIT ?",
            (after, limit),
        )
        return [Change(row["seq"], row["operation"], row["num"]) for row in found]

    def count_question_changes(self, after: int) -> int:
        """Return how many changes of questions an index at ``after`` has not seen."""
        found = self.connection.execute("SELECT count(*) FROM changes WHERE seq > ? AND kind = 'question'", (after,))
        return int(found.fetchone()[0])

    def question(self, identifier: str) -> Question:
        """Return one question.

        Raises:
            UnknownIdError: it is not there.
        """
        row = None
        if rows.is_storable(identifier):
            row = self.connection.execute(f"SELECT {_QUESTION} FROM questions WHERE id = ?", (identifier,)).fetchone()
        if row is None:
            raise unknown_id("question", identifier)
        return rows.question_of(row)

    def questions_by_num(self, nums: Sequence[int]) -> dict[int, Question]:
        """Return the questions with these internal numbers; numbers that are gone are left out."""
        found: dict[int, Question] = {}
        for start in range(0, len(nums), _BATCH):
            batch = nums[start : start + _BATCH]
            marks = ", ".join("?" * len(batch))
            for row in self.connection.execute(f"SELECT num, {_QUESTION} FROM questions WHERE num IN ({marks})", batch):
                found[row["num"]] = rows.question_of(row)
        return found

    def questions_by_id(self, ids: Sequence[str]) -> dict[str, Question]:
        """Return the questions with these ids; ids that are not there are left out."""
        by_num = self.questions_by_num(list(self.nums_by_id(ids).values()))
        return {question.id: question for question in by_num.values()}

    def nums_by_id(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the internal numbers of those ids that are there."""
        found: dict[str, int] = {}
        for batch in _batches(ids):
            marks = ", ".join("?" * len(batch))
            for row in self.connection.execute(f"SELECT id, num FROM questions WHERE id IN ({marks})", batch):
                found[row["id"]] = row["num"]
        return found

    def all_questions(self, after: int = 0) -> Iterator[tuple[int, Question]]:
        """Yield (internal number, question) for numbers > ``after``, in their order, without holding them all."""
        last = after
        while True:
            found = self.connection.execute(
                f"SELECT num, {_QUESTION} FROM questions WHERE num > ? ORDER BY num LIMIT ?", (last, _BATCH)
            ).fetchall()
            if not found:
                return
            for row in found:
                yield row["num"], rows.question_of(row)
            last = found[-1]["num"]

    def count_questions(self, after: int = 0) -> int:
        """Return how many questions have an internal number > ``after``."""
        return int(self.connection.execute("SELECT count(*) FROM questions WHERE num > ?", (after,)).fetchone()[0])

    def answers(self, question_id: str) -> list[Answer]:
        """Return a question's answers, best first: accepted, then most voted, then oldest, then by id.

        Those of a question that has gone with a load are kept, and are there again when it is.
        """
        return self.answers_of([question_id]).get(question_id, [])

    def answers_of(self, ids: Sequence[str]) -> dict[str, list[Answer]]:
        """Return the answers of each of these questions, in the order of ``answers``; without those that have none."""
        found: dict[str, list[Answer]] = {}
        for batch in _batches(ids):
            marks = ", ".join("?" * len(batch))
            for row in self.connection.execute(
                f"SELECT {_ANSWER} FROM answers WHERE question_id IN ({marks})"
                " AND EXISTS (SELECT 1 FROM questions WHERE questions.id = question_id)"
                " ORDER BY is_accepted DESC, coalesce(score, 0) DESC, coalesce(created_us, 0), id",
                batch,
            ):
                found.setdefault(row["question_id"], []).append(rows.answer_of(row))
        return found

    def originals(self, question_id: str) -> tuple[str, ...]:
        """Return the ids of the questions that this one is marked a duplicate of and that are in the archive."""
        found = self.connection.execute(
            "SELECT target_id FROM links JOIN questions ON questions.id = links.target_id"
            " WHERE links.source_id = ? AND kind = 'duplicate' ORDER BY target_id",
            (question_id,),
        )
        return tuple(row["target_id"] for row in found)

    def originals_of(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return ``originals`` of these questions, and of all that they lead to; those without any are left out."""
        found: dict[str, list[str]] = {}
        for batch in _batches(ids):
            marks = ", ".join("(?)" for _ in batch)
            for row in self.connection.execute(
                f"WITH RECURSIVE reached(id) AS (VALUES {marks} UNION SELECT target_id FROM links"
                " JOIN reached ON source_id = reached.id WHERE kind = 'duplicate')"
                " SELECT DISTINCT source_id, target_id FROM reached JOIN links ON source_id = reached.id"
                " JOIN questions ON questions.id = target_id WHERE kind = 'duplicate' ORDER BY source_id, target_id",
                batch,
            ):
                targets = found.setdefault(row["source_id"], [])
                if row["target_id"] not in targets:  # two batches may lead to one question
                    targets.append(row["target_id"])
        return {source: tuple(targets) for source, targets in found.items()}

    def links(self) -> list[Link]:
        """Return all links whose two ends are in the archive, ordered by source, target and kind."""
        found = self.connection.execute(
            "SELECT source_id, target_id, kind FROM links"
            " JOIN questions AS one ON one.id = source_id JOIN questions AS other ON other.id = target_id"
            " ORDER BY source_id, target_id, kind"
        )
        return [Link(row["source_id"], row["target_id"], row["kind"]) for row in found]


def _batches(ids: Iterable[str]) -> Iterator[list[str]]:
    """Yield the ids that can be stored, each once, so many together as one statement may ask for."""
    wanted = [one for one in dict.fromkeys(ids) if rows.is_storable(one)]
    for start in range(0, len(wanted), _BATCH):
        yield wanted[start : start + _BATCH]
