"""What an archive that holds questions will hold after a large load, in new tables that take the place of its own.

Applied in one transaction, as many differences as an archive has records would fill the write-ahead log with all of
them and keep others from writing for seconds. So the archive's rows are copied to new tables in short transactions,
and the differences applied to these. Meanwhile triggers note what others write to the archive's own; of that the rows
are copied again and the differences to them applied again, until the last transaction does so for the few that are
left, and renames the tables. Nobody reads the new ones before, and the old ones are emptied in short transactions
after.

What each record becomes is what ``load`` does in one transaction, by the state of the archive in the last one. A
record that is new has the number ``_base + place``, which is kept free for it.

The triggers go on after a load was killed, and so does the next one of the same source: it copies what was not copied
yet, and of the differences that were applied, each of which is in the log, it keeps those that are its own as well. The
others are copied again.
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from askalike.errors import ForumError, ForumVersionError
from askalike.progress import Progress
from askalike.store import rows, writes
from askalike.store.load import STAGING, Gone, Replaced, refuse_contested
from askalike.store.sql import SqlStore
from askalike.store.sqlite import beside
from askalike.store.sqlite.beside import (
    KEYS,
    KINDS,
    LEFT_OUT,
    NEW,
    NOTES,
    OLD,
    PREFIX,
    STATE,
    TABLES,
    TRIGGERS,
    WEIGHTS,
    parts,
    step,
)
from askalike.store.sqlite.schema import FORMAT
from askalike.types import Link, Source

LEAST: Final = 20_000
"""Differences; with fewer of them one transaction is short enough."""
SHARE: Final = 0.5
"""Of the records that an archive holds; with fewer differences copying the rest would cost more than it is worth."""
CAUGHT_UP: Final = 5_000
"""So much of what others have written is taken over in one transaction before the last one."""
LEFT: Final = 500
"""So much is left to the last one."""

_COLUMNS: Final = {"questions": rows.QUESTION_COLUMNS, "answers": rows.ANSWER_COLUMNS}
_LINK: Final = KEYS["links"]
_LOG: Final = f"INSERT INTO {NEW}changes (at_us, kind, operation, id, num)"
_NOTED: Final = {"questions": ("id", "''", "''"), "answers": ("id", "''", "''"), "links": tuple(_LINK.split(", "))}
_EVENTS: Final = {"INSERT": ("new",), "UPDATE": ("old", "new"), "DELETE": ("old",)}
_STAGED: Final = (
    *(f"CREATE TABLE {STAGING}.done_{table} (place INTEGER PRIMARY KEY, num INTEGER)" for table in KINDS),
    *(f"CREATE TABLE {STAGING}.gone_{table} (id TEXT PRIMARY KEY, num INTEGER) WITHOUT ROWID" for table in KINDS),
    *(f"CREATE TABLE {STAGING}.again_{table} (id TEXT PRIMARY KEY, num INTEGER) WITHOUT ROWID" for table in KINDS),
    *(f"CREATE INDEX {STAGING}.staged_{table} ON {table} (id)" for table in KINDS),
    *(
        f"CREATE TABLE {STAGING}.{name} (source_id TEXT, target_id TEXT, kind TEXT, is_done INTEGER,"
        f" PRIMARY KEY ({_LINK})) WITHOUT ROWID"
        for name in ("new_links", "gone_links", "again_links")
    ),
    *(
        f"CREATE TABLE {STAGING}.begun_{table} (id TEXT PRIMARY KEY, num INTEGER, is_kept INTEGER) WITHOUT ROWID"
        for table in KINDS
    ),
    f"CREATE TABLE {STAGING}.orphans (id TEXT PRIMARY KEY, question_id TEXT) WITHOUT ROWID",
    f"CREATE INDEX {STAGING}.orphans_by_question ON orphans (question_id)",
)
"""``done``: by place of what differs, the number that the archive has for it, or none. ``gone``: with the number that
was deleted. ``again``: what others have written, with the number that it had in the new table before. ``begun``: what
was applied by a load that was killed, with the number that it logged last."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Some of the rows of a table: what follows FROM and WHERE, and its values."""

    source: str
    where: str
    values: tuple[object, ...] = ()


