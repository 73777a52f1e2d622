"""A forum's records in SQL: reading, changing, loading, and the log of every change."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from askalike.errors import ForumError
from askalike.store import rows, writes
from askalike.store.database import BATCH
from askalike.store.judgements import BOTH_HERE, HERE, JudgementStore, refuse_chain
from askalike.store.load import Load, Staging
from askalike.store.values import (
    COMPARED_KINDS,
    IDENTITY,
    SITES,
    STORE_KEYS,
    Change,
    Counts,
    LoadReport,
    Operation,
    Position,
    RecordKind,
    SourceCounts,
)
from askalike.types import Answer, Link, Question, Record, Reject, Source, Thread

_QUESTION: Final = ", ".join(rows.QUESTION_COLUMNS)
_ANSWER: Final = ", ".join(rows.ANSWER_COLUMNS)
_LINKS: Final = (
    "SELECT source_id, target_id, kind FROM links"
    " JOIN questions AS one ON one.id = source_id JOIN questions AS other ON other.id = target_id"
)
_CHANGES_AFTER: Final = (  # those of links and judgements have no number in the log
    "FROM changes LEFT JOIN questions ON kind <> 'question' AND questions.id = changes.id"
    " WHERE seq > ? AND kind IN ({}) AND coalesce(changes.num, questions.num) IS NOT NULL"
)
SHORT_LOG: Final = 10_000
"""Changes; a log that is so long and no longer is not shortened, and so many are deleted together."""
_LAST: Final = 2**63 - 1


class Store(JudgementStore):
    """A forum's questions, answers, links and judgements, in the SQL that SQLite and PostgreSQL both understand.

    Every question has a number of its own, which is never given to another; indexes know questions by it and follow the
    log of changes with a cursor. Reading is safe from any thread; writes go one at a time, over all processes. A write
    is on disk when the method returns, and happens whole or not at all. A value that could not be read back is refused
    with InputError. What is said of a question that a load has taken away is kept, and has no effect until the question
    is back.
    """

    _counted: tuple[int, Counts] | None = None

    def settings(self) -> dict[str, str]:
        """Return the forum's settings as they were stored."""
        return {key: value for key, value in self.rows("SELECT key, value FROM settings") if key not in STORE_KEYS}

    def put_settings(self, settings: Mapping[str, str]) -> None:
        """Store settings of the forum beside those that it has, or in their place."""
        put = "INSERT INTO settings VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        with self.write() as connection:
            for row in sorted(settings.items()):
                connection.execute(put, row)

    def identity(self) -> str:
        """Return a name that no other store has, drawn when it is first asked for: what an engine knows a forum by.

        A copy draws one of its own, so that it never writes over what the engine holds of the original.
        """
        place = self.place()
        if (known := self._drawn_identity()) is None or known["place"] != place:
            with self.write() as connection:
                known = self._drawn_identity()  # another machine may have drawn meanwhile
                if known is None or known["place"] != place:
                    drawn = json.dumps({"name": secrets.token_hex(6), "place": place})
                    put = "INSERT INTO settings VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
                    connection.execute(put, (IDENTITY, drawn))
            known = self._drawn_identity()
        assert known is not None
        return known["name"]

    def _drawn_identity(self) -> dict[str, str] | None:
        for (stored,) in self.rows("SELECT value FROM settings WHERE key = ?", (IDENTITY,)):
            identities: dict[str, str] = json.loads(stored)
            return identities
        return None

    def sites(self) -> dict[str, str]:
        """Return source → the address of its site, of those whose questions were linked to one."""
        for (stored,) in self.rows("SELECT value FROM settings WHERE key = ?", (SITES,)):
            sites: dict[str, str] = json.loads(stored)
            return sites
        return {}

    def put_site(self, source: str, address: str) -> None:
        """Remember the address of a source's site."""
        put = "INSERT INTO settings VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        with self.write() as connection:
            connection.execute(put, (SITES, json.dumps({**self.sites(), source: address})))

    def place(self) -> str:
        """Return what tells the store from a copy of it, "" where nothing does."""
        return ""

    def sources(self) -> tuple[str, ...]:
        """Return the names of the sources that records came from, in the order of their first use."""
        return tuple(row["name"] for row in self.rows("SELECT name FROM sources ORDER BY num"))

    def source_counts(self) -> list[SourceCounts]:
        """Return how much came from each source, in the order of ``sources``."""
        counts = ", ".join(
            f"(SELECT count(*) FROM {table} WHERE source = sources.num)" for table in ("questions", "answers", "links")
        )
        return [SourceCounts(*row) for row in self.rows(f"SELECT name, format, {counts} FROM sources ORDER BY num")]

    def delete_source(self, name: str) -> SourceCounts:
        """Delete all records of a source, as a load does that no longer holds them; return how many there were.

        Raises:
            UnknownIdError: there is none of this name.
            BusyForumError: a load is under way.
        """
        with self.loading(is_waiting=False), self.write() as connection:
            counts = next((source for source in self.source_counts() if source.name == name), None)
            if counts is None:
                raise rows.unknown_id("source", name)
            number = writes.source_number(connection, name, counts.format)
            for table in ("answers", "links", "questions"):
                writes.delete_where(connection, table, "source = ?", (number,))
            connection.execute("DELETE FROM sources WHERE num = ?", (number,))
        return counts

    def load(
        self,
        records: Iterable[Record],
        source: Source,
        reject: Callable[[Reject], None],
        *,
        unread: Callable[[], int] = lambda: 0,
        accepted: Callable[[], Iterable[str]] = tuple,
        is_mass_delete_allowed: bool = False,
    ) -> LoadReport:
        """Make the store hold what ``records`` holds for ``source``, in one step; others write while records are read.

        Loading a source again adds what is new, updates what was edited and deletes what has gone. Records of other
        sources stay as they are: a load that would change one is refused whole. A record that cannot be stored (an id
        seen before in the same load, an answer without its question, a value that does not fit) is handed to ``reject``
        and counted. Links may point to questions that are not there. What has gone from the source is deleted only if
        every record could be read and stored: one that could not may be among those that seem to have gone.

        Args:
            records: in any order; held one at a time. Judgements are added, whatever their questions, unless the
                same one is there; none is deleted.
            source: what these records belong to; the same name at the next load.
            reject: called with each record that cannot be stored.
            unread: asked after the last record: how many records of the source could not be read.
            accepted: asked after the last record: ids of answers among them that are accepted.
            is_mass_delete_allowed: go on when more than half of the source's questions would be deleted.

        Raises:
            InputError: the stream has no question (nor links alone, between the questions of others), would delete
                more than half of the source's questions, or holds ids that another source has with other content; or
                the source is ``MANUAL_SOURCE``.
            BusyForumError: another load is under way.
        """
        rows.check_source(source)
        load = Load(self, source, reject)
        with self.loading() as path, contextlib.closing(Staging(path)) as staging:
            for record in records:
                load.read(record, staging)
            load.report.accepted_without_answer = staging.accept(accepted())
            staging.finish()
            with self.staged(staging) as connection:
                load.compare(connection, unread(), is_mass_delete_allowed)
                with self.write() as connection:
                    load.apply(connection)
                load.count_links_without_question()
        with contextlib.suppress(ForumError):  # what was loaded is on disk already
            self.shorten_log()
            self.after_load()
        return load.report

    # -- changes -----------------------------------------------------------------------------------------------

    def add_questions(self, questions: Sequence[Question], links: Sequence[Link] = ()) -> None:
        """Add new questions, and links of them.

        Raises:
            InputError: an id is taken already.
            UnknownIdError: an end of a link is not there.
        """
        with self.write() as connection:
            writes.put_posts(connection, questions, are_new=True)
            writes.put_manual_links(connection, links)

    def edit_questions(self, questions: Sequence[Question]) -> None:
        """Replace questions that are there; raise UnknownIdError where one is not."""
        with self.write() as connection:
            for question in questions:
                writes.require_question(connection, question.id)
            writes.put_posts(connection, questions)

    def put_detected(self, languages: Mapping[str, str], changed: Collection[str]) -> None:
        """Store which language each of these questions was found to be in; what a source or a person said stays.

        Args:
            changed: the ids of those that are logged as edited, so that indexes read them anew.
        """
        with self.write() as connection:
            for identifier, language in languages.items():
                connection.execute(
                    "UPDATE questions SET language = ?, is_language_detected = ? WHERE id = ? AND language <> ?"
                    " AND (language = '' OR is_language_detected = 1)",
                    (language, int(bool(language)), identifier, language),
                )
                if identifier in changed:
                    writes.log_post(connection, "question", "edit", identifier)

    def put_questions(self, questions: Sequence[Question], gone: Sequence[str] = ()) -> dict[str, Operation]:
        """Add new questions, edit those whose id is known, and delete others with all that is said of them.

        Returns:
            for each id that changed, whether it was added or edited; unchanged ones are left out.

        Raises:
            UnknownIdError: one that is to be deleted is not there.
        """
        with self.write() as connection:
            done = writes.put_posts(connection, questions)
            for identifier in dict.fromkeys(gone):
                writes.require_question(connection, identifier)
                writes.delete_question(connection, identifier)
            return done

    def add_answers(self, answers: Sequence[Answer]) -> None:
        """Add new answers; raise UnknownIdError where a question is not there, InputError where an id is taken."""
        with self.write() as connection:
            writes.put_posts(connection, answers, are_new=True)

    def put_answers(self, answers: Sequence[Answer]) -> dict[str, Operation]:
        """Add new answers and edit those whose id is known; return as ``put_questions``, raise as ``add_answers``."""
        with self.write() as connection:
            return writes.put_posts(connection, answers)

    def delete_answers(self, ids: Sequence[str]) -> None:
        """Delete answers; raise UnknownIdError where one is not there."""
        with self.write() as connection:
            for identifier in ids:
                is_id = rows.is_storable(identifier)
                if not (is_id and writes.delete_where(connection, "answers", "id = ?", (identifier,))):
                    raise rows.unknown_id("answer", identifier)

    def replace_threads(self, threads: Sequence[Thread], gone: Sequence[str], source: Source) -> LoadReport:
        """Make the store hold these threads of ``source`` as they are given, and none of those that are gone.

        What other sources or people said of a question stays: their answers and links, and judgements, which have no
        effect while it is gone, and count again when it is back. Links may point to questions that are not there.

        Args:
            gone: ids of questions; those that are not there are passed over.

        Raises:
            InputError: a question or an answer with this id came from elsewhere, a value cannot be stored, or the
                source is ``MANUAL_SOURCE``.
        """
        rows.check_source(source)
        report = LoadReport()
        with self.write() as connection:
            writes.replace_threads(connection, threads, gone, source, report)
        return report

    def ids_of(self, source: str) -> list[str]:
        """Return the ids of the questions that came from a source."""
        wanted = "SELECT id FROM questions JOIN sources ON sources.num = source WHERE name = ? ORDER BY questions.num"
        if not rows.is_storable(source):
            return []
        return [row[0] for row in self.rows(wanted, (source,))]

    def put_links(self, links: Sequence[Link]) -> int:
        """Store links; return how many were new. Raise UnknownIdError where an end is not there."""
        with self.write() as connection:
            return writes.put_manual_links(connection, links)

    def mark(self, duplicate: str, original: str) -> bool:
        """Link a duplicate; return whether that is new. Raise InputError for a circle, or an original that is none."""
        with self.write() as connection:  # looked at in the same transaction: two may mark each other's at once
            refuse_chain(self.originals_of([original, duplicate]), duplicate, original)
            return writes.put_manual_links(connection, [Link(duplicate, original)]) > 0

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

    def changes(self, after: int, limit: int, kinds: Collection[RecordKind] = COMPARED_KINDS) -> list[Change]:
        """Return the changes of these kinds with seq > ``after``, oldest first, at most ``limit``.

        A change of a link or a judgement is there while its first question is.
        """
        changed = _CHANGES_AFTER.format(", ".join("?" * len(kinds)))
        wanted = f"SELECT seq, operation, coalesce(changes.num, questions.num), kind {changed} ORDER BY seq LIMIT ?"
        return [Change(*row) for row in self.rows(wanted, (after, *kinds, limit))]

    def count_changes(self, after: int, kinds: Collection[RecordKind] = COMPARED_KINDS) -> int:
        """Return how many changes of these kinds an index at ``after`` has not seen."""
        changed = _CHANGES_AFTER.format(", ".join("?" * len(kinds)))
        return int(self.rows(f"SELECT count(*) {changed}", (after, *kinds))[0][0])

    def shorten_log(self) -> int:
        """Delete changes of questions and answers that a later one of the same makes needless; return how many.

        Whoever follows the log takes each question in its newest state, so it does not matter how far anybody has
        come. That is done where the log has become twice as long as it would be, in short transactions.
        """
        logged, present = self.rows(
            "SELECT (SELECT count(*) FROM changes WHERE num IS NOT NULL),"
            " (SELECT count(*) FROM questions) + (SELECT count(*) FROM answers)"
        )[0]
        if logged <= 2 * present + SHORT_LOG:
            return 0
        needless = self.rows(
            "SELECT seq FROM (SELECT seq, row_number() OVER (PARTITION BY kind, num ORDER BY seq DESC) AS place"
            " FROM changes WHERE num IS NOT NULL) AS numbered WHERE place > 1 ORDER BY seq"
        )
        for start in range(0, len(needless), SHORT_LOG):
            together = [row[0] for row in needless[start : start + SHORT_LOG]]
            with self.write() as connection:
                for first in range(0, len(together), BATCH):
                    batch = together[first : first + BATCH]
                    connection.execute(f"DELETE FROM changes WHERE seq IN ({', '.join('?' * len(batch))})", batch)
        return len(needless)

    # -- questions ---------------------------------------------------------------------------------------------

    def question(self, identifier: str) -> Question:
        """Return one question; raise UnknownIdError where it is not there."""
        questions = self.questions_by_id([identifier])
        if not questions:
            raise rows.unknown_id("question", identifier)
        return questions[identifier]

    def questions_by_num(self, nums: Sequence[int]) -> dict[int, Question]:
        """Return the questions with these numbers; numbers that are gone are left out."""
        found_rows = self._rows_of(f"SELECT num, {_QUESTION} FROM questions WHERE num IN ({{wanted}})", nums)
        return {row["num"]: rows.question_of(row) for row in found_rows}

    def ids_by_num(self, nums: Iterable[int]) -> dict[int, str]:
        """Return the ids of the questions with these numbers; numbers that are gone are left out."""
        return dict(self._rows_of("SELECT num, id FROM questions WHERE num IN ({wanted})", nums))

    def questions_by_id(self, ids: Sequence[str]) -> dict[str, Question]:
        """Return the questions with these ids; ids that are not there are left out."""
        found_rows = self._rows_of_ids(f"SELECT {_QUESTION} FROM questions WHERE id IN ({{wanted}})", ids)
        return {row["id"]: rows.question_of(row) for row in found_rows}

    def nums_by_id(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the numbers of those ids that are there."""
        return dict(self._rows_of_ids("SELECT id, num FROM questions WHERE id IN ({wanted})", ids))

    def language_counts(self) -> dict[str, int]:
        """Return the languages of the questions whose language is known → how many, the most frequent first."""
        wanted = "SELECT language, count(*) AS times FROM questions WHERE language <> '' GROUP BY language"
        return {row[0]: row[1] for row in self.rows(f"{wanted} ORDER BY times DESC, language")}

    def numbers(
        self,
        *,
        is_answered: bool | None = None,
        is_closed: bool | None = None,
        languages: Sequence[str] = (),
        among: Sequence[int] | None = None,
    ) -> list[int]:
        """Return the numbers of all questions, or of those that are (not) answered or closed, or in one of these
        languages, ascending.

        Args:
            among: only of these, some hundred at most; None for all.
        """
        conditions_of = {
            "id IN (SELECT question_id FROM answers)": is_answered,
            "closed_us IS NOT NULL": is_closed,
        }
        conditions = [
            condition if is_so else f"NOT ({condition})"
            for condition, is_so in conditions_of.items()
            if is_so is not None
        ]
        if languages:
            conditions.append(f"language <> '' AND language IN ({', '.join('?' * len(languages))})")
        if among is not None:
            conditions.append(f"num IN ({', '.join('?' * len(among))})")
        wanted = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        values = (*languages, *(among or ()))
        return [row[0] for row in self.rows(f"SELECT num FROM questions {wanted} ORDER BY num", values)]

    def all_questions(self) -> Iterator[tuple[int, Question]]:
        """Yield (number, question) in the order of numbers, without holding them all."""
        wanted, after = f"SELECT num, {_QUESTION} FROM questions WHERE num > ? ORDER BY num LIMIT ?", 0
        while batch := self.rows(wanted, (after, BATCH)):
            for row in batch:
                yield row["num"], rows.question_of(row)
            after = batch[-1]["num"]

    def newest_questions(self, before: int = 0) -> Iterator[tuple[int, Question]]:
        """Yield (number, question) for numbers < ``before``, or all for 0, the last first, without holding them all."""
        wanted = f"SELECT num, {_QUESTION} FROM questions WHERE num < ? ORDER BY num DESC LIMIT ?"
        while batch := self.rows(wanted, (before or _LAST, BATCH)):
            for row in batch:
                yield row["num"], rows.question_of(row)
            before = batch[-1]["num"]

    def count_questions(self, before: int = 0) -> int:
        """Return how many questions have a number < ``before``; all for 0."""
        if not before:  # without reading the table
            return int(self.rows("SELECT count(*) FROM questions")[0][0])
        return int(self.rows("SELECT count(*) FROM questions WHERE num < ?", (before,))[0][0])

    def page_by_date(self, limit: int, after: Position | None = None) -> list[tuple[Position, Question]]:
        """Return questions, newest first by date; those without a date are last, the last stored first.

        Args:
            after: only those behind this position, whether or not its question is still there.
        """
        moment, num = after or (_LAST, _LAST)
        entries: list[Any] = []
        if moment is not None:
            entries += self.rows(
                f"SELECT num, {_QUESTION} FROM questions WHERE created_us IS NOT NULL AND (created_us, num) < (?, ?)"
                " ORDER BY created_us DESC, num DESC LIMIT ?",
                (moment, num, limit),
            )
            num = _LAST
        if len(entries) < limit:
            entries += self.rows(
                f"SELECT num, {_QUESTION} FROM questions WHERE created_us IS NULL AND num < ? ORDER BY num DESC"
                " LIMIT ?",
                (num, limit - len(entries)),
            )
        return [((row["created_us"], row["num"]), rows.question_of(row)) for row in entries]

    # -- answers and links -------------------------------------------------------------------------------------

    def answers_of(self, ids: Sequence[str]) -> dict[str, list[Answer]]:
        """Return the answers of each of these questions, best first; questions without answers are left out.

        Accepted answers come first, then those with most votes, then the oldest, then by id.
        """
        answers: dict[str, list[Answer]] = {}
        for row in self._rows_of_ids(
            f"SELECT {_ANSWER} FROM answers WHERE question_id IN ({{wanted}})"
            f" AND {HERE.format('question_id')}"
            " ORDER BY is_accepted DESC, coalesce(score, 0) DESC, coalesce(created_us, 0), id",
            ids,
        ):
            answers.setdefault(row["question_id"], []).append(rows.answer_of(row))
        return answers

    def answer_counts(self, ids: Sequence[str]) -> dict[str, int]:
        """Return how many answers each of these questions has; questions without answers are left out."""
        return dict(
            self._rows_of_ids(
                "SELECT question_id, count(*) FROM answers WHERE question_id IN ({wanted})"
                f" AND {HERE.format('question_id')} GROUP BY question_id",
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
        ((questions, first_us, last_us),) = self.rows(
            "SELECT count(*), min(created_us), max(created_us) FROM questions"
        )
        links = dict.fromkeys(("duplicate", "related", None), 0) | dict(
            self.rows(
                f"SELECT CASE WHEN {HERE.format('source_id')} AND {HERE.format('target_id')} THEN kind END AS known,"
                " count(*) FROM links GROUP BY known"
            )
        )
        ((answered, answers, apart),) = self.rows(
            "SELECT count(*) FILTER (WHERE here), CAST(coalesce(sum(times) FILTER (WHERE here), 0) AS BIGINT),"
            " CAST(coalesce(sum(times) FILTER (WHERE NOT here), 0) AS BIGINT) FROM (SELECT count(*) AS times,"
            f" {HERE.format('question_id')} AS here FROM answers GROUP BY question_id) AS answered"
        )
        ((judged, judged_apart),) = self.rows(
            "SELECT count(*) FILTER (WHERE here), count(*) FILTER (WHERE NOT here)"
            f" FROM (SELECT {BOTH_HERE} AS here FROM feedback) AS judged"
        )
        return Counts(
            questions=questions,
            answers=answers,
            duplicates=links["duplicate"],
            related=links["related"],
            questions_with_answer=answered,
            first_us=first_us,
            last_us=last_us,
            judgements=judged,
            answers_without_question=apart,
            links_without_question=links[None],
            judgements_without_question=judged_apart,
        )
