"""How often people said that an earlier question answered theirs, in an SQLite file of its own beside the archive."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from askalike.errors import BusyForumError, DamagedForumError

BUSY_TIMEOUT_S: Final = 10.0
_TABLE: Final = "CREATE TABLE IF NOT EXISTS helped (question_id TEXT PRIMARY KEY, times INTEGER NOT NULL) WITHOUT ROWID"


class Helped:
    """Counts by the questions' ids, safe from any thread and process; a count is on disk when ``add`` returns.

    Every method raises BusyForumError where another process writes for too long, and DamagedForumError where the file
    cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, question_id: str) -> int:
        """Count one more for a question; return how many there are."""
        counted = "INSERT INTO helped VALUES (?, 1) ON CONFLICT DO UPDATE SET times = times + 1 RETURNING times"
        with self._opened() as connection, connection:
            connection.execute(_TABLE)
            return int(connection.execute(counted, (question_id,)).fetchone()[0])

    def total(self) -> tuple[int, int]:
        """Return how often any question did, and how many questions did."""
        if not self._path.exists():
            return 0, 0
        with self._opened() as connection:
            times, questions = connection.execute("SELECT ifnull(sum(times), 0), count(*) FROM helped").fetchone()
            return int(times), int(questions)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing(sqlite3.connect(self._path, timeout=BUSY_TIMEOUT_S)) as connection:
                yield connection
        except sqlite3.DatabaseError as error:
            if (getattr(error, "sqlite_errorcode", 0) & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise BusyForumError(
                    f"{self._path} is locked by another process", "try again when it has finished"
                ) from error
            raise DamagedForumError(f"{self._path} cannot be read: {error}", "delete it: counts begin again") from error