class Replacement:
    """``load.Replacement``: of the tables of an archive."""

    def __init__(self, connection: sqlite3.Connection, store: SqlStore, source: Source, gone: Gone) -> None:
        self._connection, self._store, self._source, self._gone = connection, store, source, gone
        self._at_us = time.time_ns() // 1000
        self._number = 0
        self._last: dict[str, int] = {}  # that is copied
        self._base: dict[str, int] = {}
        self._places: dict[str, int] = {}
        self._first_change = 0
        self.resumed = 0
        self._advance: Callable[[int], object] = lambda _: None

    # -- filling: each step is a transaction of its own ----------------------------------------------------------

    def fill(self, progress: Progress) -> None:
        """Copy the archive, apply the differences, and take over what others have written meanwhile.

        Raises:
            InputError: an id stands for something else in another source.
        """
        self._stage()
        is_begun = bool(beside.named(self._connection, STATE))
        ends = self._go_on() if is_begun else self._begin()
        self._start(progress)
        for table in (*KINDS, "changes"):
            self._copy(table, ends[table])
        if is_begun:
            self._undo()
        self._copy_links()
        self._refuse_contested(again=False)
        self._change("questions")
        self._find_orphans(self._staged_answers, self._seen_answers)
        for one in self._ranges("orphans", "id"):
            with step(self._store):
                self._drop_orphans(one.where, one.values)
        self._change("answers")
        self._change_links()
        self._follow()

    def _start(self, progress: Progress) -> None:
        """Say how much will be written: what there is twice, since it is emptied at the end."""

        def count(table: str) -> int:
            return int(self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])

        differences = sum(self._places.values()) + sum(map(len, (self._gone.questions, self._gone.answers)))
        progress.start("writing", 2 * sum(map(count, TABLES)) + differences, "records")
        self._advance = progress.advance
        for table, copied in self._last.items():
            progress.advance(count(f"{table} WHERE {KEYS[table]} <= {copied}"))

    def _stage(self) -> None:
        """Note what has gone beside what was read."""
        execute = self._connection.execute
        for statement in _STAGED:
            execute(statement)
        for table, ids in (("questions", self._gone.questions), ("answers", self._gone.answers)):
            self._insert(f"INSERT INTO {STAGING}.gone_{table} (id) VALUES (?)", ((one,) for one in ids))
        links = ((one.source_id, one.target_id, one.kind) for one in self._gone.links)
        self._insert(f"INSERT INTO {STAGING}.gone_links ({_LINK}) VALUES (?, ?, ?)", links)
        for table in KINDS:
            place = execute(f"SELECT coalesce(max(place), 0) FROM {STAGING}.{table}").fetchone()[0]
            self._places[table] = place

    def _insert(self, statement: str, values: Iterator[tuple[object, ...]]) -> None:
        self._connection.execute("BEGIN")  # of the tables beside the archive alone
        self._connection.executemany(statement, values)
        self._connection.execute("COMMIT")

    def _begin(self) -> dict[str, int]:
        """Make the tables, and let what others write from now on be noted; return up to where each is to be copied."""
        execute, store, connection = self._connection.execute, self._store, self._connection
        with step(store):
            execute(
                f"CREATE TABLE {NOTES} (kind TEXT, id TEXT, target TEXT, link TEXT,"
                " PRIMARY KEY (kind, id, target, link)) WITHOUT ROWID"
            )
            is_new = not execute("SELECT 1 FROM sources WHERE name = ?", (self._source.name,)).fetchone()
            self._number = writes.source_number(connection, self._source.name, self._source.format)
            if is_new:
                execute(f"INSERT INTO {NOTES} VALUES ('source', ?, '', '')", (self._source.name,))
            for table in TABLES:
                beside.make(connection, table, f"{NEW}{table}")
            execute(f"CREATE TABLE {STATE} (name TEXT, first INTEGER, last INTEGER)")
            ends = {table: store.last_number(connection, table, KEYS[table]) for table in (*KINDS, "changes")}
            self._last = dict.fromkeys(ends, 0)
            self._first_change = ends["changes"] + LEFT_OUT
            store.keep_last_number(connection, f"{NEW}changes", "seq", self._first_change)
            noted = [("source", self._number, 0), ("log", self._first_change, 0)]
            noted += [(table, 0, end) for table, end in ends.items()]
            self._connection.executemany(f"INSERT INTO {STATE} VALUES (?, ?, ?)", noted)
            self._keep_free()
            for table in _NOTED:
                for event, names in _EVENTS.items():
                    execute(
                        f"CREATE TRIGGER {TRIGGERS}{table}_{event} AFTER {event} ON {table}"
                        f" BEGIN {' '.join(_note(table, name) for name in names)} END"
                    )
        return ends

    def _keep_free(self) -> None:
        """Let nobody else be given the numbers of what is new."""
        for table in KINDS:
            base = self._base[table] = self._store.last_number(self._connection, table, "num")
            self._store.keep_last_number(self._connection, table, "num", base + self._places[table])
            given = (f"given {table}", base, base + self._places[table])
            self._connection.execute(f"INSERT INTO {STATE} VALUES (?, ?, ?)", given)

    def _is_given(self, table: str, column: str) -> str:
        """Return the condition that a number was kept free for this load, or one that it goes on with."""
        given = f"SELECT 1 FROM {STATE} WHERE name = 'given {table}' AND {column} > first AND {column} <= last"
        return f"EXISTS ({given})"

    # -- going on with what a killed load has begun --------------------------------------------------------------

    def _go_on(self) -> dict[str, int]:
        """Take over what a killed load has left; return up to where each table is to be copied."""
        execute = self._connection.execute
        state = {name: (first, last) for name, first, last in execute(f"SELECT * FROM {STATE}").fetchall()}
        self._number, self._first_change = state["source"][0], state["log"][0]
        self._last = {table: state[table][0] for table in (*KINDS, "changes")}
        with step(self._store):
            self._keep_free()
        for one in self._ranges(f"{NEW}links", _LINK, schema="main"):  # they are copied, and put, again
            with step(self._store):
                execute(f"DELETE FROM {NEW}links WHERE {one.where}", one.values)
        self._forget_log("kind = 'link'")
        for table, kind in KINDS.items():
            execute(
                f"INSERT OR REPLACE INTO {STAGING}.begun_{table} SELECT id, num, 0 FROM {NEW}changes"
                " WHERE seq > ? AND kind = ? ORDER BY seq",
                (self._first_change, kind),
            )
            same = f"SELECT known.digest FROM {NEW}{table} AS known WHERE known.id = begun_{table}.id"
            wanted = f"SELECT 1 FROM {STAGING}.{table} AS staged WHERE staged.id = begun_{table}.id"
            gone = f"SELECT 1 FROM {STAGING}.gone_{table} AS gone WHERE gone.id = begun_{table}.id"
            execute(
                f"UPDATE {STAGING}.begun_{table} SET is_kept = EXISTS ({wanted} AND staged.digest = ({same}))"
                f" OR (EXISTS ({gone}) AND NOT EXISTS ({same}))"
            )
            self.resumed += execute(f"SELECT count(*) FROM {STAGING}.begun_{table} WHERE is_kept").fetchone()[0]
        return {table: max(state[table]) for table in self._last}

    def _undo(self) -> None:
        """Copy again what the killed load has changed, and this one does not, or does in another way."""
        for table, kind in KINDS.items():
            undone = f"SELECT id FROM {STAGING}.begun_{table} WHERE NOT is_kept"
            if self._connection.execute(f"{undone} LIMIT 1").fetchone() is None:
                continue
            for one in self._ranges(f"begun_{table}", "id"):
                where = f"id IN ({undone} AND {one.where})"
                with step(self._store):
                    self._connection.execute(f"DELETE FROM {NEW}{table} WHERE {where}", one.values)
                    copy = f"INSERT INTO {NEW}{table} SELECT * FROM main.{table} WHERE {where}"
                    self._connection.execute(copy, one.values)
            of_it = f"{STAGING}.begun_{table} AS begun WHERE begun.id = {NEW}changes.id AND NOT is_kept"
            self._forget_log(f"kind = '{kind}' AND EXISTS (SELECT 1 FROM {of_it})")

    def _forget_log(self, where: str) -> None:
        """Take out of the load's own log what is no longer so."""
        some = f"SELECT EXISTS (SELECT 1 FROM {NEW}changes WHERE seq > ? AND {where})"
        if not self._connection.execute(some, (self._first_change,)).fetchone()[0]:
            return
        end = self._store.last_number(self._connection, f"{NEW}changes", "seq")
        for part in parts(self._connection, f"{NEW}changes", "seq", self._first_change, end, "0"):
            with step(self._store):
                self._connection.execute(f"DELETE FROM {NEW}changes WHERE seq > ? AND seq <= ? AND {where}", part)

    def _count_begun(self, table: str) -> None:
        """Count what the killed load has done, and this one has kept, as done."""
        begun = f"{STAGING}.begun_{table} AS begun"
        self._connection.execute(
            f"INSERT OR IGNORE INTO {STAGING}.done_{table}"
            f" SELECT staged.place, CASE WHEN {self._is_given(table, 'known.num')} THEN NULL ELSE known.num END"
            f" FROM {begun} CROSS JOIN {STAGING}.{table} AS staged ON staged.id = begun.id"
            f" CROSS JOIN {NEW}{table} AS known ON known.id = begun.id WHERE is_kept AND known.digest = staged.digest"
        )
        gone, same = f"{STAGING}.gone_{table}", f"begun.id = gone_{table}.id AND is_kept"
        self._connection.execute(
            f"UPDATE {gone} SET num = (SELECT begun.num FROM {begun} WHERE {same}) WHERE num IS NULL"
        )

    # -- filling, as from the beginning --------------------------------------------------------------------------

    def _copy(self, table: str, end: int) -> None:
        """Copy the rows after the last that is copied."""
        key = KEYS[table]
        copy = f"INSERT INTO {NEW}{table} SELECT * FROM {table} WHERE {key} > ? AND {key} <= ?"
        noted = f"UPDATE {STATE} SET first = ? WHERE name = ?"
        for part in parts(self._connection, table, key, self._last[table], end, WEIGHTS[table]):
            with step(self._store):
                copied = self._connection.execute(copy, part).rowcount
                self._connection.execute(noted, (part[1], table))
            self._advance(copied)
        self._last[table] = end

    def _copy_links(self) -> None:
        for one in self._ranges("links", _LINK, schema="main"):
            with step(self._store):
                statement = f"INSERT INTO {NEW}links SELECT links.* FROM {one.source} WHERE {one.where}"
                copied = self._connection.execute(statement, one.values).rowcount
            self._advance(copied)

    def _ranges(self, table: str, key: str, schema: str = STAGING) -> Iterator[_Chosen]:
        """Yield rows in the order of their key, so many as go into a transaction."""
        marks = ", ".join("?" * len(key.split(", ")))
        first = f"SELECT {key} FROM {schema}.{table} ORDER BY {key} LIMIT 1"
        following = f"SELECT {key} FROM {schema}.{table} WHERE ({key}) >= ({marks}) ORDER BY {key} LIMIT 1 OFFSET ?"
        begin = self._connection.execute(first).fetchone()
        while begin is not None:
            end = self._connection.execute(following, (*begin, beside.ROWS)).fetchone()
            where, values = f"({key}) >= ({marks})", (*begin,)
            if end is not None:
                where, values = f"{where} AND ({key}) < ({marks})", (*begin, *end)
            yield _Chosen(f"{schema}.{table}", where, values)
            begin = end

    def _change(self, table: str) -> None:
        """Put what is new or edited, and delete what has gone."""
        staged = f"{STAGING}.{table}"
        for part in parts(self._connection, staged, "place", 0, self._places[table], WEIGHTS[table]):
            with step(self._store):
                self._put(table, _Chosen(f"{staged} AS staged", "staged.place > ? AND staged.place <= ?", part))
            self._advance(part[1] - part[0])
        for one in self._ranges(f"gone_{table}", "id"):
            with step(self._store):
                deleted = self._delete_gone(table, one.where, one.values)
            self._advance(deleted)
        if self.resumed:
            self._count_begun(table)

    def _change_links(self) -> None:
        self._find_links(_Chosen(f"{STAGING}.seen_links AS seen", "true"))
        for one in self._ranges("new_links", _LINK):
            with step(self._store):
                self._put_links(one.where, one.values)
        for one in self._ranges("gone_links", _LINK):
            with step(self._store):
                self._delete_gone_links(one.where, one.values)

    # -- what becomes of some of the records -----------------------------------------------------------------------

    def _put(self, table: str, chosen: _Chosen) -> None:
        """Put those staged records that are not in the new table as they are, but for answers without a question."""
        execute, done, names = self._connection.execute, f"{STAGING}.done_{table}", _COLUMNS[table]
        orphan = f"SELECT 1 FROM {STAGING}.orphans WHERE orphans.id = staged.id"
        execute(
            f"INSERT INTO {done} SELECT staged.place, known.num FROM {chosen.source}"
            f" LEFT JOIN {NEW}{table} AS known ON known.id = staged.id WHERE {chosen.where}"
            f" AND (known.num IS NULL OR known.digest <> staged.digest)"
            + (f" AND NOT EXISTS ({orphan})" if table == "answers" else ""),
            chosen.values,
        )
        source, base = f"{chosen.source} CROSS JOIN {done} AS done ON done.place = staged.place", self._base[table]
        execute(
            f"{_LOG} SELECT ?, ?, CASE WHEN done.num IS NULL THEN 'add' ELSE 'edit' END, staged.id,"
            f" coalesce(done.num, ? + staged.place) FROM {source} WHERE {chosen.where} ORDER BY staged.place",
            (self._at_us, KINDS[table], base, *chosen.values),
        )
        changes = ", ".join(f"{name} = excluded.{name}" for name in (*names[1:], "digest"))  # the id is the same
        staged = ", ".join(f"staged.{name}" for name in names)
        execute(
            f"INSERT INTO {NEW}{table} (num, {', '.join(names)}, source, digest)"
            f" SELECT ? + staged.place, {staged}, ?, staged.digest FROM {source} WHERE {chosen.where}"
            f" ORDER BY staged.place ON CONFLICT (id) DO UPDATE SET {changes}",
            (base, self._number, *chosen.values),
        )

    def _delete_gone(self, table: str, where: str, values: tuple[object, ...]) -> int:
        execute, gone = self._connection.execute, f"{STAGING}.gone_{table}"
        known = f"SELECT num FROM {NEW}{table} AS known WHERE known.id = gone_{table}.id"
        execute(f"UPDATE {gone} SET num = ({known}) WHERE {where}", values)
        found = f"FROM {gone} WHERE {where} AND num IS NOT NULL"
        execute(f"{_LOG} SELECT ?, ?, 'delete', id, num {found} ORDER BY num", (self._at_us, KINDS[table], *values))
        return execute(f"DELETE FROM {NEW}{table} WHERE num IN (SELECT num {found})", values).rowcount

    _staged_answers = _Chosen(f"{STAGING}.answers AS staged", "true")
    _seen_answers = _Chosen(f"{STAGING}.seen_answers AS seen", "true")

    def _find_orphans(self, staged: _Chosen, seen: _Chosen) -> None:
        """Note those answers of the load whose question is not there, or has gone with it."""
        here = f"EXISTS (SELECT 1 FROM {NEW}questions AS here WHERE here.id = {{}})"
        self._connection.execute(
            f"INSERT INTO {STAGING}.orphans SELECT staged.id, staged.question_id FROM {staged.source}"
            f" WHERE {staged.where} AND NOT {here.format('staged.question_id')}"
        )
        self._connection.execute(
            f"INSERT INTO {STAGING}.orphans SELECT known.id, known.question_id FROM {seen.source}"
            f" CROSS JOIN {NEW}answers AS known ON known.id = seen.id WHERE {seen.where}"
            f" AND NOT {here.format('known.question_id')}"
            f" AND NOT EXISTS (SELECT 1 FROM {STAGING}.answers AS staged WHERE staged.id = seen.id)"
        )

    def _drop_orphans(self, where: str, values: tuple[object, ...]) -> None:
        """Delete those of them that were there."""
        found = f"FROM {NEW}answers WHERE id IN (SELECT id FROM {STAGING}.orphans WHERE {where})"
        log = f"{_LOG} SELECT ?, 'answer', 'delete', id, num {found}"
        self._connection.execute(log, (self._at_us, *values))
        self._connection.execute(f"DELETE {found}", values)

    def _find_links(self, chosen: _Chosen) -> None:
        """Note those links of the load that are not there."""
        same = " AND ".join(f"known.{name} = seen.{name}" for name in _NOTED["links"])
        names = ", ".join(f"seen.{name}" for name in _NOTED["links"])
        self._connection.execute(
            f"INSERT INTO {STAGING}.new_links ({_LINK}) SELECT {names} FROM {chosen.source} WHERE {chosen.where}"
            f" AND NOT EXISTS (SELECT 1 FROM {NEW}links AS known WHERE {same})"
        )

    def _put_links(self, where: str, values: tuple[object, ...]) -> None:
        execute, found = self._connection.execute, f"FROM {STAGING}.new_links WHERE {where}"
        execute(f"{_LOG} SELECT ?, 'link', 'add', source_id, NULL {found}", (self._at_us, *values))
        execute(f"INSERT INTO {NEW}links SELECT {_LINK}, ? {found}", (self._number, *values))

    def _delete_gone_links(self, where: str, values: tuple[object, ...]) -> None:
        execute, gone = self._connection.execute, f"{STAGING}.gone_links"
        here = f"({_LINK}) IN (SELECT {_LINK} FROM {NEW}links)"
        execute(f"UPDATE {gone} SET is_done = ({here}) WHERE {where}", values)
        found = f"FROM {gone} WHERE {where} AND is_done"
        execute(f"{_LOG} SELECT ?, 'link', 'delete', source_id, NULL {found}", (self._at_us, *values))
        execute(f"DELETE FROM {NEW}links WHERE ({_LINK}) IN (SELECT {_LINK} {found})", values)

    def _refuse_contested(self, *, again: bool) -> None:
        joined = {
            table: (f"{STAGING}.again_{table} AS again CROSS JOIN" if again else "")
            + f" {STAGING}.{table} AS staged"
            + (" ON staged.id = again.id" if again else "")
            + f" CROSS JOIN {NEW}{table} AS known ON known.id = staged.id"
            for table in KINDS
        }
        refuse_contested(self._connection, self._source.name, joined)

    # -- what others have written meanwhile ----------------------------------------------------------------------

    def _follow(self) -> None:
        """Take over what others have written until little is left, or they write as fast as that is done."""
        before = sys.maxsize
        while LEFT < (noted := self._connection.execute(f"SELECT count(*) FROM {NOTES}").fetchone()[0]) < before:
            with step(self._store):
                self._catch_up(CAUGHT_UP)
            before = noted
        before = sys.maxsize
        while LEFT < (logged := (end := self._last_of_others()) - self._last["changes"]) < before:
            self._copy("changes", end)
            before = logged

    def _last_of_others(self) -> int:
        """Return how far the log of others goes, without what would have the numbers of the load's."""
        return min(self._store.last_number(self._connection, "changes", "seq"), self._first_change)

    def _catch_up(self, most: int, undone: Sequence[Link] = ()) -> None:
        """Copy again what others have written, and apply the differences to it again."""
        execute = self._connection.execute
        self._take_notes(most, undone)
        for table in KINDS:
            self._copy_again(table)
        self._refuse_contested(again=True)
        for table in KINDS:
            again = f"{STAGING}.again_{table} AS again"
            staged = _Chosen(f"{again} CROSS JOIN {STAGING}.{table} AS staged ON staged.id = again.id", "true")
            if table == "answers":
                seen = _Chosen(f"{again} CROSS JOIN {STAGING}.seen_answers AS seen ON seen.id = again.id", "true")
                these = f"id IN (SELECT id FROM {STAGING}.again_answers)"
                execute(f"DELETE FROM {STAGING}.orphans WHERE {these}")
                self._find_orphans(staged, seen)
                self._drop_orphans(these, ())
            self._put(table, staged)
            self._delete_gone(table, f"id IN (SELECT id FROM {STAGING}.again_{table})", ())
            execute(  # of the load, which nobody has seen
                f"{_LOG} SELECT ?, ?, 'delete', id, num FROM {again} WHERE {self._is_given(table, 'again.num')}"
                f" AND NOT EXISTS (SELECT 1 FROM {NEW}{table} AS known WHERE known.num = again.num)",
                (self._at_us, KINDS[table]),
            )
        self._catch_up_with_links()

    def _take_notes(self, most: int, undone: Sequence[Link]) -> None:
        """Note in ``again`` what is to be copied again; answers go with their questions."""
        execute, again = self._connection.execute, f"{STAGING}.again_"
        for table in _NOTED:
            execute(f"DELETE FROM {again}{table}")
        noted = execute(
            f"SELECT kind, id, target, link FROM {NOTES} WHERE kind <> 'source' LIMIT ?", (most,)
        ).fetchall()
        for kind, identifier, target, link in noted:
            if kind == "links":
                execute(f"INSERT INTO {again}links ({_LINK}) VALUES (?, ?, ?)", (identifier, target, link))
            else:
                execute(f"INSERT INTO {again}{kind} (id) VALUES (?)", (identifier,))
            execute(
                f"DELETE FROM {NOTES} WHERE (kind, id, target, link) = (?, ?, ?, ?)", (kind, identifier, target, link)
            )
        for one in undone:
            key = (one.source_id, one.target_id, one.kind)
            execute(f"INSERT INTO {again}links ({_LINK}) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", key)
        for answers in (f"{NEW}answers", f"{STAGING}.orphans"):
            execute(
                f"INSERT INTO {again}answers (id) SELECT theirs.id FROM {again}questions AS again"
                f" CROSS JOIN {answers} AS theirs ON theirs.question_id = again.id WHERE true ON CONFLICT DO NOTHING"
            )

    def _copy_again(self, table: str) -> None:
        execute, again = self._connection.execute, f"{STAGING}.again_{table}"
        these = f"id IN (SELECT id FROM {again})"
        execute(
            f"UPDATE {again} SET num = (SELECT known.num FROM {NEW}{table} AS known WHERE known.id = again_{table}.id)"
        )
        execute(
            f"DELETE FROM {STAGING}.done_{table} WHERE place IN (SELECT staged.place FROM {again} AS again"
            f" CROSS JOIN {STAGING}.{table} AS staged ON staged.id = again.id)"
        )
        execute(f"DELETE FROM {NEW}{table} WHERE {these}")
        execute(
            f"INSERT INTO {NEW}{table} SELECT {table}.* FROM {again} AS again"
            f" CROSS JOIN main.{table} ON {table}.id = again.id"
        )

    def _catch_up_with_links(self) -> None:
        execute, again = self._connection.execute, f"{STAGING}.again_links"
        these = f"({_LINK}) IN (SELECT {_LINK} FROM {again})"
        for table in (f"{STAGING}.new_links", f"{NEW}links"):
            execute(f"DELETE FROM {table} WHERE {these}")
        same = " AND ".join(f"{{0}}.{name} = again.{name}" for name in _NOTED["links"])
        execute(
            f"INSERT INTO {NEW}links SELECT links.* FROM {again} AS again"
            f" CROSS JOIN main.links ON {same.format('links')}"
        )
        seen = f"{again} AS again CROSS JOIN {STAGING}.seen_links AS seen ON {same.format('seen')}"
        self._find_links(_Chosen(seen, "true"))
        self._put_links(these, ())
        self._delete_gone_links(these, ())

    # -- the last transaction --------------------------------------------------------------------------------------

    def take_place(self, connection: writes.Connection, undone: Sequence[Link]) -> list[tuple[str, str]]:
        """Put the new tables in the place of those of the store; return (id, id of the question) of the answers that
        were left out.

        Args:
            undone: links that were taken out of what was read.

        Raises:
            InputError: an id stands for something else in another source.
            ForumVersionError: another version of this program has changed the archive meanwhile.
        """
        execute, store = connection.execute, self._store
        if execute("PRAGMA user_version").fetchone()[0] != FORMAT:
            raise ForumVersionError(
                "a newer version of askalike has changed the forum during the load", "load again, with that version"
            )
        self._catch_up(-1, undone)
        for name in beside.named(self._connection, TRIGGERS, "trigger"):
            execute(f"DROP TRIGGER {name}")
        execute(f"DROP TABLE {NOTES}")
        execute(f"DROP TABLE {STATE}")
        for table in KINDS:
            beside.reserve(store, self._connection, table, f"{NEW}{table}")
        tables = list(TABLES)
        last = store.last_number(connection, "changes", "seq")
        if last <= self._first_change:
            execute(f"INSERT INTO {NEW}changes SELECT * FROM changes WHERE seq > ?", (self._last["changes"],))
        else:  # others have written so much meanwhile that the load's changes have to be numbered again
            tables.remove("changes")
            names = "at_us, kind, operation, id, num"
            found = f"SELECT {names} FROM {NEW}changes WHERE seq > ? ORDER BY seq"
            execute(f"INSERT INTO changes ({names}) {found}", (self._first_change,))
        for table in tables:
            execute(f"ALTER TABLE {table} RENAME TO {OLD}{table}")
            execute(f"ALTER TABLE {NEW}{table} RENAME TO {table}")
        orphans = execute(f"SELECT id, question_id FROM {STAGING}.orphans ORDER BY id")
        return [(row[0], row[1]) for row in orphans.fetchall()]

    def clear(self, progress: Progress) -> None:
        """Empty the tables that were replaced."""
        with contextlib.suppress(ForumError, sqlite3.Error):  # such as a full disk: what was loaded is there already
            beside.empty_replaced(self._connection, self._store, progress.advance)

    def counts(self) -> Mapping[str, Replaced]:
        """Return table → what the load did to it."""

        def count(table: str, where: str = "true") -> int:
            return int(self._connection.execute(f"SELECT count(*) FROM {STAGING}.{table} WHERE {where}").fetchone()[0])

        posts = {
            table: Replaced(
                count(f"done_{table}", "num IS NULL"),
                count(f"done_{table}", "num IS NOT NULL"),
                count(f"gone_{table}", "num IS NOT NULL"),
            )
            for table in KINDS
        }
        return posts | {"links": Replaced(count("new_links"), 0, count("gone_links", "is_done"))}


