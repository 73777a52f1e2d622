"""What a store does in SQL that SQLite and PostgreSQL both understand: reading, changing, and the log of changes."""

from __future__ import annotations

import contextlib
import json
import math
import secrets
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from msgspec import structs

from askalike.errors import ForumError, InputError
from askalike.store import rows, writes
from askalike.store.moderation import ModerationStore, refuse_chain
from askalike.store.protocol import (
    FIGURES,
    IDENTITY,
    MARGIN,
    QUESTIONS,
    Change,
    Counts,
    LoadReport,
    Margin,
    Operation,
    Position,
    RecordKind,
    SourceCounts,
)
from askalike.store.rows import unreadable_date
from askalike.store.writes import Connection
from askalike.types import Answer, Draw, Feedback, Link, Question, Source, Thread, Verdict


def put_settings(connection: Connection, settings: Mapping[str, str]) -> None:
    """Store settings beside those that are there, or in their place."""
    put = "INSERT INTO settings VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    for row in sorted(settings.items()):
        connection.execute(put, row)


def margin_as_setting(margin: Margin) -> dict[str, str]:
    """Return the row that holds a margin."""
    return {MARGIN: json.dumps(asdict(margin))}


class _Closable(Protocol):
    def close(self) -> None: ...


_Connection = TypeVar("_Connection", bound=_Closable)


class ThreadConnections(Generic[_Connection]):
    """The connections of all threads to one database.

    A thread's connection is opened at its first use. It is closed when the thread ends, when this object goes, or by
    ``close``, so that threads that come and go leave no file handles.

    Args:
        opened: opens a connection, which another thread may close.
    """

    def __init__(self, opened: Callable[[], _Connection]) -> None:
        self._opened = opened
        self._closed = ""
        self._local = threading.local()
        self._guard = threading.Lock()
        self._all: weakref.WeakSet[_Closing[_Connection]] = weakref.WeakSet()

    def get(self) -> _Connection:
        """Return this thread's connection.

        Raises:
            ForumError: all were closed for good.
        """
        own: _Closing[_Connection] | None = getattr(self._local, "own", None)
        if own is None:
            if self._closed:
                raise ForumError(f"{self._closed} is closed", "open it again")
            own = _Closing(self._opened())
            self._local.own = own
            with self._guard:
                self._all.add(own)
        return own.connection

    def forget(self) -> None:
        """Close this thread's connection; the next ``get`` opens another."""
        if hasattr(self._local, "own"):
            self._local.own.connection.close()
            del self._local.own

    def close(self, name: str = "") -> None:
        """Close every connection; a later ``get`` opens another.

        Args:
            name: of what is closed for good; a later ``get`` says so.
        """
        self._closed = name
        with self._guard:
            for one in list(self._all):
                one.connection.close()
            self._all.clear()
        self._local = threading.local()


