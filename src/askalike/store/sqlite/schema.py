"""The tables of the store's file, its format, how it is made and opened; a connection for each thread.

Nothing may rely on the names of indexes: in an archive that was empty when it was loaded they end in ``_2``, or not
again (``sqlite.staging``).
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from askalike.errors import BusyForumError, DamagedForumError, ForumError, ForumVersionError
from askalike.store import moderation
from askalike.store.sql import HELPED, LANGUAGES

FORMAT = 7
"""Raised with each incompatible change of the tables."""

APPLICATION_ID = 0x41736B41
"""Marks the file as askalike's own in SQLite's header ("AskA")."""

BUSY_TIMEOUT_S = 30.0

WRITABLE = "the forum's folder must be writable, also for searching; check its rights and how its disk is mounted"
"""What to do where it is not."""

FEEDBACK = """
CREATE TABLE feedback (
    num INTEGER PRIMARY KEY AUTOINCREMENT,
    question_id TEXT NOT NULL,
    candidate_id TEXT NOT NULL,
    verdict TEXT NOT NULL,
    judge TEXT NOT NULL,
    at_us INTEGER NOT NULL
);
CREATE INDEX feedback_by_question ON feedback (question_id);
CREATE INDEX feedback_by_candidate ON feedback (candidate_id);
"""

DRAWS = """
ALTER TABLE feedback ADD COLUMN draw TEXT NOT NULL DEFAULT 'queue';
ALTER TABLE feedback ADD COLUMN probability REAL;
ALTER TABLE feedback ADD COLUMN propensity REAL;
"""

TABLES = (
    """
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sources (num INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, format TEXT NOT NULL);
CREATE TABLE questions (
    num INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    markup TEXT NOT NULL,
    tags TEXT NOT NULL,
    created_us INTEGER,
    closed_us INTEGER,
    score INTEGER,
    url TEXT NOT NULL,
    author TEXT NOT NULL,
    source INTEGER NOT NULL REFERENCES sources (num),
    digest BLOB NOT NULL
);
CREATE INDEX questions_by_source ON questions (source);
CREATE INDEX questions_by_created ON questions (created_us);
CREATE TABLE answers (
    num INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    question_id TEXT NOT NULL,
    body TEXT NOT NULL,
    markup TEXT NOT NULL,
    created_us INTEGER,
    score INTEGER,
    author TEXT NOT NULL,
    is_accepted INTEGER NOT NULL,
    source INTEGER NOT NULL REFERENCES sources (num),
    digest BLOB NOT NULL
);
CREATE INDEX answers_by_question ON answers (question_id);
CREATE TABLE links (
    source_id TEXT NOT NULL,
    target_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    source INTEGER NOT NULL REFERENCES sources (num),
    PRIMARY KEY (source_id, target_id, kind)
) WITHOUT ROWID;
CREATE INDEX links_by_target ON links (target_id);
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at_us INTEGER NOT NULL,
    kind TEXT NOT NULL,
    operation TEXT NOT NULL,
    id TEXT NOT NULL,
    num INTEGER
);
"""
    + FEEDBACK
    + DRAWS
    + HELPED
    + LANGUAGES
    + ";".join(moderation.statements("INTEGER PRIMARY KEY AUTOINCREMENT"))
)


FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; the second where it quotes a damaged name in what it says."""


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise errors of SQLite as those of ``askalike.errors``, which name the file."""
    try:
        yield
    except FAULTS as error:
        raise refusal(path, error) or error from error


def connect(path: Path) -> sqlite3.Connection:
    """Open the store's file as every reader and writer must: WAL, full synchronisation, foreign keys.

    A commit returns only when its pages are on disk (``synchronous=FULL`` in WAL mode), so that what was
    acknowledged survives a killed process and a lost power supply.

    Raises:
        DamagedForumError: the file is not an SQLite database.
        ForumVersionError: it is one of another program or format.
        BusyForumError: another process keeps it locked.
        ForumError: the file or its folder cannot be written.
    """
    with explained(path), contextlib.ExitStack() as opened:
        connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        opened.callback(connection.close)
        connection.row_factory = sqlite3.Row
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version and (application != APPLICATION_ID or version != FORMAT):
            raise ForumVersionError(
                f"{path} has format {version}, this version of askalike reads format {FORMAT}",
                "use the version that wrote it, or index the archive again into a new folder",
            )
        opened.pop_all()
    return connection


_SETTINGS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "cache_size = -65536",
    "mmap_size = 1073741824",
    "temp_store = FILE",
    "journal_size_limit = 67108864",
)


def _execute(connection: sqlite3.Connection, statements: str) -> None:
    for statement in filter(str.strip, statements.split(";")):
        connection.execute(statement)


def busy(path: Path) -> BusyForumError:
    """Return the error of a file that others write."""
    return BusyForumError(f"{path.parent} is being written by another process", "wait until it has finished")


def refusal(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> ForumError | None:
    """Return what an error of SQLite means for the user, or None where it is a mistake of this program."""
    if isinstance(error, UnicodeDecodeError):
        return DamagedForumError(f"{path} is damaged: {error}", "restore it from a backup; nothing was changed")
    if not isinstance(error, sqlite3.DatabaseError):
        return None
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the rest tells details
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return busy(path)
    if code == sqlite3.SQLITE_NOTADB:
        hint = "restore it from a backup, or index the archive into a new folder"
        return DamagedForumError(f"{path} cannot be read as a database: {error}", hint)
    if code in _UNWRITABLE:
        return ForumError(f"{path} cannot be opened for writing: {error}", WRITABLE)
    if code == sqlite3.SQLITE_FULL:
        return ForumError(f"{path} cannot be written: {error}", "nothing was changed; free space on its disk")
    if code == sqlite3.SQLITE_IOERR:
        hint = "nothing was changed; check the disk, and that it has free space"
        return ForumError(f"{path} cannot be read or written: {error}", hint)
    if code == sqlite3.SQLITE_CORRUPT or isinstance(error, sqlite3.OperationalError):  # such as a table that is missing
        return DamagedForumError(f"{path} is damaged: {error}", "restore it from a backup; nothing was changed")
    return None


_UNWRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)


def is_finished(connection: sqlite3.Connection) -> bool:
    """Return whether the tables were created completely: a process may have been killed before."""
    return bool(connection.execute("PRAGMA user_version").fetchone()[0])


def create_tables(connection: sqlite3.Connection, settings: dict[str, str]) -> None:
    """Create all tables with the given settings, in one transaction: all or nothing.

    Where another process has created them meanwhile, its settings stay.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if is_finished(connection):
            connection.execute("ROLLBACK")
            return
        _execute(connection, TABLES)
        connection.executemany("INSERT INTO settings (key, value) VALUES (?, ?)", sorted(settings.items()))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another under the same name, None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def roll_back(connection: sqlite3.Connection) -> None:
    """Undo the open transaction; SQLite has already done so after some errors, such as a full disk."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