def can_go_on(connection: sqlite3.Connection, source: Source) -> bool:
    """Return whether a killed load of the same source has left new tables that can still be filled."""
    held = set(beside.named(connection, PREFIX))
    triggers = len(_NOTED) * len(_EVENTS)
    if held != {STATE, *(f"{NEW}{table}" for table in TABLES)} or not beside.named(connection, NOTES):
        return False
    if len(beside.named(connection, TRIGGERS, "trigger")) != triggers:
        return False
    begun = f"SELECT name, format FROM sources WHERE num = (SELECT first FROM {STATE} WHERE name = 'source')"
    found = connection.execute(begun).fetchone()
    return found is not None and (*found,) == (source.name, source.format) and beside.are_alike(connection, NEW)


def _note(table: str, row: str) -> str:
    """Return what notes the key of a row, once; ON CONFLICT would be that of the statement that fires it."""
    key = ", ".join(f"{row}.{name}" if name.isidentifier() else name for name in _NOTED[table])
    same = " AND ".join(
        f"{noted} = {row}.{name}" if name.isidentifier() else f"{noted} = {name}"
        for noted, name in zip(("id", "target", "link"), _NOTED[table], strict=True)
    )
    known = f"SELECT 1 FROM {NOTES} WHERE kind = '{table}' AND {same}"
    return f"INSERT INTO {NOTES} SELECT '{table}', {key} WHERE NOT EXISTS ({known});"
