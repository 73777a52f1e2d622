"""What the word index keeps of each question beside its terms: the question as it is compared, as bytes by its number.

And notes: which entries were written or removed since postings were made, and with which terms, see ``postings``.

They lie in an SQLite file in the index's folder, written by the index's writer and committed before its entries, so
that the index's cursor holds for both. Who searches can do without: what is not here, or is not what was written, is
made from the question itself, which takes longer and gives the same.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from askalike.files import narrow
from askalike.index.words.faults import unread

TEXTS_FILE: Final = "texts.sqlite"
_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS texts (num INTEGER PRIMARY KEY, packed BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, num INTEGER NOT NULL, tag TEXT NOT NULL, terms BLOB)",
)
_FAULTS: Final = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; the second where it quotes a damaged name in what it says."""
_MOST_ASKED: Final = 500
_MOST_MAPPED: Final = 1 << 30


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Raise errors of SQLite as those that ``faults.writing`` knows."""
    try:
        yield
    except _FAULTS as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise unread(folder, error) from error
        raise OSError(f"{TEXTS_FILE}: {error}") from error


class TextWriter:
    """Puts and removes texts; nothing is seen or kept before ``commit``.

    Raises:
        DamagedForumError: the file is damaged; so every method.
        OSError: it cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        path = folder / TEXTS_FILE
        open(path, "ab", opener=narrow).close()  # SQLite gives its write-ahead log the same rights
        self._connection = sqlite3.connect(path, timeout=30.0, check_same_thread=False)
        try:
            with _writing(folder):
                self._connection.execute("PRAGMA trusted_schema = OFF")
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")  # the cursor says that it is there
                for table in _TABLES:
                    self._connection.execute(table)
                self._connection.commit()
        except BaseException:
            self._connection.close()
            raise

    def put(self, num: int, packed: bytes) -> None:
        """Keep a text, in place of the one with its number."""
        with _writing(self._folder):
            self._connection.execute("INSERT OR REPLACE INTO texts VALUES (?, ?)", (num, packed))

    def remove(self, nums: Sequence[int]) -> None:
        """Remove texts; nothing happens where there is none."""
        with _writing(self._folder):
            self._connection.executemany("DELETE FROM texts WHERE num = ?", [(num,) for num in nums])

    def note(self, num: int, tag: str, terms: bytes | None) -> None:
        """Keep that an entry was written with these terms, or removed, since the postings of the tag were made."""
        with _writing(self._folder):
            self._connection.execute("INSERT INTO notes (num, tag, terms) VALUES (?, ?, ?)", (num, tag, terms))

    @property
    def noted(self) -> int:
        """Return how many notes there are."""
        with _writing(self._folder):
            [first, last] = self._connection.execute("SELECT min(id), max(id) FROM notes").fetchone()
        return 0 if last is None else int(last) - int(first) + 1

    def notes(self, tag: str) -> Iterator[tuple[int, bytes | None]]:
        """Yield each entry that notes are of, with the terms of the last; None for one that was removed."""
        with _writing(self._folder):
            asked = "SELECT num, terms FROM notes WHERE id IN (SELECT max(id) FROM notes WHERE tag = ? GROUP BY num)"
            yield from self._connection.execute(asked, (tag,))

    def forget(self) -> None:
        """Delete all notes, at once and for good."""
        with _writing(self._folder):
            self._connection.execute("DELETE FROM notes")
            self._connection.commit()

    def commit(self) -> None:
        """Put everything so far on disk."""
        with _writing(self._folder):
            self._connection.commit()

    def close(self) -> None:
        """Drop what was not committed."""
        self._connection.close()


class Texts:
    """The texts of an index, read by any thread; whoever begins the index again begins this file again."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TEXTS_FILE
        self._guard = threading.Lock()
        self._opened: tuple[tuple[int, int], sqlite3.Connection] | None = None

    def get(self, nums: Sequence[int]) -> dict[int, bytes]:
        """Return the texts with these numbers as far as they are there and can be read."""
        found: dict[int, bytes] = {}
        with self._guard, suppress(*_FAULTS, OSError):
            connection = self._connection()
            for start in range(0, len(nums), _MOST_ASKED):
                asked = nums[start : start + _MOST_ASKED]
                marks = ", ".join("?" * len(asked))
                found.update(connection.execute(f"SELECT num, packed FROM texts WHERE num IN ({marks})", asked))
        return found

    def noted_after(self, last: int, tag: str) -> tuple[list[int], int]:
        """Return the entries that later notes of a tag are of, and the last note; nothing where they cannot be read."""
        found: list[tuple[int, int]] = []
        with self._guard, suppress(*_FAULTS, OSError):
            asked = "SELECT id, num FROM notes WHERE id > ? AND tag = ?"
            found = self._connection().execute(asked, (last, tag)).fetchall()
        return [num for _, num in found], max([last, *(identifier for identifier, _ in found)])

    def _connection(self) -> sqlite3.Connection:
        now = self._path.stat()
        identity = now.st_dev, now.st_ino
        if self._opened is None or self._opened[0] != identity:
            if self._opened is not None:
                self._opened[1].close()
            self._opened = identity, _reading(self._path)
        return self._opened[1]

    def __del__(self) -> None:
        if self._opened is not None:
            self._opened[1].close()


def _reading(path: Path) -> sqlite3.Connection:
    found = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=1.0, check_same_thread=False)
    found.execute("PRAGMA trusted_schema = OFF")
    found.execute(f"PRAGMA mmap_size = {_MOST_MAPPED}")  # 20 texts that SQLite has not read: .3 ms in place of .6
    return found


def text_faults(
    folder: Path, numbers: Sequence[int], is_whole: Callable[[bytes], bool], read: Callable[[int], None]
) -> Iterator[str]:
    """Yield what is wrong with the texts of an index.

    Args:
        numbers: of the questions that the index holds.
        is_whole: whether a text is what was written.
        read: told how many bytes were read.
    """
    path = folder / TEXTS_FILE
    if not path.is_file():
        yield "is not there: searches read each question instead"
        return
    damaged, held = 0, set()
    try:
        with closing(_reading(path)) as connection:
            yield from (row[0] for row in connection.execute("PRAGMA integrity_check(20)") if row[0] != "ok")
            for num, packed in connection.execute("SELECT num, packed FROM texts"):
                held.add(num)
                damaged += not (isinstance(packed, bytes) and is_whole(packed))
                read(len(packed))
    except (*_FAULTS, OSError) as error:
        yield f"cannot be read: {error}"
        return
    if damaged:
        yield f"holds {damaged:,} texts that are not what was written"
    if lost := len(set(numbers) - held):
        yield f"lacks {lost:,} of {len(set(numbers)):,} questions"