class _Closing(Generic[_Connection]):
    """Closes its connection when nothing refers to it: what a thread has of its own goes with the thread."""

    def __init__(self, connection: _Connection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


_QUESTION: Final = ", ".join(rows.QUESTION_COLUMNS)
_ANSWER: Final = ", ".join(rows.ANSWER_COLUMNS)
_LINKS: Final = (
    "SELECT source_id, target_id, kind FROM links"
    " JOIN questions AS one ON one.id = source_id JOIN questions AS other ON other.id = target_id"
)
_FEEDBACK: Final = "num, question_id, candidate_id, verdict, judge, at_us, draw, probability, propensity"
_HERE: Final = "EXISTS (SELECT 1 FROM questions WHERE id = {})"
_BOTH_HERE: Final = f"{_HERE.format('question_id')} AND {_HERE.format('candidate_id')}"
_BATCH: Final = 500
SHORT_LOG: Final = 10_000
"""Changes; a log that is so long and no longer is not shortened, and so many are deleted together."""
_LAST: Final = 2**63 - 1


HELPED: Final = """
CREATE TABLE helped (question_id TEXT PRIMARY KEY, times BIGINT NOT NULL);
"""


LANGUAGES: Final = """
ALTER TABLE questions ADD COLUMN language TEXT NOT NULL DEFAULT '';
ALTER TABLE questions ADD COLUMN is_language_detected INTEGER NOT NULL DEFAULT 0;
CREATE INDEX questions_by_language ON questions (language) WHERE language <> '';
"""


class _TrialEnd(Exception):
    """Takes a transaction back."""


class SqlStore(ModerationStore, ABC):
    """``store.Store`` without what each database does in its own way: connections, transactions, loads."""

    ordered_join: ClassVar = "JOIN"
    """A join whose first table is read first, where that has to be said."""

    _counted: tuple[int, Counts] | None = None

    @abstractmethod
    def write(self) -> AbstractContextManager[Connection]:
        """Give a connection inside one transaction: committed and on disk at the end, or rolled back on any error."""

    @abstractmethod
    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Return all rows that a statement finds."""

    @abstractmethod
    def close(self) -> None:
        """Close every connection; the store must not be used after."""

    def _rows_of(self, statement: str, wanted: Iterable[object]) -> Iterator[Any]:
        """Yield what a statement finds for "{wanted}", each of them once, so many together as it may ask for."""
        listed = list(dict.fromkeys(wanted))
        for start in range(0, len(listed), _BATCH):
            batch = listed[start : start + _BATCH]
            yield from self.rows(statement.format(wanted=", ".join("?" * len(batch))), batch)

    def _rows_of_ids(self, statement: str, ids: Iterable[str]) -> Iterator[Any]:
        return self._rows_of(statement, (one for one in ids if rows.is_storable(one)))

    def settings(self) -> dict[str, str]:
        """Return the forum's settings as they were stored."""
        return {key: value for key, value in self.rows("SELECT key, value FROM settings") if key not in FIGURES}

    def put_settings(self, settings: Mapping[str, str]) -> None:
        """Store settings of the forum beside those that it has, or in their place."""
        with self.write() as connection:
            put_settings(connection, settings)

    def identity(self) -> str:
        """Return a name that no other store has, drawn when it is first asked for."""
        wanted = "SELECT value FROM settings WHERE key = ?"
        if not self.rows(wanted, (IDENTITY,)):
            with self.write() as connection:
                drawn = json.dumps(secrets.token_hex(6))
                connection.execute("INSERT INTO settings VALUES (?, ?) ON CONFLICT DO NOTHING", (IDENTITY, drawn))
        return str(json.loads(self.rows(wanted, (IDENTITY,))[0][0]))

    def margin(self) -> Margin | None:
        """Return how far the forum's questions stand out from one another, None where that was not measured."""
        for (held,) in self.rows("SELECT value FROM settings WHERE key = ?", (MARGIN,)):
            with contextlib.suppress(ValueError, TypeError, KeyError):
                found = json.loads(held)
                value = None if found["value"] is None else float(found["value"])
                if value is None or math.isfinite(value):
                    return Margin(int(found["questions"]), value)
        return None

    def put_margin(self, margin: Margin) -> None:
        """Store it in place of the one before."""
        self.put_settings(margin_as_setting(margin))

    def alone(self, name: str) -> AbstractContextManager[None]:
        """Keep nobody out: a file is used on one machine, and its folder's locks keep other processes out."""
        return contextlib.nullcontext()

    def sources(self) -> tuple[str, ...]:
        """Return the names of the sources that records came from, in the order of their first use."""
        return tuple(row["name"] for row in self.rows("SELECT name FROM sources ORDER BY num"))

    def source_counts(self) -> list[SourceCounts]:
        """Return how much came from each source, in the order of ``sources``."""
        held = ", ".join(
            f"(SELECT count(*) FROM {table} WHERE source = sources.num)" for table in ("questions", "answers", "links")
        )
        return [SourceCounts(*row) for row in self.rows(f"SELECT name, format, {held} FROM sources ORDER BY num")]

    def delete_source(self, name: str) -> SourceCounts:
        """Delete all records of a source, as a load does that no longer holds them; return how many there were."""
        with self.write() as connection:
            counts = next((one for one in self.source_counts() if one.name == name), None)
            if counts is None:
                raise rows.unknown_id("source", name)
            of = "WHERE source = (SELECT num FROM sources WHERE name = ?)"
            for (one,) in connection.execute(f"SELECT id FROM answers {of}", (name,)).fetchall():
                writes.delete_answer(connection, one)
            for row in connection.execute(f"SELECT source_id, target_id, kind FROM links {of}", (name,)).fetchall():
                writes.delete_link(connection, Link(*row))
            for (one,) in connection.execute(f"SELECT id FROM questions {of}", (name,)).fetchall():
                writes.remove_question(connection, one)
            connection.execute("DELETE FROM sources WHERE name = ?", (name,))
        return counts

    # -- changes -----------------------------------------------------------------------------------------------

    def add_questions(self, questions: Sequence[Question], links: Sequence[Link] = ()) -> None:
        """Add new questions, and links of them."""
        for link in links:
            rows.check_link(link)
        ids = [question.id for question in questions]
        for question in questions:
            rows.question_values(question)  # an id that cannot be stored cannot be looked up
        with self.write() as connection:
            taken = next((one for one in ids if writes.has_question(connection, one)), None)
            if taken is not None or len(set(ids)) < len(ids):
                twice = taken if taken is not None else next(one for one in ids if ids.count(one) > 1)
                raise InputError(f"the id {twice!r} is taken already", "edit that question, or choose another id")
            writes.put_questions(connection, questions)
            writes.put_links(connection, links)

    def edit_questions(self, questions: Sequence[Question]) -> None:
        """Replace questions that are there."""
        with self.write() as connection:
            for question in questions:
                writes.require_question(connection, question.id)
            writes.put_questions(connection, questions)

    def put_detected(self, languages: Mapping[str, str], changed: Collection[str]) -> None:
        """Store which language each of these questions was found to be in; what a source or a person said stays."""
        with self.write() as connection:
            for identifier, language in languages.items():
                writes.put_detected(connection, identifier, language, is_logged=identifier in changed)

    def put_questions(self, questions: Sequence[Question], gone: Sequence[str] = ()) -> dict[str, Operation]:
        """Add new questions, edit those whose id is known, and delete others with all that is said of them."""
        with self.write() as connection:
            done = writes.put_questions(connection, questions)
            for identifier in dict.fromkeys(gone):
                writes.require_question(connection, identifier)
                writes.delete_question(connection, identifier)
            return done

    def add_answers(self, answers: Sequence[Answer]) -> None:
        """Add new answers to questions that are there."""
        with self.write() as connection:
            writes.put_answers(connection, answers, are_new=True)

    def put_answers(self, answers: Sequence[Answer]) -> dict[str, Operation]:
        """Add new answers and edit those whose id is known; return for each id that changed which of both."""
        with self.write() as connection:
            return writes.put_answers(connection, answers, are_new=False)

    def delete_answers(self, ids: Sequence[str]) -> None:
        """Delete answers."""
        with self.write() as connection:
            for one in ids:
                if not (rows.is_storable(one) and writes.delete_answer(connection, one)):
                    raise rows.unknown_id("answer", one)

    def replace_threads(
        self, threads: Sequence[Thread], gone: Sequence[str], source: Source, *, is_trial: bool = False
    ) -> LoadReport:
        """Make the store hold these threads as they are given, and none of those that are gone."""
        for thread in threads:
            for link in thread.links:
                rows.check_link(link)
        rows.check_source(source)
        report = LoadReport()
        with contextlib.suppress(_TrialEnd), self.write() as connection:
            writes.replace_threads(connection, threads, gone, source, report)
            if is_trial:
                raise _TrialEnd
        return report

    def ids_of(self, source: str) -> list[str]:
        """Return the ids of the questions that came from a source."""
        found = "SELECT id FROM questions JOIN sources ON sources.num = source WHERE name = ? ORDER BY questions.num"
        if not rows.is_storable(source):
            return []
        return [row[0] for row in self.rows(found, (source,))]

    def put_links(self, links: Sequence[Link]) -> int:
        """Store links between questions that are there; return how many were new."""
        for link in links:
            rows.check_link(link)
        with self.write() as connection:
            return writes.put_links(connection, links)

    def mark(self, duplicate: str, original: str) -> bool:
        """Link a duplicate to its original, unless that closes a circle or leads on; return whether that is new."""
        link = Link(duplicate, original)
        rows.check_link(link)
        with self.write() as connection:  # looked at in the same transaction: two may mark each other's at once
            refuse_chain(self.originals_of([original, duplicate]), duplicate, original)
            return writes.put_links(connection, [link]) > 0

    def delete_links(self, links: Sequence[Link]) -> int:
        """Delete links; return how many there were."""
        for link in links:
            rows.check_link(link)
        with self.write() as connection:
            return sum(writes.delete_link(connection, link) for link in links)

    # -- the change log ----------------------------------------------------------------------------------------

    def last_change(self) -> int:
        """Return the sequence number of the newest change, 0 when there is none."""
        return int(self.rows("SELECT coalesce(max(seq), 0) FROM changes")[0][0])

    def changes(self, after: int, limit: int, kinds: Collection[RecordKind] = QUESTIONS) -> list[Change]:
        """Return the changes of these kinds with seq > ``after``, oldest first, at most ``limit``."""
        found = self.rows(  # only changes of questions have their number in the log
            "SELECT seq, operation, coalesce(changes.num, questions.num) AS num, kind FROM changes"
            " LEFT JOIN questions ON kind <> 'question' AND questions.id = changes.id"
            f" WHERE seq > ? AND kind IN ({', '.join('?' * len(kinds))})"
            " AND coalesce(changes.num, questions.num) IS NOT NULL ORDER BY seq LIMIT ?",
            (after, *kinds, limit),
        )
        return [Change(*row) for row in found]

    def count_changes(self, after: int) -> int:
        """Return how many changes of questions an index at ``after`` has not seen."""
        return int(self.rows("SELECT count(*) FROM changes WHERE seq > ? AND kind = 'question'", (after,))[0][0])

    def shorten_log(self) -> int:
        """Delete changes of questions and answers that a later one of the same makes needless; return how many.

        Whoever follows the log takes each question in its newest state, so it does not matter how far anybody has
        come. That is done where the log has become twice as long as it would be, in short transactions.
        """
        logged, held = self.rows(
            "SELECT (SELECT count(*) FROM changes WHERE num IS NOT NULL),"
            " (SELECT count(*) FROM questions) + (SELECT count(*) FROM answers)"
        )[0]
        if logged <= 2 * held + SHORT_LOG:
            return 0
        needless = self.rows(
            "SELECT seq FROM (SELECT seq, row_number() OVER (PARTITION BY kind, num ORDER BY seq DESC) AS place"
            " FROM changes WHERE num IS NOT NULL) AS numbered WHERE place > 1 ORDER BY seq"
        )
        for start in range(0, len(needless), SHORT_LOG):
            together = [row[0] for row in needless[start : start + SHORT_LOG]]
            with self.write() as connection:
                for first in range(0, len(together), _BATCH):
                    some = together[first : first + _BATCH]
                    connection.execute(f"DELETE FROM changes WHERE seq IN ({', '.join('?' * len(some))})", some)
        return len(needless)

    # -- questions ---------------------------------------------------------------------------------------------

    def question(self, identifier: str) -> Question:
        """Return one question."""
        found = self.questions_by_id([identifier])
        if not found:
            raise rows.unknown_id("question", identifier)
        return found[identifier]

    def questions_by_num(self, nums: Sequence[int]) -> dict[int, Question]:
        """Return the questions with these numbers; numbers that are gone are left out."""
        found = self._rows_of(f"SELECT num, {_QUESTION} FROM questions WHERE num IN ({{wanted}})", nums)
        return {row["num"]: rows.question_of(row) for row in found}

    def ids_by_num(self, nums: Iterable[int]) -> dict[int, str]:
        """Return the ids of the questions with these numbers; numbers that are gone are left out."""
        return dict(self._rows_of("SELECT num, id FROM questions WHERE num IN ({wanted})", nums))

    def questions_by_id(self, ids: Sequence[str]) -> dict[str, Question]:
        """Return the questions with these ids; ids that are not there are left out."""
        found = self._rows_of_ids(f"SELECT {_QUESTION} FROM questions WHERE id IN ({{wanted}})", ids)
        return {row["id"]: rows.question_of(row) for row in found}

    def nums_by_id(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the numbers of those ids that are there."""
        return dict(self._rows_of_ids("SELECT id, num FROM questions WHERE id IN ({wanted})", ids))

    def language_counts(self) -> dict[str, int]:
        """Return the languages of the questions whose language is known → how many, the most frequent first."""
        found = "SELECT language, count(*) AS times FROM questions WHERE language <> '' GROUP BY language"
        return {row[0]: row[1] for row in self.rows(f"{found} ORDER BY times DESC, language")}

    def languages_by_num(self) -> dict[int, str]:
        """Return number → language of the questions whose language is known."""
        return {row[0]: row[1] for row in self.rows("SELECT num, language FROM questions WHERE language <> ''")}

    def numbers(
        self, *, is_answered: bool | None = None, is_closed: bool | None = None, languages: Sequence[str] = ()
    ) -> list[int]:
        """Return the numbers of all questions, or of those that are (not) answered or closed, or in one of these
        languages, ascending."""
        asked = {
            "id IN (SELECT question_id FROM answers)": is_answered,
            "closed_us IS NOT NULL": is_closed,
        }
        conditions = [one if is_so else f"NOT ({one})" for one, is_so in asked.items() if is_so is not None]
        if languages:
            conditions.append(f"language <> '' AND language IN ({', '.join('?' * len(languages))})")
        wanted = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        return [row[0] for row in self.rows(f"SELECT num FROM questions {wanted} ORDER BY num", languages)]

    def all_questions(self, after: int = 0) -> Iterator[tuple[int, Question]]:
        """Yield (number, question) for numbers > ``after``, in their order, without holding them all."""
        wanted = f"SELECT num, {_QUESTION} FROM questions WHERE num > ? ORDER BY num LIMIT ?"
        while found := self.rows(wanted, (after, _BATCH)):
            for row in found:
                yield row["num"], rows.question_of(row)
            after = found[-1]["num"]

    def count_questions(self, after: int = 0) -> int:
        """Return how many questions have a number > ``after``."""
        if not after:  # of all, without reading the table
            return int(self.rows("SELECT count(*) FROM questions")[0][0])
        return int(self.rows("SELECT count(*) FROM questions WHERE num > ?", (after,))[0][0])

    def newest(self, limit: int, after: Position | None = None) -> list[tuple[Position, Question]]:
        """Return questions, newest first by date; those without a date are last, the last stored first."""
        moment, num = after or (_LAST, _LAST)
        found: list[Any] = []
        if moment is not None:
            found += self.rows(
                f"SELECT num, {_QUESTION} FROM questions WHERE created_us IS NOT NULL AND (created_us, num) < (?, ?)"
                " ORDER BY created_us DESC, num DESC LIMIT ?",
                (moment, num, limit),
            )
            num = _LAST
        if len(found) < limit:
            found += self.rows(
                f"SELECT num, {_QUESTION} FROM questions WHERE created_us IS NULL AND num < ? ORDER BY num DESC"
                " LIMIT ?",
                (num, limit - len(found)),
            )
        return [((row["created_us"], row["num"]), rows.question_of(row)) for row in found]

    # -- answers and links -------------------------------------------------------------------------------------

    def answers_of(self, ids: Sequence[str]) -> dict[str, list[Answer]]:
        """Return the answers of each of these questions, best first; questions without answers are left out."""
        found: dict[str, list[Answer]] = {}
        for row in self._rows_of_ids(
            f"SELECT {_ANSWER} FROM answers WHERE question_id IN ({{wanted}})"
            f" AND {_HERE.format('question_id')}"
            " ORDER BY is_accepted DESC, coalesce(score, 0) DESC, coalesce(created_us, 0), id",
            ids,
        ):
            found.setdefault(row["question_id"], []).append(rows.answer_of(row))
        return found

    def answer_counts(self, ids: Sequence[str]) -> dict[str, int]:
        """Return how many answers each of these questions has; questions without answers are left out."""
        return dict(
            self._rows_of_ids(
                "SELECT question_id, count(*) FROM answers WHERE question_id IN ({wanted})"
                f" AND {_HERE.format('question_id')} GROUP BY question_id",
                ids,
            )
        )

    def links(self) -> list[Link]:
        """Return all links whose two ends are there, ordered by source, target and kind."""
        return [Link(*row) for row in self.rows(f"{_LINKS} ORDER BY source_id, target_id, kind")]

    def links_of(self, identifier: str) -> list[Link]:
        """Return the links from or to one question, as ``links`` does."""
        if not rows.is_storable(identifier):
            return []
        wanted = f"{_LINKS} WHERE source_id = ? OR target_id = ? ORDER BY source_id, target_id, kind"
        return [Link(*row) for row in self.rows(wanted, (identifier, identifier))]

    def originals_of(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return what these questions, and all that they lead to, are duplicates of."""
        found: dict[str, dict[str, None]] = {}  # two batches may lead to one question
        for row in self._rows_of_ids(
            "WITH RECURSIVE reached(id) AS (SELECT id FROM questions WHERE id IN ({wanted})"
            f" UNION SELECT target_id FROM reached {self.ordered_join} links"
            " ON source_id = reached.id WHERE kind = 'duplicate')"
            f" SELECT DISTINCT source_id, target_id FROM reached {self.ordered_join} links ON source_id = reached.id"
            f" {self.ordered_join} questions ON questions.id = target_id WHERE kind = 'duplicate'"
            " ORDER BY source_id, target_id",
            ids,
        ):
            found.setdefault(row["source_id"], {})[row["target_id"]] = None
        return {source: tuple(targets) for source, targets in found.items()}

    # -- judgements --------------------------------------------------------------------------------------------

    def add_feedback(self, given: Feedback) -> Feedback:
        """Store a person's judgement on two questions; return it with its moment."""
        rows.check_feedback(given)
        at_us = time.time_ns() // 1000
        with self.write() as connection:
            for identifier in (given.question_id, given.candidate_id):
                writes.require_question(connection, identifier)
            at_us = writes.put_judgement(connection, given, at_us)
        return structs.replace(given, at=rows.from_microseconds(at_us))

    def all_feedback(self) -> Iterator[Feedback]:
        """Yield every judgement on questions that are there, as they were stored, without holding them all."""
        last = 0
        wanted = f"SELECT {_FEEDBACK} FROM feedback WHERE num > ? AND {_BOTH_HERE} ORDER BY num LIMIT ?"
        while found := self.rows(wanted, (last, _BATCH)):
            for _, question, candidate, verdict, judge, at_us, *draw in found:
                yield Feedback(question, candidate, verdict, judge, rows.from_microseconds(at_us), Draw(*draw))
            last = found[-1]["num"]

    def judgements(self) -> list[Feedback]:
        """Return the newest judgement on each pair, whichever way round it was given, oldest first; none withdrawn."""
        newest: dict[frozenset[str], Feedback] = {}
        for one in sorted(self.all_feedback(), key=lambda one: rows.to_microseconds(one.at) or 0):
            pair = frozenset((one.question_id, one.candidate_id))
            newest.pop(pair, None)  # so that the order is that of the newest
            newest[pair] = one
        return [one for one in newest.values() if one.verdict != "withdrawn"]

    def judgements_on(self, identifier: str) -> dict[str, Verdict]:
        """Return each question that was judged beside this one, either way round, with the verdict that counts."""
        if not rows.is_storable(identifier):
            return {}
        found = self.rows(
            "SELECT CASE WHEN question_id = ? THEN candidate_id ELSE question_id END, verdict FROM feedback"
            f" WHERE (question_id = ? OR candidate_id = ?) AND {_BOTH_HERE} ORDER BY at_us, num",
            (identifier,) * 3,
        )
        return {other: verdict for other, verdict in dict(found).items() if verdict != "withdrawn"}

    def judgement_version(self) -> tuple[int, int]:
        """Return the number of the newest judgement that counts, and how many there are."""
        newest, count = self.rows(f"SELECT coalesce(max(num), 0), count(*) FROM feedback WHERE {_BOTH_HERE}")[0]
        return newest, count

    # -- questions that helped ---------------------------------------------------------------------------------

    def add_helped(self, identifier: str) -> int:
        """Count that a question answered somebody who was about to ask; return how often it did."""
        add = (
            "INSERT INTO helped (question_id, times) VALUES (?, 1)"
            " ON CONFLICT (question_id) DO UPDATE SET times = helped.times + 1 RETURNING times"
        )
        with self.write() as connection:
            writes.require_question(connection, identifier)
            return int(connection.execute(add, (identifier,)).fetchone()["times"])

    def helped(self) -> tuple[int, int]:
        """Return how often questions helped, and how many did."""
        times, questions = self.rows("SELECT CAST(coalesce(sum(times), 0) AS BIGINT), count(*) FROM helped")[0]
        return times, questions

    # -- what is there -----------------------------------------------------------------------------------------

    def counts(self) -> Counts:
        """Return how much the store holds; counted again only after a change, since it reads every table."""
        last = self.last_change()
        if self._counted is None or self._counted[0] != last:
            self._counted = (last, self._count())
        return self._counted[1]

    def _count(self) -> Counts:
        created, closed = unreadable_date("created_us"), unreadable_date("closed_us")
        (one,) = self.rows(
            "SELECT count(*) AS questions, min(created_us) FILTER (WHERE NOT odd) AS first,"
            " max(created_us) FILTER (WHERE NOT odd) AS last,"
            " count(*) FILTER (WHERE odd) + count(*) FILTER (WHERE odd_closed) AS odd"
            f" FROM (SELECT created_us, {created} AS odd, {closed} AS odd_closed FROM questions) AS dated"
        )
        ((odd_answers,),) = self.rows(f"SELECT count(*) FROM answers WHERE {created}")
        links = dict.fromkeys(("duplicate", "related", None), 0) | dict(
            self.rows(
                f"SELECT CASE WHEN {_HERE.format('source_id')} AND {_HERE.format('target_id')} THEN kind END AS known,"
                " count(*) FROM links GROUP BY known"
            )
        )
        ((answered, answers, apart),) = self.rows(
            "SELECT count(*) FILTER (WHERE here), CAST(coalesce(sum(times) FILTER (WHERE here), 0) AS BIGINT),"
            " CAST(coalesce(sum(times) FILTER (WHERE NOT here), 0) AS BIGINT) FROM (SELECT count(*) AS times,"
            f" {_HERE.format('question_id')} AS here FROM answers GROUP BY question_id) AS answered"
        )
        ((judged, judged_apart),) = self.rows(
            "SELECT count(*) FILTER (WHERE here), count(*) FILTER (WHERE NOT here)"
            f" FROM (SELECT {_BOTH_HERE} AS here FROM feedback) AS judged"
        )
        return Counts(
            questions=one["questions"],
            answers=answers,
            duplicates=links["duplicate"],
            related=links["related"],
            questions_with_answer=answered,
            first_us=one["first"],
            last_us=one["last"],
            judgements=judged,
            answers_without_question=apart,
            links_without_question=links[None],
            judgements_without_question=judged_apart,
            unreadable_dates=one["odd"] + odd_answers,
        )

    def unreadable_dates(self) -> Iterator[str]:
        """Yield what has a date outside the years 1 to 9999, such as "question 'q7'"; an older version stored it."""
        odd = unreadable_date("created_us")
        for kind, condition in (("question", f"{odd} OR {unreadable_date('closed_us')}"), ("answer", odd)):
            for row in self.rows(f"SELECT id FROM {kind}s WHERE {condition} ORDER BY num"):
                yield f"{kind} {row['id']!r}"
