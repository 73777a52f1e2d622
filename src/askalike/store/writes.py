"""Changes to rows, each logged, inside a transaction that the caller holds.

Shared by the store's own methods and the bulk load, so that a row is written and logged in one way only.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

from askalike.errors import InputError
from askalike.store import rows
from askalike.store.database import Connection
from askalike.store.values import MANUAL_SOURCE, LoadCounts, LoadReport, Operation, RecordKind
from askalike.types import Answer, Feedback, Link, Question, Source, Thread

PostKind = Literal["question", "answer"]


OF_PAIR = "((question_id = ? AND candidate_id = ?) OR (question_id = ? AND candidate_id = ?))"
_QUESTION_OF = {"question": "id", "answer": "question_id"}
LOGGED = {
    "questions": "{0}.id, {0}.num",
    "answers": "{0}.question_id, (SELECT num FROM questions WHERE questions.id = {0}.question_id)",
    "links": "{0}.source_id, NULL",
}
"""How the log names the question that a row of a table is about: its id and its number."""


def source_number(connection: Connection, name: str, form: str) -> int:
    """Return the number of a source, made at its first use."""
    connection.execute("INSERT INTO sources (name, format) VALUES (?, ?) ON CONFLICT DO NOTHING", (name, form))
    return int(connection.execute("SELECT num FROM sources WHERE name = ?", (name,)).fetchone()[0])


def log_change(
    connection: Connection, kind: RecordKind, operation: Operation, identifier: str, num: int | None
) -> None:
    """Append one entry to the change log.

    Args:
        identifier: of the question that it is about.
        num: that question's; None leaves it to whoever reads the log.
    """
    connection.execute(
        "INSERT INTO changes (at_us, kind, operation, id, num) VALUES (?, ?, ?, ?, ?)",
        (time.time_ns() // 1000, kind, operation, identifier, num),
    )


def put_questions(
    connection: Connection, questions: Sequence[Question], *, are_new: bool = False
) -> dict[str, Operation]:
    """Add or edit questions; return for each id that changed which of both.

    Raises:
        InputError: a value cannot be stored; or an id is known, and ``are_new``.
    """
    source = source_number(connection, MANUAL_SOURCE, "manual")
    done: dict[str, Operation] = {}
    for question in questions:
        values = rows.question_values(question)
        if are_new and has_question(connection, question.id):
            raise InputError(f"the id {question.id!r} is taken already", "edit that question, or choose another id")
        operation = _put(connection, "question", question.id, values, source)
        if operation is not None:
            done.setdefault(question.id, operation)
    return done


def put_detected(connection: Connection, identifier: str, language: str, *, is_logged: bool) -> None:
    """Store the language that a question was found to be in, unless somebody said it."""
    connection.execute(
        "UPDATE questions SET language = ?, is_language_detected = ? WHERE id = ? AND language <> ?"
        " AND (language = '' OR is_language_detected = 1)",
        (language, int(bool(language)), identifier, language),
    )
    row = connection.execute("SELECT num FROM questions WHERE id = ?", (identifier,)).fetchone()
    if row is not None and is_logged:
        log_change(connection, "question", "edit", identifier, row["num"])


def put_answers(connection: Connection, answers: Sequence[Answer], *, are_new: bool) -> dict[str, Operation]:
    """Add or edit answers; return for each id that changed which of both.

    Raises:
        UnknownIdError: an answer's question is not there.
        InputError: a value cannot be stored; or an id is known, and ``are_new``.
    """
    source = source_number(connection, MANUAL_SOURCE, "manual")
    done: dict[str, Operation] = {}
    for answer in answers:
        values = rows.answer_values(answer)
        require_question(connection, answer.question_id)
        if are_new and connection.execute("SELECT 1 FROM answers WHERE id = ?", (answer.id,)).fetchone():
            raise InputError(f"the answer id {answer.id!r} is taken already", "choose another id")
        operation = _put(connection, "answer", answer.id, values, source)
        if operation is not None:
            done.setdefault(answer.id, operation)
    return done


def _put(
    connection: Connection, kind: PostKind, identifier: str, values: tuple[rows.Value, ...], source: int
) -> Operation | None:
    """Insert or update one question or answer and log it; return None when nothing of it changed.

    A record stays with the source that it came from first.
    """
    table = f"{kind}s"
    columns = rows.POSTS[table]
    fresh = rows.digest(values)
    question = str(values[columns.index(_QUESTION_OF[kind])])
    wanted = f"SELECT num, digest, {_QUESTION_OF[kind]} AS question FROM {table} WHERE id = ?"
    known = connection.execute(wanted, (identifier,)).fetchone()
    if known is None:
        names = ", ".join((*columns, "source", "digest"))
        marks = ", ".join("?" * (len(columns) + 2))
        connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", (*values, source, fresh))
        _log_post(connection, kind, "add", question)
        return "add"
    if known["digest"] == fresh:
        return None
    assignments = ", ".join(f"{name} = ?" for name in (*columns, "digest"))
    connection.execute(f"UPDATE {table} SET {assignments} WHERE num = ?", (*values, fresh, known["num"]))
    _log_post(connection, kind, "edit", question)
    if known["question"] != question:  # an answer of another one
        _log_post(connection, kind, "delete", known["question"])
    return "edit"


def _log_post(connection: Connection, kind: PostKind, operation: Operation, question: str) -> None:
    """Log what happened to a question that is there, or to an answer to one."""
    row = connection.execute("SELECT num FROM questions WHERE id = ?", (question,)).fetchone()
    log_change(connection, kind, operation, question, None if row is None else row["num"])


def put_links(connection: Connection, links: Sequence[Link], *, is_claimed: bool = True) -> int:
    """Store links, each logged under its source's id; return how many were new.

    Args:
        is_claimed: whoever makes them makes them to stay, whatever becomes of a decision that made them before.

    Raises:
        UnknownIdError: an end of a link is not there.
    """
    source = source_number(connection, MANUAL_SOURCE, "manual")
    added = 0
    for link in links:
        require_question(connection, link.source_id)
        require_question(connection, link.target_id)
        key = (link.source_id, link.target_id, link.kind)
        if connection.execute("INSERT INTO links VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", (*key, source)).rowcount:
            added += 1
            log_change(connection, "link", "add", link.source_id, None)
        if is_claimed:
            claim_link(connection, link)
    return added


def claim_link(connection: Connection, link: Link) -> None:
    """Keep a link that a decision made when that is undone: somebody else says the same."""
    if link.kind != "duplicate":
        return
    connection.execute(
        "UPDATE moderation SET made_link = 0 WHERE made_link = 1 AND question_id = ? AND candidate_id = ?",
        (link.source_id, link.target_id),
    )


def put_feedback(connection: Connection, judgement: Feedback, at_us: int) -> None:
    """Store a judgement of a moment, logged under both questions."""
    pair = (judgement.question_id, judgement.candidate_id)
    chances = (
        None if chance is None else float(chance) for chance in (judgement.draw.probability, judgement.draw.propensity)
    )
    connection.execute(
        "INSERT INTO feedback (question_id, candidate_id, verdict, judge, at_us, draw, probability, propensity)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*pair, judgement.verdict, judgement.by, at_us, judgement.draw.by, *chances),
    )
    for identifier in pair:
        log_change(connection, "feedback", "add", identifier, None)


def put_judgement(connection: Connection, judgement: Feedback, now_us: int) -> int:
    """Store what somebody judges now, and return its moment: after those of the pair, whatever a clock said."""
    pair = (judgement.question_id, judgement.candidate_id)
    newest = connection.execute(f"SELECT max(at_us) FROM feedback WHERE {OF_PAIR}", (*pair, *pair[::-1])).fetchone()[0]
    at_us = now_us if newest is None else max(now_us, min(newest + 1, rows.LAST_US))
    put_feedback(connection, judgement, at_us)
    return at_us


def delete_question(connection: Connection, identifier: str) -> None:
    """Delete one question with its answers, links and judgements, as a person wants it, and log it."""
    remove_question(connection, identifier)
    connection.execute("DELETE FROM answers WHERE question_id = ?", (identifier,))
    connection.execute("DELETE FROM links WHERE source_id = ? OR target_id = ?", (identifier, identifier))
    for table in ("feedback", "moderation", "outbox"):
        connection.execute(f"DELETE FROM {table} WHERE question_id = ? OR candidate_id = ?", (identifier, identifier))
    connection.execute("DELETE FROM helped WHERE question_id = ?", (identifier,))


def remove_question(connection: Connection, identifier: str) -> bool:
    """Delete one question alone and log it; return whether it was there.

    What others said of it waits for its return: it has no effect while the question is not there.
    """
    gone = connection.execute("DELETE FROM questions WHERE id = ? RETURNING num", (identifier,)).fetchone()
    if gone is not None:
        log_change(connection, "question", "delete", identifier, gone["num"])
    return gone is not None


def delete_answer(connection: Connection, identifier: str) -> bool:
    """Delete one answer and log it; return whether it was there: it may have gone with its question."""
    gone = connection.execute("DELETE FROM answers WHERE id = ? RETURNING question_id", (identifier,)).fetchone()
    if gone is not None:
        _log_post(connection, "answer", "delete", gone["question_id"])
    return gone is not None


def delete_link(connection: Connection, link: Link) -> bool:
    """Delete one link and log it under its source's id; return whether it was there: it may go with a question."""
    gone = connection.execute(
        "DELETE FROM links WHERE source_id = ? AND target_id = ? AND kind = ? RETURNING source_id",
        (link.source_id, link.target_id, link.kind),
    ).fetchone()
    if gone is not None:
        log_change(connection, "link", "delete", link.source_id, None)
    return gone is not None


