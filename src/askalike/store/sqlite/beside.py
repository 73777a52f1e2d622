"""Tables beside those of an archive, in its file, that nobody reads: how they are made, filled in parts, and dropped.

A load that would write too much in one transaction fills them in short ones, and then gives them the names of the
archive's own. ``loaded_questions`` and so on hold a first load (``sqlite.staging``), ``loaded_new_questions`` what an
archive will hold after a large load (``sqlite.replacement``), ``loaded_old_questions`` what it held before one.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from askalike.store import writes
from askalike.store.sql import SqlStore

PREFIX: Final = "loaded_"
NEW: Final = f"{PREFIX}new_"
OLD: Final = f"{PREFIX}old_"
NOTES: Final = "noted_meanwhile"
"""What others have written while new tables were filled, as triggers note it: (kind, id, target, link). Neither its
name nor theirs has the prefix: a version that knows only first loads drops what has it, and a trigger without its
table would refuse every write."""
STATE: Final = f"{NEW}state"
"""How far new tables are filled: (table, first, last). For each table the last number that is copied, and the last that
will be; "source" and its number; "log" and the last number of the log before the load's; "given questions" and so on,
once for each load that has filled them, the numbers after the first that are kept free for it."""
TRIGGERS: Final = "noted_"
TABLES: Final = ("questions", "answers", "links", "changes")
KINDS: Final[Mapping[str, writes.PostKind]] = {"questions": "question", "answers": "answer"}
KEYS: Final = {"questions": "num", "answers": "num", "links": "source_id, target_id, kind", "changes": "seq"}
WEIGHTS: Final = {"questions": "length(body)", "answers": "length(body)", "changes": "0"}
"""How many characters of text a row has."""
LEFT_OUT: Final = 1_000_000
"""Sequence numbers of the log that are left to others while tables are filled."""
ROWS: Final = 10_000
"""So many are copied, written or deleted in a transaction."""
CHARACTERS: Final = 8_000_000
"""The same, of texts."""
PAUSE_S: Final = 0.15
"""After each transaction: who waits to write tries again every tenth of a second, and is not to miss it."""


@contextlib.contextmanager
def step(store: SqlStore) -> Iterator[None]:
    """Write in one of several transactions, and then let others write."""
    with store.write():
        yield
    time.sleep(PAUSE_S)


def parts(
    connection: sqlite3.Connection, table: str, key: str, last: int, end: int, weight: str
) -> Iterator[tuple[int, int]]:
    """Yield (after, last) of the keys of rows that are few, and short, enough for one transaction.

    Args:
        key: the column that holds the number of a row.
        last: numbers up to it are left out; those after ``end`` too.
        weight: how many characters of text a row has.
    """
    wanted = f"SELECT {key}, {weight} FROM {table} WHERE {key} > ? AND {key} <= ? ORDER BY {key} LIMIT {ROWS}"
    while True:
        before, characters = last, 0
        with contextlib.closing(connection.cursor()) as found:  # what is not read to its end keeps the log long
            for row in found.execute(wanted, (before, end)):
                last = row[0]
                characters += row[1]
                if characters >= CHARACTERS:
                    break
        if last == before:
            return
        yield before, last


def make(connection: sqlite3.Connection, table: str, new: str) -> None:
    """Make a table, and its indexes, as one of the archive's own; an index cannot be renamed, so names alternate."""
    found = connection.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE tbl_name = ? AND type IN ('table', 'index')"
        " AND sql IS NOT NULL ORDER BY type DESC",
        (table,),
    )
    for kind, name, statement in found.fetchall():
        other = new if kind == "table" else name[:-2] if name.endswith("_2") else f"{name}_2"
        begin = rf'^CREATE {kind.upper()} "?{name}"?'
        made = re.sub(begin, f"CREATE {kind.upper()} {other}", statement)
        connection.execute(re.sub(rf'ON "?{table}"?', f"ON {new}", made, count=1))


def reserve(store: SqlStore, connection: sqlite3.Connection, table: str, other: str, column: str = "num") -> int:
    """Let neither of two tables give a number again that the other has given; return the last one."""
    last = max(store.last_number(connection, one, column) for one in (table, other))
    for one in (table, other):
        store.keep_last_number(connection, one, column, last)
    return last


