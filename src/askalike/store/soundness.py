"""Whether a store's file holds what was written: read without writing to it, damaged or not.

SQLite keeps no sums of its pages. What it cannot notice, such as a changed letter of a text, is found by the digest
that each question and answer has beside it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final, get_args

from askalike.progress import Progress
from askalike.store import rows
from askalike.store.layout import ForumLayout
from askalike.store.sqlite import SCHEMA
from askalike.store.sqlite_file import foreign_schema, open_reader
from askalike.store.values import STORE_KEYS, Contents
from askalike.types import DrawnBy, LinkKind, LogKind, Verdict, WriteState

_MOST_MESSAGES: Final = 100
_KINDS: Final = (
    ("links", "kind", get_args(LinkKind)),
    ("feedback", "verdict", get_args(Verdict)),
    ("feedback", "draw", get_args(DrawnBy)),
    ("moderation", "kind", get_args(LogKind)),
    ("outbox", "state", get_args(WriteState)),
)
"""Table, column, and what the column may hold."""
_PAGE: Final = 500
_CHANGES: Final = "SELECT seq, num FROM changes WHERE kind = 'question' AND num IS NOT NULL"


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an SQLite file in a way in which nothing can be written to it, also on a disk that may only be read."""
    with closing(open_reader(path)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        yield connection


def read_contents(rows: Callable[[str], Iterable[Any]]) -> Contents:
    """Return what indexes are compared with.

    Args:
        rows: returns what a statement finds.
    """
    [[last]] = rows("SELECT coalesce(max(seq), 0) FROM changes")
    return Contents(
        frozenset(row[0] for row in rows("SELECT num FROM questions")),
        int(last),
        tuple((row[0], row[1]) for row in rows(_CHANGES)),
        {row[0]: row[1] for row in rows("SELECT key, value FROM settings") if row[0] not in STORE_KEYS},
        {row[0]: row[1] for row in rows("SELECT num, language FROM questions WHERE language <> ''")},
    )


def stored_contents(layout: ForumLayout) -> Contents:
    """Return what indexes are compared with, as it is at one moment.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    with _opened(layout.archive) as connection:
        connection.execute("BEGIN")
        return read_contents(connection.execute)


def stored_faults(layout: ForumLayout, progress: Progress) -> Iterator[str]:
    """Yield what is wrong with a forum's SQLite archive; see ``store.stored_faults``, which also reads PostgreSQL."""
    try:
        with _opened(layout.archive) as connection:
            yield from _faults(connection, progress)
    except (sqlite3.Error, OSError) as error:
        yield f"cannot be read: {error}"


def _faults(connection: sqlite3.Connection, progress: Progress) -> Iterator[str]:
    try:
        if foreign := foreign_schema(connection):
            yield from (f"it holds {name}, which askalike does not make" for name in foreign)
            return
        yield from _structure(connection)
    except (sqlite3.Error, UnicodeError) as error:
        yield f"it cannot be read as a database: {error}"
        return
    yield from row_faults(connection.execute, progress)


def row_faults(select: Callable[[str, Sequence[object]], Iterable[Any]], progress: Progress) -> Iterator[str]:
    """Yield what is wrong with the rows of a store: posts that are not what was written, and unknown kinds.

    Args:
        select: returns what a statement finds with these values.
    """
    for table, columns in rows.POSTS.items():
        last = 0
        page = f"SELECT num, digest, {', '.join(columns)} FROM {table} WHERE num > ? ORDER BY num LIMIT {_PAGE}"
        try:
            [[size]] = select(f"SELECT count(*) FROM {table}", ())
            progress.start("checking the archive", size, table)
            while (batch := list(select(page, (last,)))) and batch[-1]["num"] > last:  # damage may turn them round
                yield from filter(None, (rows.post_fault(table, row) for row in batch))
                last = batch[-1]["num"]
                progress.advance(len(batch))
        except sqlite3.Error as error:
            yield f"its {table} cannot be read to the end: {error}"
    for table, column, known in _KINDS:
        odd = f"SELECT count(*) FROM {table} WHERE {column} NOT IN ({', '.join('?' * len(known))})"
        try:
            [[count]] = select(odd, known)
        except sqlite3.Error as error:
            yield f"its {table} cannot be read: {error}"
            continue
        if count:
            yield f"{count:,} rows of {table} have another {column} than {', '.join(known)}"


def _structure(connection: sqlite3.Connection) -> Iterator[str]:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if (application, version) != (SCHEMA.application, SCHEMA.format):
        expected = f"{SCHEMA.application:#x} and {SCHEMA.format}"
        yield f"it is of program {application:#x} and format {version}, expected {expected}"
    messages = [row[0] for row in connection.execute(f"PRAGMA integrity_check({_MOST_MESSAGES})")]
    yield from (message for message in messages if message != "ok")
    for row in islice(connection.execute("PRAGMA foreign_key_check"), _MOST_MESSAGES):
        yield f"row {row[1]} of {row[0]} names a row of {row[2]} that is not there"
    for key, value in connection.execute("SELECT key, value FROM settings"):
        try:
            json.loads(value)
        except ValueError:
            yield f"the setting {key!r} is {value[:100]!r}, which is no JSON"


def pair_faults(layout: ForumLayout, last_change: Callable[[], int | None]) -> Iterator[str]:
    """Yield what is wrong with a forum's likely pairs, without writing to them.

    Args:
        last_change: returns the last of the forum's store; None where it cannot be read. It is called at the end.
    """
    try:
        with _opened(layout.pairs) as connection:
            messages = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
            yield from (message for message in messages if message != "ok")
            if not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
                return  # whoever created the file was stopped before its tables: they are made when it is opened
            odd = "score NOT BETWEEN 0 AND 1 OR cosine NOT BETWEEN -1.001 AND 1.001 OR first >= second"
            if count := connection.execute(f"SELECT count(*) FROM pairs WHERE {odd}").fetchone()[0]:
                yield f"holds {count:,} pairs with scores or numbers that cannot be"
            applied = int(dict(connection.execute("SELECT key, value FROM state").fetchall()).get("applied", 0))
            last = last_change()
            if last is not None and applied > last:
                yield f"has seen change {applied}, and the archive's last is {last}"
    except (sqlite3.Error, ValueError, UnicodeError, OSError) as error:
        yield f"cannot be read: {error}"
