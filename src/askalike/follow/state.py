"""What is known of a forum that is followed, in one SQLite file of the forum's folder, which kills cannot harm.

A cursor and the threads that were found before it are written in one transaction; a thread stays among those to read
until it has been read and stored. So a process that is killed anywhere does some of its work again, and misses none.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from askalike.errors import BusyForumError, DamagedForumError, ForumError
from askalike.files import narrow
from askalike.follow.source import Seen
from askalike.store import ForumLayout

FORMAT: Final = 1
BUSY_TIMEOUT_S: Final = 30.0
MOST_EVENTS: Final = 100_000
"""So many events may wait for who follows; more are refused, and found by the poll."""
KEPT_S: Final = 30 * 86_400.0
"""For so long the id of an event is known, so that it counts once."""
LONGEST_WAIT_S: Final = 86_400.0
"""No thread is postponed for longer: one that would have to wait for longer is due, since the clock was set back."""
MOST_LAGS: Final = 10_000
MOST_REJECTS: Final = 10_000

Rank = Literal[0, 1, 2, 3]
"""Why a thread is to be read, most urgent first: an event, a poll, a sweep, or that it was read long ago."""

Fate = Literal["held", "hidden", "gone"]
"""What became of a thread that was read: held, as it was where it cannot be read; not public; or not there."""

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
CREATE TABLE requests (at_s REAL NOT NULL);
CREATE TABLE rejects (
    id TEXT NOT NULL,
    reason TEXT NOT NULL,
    at_s REAL NOT NULL,
    PRIMARY KEY (id, reason)
) WITHOUT ROWID;
"""
_DUE: Final = f"(not_before_s <= ? OR not_before_s > ? + {LONGEST_WAIT_S})"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A thread that is to be read.

    Args:
        revision: differs when it was asked for again meanwhile.
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
        is_durable: what is written is on disk when a method returns, even if the machine loses its power. Who follows
            does not need it: of what it loses then, nothing was acknowledged.

    Raises:
        ForumError: nobody follows anything with this forum.
        DamagedForumError, BusyForumError: it cannot be read, or another process writes for too long; so every method.
    """

    def __init__(self, layout: ForumLayout, *, is_durable: bool = False) -> None:
        self._path = layout.follow
        nothing = ForumError(f"{layout.folder} follows no forum", "say which with askalike follow FORUM --from ADDRESS")
        if not self._path.is_file():
            raise nothing
        self._connection = sqlite3.connect(
            self._path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            with _explained(self._path):
                self._connection.execute(f"PRAGMA synchronous = {'FULL' if is_durable else 'NORMAL'}")
                found = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if not found:  # another process is making it, or was killed while it did
                raise nothing
            if found != FORMAT:
                raise DamagedForumError(
                    f"{self._path} has format {found}, expected {FORMAT}", "delete it, and follow the forum anew"
                )
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def create(cls, layout: ForumLayout) -> State:
        """Return the state of a forum, empty where there was none."""
        with open(layout.follow, "ab", opener=narrow):  # SQLite gives its log the same rights
            pass
        made = sqlite3.connect(layout.follow, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        with contextlib.closing(made), _explained(layout.follow):
            made.execute("PRAGMA journal_mode = WAL")
            made.execute("BEGIN IMMEDIATE")
            if not made.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in _TABLES.split(";\n"):
                    made.execute(statement)
                made.execute(f"PRAGMA user_version = {FORMAT}")
            made.execute("COMMIT")
        return cls(layout)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> State:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- values ------------------------------------------------------------------------------------------------

    def value(self, name: str) -> Any:
        """Return what was set under a name, None where nothing was."""
        found = self._rows("SELECT value FROM values_ WHERE name = ?", (name,))
        return json.loads(found[0][0]) if found else None

    def keep(self, **values: Any) -> None:
        """Keep values of JSON under their names."""
        with self.write():
            for name, value in values.items():
                self._run("INSERT OR REPLACE INTO values_ VALUES (?, ?)", (name, json.dumps(value)))

    def count(self, name: str, more: int = 1) -> None:
        """Add to a counter."""
        added = (
            "INSERT INTO values_ VALUES (?, ?) ON CONFLICT (name) DO UPDATE"
            " SET value = CAST(value AS INTEGER) + excluded.value"
        )
        if more:
            self._run(added, (name, str(more)))

    # -- events ------------------------------------------------------------------------------------------------

    def receive(self, event: str, ids: Sequence[str], at_s: float) -> bool:
        """Keep an event, and ask for its threads to be read; return False for one that came before.

        Raises:
            BusyForumError: too many wait.
        """
        with self.write():
            if self._rows("SELECT 1 FROM events WHERE event = ? LIMIT 1", (event,)):
                self.count("events_doubled")
                return False
            if self._rows("SELECT count(*) FROM waiting WHERE rank = 0")[0][0] >= MOST_EVENTS:
                raise BusyForumError(f"{MOST_EVENTS:,} events wait", "see whether askalike follow runs")
            for one in ids or [""]:
                done = None if one else at_s
                self._run("INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?)", (event, one, at_s, done))
            self._ask((Seen(one) for one in ids), 0, at_s)
            self.count("events")
        return True

    def lags_s(self, since_s: float = 0.0) -> list[float]:
        """Return how long the newest events that were received since a moment waited until searches found them."""
        found = self._rows(
            "SELECT done_s - received_s FROM events WHERE done_s IS NOT NULL AND id <> '' AND received_s >= ?"
            " ORDER BY received_s DESC LIMIT ?",
            (since_s, MOST_LAGS),
        )
        return [row[0] for row in found]

    # -- threads that are to be read ---------------------------------------------------------------------------

    def take(self, most: int, now_s: float, last: Rank = 3) -> list[Waiting]:
        """Return the threads that are most urgent to read, of this rank or a more urgent one."""
        found = self._rows(
            f"SELECT id, rank, revision, stamp, tries FROM waiting WHERE rank <= ? AND {_DUE}"
            " ORDER BY rank, since_s LIMIT ?",
            (last, now_s, now_s, most),
        )
        return [Waiting(*row) for row in found]

    def has_urgent(self, now_s: float) -> bool:
        """Return whether an event waits."""
        return bool(self._rows(f"SELECT 1 FROM waiting WHERE rank = 0 AND {_DUE} LIMIT 1", (now_s, now_s)))

    def postpone(self, one: Waiting, until_s: float, why: str) -> None:
        """Read a thread later: it failed."""
        self._run(
            "UPDATE waiting SET not_before_s = ?, tries = tries + 1, why = ? WHERE id = ? AND revision = ?",
            (until_s, why[:500], one.id, one.revision),
        )

    def finish(self, done: Iterable[tuple[Waiting, Fate, Sequence[str]]], began_s: float, now_s: float) -> None:
        """Take threads for read, each with what became of it, and with what could not be read.

        Args:
            began_s: when reading began: events that came before are done.
        """
        with self.write():
            for one, fate, rejects in done:
                self._run("DELETE FROM waiting WHERE id = ? AND revision = ?", (one.id, one.revision))
                if fate == "gone" or (fate == "hidden" and not one.stamp):
                    self._run("DELETE FROM known WHERE id = ?", (one.id,))  # whatever its stamp is when it is back
                else:
                    self._run(
                        "INSERT INTO known VALUES (?, ?, 0, ?) ON CONFLICT (id) DO UPDATE SET read_s = excluded.read_s,"
                        " stamp = CASE excluded.stamp WHEN '' THEN stamp ELSE excluded.stamp END",
                        (one.id, one.stamp, now_s),
                    )
                self._run(
                    "UPDATE events SET done_s = ? WHERE id = ? AND done_s IS NULL AND received_s <= ?",
                    (now_s, one.id, began_s),
                )
                self._reject(one.id, rejects, now_s)

    def find(self, seen: Iterable[Seen], rank: Rank, now_s: float, *, number: int = 0, **values: Any) -> int:
        """Ask for threads to be read whose stamp is new, and keep values, such as a cursor, in the same step.

        Args:
            number: of the sweep that found them.
        """
        fresh = []
        with self.write():
            for one in seen:
                if not one.stamp or not self._rows(
                    "SELECT 1 FROM known WHERE id = ? AND stamp = ?", (one.id, one.stamp)
                ):
                    fresh.append(one)
                if number:
                    self._run(
                        "INSERT INTO known VALUES (?, '', ?, 0) ON CONFLICT (id) DO UPDATE SET sweep = excluded.sweep",
                        (one.id, number),
                    )
            self._ask(fresh, rank, now_s)
            self.keep(**values)
        return len(fresh)

    def forget(self, ids: Iterable[str]) -> None:
        """Take threads for unknown."""
        with self.write():
            for one in ids:
                self._run("DELETE FROM known WHERE id = ?", (one,))

    def unread(self, tries: int) -> int:
        """Return how many threads wait to be read that did not fail so often."""
        return int(self._rows("SELECT count(*) FROM waiting WHERE tries < ?", (tries,))[0][0])

    def swept(self, sweep: int) -> set[str]:
        """Return the ids that a sweep has seen."""
        return {row[0] for row in self._rows("SELECT id FROM known WHERE sweep = ?", (sweep,))}

    def ask_again(self, before_s: float, most: int, now_s: float) -> int:
        """Ask for threads to be read that were read before a moment, the oldest first; return how many there are.

        Those that were read later than now, before the clock was set back, come last.
        """
        known = "SELECT id FROM known WHERE read_s {} ? AND id NOT IN (SELECT id FROM waiting) ORDER BY read_s LIMIT ?"
        found = self._rows(known.format("<"), (before_s, most)) or self._rows(known.format(">"), (now_s, most))
        with self.write():
            self._ask((Seen(row[0]) for row in found), 3, now_s)
        return len(found)

    def _ask(self, seen: Iterable[Seen], rank: Rank, now_s: float) -> None:
        for one in seen:
            self._run(
                "INSERT INTO waiting VALUES (?, ?, 1, ?, ?, 0, 0, '') ON CONFLICT (id) DO UPDATE SET"
                " rank = min(rank, excluded.rank), revision = revision + 1,"
                " stamp = CASE excluded.stamp WHEN '' THEN stamp ELSE excluded.stamp END,"
                " not_before_s = CASE WHEN excluded.rank = 0 THEN 0 ELSE not_before_s END",
                (one.id, rank, one.stamp, now_s),
            )

    def _reject(self, identifier: str, reasons: Sequence[str], now_s: float) -> None:
        self._run("DELETE FROM rejects WHERE id = ?", (identifier,))
        for reason in reasons:
            self._run("INSERT OR IGNORE INTO rejects VALUES (?, ?, ?)", (identifier, reason[:500], now_s))

    # -- requests ----------------------------------------------------------------------------------------------

    def requests(self, since_s: float) -> list[float]:
        """Return the moments of requests since one, oldest first."""
        return [row[0] for row in self._rows("SELECT at_s FROM requests WHERE at_s >= ? ORDER BY at_s", (since_s,))]

    def add_request(self, at_s: float, before_s: float) -> None:
        """Remember a request, and forget those before a moment."""
        with self.write():
            self._run("DELETE FROM requests WHERE at_s < ?", (before_s,))
            self._run("INSERT INTO requests VALUES (?)", (at_s,))
            self.count("requests")

    # -- what it looks like ------------------------------------------------------------------------------------

    def forget_before(self, at_s: float) -> None:
        """Forget events that were done before a moment, and rejects beyond the newest."""
        with self.write():
            self._run("DELETE FROM events WHERE received_s < ? AND done_s IS NOT NULL", (at_s,))
            self._run(
                "DELETE FROM rejects WHERE at_s < (SELECT at_s FROM rejects ORDER BY at_s DESC LIMIT 1 OFFSET ?)",
                (MOST_REJECTS,),
            )

    def waiting(self) -> list[int]:
        """Return how many threads wait to be read, by rank."""
        found = dict(self._rows("SELECT rank, count(*) FROM waiting GROUP BY rank"))
        return [found.get(rank, 0) for rank in range(4)]

    def failing(self, most: int = 20) -> list[tuple[str, int, str]]:
        """Return threads that could not be read so far: id, tries, and why the last failed."""
        return self._rows("SELECT id, tries, why FROM waiting WHERE tries > 0 ORDER BY tries DESC LIMIT ?", (most,))

    def rejects(self, most: int = 20) -> tuple[int, list[tuple[str, str]]]:
        """Return how many records could not be read, and the newest: id of the thread and reason."""
        found = self._rows("SELECT id, reason FROM rejects ORDER BY at_s DESC, id LIMIT ?", (most,))
        return self._rows("SELECT count(*) FROM rejects")[0][0], found

    def known(self) -> int:
        """Return how many threads are known, public or not."""
        return int(self._rows("SELECT count(*) FROM known")[0][0])

    # -- SQLite ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def write(self) -> Iterator[None]:
        """Do all inside in one transaction; one inside another is a part of it."""
        if self._connection.in_transaction:
            yield
            return
        with _explained(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            with _explained(self._path):
                self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    def _run(self, statement: str, values: Sequence[object] = ()) -> None:
        with _explained(self._path):
            self._connection.execute(statement, values)

    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        with _explained(self._path):
            return self._connection.execute(statement, values).fetchall()


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise BusyForumError(f"{path} is locked by another process", "try again when it has finished") from error
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY):
            raise ForumError(f"{path} cannot be written: {error}", "free space, or check its rights") from error
        raise DamagedForumError(
            f"{path} cannot be read: {error}", "delete it: what is followed is then compared from zero"
        ) from error
