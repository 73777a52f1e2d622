"""A forum's questions, answers, links and judgements: the one source of truth; everything else is rebuilt from it.

The rest of askalike knows ``Store`` and ``PairStore``. Records are in an SQLite file in the forum's folder, or in
a PostgreSQL database that ``archive.json`` names there; likely pairs are in a file in any case, since they are rebuilt.
"""

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Final

from askalike import agreement
from askalike.errors import AskalikeError, ForumError, SettingError
from askalike.progress import Progress
from askalike.store import soundness
from askalike.store.base import Store
from askalike.store.judgements import refuse_chain
from askalike.store.layout import ForumLayout
from askalike.store.postgres import PostgresStore, check_address
from askalike.store.soundness import pair_faults
from askalike.store.sqlite import SqliteStore, copy_forum
from askalike.store.values import (
    Change,
    Contents,
    Counts,
    LoadCounts,
    LoadReport,
    Operation,
    Position,
    SourceCounts,
)

__all__ = [
    "Change",
    "Contents",
    "Counts",
    "ForumLayout",
    "LoadCounts",
    "LoadReport",
    "Operation",
    "Position",
    "SourceCounts",
    "Store",
    "attach_store",
    "copy_forum",
    "create_store",
    "open_store",
    "pair_faults",
    "refuse_chain",
    "stored_contents",
    "stored_faults",
]


AGREED_VARIABLE: Final = "ASKALIKE_DATABASES"


def open_store(layout: ForumLayout) -> Store:
    """Open a forum's store.

    Raises:
        ForumNotFoundError: there is none, or it was not finished when it was made.
        ForumVersionError: it is one of another program or format.
        DamagedForumError, ForumError: it cannot be read, or not written; or the user has not agreed to the database.
        MissingExtraError: it is in PostgreSQL, and psycopg is not installed.
    """
    if not layout.attached.is_file():
        return SqliteStore(layout.archive)
    address = _attached(layout)
    if not agreement.is_agreed(address, AGREED_VARIABLE):
        raise ForumError(
            f"the forum {layout.folder} names the database {address}, which you have not agreed to use",
            f'agree with "askalike attach {address} --into {layout.folder}" or {AGREED_VARIABLE}="{address}"',
        )
    return PostgresStore(address, layout.attached)


def attach_store(
    layout: ForumLayout, address: str, settings: Mapping[str, str], expected: Mapping[str, str] | None = None
) -> Store:
    """Let a folder stand for the forum in a PostgreSQL database, which is made where there is none.

    Args:
        settings: of a forum that is made.
        expected: settings that a forum that is there has to have.

    Raises:
        SettingError: it is no address, or holds a password; or the database holds a forum with other settings.
        ForumError: the database cannot be used, or the user's own settings not written.
    """
    store = PostgresStore.create(check_address(address), settings)
    try:
        stored_now = store.settings()
        for name, value in (expected or {}).items():
            if stored_now.get(name) != value:
                raise SettingError(
                    f"{address} holds a forum whose {name} is {stored_now.get(name)}, not {value}",
                    "a database holds one forum: name another database, or leave the option out to join this forum",
                )
    except BaseException:
        store.close()
        raise
    try:
        agreement.write_named(layout.attached, "database", address)
    except OSError as error:
        store.close()
        raise ForumError(f"{error.filename} cannot be written: {error.strerror}", "check its rights") from error
    return store


def _attached(layout: ForumLayout) -> str:
    """Return the database that a folder names.

    Raises:
        ForumError: it names none.
    """
    try:
        return check_address(agreement.read_named(layout.attached, "database"))
    except (OSError, ValueError, RecursionError, SettingError) as error:
        again = f'write it again with "askalike attach ADDRESS --into {layout.folder}"'
        raise ForumError(f"{layout.attached} cannot be read: {error}", again) from error


def stored_faults(layout: ForumLayout, progress: Progress) -> Iterator[str]:
    """Yield what is wrong with a forum's store, without writing to it: its structure, and each row that cannot be read
    or is not what was written."""
    if not layout.attached.is_file():
        yield from soundness.stored_faults(layout, progress)
        return
    try:
        with contextlib.closing(PostgresStore(_attached(layout))) as store:
            yield from store.faults(progress)
    except AskalikeError as error:
        yield f"cannot be read: {error}"


def stored_contents(layout: ForumLayout) -> Contents | None:
    """Return what indexes are compared with, as it is now; None where it cannot be read."""
    try:
        if not layout.attached.is_file():
            return soundness.stored_contents(layout)
        with contextlib.closing(PostgresStore(_attached(layout))) as store:
            return store.contents()
    except (AskalikeError, sqlite3.Error, OSError):
        return None


def create_store(layout: ForumLayout, settings: dict[str, str]) -> Store:
    """Make a new, empty store; an unfinished one of a killed process is finished.

    Args:
        settings: of the forum; where another process has made the store meanwhile, that one's stay.
    """
    return SqliteStore.create(layout.archive, settings)
