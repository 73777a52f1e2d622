"""A forum's move between a file and a database: the records with their numbers, so that indexes and models go along.

Numbers, the log of changes and how far each number has come are copied as they are: an index that has seen the changes
up to one number in the old store has seen the same of the new one, and no number of a deleted record is given again.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import filelock

from askalike import agreement
from askalike.errors import BusyForumError, ForumError, ForumExistsError
from askalike.files import held, replace_whole, sync_folder, writing_named
from askalike.progress import Progress
from askalike.store.layout import ForumLayout
from askalike.store.moderation import LOG_COLUMNS, WRITE_COLUMNS
from askalike.store.postgres import PostgresStore
from askalike.store.rows import ANSWER_COLUMNS, QUESTION_COLUMNS
from askalike.store.sql import OUTCOME_COLUMNS, SqlStore, margin_as_setting, put_settings
from askalike.store.sqlite.store import SqliteStore
from askalike.store.writes import Connection

LOCK_TIMEOUT_S: Final = 60.0
BATCH: Final = 1000
"""Rows that are read, written and compared together."""

_TABLES: Final = (
    ("sources", ("num",), ("num", "name", "format")),
    ("questions", ("num",), ("num", *QUESTION_COLUMNS, "source", "digest")),
    ("answers", ("num",), ("num", *ANSWER_COLUMNS, "source", "digest")),
    ("links", ("source_id", "target_id", "kind"), ("source_id", "target_id", "kind", "source")),
    ("changes", ("seq",), ("seq", "at_us", "kind", "operation", "id", "num")),
    (
        "feedback",
        ("num",),
        ("num", "question_id", "candidate_id", "verdict", "judge", "at_us", "draw", "probability", "propensity"),
    ),
    ("outcomes", ("day", "session", "kind", "subject"), ("day", *OUTCOME_COLUMNS)),
    ("moderation", ("num",), ("num", *LOG_COLUMNS)),
    (
        "assignments",
        ("question_id", "candidate_id"),
        ("question_id", "candidate_id", "judge", "at_us", "until_us"),
    ),
    ("outbox", ("num",), ("num", *WRITE_COLUMNS)),
)
"""Each table with its key and its columns, in an order that never refers to what is not there yet."""

_FOLDERS: Final = ("lexical", "vectors", "model", "rankers", "languages")
_FILES: Final = (
    "config.toml",
    "encoder.json",
    "reranker.json",
    "parts.json",
    "learned.json",
    "keys.json",
)
_DATABASES: Final = ("pairs.sqlite", "helped.sqlite")


def migrate_records(source: SqlStore, layout: ForumLayout, target: Path, database: str, progress: Progress) -> None:
    """Make a forum of the same records, indexes and models in a new folder; the old one stays as it is.

    Nobody can write to the old forum meanwhile. What follows a living forum, a training under way and the rejects of
    the last load are left behind.

    Args:
        source: the store of the forum in ``layout``.
        database: the PostgreSQL database for the records, which must be empty; "" for a file in the folder.

    Raises:
        ForumExistsError: the folder or the database holds something already.
        BusyForumError: another migration writes the folder, or somebody else writes to a store for too long.
        ForumError: something cannot be read, reached or written; neither folder nor database holds anything then.
    """
    lock = filelock.FileLock(target.with_name(f".{target.name}.migrating.lock"))
    with contextlib.ExitStack() as stack:
        try:
            with writing_named(target):
                target.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(held(lock, 0))
        except filelock.Timeout as error:
            raise BusyForumError(f"another migration writes {target}", "wait for it, or end it") from error
        try:
            _migrate(source, layout, target, database, progress)
        finally:
            with contextlib.suppress(OSError):  # Windows removes no open file
                Path(lock.lock_file).unlink()


def _migrate(source: SqlStore, layout: ForumLayout, target: Path, database: str, progress: Progress) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ForumExistsError(f"{target} exists and is not empty", "choose another folder for the forum")
    made = ForumLayout(target.with_name(f".{target.name}.migrating"))
    with writing_named(target):
        if made.folder.is_symlink():
            raise ForumError(f"{made.folder} is a link", "remove it")
        shutil.rmtree(made.folder, ignore_errors=True)  # of a migration that was killed
        made.folder.mkdir(parents=True)
    try:
        settings = source.settings()
        if database:
            written: SqlStore = PostgresStore.create(database, settings)
        else:
            written = SqliteStore.create(made.archive, settings)
        with (
            contextlib.closing(written),
            held(filelock.FileLock(layout.lock), LOCK_TIMEOUT_S),
            source.write() as reading,
            written.write() as writing,
        ):
            _refuse_full(writing, database)
            _refuse_other(settings, written, database)
            _copy_records(source, written, (reading, writing), progress)
            if (margin := source.margin()) is not None:
                put_settings(writing, margin_as_setting(margin))
            _copy_folder(layout.folder, made.folder)
        with writing_named(target):
            if database:
                agreement.agree(database)
                replace_whole(made.attached, json.dumps({"format": 1, "database": database}).encode())
            if target.exists():
                target.rmdir()  # an empty folder
            made.folder.rename(target)
            sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(made.folder, ignore_errors=True)
        raise


def _refuse_full(writing: Connection, database: str) -> None:
    for table in ("sources", "questions", "changes"):
        if writing.execute(f"SELECT count(*) FROM {table}").fetchone()[0]:
            hint = f'join it with "askalike attach {database} --into FOLDER", or choose another database'
            raise ForumExistsError(f"{database} holds a forum already", hint)


def _refuse_other(settings: Mapping[str, str], written: SqlStore, database: str) -> None:
    """Refuse an empty database that was made for other texts, as by another migration at the same moment."""
    found = written.settings()
    if any(found.get(name) != value for name, value in settings.items()):
        hint = "choose another database, or wait for whoever is writing it"
        raise ForumExistsError(f"{database} was made for a forum with other text settings", hint)


def _copy_records(
    source: SqlStore, written: SqlStore, connections: tuple[Connection, Connection], progress: Progress
) -> None:
    reading, writing = connections
    total = sum(reading.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table, _, _ in _TABLES)
    progress.start("copying", total, "records")
    for table, key, columns in _TABLES:
        for rows in _pages(reading, table, key, columns):
            written.append(writing, table, columns, rows)
            progress.advance(len(rows))
        if key == ("num",) or key == ("seq",):
            written.keep_last_number(writing, table, key[0], source.last_number(reading, table, key[0]))
    progress.start("comparing", total, "records")
    for table, key, columns in _TABLES:
        pages = zip(
            _pages(reading, table, key, columns), _pages(writing, table, key, columns), strict=True
        )  # the same where both have the same keys
        for one, other in pages:
            if one != other:
                raise ForumError(f"{table} could not be read back as they were written", "nothing was migrated")
            progress.advance(len(one))


def _pages(
    connection: Connection, table: str, key: tuple[str, ...], columns: tuple[str, ...]
) -> Iterator[list[tuple[Any, ...]]]:
    keys, marks = ", ".join(key), ", ".join("?" * len(key))
    wanted = f"SELECT {', '.join(columns)} FROM {table} {{}} ORDER BY {keys} LIMIT {BATCH}"
    places = [columns.index(name) for name in key]
    found = connection.execute(wanted.format("")).fetchall()
    while found:
        rows = [tuple(row) for row in found]
        yield rows
        after = [rows[-1][place] for place in places]
        found = connection.execute(wanted.format(f"WHERE ({keys}) > ({marks})"), after).fetchall()


def _copy_folder(old: Path, new: Path) -> None:
    for name in _FOLDERS:
        if (old / name).is_dir():
            shutil.copytree(old / name, new / name, symlinks=True, ignore=shutil.ignore_patterns("*-shm", "*.lock"))
    for name in _FILES:
        if (old / name).is_file():
            shutil.copy2(old / name, new / name, follow_symlinks=False)
    for name in _DATABASES:
        if (old / name).is_file():
            with (
                contextlib.closing(sqlite3.connect(f"{(old / name).absolute().as_uri()}?mode=ro", uri=True)) as one,
                contextlib.closing(sqlite3.connect(new / name)) as other,
            ):
                one.backup(other)
