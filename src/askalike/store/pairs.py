"""The likely pairs of a forum, and what is still to be compared, in an SQLite file of their own beside the store's.

Everything here can be made anew, but only by who holds the lock of comparing: a reader that finds the store damaged
says so, and the next who compares begins it again. A store that another process is writing is neither damaged nor old.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final

from askalike.errors import DamagedForumError
from askalike.store.sqlite_file import Schema, SqliteFile

_TABLES: Final = """
CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO state VALUES ('begun', lower(hex(randomblob(8))));
CREATE TABLE todo (num INTEGER PRIMARY KEY);
CREATE TABLE pairs (
    first INTEGER NOT NULL,
    second INTEGER NOT NULL,
    score REAL NOT NULL,
    cosine REAL,
    is_open INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (first, second)
) WITHOUT ROWID;
CREATE INDEX pairs_by_score ON pairs (score DESC, first, second);
CREATE INDEX pairs_by_second ON pairs (second);
CREATE TABLE texts (num INTEGER PRIMARY KEY, hash BLOB NOT NULL);
CREATE INDEX texts_by_hash ON texts (hash, num);
CREATE TABLE unread (num INTEGER PRIMARY KEY);
CREATE TABLE touched (num INTEGER PRIMARY KEY, version INTEGER NOT NULL);
CREATE INDEX touched_by_version ON touched (version)
"""

_PAIR: Final = "first, second, score, cosine, is_open"

_PARTS: Final = 500
"""SQLite takes so many values in one statement."""

_VERSION: Final = "(SELECT ifnull(max(CAST(value AS INTEGER)), 0) + 1 FROM state WHERE key = 'version')"
"""What ``version`` is after the writing under way."""


class DamagedPairsError(DamagedForumError):
    """The pairs cannot be read; they are begun again by who compares next."""


_SCHEMA: Final = Schema(
    _TABLES.split(";"),
    format=6,
    remedy="it is rebuilt when the service, or Forum.pairs.advance, runs",
    damaged=DamagedPairsError,
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions by their numbers.

    Args:
        first: the smaller number.
        score: in [0, 1].
        cosine: of their vectors, None where they have none.
        is_open: for people to judge; what they linked is not, and is kept for groups.
    """

    first: int
    second: int
    score: float
    cosine: float | None = None
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class PairPosition:
    """Where a page ended: the last pair in the order by score descending, then numbers."""

    score: float
    first: int
    second: int


_PRIME: Final = 2**31 - 1


def permanent_factors(seed: int) -> tuple[int, int, int, int]:
    """Return a, b, c and p of ``permanent_number`` = ((a · first + b · second + c) mod p) / p.

    Source: Carter and Wegman, "Universal Classes of Hash Functions", 1979: over all seeds, pairs are independent.
    """
    digest = hashlib.blake2b(f"permanent number {seed}".encode(), digest_size=12).digest()
    a, b, c = (int.from_bytes(digest[at : at + 4], "big") % (_PRIME - 1) + 1 for at in (0, 4, 8))
    return a, b, c, _PRIME


def permanent_number(first: int, second: int, seed: int) -> float:
    """Return a number in [0, 1) that belongs to a pair for good, as if drawn by chance."""
    a, b, c, prime = permanent_factors(seed)
    return (a * first + b * second + c) % prime / prime


