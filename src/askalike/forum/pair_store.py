"""Pairs of a forum's questions that may ask the same, on disk, with what is still to be compared.

Everything here can be made anew; a file that another version wrote, or that is damaged, is deleted and begun again.

Enters: numbers of questions, scores. Leaves: the same, by score. May import: nothing of askalike but errors.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Pair", "PairStore", "Place"]

FORMAT: Final = 1

_TABLES: Final = """
CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE todo (num INTEGER PRIMARY KEY);
CREATE TABLE pairs (
    first INTEGER NOT NULL,
    second INTEGER NOT NULL,
    score REAL NOT NULL,
    cosine REAL,
    PRIMARY KEY (first, second)
) WITHOUT ROWID;
CREATE INDEX pairs_by_score ON pairs (score DESC, first, second);
CREATE INDEX pairs_by_second ON pairs (second);
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions by their numbers.

    Args:
        first: the smaller number.
        score: in [0, 1].
        cosine: of their vectors, None where they have none.
    """

    first: int
    second: int
    score: float
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ended: the last pair in the order by score descending, then numbers."""

    score: float
    first: int
    second: int


class PairStore:
    """The file; any thread reads, one process at a time writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        weakref.finalize(self, _close, self._opened)

    def close(self) -> None:
        """Close every connection."""
        with self._guard:
            _close(self._opened)
        self._local = threading.local()

    # -- reading -----------------------------------------------------------------------------------------------

    def state(self, key: str) -> str | None:
        """Return a value that was kept, or None."""
        row = self._connection.execute("SELECT value FROM state WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def waiting(self) -> int:
        """Return how many questions are still to be compared."""
        return int(self._connection.execute("SELECT count(*) FROM todo").fetchone()[0])

    def next_waiting(self, limit: int) -> list[int]:
        """Return the numbers of some questions that are to be compared, those that came last first."""
        return [row[0] for row in self._connection.execute("SELECT num FROM todo ORDER BY num DESC LIMIT ?", (limit,))]

    def count(self) -> int:
        """Return how many pairs there are."""
        return int(self._connection.execute("SELECT count(*) FROM pairs").fetchone()[0])

    def page(self, minimum: float, limit: int, after: Place | None = None) -> list[Pair]:
        """Return pairs of at least this score, best first, from after a place on."""
        place = after or Place(2.0, 0, 0)
        found = self._connection.execute(
            "SELECT first, second, score, cosine FROM pairs WHERE score <= ? AND score >= ?"
            " AND (score < ? OR (first, second) > (?, ?)) ORDER BY score DESC, first, second LIMIT ?",
            (place.score, minimum, place.score, place.first, place.second, limit),
        )
        return [Pair(*row) for row in found]

    def of(self, num: int) -> list[Pair]:
        """Return the pairs of one question."""
        found = self._connection.execute(
            "SELECT first, second, score, cosine FROM pairs WHERE first = ? OR second = ?", (num, num)
        )
        return [Pair(*row) for row in found]

    # -- writing -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self) -> Iterator[PairStore]:
        """Keep everything that is written inside, or nothing."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield self
            version = int(self.state("version") or 0) + 1
            self.keep("version", str(version))
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    def keep(self, key: str, value: str) -> None:
        """Keep a value."""
        self._connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (key, value))

    def clear(self) -> None:
        """Forget all pairs and all that waits."""
        self._connection.execute("DELETE FROM pairs")
        self._connection.execute("DELETE FROM todo")

    def add_waiting(self, nums: Iterable[int]) -> None:
        """Let these questions be compared."""
        self._connection.executemany("INSERT OR IGNORE INTO todo VALUES (?)", ((num,) for num in nums))

    def remove_waiting(self, num: int) -> None:
        """Say that a question was compared."""
        self._connection.execute("DELETE FROM todo WHERE num = ?", (num,))

    def put(self, pairs: Sequence[Pair]) -> None:
        """Store pairs; of two scores of a pair, one from each side, the greater counts."""
        self._connection.executemany(
            "INSERT INTO pairs VALUES (?, ?, ?, ?) ON CONFLICT (first, second) DO UPDATE SET"
            " score = max(score, excluded.score), cosine = coalesce(excluded.cosine, cosine)",
            ((one.first, one.second, one.score, one.cosine) for one in pairs),
        )

    def remove(self, pairs: Iterable[Pair]) -> None:
        """Forget pairs."""
        self._connection.executemany(
            "DELETE FROM pairs WHERE first = ? AND second = ?", ((one.first, one.second) for one in pairs)
        )

    # -- opening -----------------------------------------------------------------------------------------------

    @property
    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            try:
                connection = self._open()
            except sqlite3.DatabaseError:  # of another version, or damaged
                for name in (self.path.name, f"{self.path.name}-wal", f"{self.path.name}-shm"):
                    self.path.with_name(name).unlink(missing_ok=True)
                connection = self._open()
            self._local.connection = connection
            with self._guard:
                self._opened.append(connection)
        return connection

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=10, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")  # what a power cut takes is compared again
            connection.execute("BEGIN IMMEDIATE")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                for statement in filter(str.strip, _TABLES.split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("COMMIT")
            if version not in (0, FORMAT):
                raise sqlite3.DatabaseError(f"format {version}")
        except BaseException:
            connection.close()
            raise
        return connection


def _close(connections: list[sqlite3.Connection]) -> None:
    for connection in connections:
        connection.close()
    connections.clear()
