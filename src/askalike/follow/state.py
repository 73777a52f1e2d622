"""What is known of a site that is followed, in one SQLite file of the forum's folder, which kills cannot harm.

A cursor and the threads that were listed before it are written in one transaction; a thread waits until it has been
read and stored. So a process that is killed anywhere does some of its work again, and misses none.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from askalike.errors import BusyForumError, DamagedForumError, ForumError
from askalike.store import ForumLayout
from askalike.store.sqlite_file import Schema, SqliteFile

MAX_EVENTS: Final = 100_000
"""So many events may wait; more are refused, and found by the poll."""
EVENTS_KEPT_S: Final = 30 * 86_400.0
"""For so long the id of an event is known, so that it counts once."""
LONGEST_WAIT_S: Final = 86_400.0
"""No thread is postponed for longer: one that would have to wait for longer is due, since the clock was set back."""
MAX_LAGS: Final = 10_000
MAX_REJECTS: Final = 10_000

Rank = Literal[0, 1, 2, 3]
"""Why a thread waits, most urgent first: an event, a poll, a sweep, or that it was read long ago."""

_TABLES: Final = """
CREATE TABLE values_ (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE known (
    id TEXT PRIMARY KEY,
    stamp TEXT NOT NULL,
    sweep INTEGER NOT NULL,
    read_s REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX known_by_read ON known (read_s);
CREATE TABLE waiting (
    id TEXT PRIMARY KEY,
    rank INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    stamp TEXT NOT NULL,
    since_s REAL NOT NULL,
    not_before_s REAL NOT NULL,
    tries INTEGER NOT NULL,
    why TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX waiting_by_rank ON waiting (rank, since_s);
CREATE TABLE events (
    event TEXT NOT NULL,
    id TEXT NOT NULL,
    received_s REAL NOT NULL,
    done_s REAL,
    PRIMARY KEY (event, id)
) WITHOUT ROWID;
CREATE INDEX events_to_do ON events (id) WHERE done_s IS NULL;
CREATE INDEX events_by_time ON events (received_s);
CREATE TABLE rejects (
    id TEXT NOT NULL,
    reason TEXT NOT NULL,
    at_s REAL NOT NULL,
    PRIMARY KEY (id, reason)
) WITHOUT ROWID;
"""
_SCHEMA: Final = Schema(_TABLES.split(";\n"), format=1, remedy="delete it: what is followed is then compared from zero")
_DUE: Final = f"(not_before_s <= ? OR not_before_s > ? + {LONGEST_WAIT_S})"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A thread that waits to be read.

    Args:
        revision: differs when it was asked for again meanwhile.
        stamp: with which a list named it; "" where none did.
        tries: that failed so far.
    """

    id: str
    rank: int
    revision: int
    stamp: str
    tries: int


class State:
    """The file; a thread and a process each take their own.

    Args:
        is_durable: what is written is on disk when a method returns, even if the machine loses its power. A follower
            does not need it: of what it loses then, nothing was acknowledged.

    Raises:
        ForumError: this forum follows nothing.
        DamagedForumError, BusyForumError: it cannot be read, or another process writes for too long; so every method.
    """

    def __init__(self, layout: ForumLayout, *, is_durable: bool = False) -> None:
        self._file = SqliteFile(layout.follow, _SCHEMA, synchronous="FULL" if is_durable else "NORMAL")
        if not layout.follow.is_file() or not self._file.is_made():  # a process may have been killed while it made it
            self.close()
            hint = "say which with askalike follow FORUM --from ADDRESS"
            raise ForumError(f"{layout.folder} follows no forum", hint)

    @classmethod
    def create(cls, layout: ForumLayout) -> State:
        """Return the state of a forum, empty where there was none."""
        with contextlib.closing(SqliteFile(layout.follow, _SCHEMA)) as file:
            file.make()
        return cls(layout)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> State:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- values ------------------------------------------------------------------------------------------------

    def get(self, name: str) -> Any:
        """Return the value of JSON under a name, None where there is none."""
        rows = self._rows("SELECT value FROM values_ WHERE name = ?", (name,))
        try:
            return json.loads(rows[0][0]) if rows else None
        except (ValueError, RecursionError) as error:
            raise DamagedForumError(f"{self._file.path}: {name} is not JSON", "delete it, and follow anew") from error

    def put(self, **values: Any) -> None:
        """Keep values of JSON under their names."""
        with self.transaction():
            for name, value in values.items():
                self._run("INSERT OR REPLACE INTO values_ VALUES (?, ?)", (name, json.dumps(value)))

    def count(self, **more: int) -> None:
        """Add to counters."""
        statement = (
            "INSERT INTO values_ VALUES (?, ?) ON CONFLICT (name) DO UPDATE"
            " SET value = CAST(value AS INTEGER) + excluded.value"
        )
        with self.transaction():
            for name, number in more.items():
                if number:
                    self._run(statement, (name, str(number)))

    # -- events ------------------------------------------------------------------------------------------------

    def add_event(self, event: str, ids: Sequence[str], at_s: float) -> bool:
        """Keep an event, and queue its threads; return False for one that came before.

        Raises:
            BusyForumError: too many wait.
        """
        with self.transaction():
            if self._rows("SELECT 1 FROM events WHERE event = ? LIMIT 1", (event,)):
                self.count(events_doubled=1)
                return False
            if self._rows("SELECT count(*) FROM waiting WHERE rank = 0")[0][0] >= MAX_EVENTS:
                raise BusyForumError(f"{MAX_EVENTS:,} events wait", "see whether askalike follow runs")
            for identifier in ids or [""]:
                done_s = None if identifier else at_s
                self._run("INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?)", (event, identifier, at_s, done_s))
            self._queue(dict.fromkeys(ids, ""), 0, at_s)
            self.count(events=1)
        return True

    def lags_s(self) -> list[float]:
        """Return how long the newest events waited until searches found what they are about."""
        rows = self._rows(
            "SELECT done_s - received_s FROM events WHERE done_s IS NOT NULL AND id <> ''"
            " ORDER BY received_s DESC LIMIT ?",
            (MAX_LAGS,),
        )
        return [row[0] for row in rows]

    # -- threads that wait -------------------------------------------------------------------------------------

    def due(self, limit: int, now_s: float, rank: Rank = 3) -> list[Waiting]:
        """Return the threads that are most urgent to read, of this rank or a more urgent one."""
        rows = self._rows(
            f"SELECT id, rank, revision, stamp, tries FROM waiting WHERE rank <= ? AND {_DUE}"
            " ORDER BY rank, since_s LIMIT ?",
            (rank, now_s, now_s, limit),
        )
        return [Waiting(*row) for row in rows]

    def postpone(self, thread: Waiting, until_s: float, why: str) -> None:
        """Read a thread later: it failed."""
        self._run(
            "UPDATE waiting SET not_before_s = ?, tries = tries + 1, why = ? WHERE id = ? AND revision = ?",
            (until_s, why[:500], thread.id, thread.revision),
        )

    def finish(self, done: Iterable[tuple[Waiting, bool, Sequence[str]]], began_s: float, now_s: float) -> None:
        """Take threads that were read from those that wait.

        Args:
            done: each with whether its stamp is remembered (else it is read again as soon as a list names it), and
                with what of it could not be read.
            began_s: when reading began: events that came before are done.
        """
        with self.transaction():
            for thread, is_remembered, rejects in done:
                self._run("DELETE FROM waiting WHERE id = ? AND revision = ?", (thread.id, thread.revision))
                if is_remembered:
                    self._run(
                        "INSERT INTO known VALUES (?, ?, 0, ?) ON CONFLICT (id) DO UPDATE SET read_s = excluded.read_s,"
                        " stamp = CASE excluded.stamp WHEN '' THEN stamp ELSE excluded.stamp END",
                        (thread.id, thread.stamp, now_s),
                    )
                else:
                    self._run("DELETE FROM known WHERE id = ?", (thread.id,))
                self._run(
                    "UPDATE events SET done_s = ? WHERE id = ? AND done_s IS NULL AND received_s <= ?",
                    (now_s, thread.id, began_s),
                )
                self._run("DELETE FROM rejects WHERE id = ?", (thread.id,))
                for reason in rejects:
                    self._run("INSERT OR IGNORE INTO rejects VALUES (?, ?, ?)", (thread.id, reason[:500], now_s))

    def add_listed(
        self, stamps: Mapping[str, str], rank: Rank, now_s: float, *, sweep_number: int = 0, **values: Any
    ) -> None:
        """Queue the threads whose stamp is new or "", and keep values, such as a cursor, in the same step.

        Args:
            sweep_number: of the sweep that listed them.
        """
        changed: dict[str, str] = {}
        with self.transaction():
            for identifier, stamp in stamps.items():
                if not stamp or not self._rows("SELECT 1 FROM known WHERE id = ? AND stamp = ?", (identifier, stamp)):
                    changed[identifier] = stamp
                if sweep_number:
                    self._run(
                        "INSERT INTO known VALUES (?, '', ?, 0) ON CONFLICT (id) DO UPDATE SET sweep = excluded.sweep",
                        (identifier, sweep_number),
                    )
            self._queue(changed, rank, now_s)
            self.put(**values)

    def forget(self, ids: Iterable[str]) -> None:
        """Read these threads again as soon as a list names them."""
        with self.transaction():
            for identifier in ids:
                self._run("DELETE FROM known WHERE id = ?", (identifier,))

    def swept(self, sweep: int) -> set[str]:
        """Return the ids that a sweep has listed."""
        return {row[0] for row in self._rows("SELECT id FROM known WHERE sweep = ?", (sweep,))}

    def queue_old(self, before_s: float, limit: int, now_s: float) -> int:
        """Queue the threads that were read before a moment, the oldest first; return how many there are.

        Those that were read later than now, before the clock was set back, come last.
        """
        known = "SELECT id FROM known WHERE read_s {} ? AND id NOT IN (SELECT id FROM waiting) ORDER BY read_s LIMIT ?"
        rows = self._rows(known.format("<"), (before_s, limit)) or self._rows(known.format(">"), (now_s, limit))
        with self.transaction():
            self._queue({row[0]: "" for row in rows}, 3, now_s)
        return len(rows)

    def _queue(self, stamps: Mapping[str, str], rank: Rank, now_s: float) -> None:
        for identifier, stamp in stamps.items():
            self._run(
                "INSERT INTO waiting VALUES (?, ?, 1, ?, ?, 0, 0, '') ON CONFLICT (id) DO UPDATE SET"
                " rank = min(rank, excluded.rank), revision = revision + 1,"
                " stamp = CASE excluded.stamp WHEN '' THEN stamp ELSE excluded.stamp END,"
                " not_before_s = CASE WHEN excluded.rank = 0 THEN 0 ELSE not_before_s END",
                (identifier, rank, stamp, now_s),
            )

    # -- what the status shows ---------------------------------------------------------------------------------

    def forget_before(self, at_s: float) -> None:
        """Forget events that were done before a moment, and rejects beyond the newest."""
        with self.transaction():
            self._run("DELETE FROM events WHERE received_s < ? AND done_s IS NOT NULL", (at_s,))
            self._run(
                "DELETE FROM rejects WHERE at_s < (SELECT at_s FROM rejects ORDER BY at_s DESC LIMIT 1 OFFSET ?)",
                (MAX_REJECTS,),
            )

    def waiting(self, tries: int | None = None) -> list[int]:
        """Return how many threads wait, by rank.

        Args:
            tries: only those that failed less often.
        """
        counts = dict(
            self._rows("SELECT rank, count(*) FROM waiting WHERE ? IS NULL OR tries < ? GROUP BY rank", (tries, tries))
        )
        return [counts.get(rank, 0) for rank in range(4)]

    def failing(self, limit: int = 20) -> list[tuple[str, int, str]]:
        """Return threads that could not be read so far: id, tries, and why the last failed."""
        return self._rows("SELECT id, tries, why FROM waiting WHERE tries > 0 ORDER BY tries DESC LIMIT ?", (limit,))

    def rejects(self, limit: int = 20) -> tuple[int, list[tuple[str, str]]]:
        """Return how many records could not be read, and the newest: id of the thread and reason."""
        newest = self._rows("SELECT id, reason FROM rejects ORDER BY at_s DESC, id LIMIT ?", (limit,))
        return self._rows("SELECT count(*) FROM rejects")[0][0], newest

    def known(self) -> int:
        """Return how many threads are known, public or not."""
        return int(self._rows("SELECT count(*) FROM known")[0][0])

    # -- SQLite ------------------------------------------------------------------------------------------------

    def transaction(self) -> contextlib.AbstractContextManager[object]:
        """Do all inside in one transaction; one inside another is a part of it."""
        return self._file.write()

    def _run(self, statement: str, values: Sequence[object] = ()) -> None:
        self._file.run(statement, [values])

    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        return list(map(tuple, self._file.rows(statement, values)))