def delete_where(connection: Connection, table: str, condition: str, values: Sequence[object] = ()) -> int:
    """Delete rows of ``questions``, ``answers`` or ``links``, each logged; return how many."""
    kind, logged = table.removesuffix("s"), LOGGED[table].format(table)
    log = f"INSERT INTO changes (at_us, kind, operation, id, num) SELECT ?, ?, 'delete', {logged} FROM {table}"
    connection.execute(f"{log} WHERE {condition}", (time.time_ns() // 1000, kind, *values))
    return connection.execute(f"DELETE FROM {table} WHERE {condition}", values).rowcount


def replace_threads(
    connection: Connection, threads: Sequence[Thread], gone: Sequence[str], source: Source, report: LoadReport
) -> None:
    """Make the tables hold these threads of a source, and none of those that are gone; count in ``report``.

    Raises:
        InputError: a question or an answer with this id came from elsewhere, or a value cannot be stored.
    """
    num = source_number(connection, source.name, source.format)
    for thread in threads:
        question = thread.question
        _count(report.questions, _put_owned(connection, "question", question.id, rows.question_values(question), num))
    for thread in threads:  # an answer may have moved from one to another
        for answer in thread.answers:
            _count(report.answers, _put_owned(connection, "answer", answer.id, rows.answer_values(answer), num))
    for thread in threads:
        kept = {answer.id for answer in thread.answers}
        report.answers.deleted += _drop_answers(connection, thread.question.id, num, kept)
        _replace_links(connection, thread, num, report.links)
    for identifier in gone:
        if connection.execute("SELECT 1 FROM questions WHERE id = ? AND source = ?", (identifier, num)).fetchone():
            report.questions.deleted += remove_question(connection, identifier)
            report.answers.deleted += _drop_answers(connection, identifier, num, set())
            _replace_links(connection, Thread(Question(identifier, "")), num, report.links)


def _put_owned(
    connection: Connection, kind: PostKind, identifier: str, values: tuple[rows.Value, ...], source: int
) -> Operation | None:
    table = f"{kind}s"
    owner = connection.execute(
        f"SELECT name FROM {table} JOIN sources ON sources.num = source WHERE id = ? AND source <> ?",
        (identifier, source),
    ).fetchone()
    if owner is not None:
        hint = "use a forum of its own"
        if owner["name"] != MANUAL_SOURCE:
            hint += f"; or, if that is the same forum, name it as the source: --source {owner['name']!r}"
        problem = (
            f"the forum's {kind} {identifier!r} came from {owner['name']!r}, and another with this id is to be stored"
        )
        raise InputError(problem, hint)
    return _put(connection, kind, identifier, values, source)


def _count(counts: LoadCounts, operation: Operation | None) -> None:
    counts.added += operation == "add"
    counts.edited += operation == "edit"
    counts.unchanged += operation is None


def _drop_answers(connection: Connection, question: str, source: int, kept: set[str]) -> int:
    previous = connection.execute("SELECT id FROM answers WHERE question_id = ? AND source = ?", (question, source))
    return sum(delete_answer(connection, row["id"]) for row in previous.fetchall() if row["id"] not in kept)


def _replace_links(connection: Connection, thread: Thread, source: int, counts: LoadCounts) -> None:
    cursor = connection.execute(
        "SELECT source_id, target_id, kind FROM links WHERE source_id = ? AND source = ?", (thread.question.id, source)
    )
    links = {Link(row[0], row[1], row[2]) for row in cursor.fetchall()}
    for link in thread.links:
        if link not in links:
            key = (link.source_id, link.target_id, link.kind, source)
            if connection.execute("INSERT INTO links VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", key).rowcount:
                counts.added += 1
                log_change(connection, "link", "add", link.source_id, None)
            claim_link(connection, link)
    counts.deleted += sum(delete_link(connection, link) for link in links - set(thread.links))


def has_question(connection: Connection, identifier: str) -> bool:
    """Return whether the question is there; one with half a surrogate pair in its id, as from a shell, cannot be."""
    if not rows.is_storable(identifier):
        return False
    return connection.execute("SELECT 1 FROM questions WHERE id = ?", (identifier,)).fetchone() is not None


def require_question(connection: Connection, identifier: str) -> None:
    """Raise UnknownIdError unless the question is there."""
    if not has_question(connection, identifier):
        raise rows.unknown_id("question", identifier)