def named(connection: sqlite3.Connection, pattern: str, kind: str = "table") -> list[str]:
    """Return the names of tables, or of something else, that begin in this way."""
    found = connection.execute("SELECT name FROM sqlite_schema WHERE type = ? AND name GLOB ?", (kind, f"{pattern}*"))
    return [row[0] for row in found.fetchall()]


def posts(connection: sqlite3.Connection, prefix: str) -> list[str]:
    """Return those of the tables that hold questions or answers."""
    return [name for name in named(connection, prefix) if name.removeprefix(prefix) in KINDS]


def are_alike(connection: sqlite3.Connection, prefix: str) -> bool:
    """Return whether new tables have the columns of the archive's own: an upgrade may have changed these meanwhile."""
    columns = 'SELECT group_concat(name || type || "notnull") FROM pragma_table_info(?)'
    return all(
        connection.execute(columns, (table,)).fetchone()[0]
        == connection.execute(columns, (f"{prefix}{table}",)).fetchone()[0]
        for table in TABLES
    )


def is_replaced(connection: sqlite3.Connection) -> bool:
    """Return whether new tables are filled for an archive that holds questions, or something of that is left."""
    return any(named(connection, one) for one in (NEW, OLD, NOTES))


def drop_all(connection: sqlite3.Connection, store: SqlStore) -> None:
    """Drop all such tables, and the name of the source of a load that was not finished."""
    names = named(connection, PREFIX)
    if not names and not is_replaced(connection):
        return
    if triggers := named(connection, TRIGGERS, "trigger"):  # first: they need the table of notes
        with store.write():
            for name in triggers:
                connection.execute(f"DROP TRIGGER {name}")
    empty_replaced(connection, store)
    is_secure = connection.execute("PRAGMA secure_delete").fetchone()[0]
    connection.execute("PRAGMA secure_delete = FAST")  # or every page would be written
    try:
        with store.write():
            source = unfinished_source(connection)
            for name in names:
                connection.execute(f"DROP TABLE {name}")
            connection.execute(f"DROP TABLE IF EXISTS {NOTES}")
            if source:
                used = " OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE source = sources.num)" for table in TABLES[:3])
                connection.execute(f"DELETE FROM sources WHERE name = ? AND NOT ({used})", (source,))
    finally:
        connection.execute(f"PRAGMA secure_delete = {is_secure}")


def unfinished_source(connection: sqlite3.Connection) -> str:
    """Return the name of the source of which a load makes the first records that will be seen, or that a killed one
    has begun; "" for none."""
    held = {*named(connection, PREFIX), *named(connection, NOTES)}
    chosen = f"SELECT source FROM {PREFIX}questions LIMIT 1"
    for table, statement in (
        (f"{PREFIX}questions", f"SELECT name FROM sources WHERE num = ({chosen})"),
        (NOTES, f"SELECT id FROM {NOTES} WHERE kind = 'source'"),
    ):
        if table in held and (found := connection.execute(statement).fetchone()) is not None:
            return str(found[0])
    return ""


def empty_replaced(
    connection: sqlite3.Connection, store: SqlStore, advance: Callable[[int], object] = lambda _: None
) -> None:
    """Delete all rows of the tables that were replaced, in short transactions: dropping them would keep others waiting
    for as long as they are large.

    Args:
        advance: told how many more were deleted.
    """
    for name in named(connection, OLD):
        for (index,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL", (name,)
        ).fetchall():
            with step(store):
                connection.execute(f"DROP INDEX {index}")
        table = name.removeprefix(OLD)
        key = KEYS[table]
        if table == "links":
            first = f"SELECT {key} FROM {name} ORDER BY {key} LIMIT {ROWS}"
            while connection.execute(f"SELECT EXISTS (SELECT 1 FROM {name})").fetchone()[0]:
                with step(store):
                    advance(connection.execute(f"DELETE FROM {name} WHERE ({key}) IN ({first})").rowcount)
            continue
        end = store.last_number(connection, name, key)
        for part in parts(connection, name, key, 0, end, WEIGHTS[table]):
            with step(store):
                advance(connection.execute(f"DELETE FROM {name} WHERE {key} > ? AND {key} <= ?", part).rowcount)