class PairStore(SqliteFile):
    """Pairs of a forum, in one file; any thread reads, and whoever holds the lock of comparing writes.

    Every method raises BusyForumError where another process has the store
    locked for too long, DamagedPairsError where it is damaged or of another format, and ForumError where it cannot be
    read or written for another reason. Where nothing may be written, a store that is not there is empty.

    Args:
        check_folder: raises ForumNotFoundError where another forum stands at the path by now.
    """

    def __init__(self, path: Path, check_folder: Callable[[], None] = lambda: None) -> None:
        super().__init__(path, _SCHEMA, check_folder, synchronous="NORMAL", is_rebuilt=True)

    # -- reading -----------------------------------------------------------------------------------------------

    def state(self, key: str) -> str | None:
        """Return a value that was kept, or None; "version" grows with every writing, "begun" names the file."""
        return next((str(row[0]) for row in self._rows("SELECT value FROM state WHERE key = ?", key)), None)

    def waiting(self) -> int:
        """Return how many questions are still to be compared."""
        return int(self._rows("SELECT count(*) FROM todo")[0][0])

    def next_waiting(self, limit: int) -> list[int]:
        """Return the numbers of some questions that are to be compared, those that came last first."""
        return [row[0] for row in self._rows("SELECT num FROM todo ORDER BY num DESC LIMIT ?", limit)]

    def next_unread(self, limit: int) -> list[int]:
        """Return the numbers of some questions whose text is to be read, ascending."""
        return [row[0] for row in self._rows("SELECT num FROM unread ORDER BY num LIMIT ?", limit)]

    def count(self, low: float = 0.0, high: float = 2.0) -> int:
        """Return how many open pairs there are with low ≤ score < high."""
        counted = self._rows("SELECT count(*) FROM pairs WHERE score >= ? AND score < ? AND is_open", low, high)
        return int(counted[0][0])

    def drawn(self, low: float, high: float, limit: int, seed: int) -> list[Pair]:
        """Return the open pairs with low ≤ score < high that have the least ``permanent_number``, ascending."""
        rows = self._rows(
            "SELECT first, second, score, cosine FROM pairs WHERE score >= ? AND score < ? AND is_open"
            " ORDER BY (? * first + ? * second + ?) % ?, first, second LIMIT ?",
            *(low, high, *permanent_factors(seed), limit),
        )
        return [Pair(*row) for row in rows]

    def page(self, minimum: float, limit: int, after: PairPosition | None = None) -> list[Pair]:
        """Return open pairs of at least this score, best first, from after a position on."""
        start = after or PairPosition(2.0, 0, 0)
        rows = self._rows(
            "SELECT first, second, score, cosine FROM pairs WHERE score <= ? AND score >= ? AND is_open"
            " AND (score < ? OR (first, second) > (?, ?)) ORDER BY score DESC, first, second LIMIT ?",
            *(start.score, minimum, start.score, start.first, start.second, limit),
        )
        return [Pair(*row) for row in rows]

    def copies(self, num: int, limit: int) -> list[int]:
        """Return the smallest numbers of the questions with the text of this one, itself among them, ascending.

        Args:
            limit: at most this many; -1 for all.
        """
        rows = self._rows(
            "SELECT num FROM texts WHERE hash = (SELECT hash FROM texts WHERE num = ?) ORDER BY num LIMIT ?", num, limit
        )
        return [row[0] for row in rows]

    def firsts(self, nums: Sequence[int]) -> dict[int, int]:
        """Return the smallest number of the questions with the text of each; those without a text are left out."""
        first = "(SELECT num FROM texts AS others WHERE others.hash = texts.hash ORDER BY num LIMIT 1)"
        wanted = f"SELECT num, {first} FROM texts WHERE num IN ({{}})"
        return {num: least for part in _parts(nums) for num, least in self._rows(wanted.format(part))}

    def texts(self, nums: Iterable[int] | None = None) -> list[list[int]]:
        """Return the questions that have a text in common, two at least, each list ascending.

        Args:
            nums: only those with one of these among them; None for all.
        """
        if nums is None:
            shared = "(SELECT hash FROM texts GROUP BY hash HAVING count(*) > 1)"
            rows = self._rows(f"SELECT hash, num FROM texts WHERE hash IN {shared} ORDER BY hash, num")
        else:
            wanted = "SELECT hash, num FROM texts WHERE hash IN (SELECT hash FROM texts WHERE num IN ({}))"
            rows = sorted({row for part in _parts(nums) for row in self._rows(wanted.format(part))})
        sharing = ([num for _, num in group] for _, group in groupby(rows, key=lambda row: row[0]))
        return [nums_of_text for nums_of_text in sharing if len(nums_of_text) > 1]

    def pairs_of(self, nums: Iterable[int] | None = None, minimum: float = 0.0) -> list[Pair]:
        """Return the pairs of at least this score of any of these questions, or of all for None, by their numbers."""
        likely = f"SELECT {_PAIR} FROM pairs WHERE score >= ?"
        if nums is None:
            return _pairs(self._rows(f"{likely} ORDER BY first, second", minimum))
        parts = [f"{likely} AND {name} IN ({part})" for part in _parts(nums) for name in ("first", "second")]
        return _pairs(sorted({row for part in parts for row in self._rows(part, minimum)}))

    def touched(self, after: int) -> list[int]:
        """Return the questions whose pairs or text have changed since a "version", ascending."""
        return [row[0] for row in self._rows("SELECT num FROM touched WHERE version > ? ORDER BY num", after)]

    # -- writing -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self) -> Iterator[PairStore]:
        """Keep everything that is written inside, or nothing."""
        with self.write():
            yield self
            self.keep("version", str(int(self.state("version") or 0) + 1))

    def keep(self, key: str, value: str) -> None:
        """Keep a value."""
        self._run("INSERT OR REPLACE INTO state VALUES (?, ?)", (key, value))

    def clear(self) -> None:
        """Forget all pairs, all texts, and all that waits to be compared."""
        for name in ("first", "second"):
            self._run(f"INSERT OR REPLACE INTO touched SELECT DISTINCT {name}, {_VERSION} FROM pairs")
        for table in ("pairs", "todo", "texts", "unread"):
            self._run(f"DELETE FROM {table}")

    def add_waiting(self, nums: Iterable[int]) -> None:
        """Let these questions be compared."""
        self._run("INSERT OR IGNORE INTO todo VALUES (?)", *((num,) for num in nums))

    def remove_waiting(self, num: int) -> None:
        """Say that a question was compared."""
        self._run("DELETE FROM todo WHERE num = ?", (num,))

    def put(self, pairs: Sequence[Pair]) -> None:
        """Store pairs; of two scores of a pair, one from each side, the greater counts."""
        known = "SELECT 1 FROM pairs WHERE first = ? AND second = ? AND score >= ?"
        self._run(
            f"INSERT OR REPLACE INTO touched SELECT ?, {_VERSION} WHERE NOT EXISTS ({known})",
            *((num, pair.first, pair.second, pair.score) for pair in pairs for num in (pair.first, pair.second)),
        )
        self._run(
            f"INSERT INTO pairs ({_PAIR}) VALUES (?, ?, ?, ?, ?) ON CONFLICT (first, second) DO UPDATE SET"
            " score = max(score, excluded.score), cosine = coalesce(excluded.cosine, cosine),"
            " is_open = excluded.is_open",
            *((pair.first, pair.second, pair.score, pair.cosine, pair.is_open) for pair in pairs),
        )

    def remove(self, pairs: Iterable[Pair]) -> None:
        """Forget pairs."""
        gone = [(pair.first, pair.second) for pair in pairs]
        self._touch(num for pair in gone for num in pair)
        self._run("DELETE FROM pairs WHERE first = ? AND second = ?", *gone)

    def add_unread(self, nums: Iterable[int]) -> None:
        """Let the text of these questions be read; what was kept of it is forgotten."""
        listed = [(num,) for num in nums]
        self._touch(num for (num,) in listed)
        self._run("DELETE FROM texts WHERE num = ?", *listed)
        self._run("INSERT OR IGNORE INTO unread VALUES (?)", *listed)

    def put_texts(self, hashes: Mapping[int, bytes | None]) -> None:
        """Keep what the texts of questions are known by; None for one that has gone, or has no words."""
        nums = [(num,) for num in hashes]
        self._run("DELETE FROM texts WHERE num = ?", *nums)
        self._run("DELETE FROM unread WHERE num = ?", *nums)
        self._touch(hashes)
        self._run("INSERT INTO texts VALUES (?, ?)", *(row for row in hashes.items() if row[1]))

    def _touch(self, nums: Iterable[int]) -> None:
        self._run(f"INSERT OR REPLACE INTO touched SELECT ?, {_VERSION}", *((num,) for num in nums))

    # -- damage ------------------------------------------------------------------------------------------------

    def mend(self) -> None:
        """Begin the store again if it is damaged; the caller holds the lock of comparing, so that nobody writes."""
        with contextlib.suppress(DamagedPairsError):
            if self._rows("PRAGMA integrity_check(1)")[0][0] == "ok":  # another process may have begun it again
                self.was_damaged = False
                return
        self.was_damaged = False
        for ending in ("", "-wal", "-shm"):
            self.path.with_name(f"{self.path.name}{ending}").unlink(missing_ok=True)

    def _rows(self, statement: str, *values: object) -> list[Any]:
        return list(map(tuple, self.rows(statement, values)))

    def _run(self, statement: str, *rows: Sequence[object]) -> None:
        """Execute a statement, once for each row of values where it takes any."""
        self.run(statement, rows if "?" in statement else ((),))


def _pairs(rows: Iterable[tuple[int, int, float, float | None, int]]) -> list[Pair]:
    return [Pair(first, second, score, cosine, bool(is_open)) for first, second, score, cosine, is_open in rows]


def _parts(nums: Iterable[int]) -> Iterator[str]:
    """Yield numbers as SQL lists them, some at a time."""
    listed = iter(nums)
    while part := list(islice(listed, _PARTS)):
        yield ", ".join(map(str, map(int, part)))
