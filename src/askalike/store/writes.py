"""Changes to rows, each logged, inside a transaction that the caller holds.

Shared by the store's own methods and the bulk load, so that a row is written and logged in one way only.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
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
    connection: Connection, kind: RecordKind, operation: Operation, identifier: str, num: int | None = None
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


def put_posts(
    connection: Connection, posts: Sequence[Question | Answer], *, are_new: bool = False
) -> dict[str, Operation]:
    """Add or edit questions or answers; return for each id that changed which of both.

    Raises:
        UnknownIdError: an answer's question is not there.
        InputError: a value cannot be stored; or an id is known, and ``are_new``.
    """
    source = source_number(connection, MANUAL_SOURCE, "manual")
    done: dict[str, Operation] = {}
    for post in posts:
        if isinstance(post, Answer):
            require_question(connection, post.question_id)
        if operation := _put(connection, post, source, known_ids="refused" if are_new else "edited"):
            done.setdefault(post.id, operation)
    return done


def _put(
    connection: Connection,
    post: Question | Answer,
    source: int,
    known_ids: Literal["edited", "edited if owned", "refused"],
) -> Operation | None:
    """Insert or update one question or answer and log it; return None when nothing of it changed.

    A record stays with the source that it came from first.

    Raises:
        InputError: a value cannot be stored; or the id is known, and refused.
    """
    values = rows.values_of(post)
    kind: PostKind = "question" if isinstance(post, Question) else "answer"
    table, columns, fresh = f"{kind}s", rows.POSTS[f"{kind}s"], rows.digest(values)
    question = post.id if isinstance(post, Question) else post.question_id
    wanted = f"SELECT *, {_QUESTION_OF[kind]} AS question FROM {table} WHERE id = ?"
    known = connection.execute(wanted, (post.id,)).fetchone()
    if known is None:
        names = ", ".join((*columns, "source", "digest"))
        marks = ", ".join("?" * (len(columns) + 2))
        connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", (*values, source, fresh))
        log_post(connection, kind, "add", question)
        return "add"
    if known_ids == "refused":
        raise InputError(f"the {kind} id {post.id!r} is taken already", f"edit that {kind}, or choose another id")
    if known_ids == "edited if owned" and known["source"] != source:
        raise _contested(connection, kind, post.id, known["source"])
    if known["digest"] == fresh:
        return None
    assignments = ", ".join(f"{name} = ?" for name in (*columns, "digest"))
    connection.execute(f"UPDATE {table} SET {assignments} WHERE num = ?", (*values, fresh, known["num"]))
    row = dict(zip(columns, values, strict=True))
    is_compared = kind == "answer" or any(known[name] != row[name] for name in rows.COMPARED_COLUMNS)
    log_post(connection, kind if is_compared else "details", "edit", question)
    if known["question"] != question:  # an answer of another one
        log_post(connection, kind, "delete", known["question"])
    return "edit"


def _contested(connection: Connection, kind: PostKind, identifier: str, source: int) -> InputError:
    owner = connection.execute("SELECT name FROM sources WHERE num = ?", (source,)).fetchone()["name"]
    hint = "use a forum of its own"
    if owner != MANUAL_SOURCE:
        hint += f"; or, if that is the same forum, name it as the source: --source {owner!r}"
    problem = f"the forum's {kind} {identifier!r} came from {owner!r}, and another with this id is to be stored"
    return InputError(problem, hint)


def log_post(connection: Connection, kind: RecordKind, operation: Operation, question: str) -> None:
    """Log what happened to a question that is there, or to an answer to one."""
    row = connection.execute("SELECT num FROM questions WHERE id = ?", (question,)).fetchone()
    log_change(connection, kind, operation, question, None if row is None else row["num"])


def put_links(connection: Connection, links: Iterable[Link], source: int, *, is_claimed: bool = True) -> int:
    """Store links, each logged under its source's id; return how many were new.

    Args:
        is_claimed: whoever makes them makes them to stay, whatever becomes of a decision that made them before.

    Raises:
        InputError: one cannot be stored.
    """
    added = 0
    for link in links:
        rows.check_link(link)
        pair = (link.source_id, link.target_id)
        put = "INSERT INTO links VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
        if connection.execute(put, (*pair, link.kind, source)).rowcount:
            added += 1
            log_change(connection, "link", "add", link.source_id)
        if is_claimed and link.kind == "duplicate":  # it stays when a decision that made it is undone
            connection.execute(
                "UPDATE moderation SET made_link = 0 WHERE made_link = 1 AND question_id = ? AND candidate_id = ?", pair
            )
    return added


def put_manual_links(connection: Connection, links: Sequence[Link], *, is_claimed: bool = True) -> int:
    """Store links that a person or a program makes; return how many were new; see ``put_links``.

    Raises:
        UnknownIdError: an end of a link is not there.
        InputError: one cannot be stored.
    """
    for link in links:
        require_question(connection, link.source_id)
        require_question(connection, link.target_id)
    source = source_number(connection, MANUAL_SOURCE, "manual")
    return put_links(connection, links, source, is_claimed=is_claimed)


def put_feedback(connection: Connection, judgement: Feedback, at_us: int) -> None:
    """Store a judgement of a moment, logged under both questions."""
    pair = (judgement.question_id, judgement.candidate_id)
    chance = judgement.draw.probability
    connection.execute(
        "INSERT INTO feedback (question_id, candidate_id, verdict, judge, at_us, draw, probability)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*pair, judgement.verdict, judgement.by, at_us, judgement.draw.by, None if chance is None else float(chance)),
    )
    for identifier in pair:
        log_change(connection, "feedback", "add", identifier)


def put_judgement(connection: Connection, judgement: Feedback, now_us: int) -> int:
    """Store what somebody judges now, and return its moment: after those of the pair, whatever a clock said."""
    pair = (judgement.question_id, judgement.candidate_id)
    newest = connection.execute(f"SELECT max(at_us) FROM feedback WHERE {OF_PAIR}", (*pair, *pair[::-1])).fetchone()[0]
    at_us = now_us if newest is None else max(now_us, min(newest + 1, rows.LAST_US))
    put_feedback(connection, judgement, at_us)
    return at_us


def delete_question(connection: Connection, identifier: str) -> None:
    """Delete one question with its answers, links and judgements, as a person wants it, and log it."""
    delete_where(connection, "questions", "id = ?", (identifier,))
    connection.execute("DELETE FROM answers WHERE question_id = ?", (identifier,))
    connection.execute("DELETE FROM links WHERE source_id = ? OR target_id = ?", (identifier, identifier))
    for table in ("feedback", "moderation", "outbox"):
        connection.execute(f"DELETE FROM {table} WHERE question_id = ? OR candidate_id = ?", (identifier, identifier))
    connection.execute("DELETE FROM helped WHERE question_id = ?", (identifier,))


def delete_link(connection: Connection, link: Link) -> int:
    """Delete one link and log it; return 0 where it was not there."""
    key = (link.source_id, link.target_id, link.kind)
    return delete_where(connection, "links", "source_id = ? AND target_id = ? AND kind = ?", key)


def delete_where(connection: Connection, table: str, condition: str, values: Sequence[object] = ()) -> int:
    """Delete rows of ``questions``, ``answers`` or ``links`` alone, each logged; return how many.

    What others said of a question that is deleted waits for its return: it has no effect while it is not there.
    """
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
    posts: list[tuple[Question | Answer, LoadCounts]] = [(thread.question, report.questions) for thread in threads]
    posts += [(answer, report.answers) for thread in threads for answer in thread.answers]
    for post, counts in posts:
        operation = _put(connection, post, num, known_ids="edited if owned")
        counts.added += operation == "add"
        counts.edited += operation == "edit"
        counts.unchanged += operation is None
    for thread in threads:  # after all were put: an answer may have moved from one to another
        _replace_parts(connection, thread, num, report)
    for identifier in gone:
        if delete_where(connection, "questions", "id = ? AND source = ?", (identifier, num)):
            report.questions.deleted += 1
            _replace_parts(connection, Thread(Question(identifier, "")), num, report)


def _replace_parts(connection: Connection, thread: Thread, source: int, report: LoadReport) -> None:
    """Make a source's answers to a question, and its links from it, those of a thread; its answers are stored."""
    identifier = thread.question.id
    stored = connection.execute("SELECT id FROM answers WHERE question_id = ? AND source = ?", (identifier, source))
    gone = {row["id"] for row in stored.fetchall()} - {answer.id for answer in thread.answers}
    report.answers.deleted += sum(delete_where(connection, "answers", "id = ?", (answer,)) for answer in sorted(gone))
    stored = connection.execute(
        "SELECT source_id, target_id, kind FROM links WHERE source_id = ? AND source = ?", (identifier, source)
    )
    links = {Link(*row) for row in stored.fetchall()}
    report.links.added += put_links(connection, (link for link in thread.links if link not in links), source)
    report.links.deleted += sum(delete_link(connection, link) for link in links - set(thread.links))


def require_question(connection: Connection, identifier: str) -> None:
    """Raise UnknownIdError unless the question is there; half a surrogate pair, as from a shell, is in no id."""
    wanted = "SELECT 1 FROM questions WHERE id = ?"
    if not rows.is_storable(identifier) or connection.execute(wanted, (identifier,)).fetchone() is None:
        raise rows.unknown_id("question", identifier)
