"""What SQLite and PostgreSQL do each in its own way: connections, transactions, and the staging of a load."""

from __future__ import annotations

import contextlib
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar

from askalike.errors import ForumError, ForumNotFoundError
from askalike.store import rows
from askalike.store.layout import identity

if TYPE_CHECKING:
    from askalike.store.load import Staging

BATCH: Final = 500
"""Rows that are read together, and values in one statement."""


class Cursor(Protocol):
    """What a statement found; each row by place and by name."""

    @property
    def rowcount(self) -> int:
        """Return how many rows a change concerned."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""


class Connection(Protocol):
    """A connection to a database that understands SQL with ``?`` for values."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Cursor:
        """Run one statement."""


class _Closable(Protocol):
    def close(self) -> None: ...


_Own = TypeVar("_Own", bound=_Closable)


class ThreadConnections(Generic[_Own]):
    """The connections of all threads to one database.

    A thread's connection is opened at its first use. It is closed when the thread ends, when this object goes, or by
    ``close``, so that threads that come and go leave no file handles.

    Args:
        opened: opens a connection, which another thread may close.
    """

    def __init__(self, opened: Callable[[], _Own]) -> None:
        self._opened = opened
        self._closed = ""
        self._local = threading.local()
        self._guard = threading.Lock()
        self._all: weakref.WeakSet[_Closing[_Own]] = weakref.WeakSet()

    def get(self) -> _Own:
        """Return this thread's connection.

        Raises:
            ForumError: all were closed for good.
        """
        own: _Closing[_Own] | None = getattr(self._local, "own", None)
        if own is None:
            if self._closed:
                raise ForumError(f"{self._closed} is closed", "open it again")
            own = _Closing(self._opened())
            self._local.own = own
            with self._guard:
                self._all.add(own)
        return own.connection

    def forget(self) -> None:
        """Close this thread's connection; the next ``get`` opens another."""
        if hasattr(self._local, "own"):
            self._local.own.connection.close()
            del self._local.own

    def close(self, name: str = "") -> None:
        """Close every connection; a later ``get`` opens another.

        Args:
            name: of what is closed for good; a later ``get`` says so.
        """
        self._closed = name
        with self._guard:
            for closing in list(self._all):
                closing.connection.close()
            self._all.clear()
        self._local = threading.local()


class _Closing(Generic[_Own]):
    """Closes its connection when nothing refers to it: what a thread has of its own goes with the thread."""

    def __init__(self, connection: _Own) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


class Database(ABC):
    """A store's database: what the SQL of ``base.Store`` runs on.

    Every method raises BusyForumError where another process writes for too long, DamagedForumError where the store is
    damaged, and ForumError where it cannot be read or written for another reason.
    """

    ordered_join: ClassVar = "JOIN"
    """A join whose first table is read first, where that has to be said."""

    opened: tuple[Path, tuple[int, int] | None] | None = None
    """The file that the forum was opened by, its archive or what names its database, and what tells it from another;
    None where a database is opened by itself."""

    def check_folder(self) -> None:
        """Return where the forum's folder stands where it was opened; every access asks.

        A folder that is moved, deleted or replaced while it is open belongs to another forum, or to none: to go on
        there would mix two forums, or leave files where a new forum is to be.

        Raises:
            ForumNotFoundError: it was moved, deleted or replaced.
        """
        if self.opened is not None and identity(self.opened[0]) != self.opened[1]:
            message = f"{self.opened[0]} was moved, deleted or replaced while it was open"
            raise ForumNotFoundError(message, "open it again")

    @property
    @abstractmethod
    def name(self) -> str:
        """Return the file's path or the database's address, for messages."""

    @abstractmethod
    def close(self) -> None:
        """Close every connection; the store must not be used after."""

    @abstractmethod
    def write(self) -> AbstractContextManager[Connection]:
        """Give a connection inside one transaction: committed and on disk at the end, or rolled back on any error."""

    @abstractmethod
    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Return all rows that a statement finds."""

    def _rows_of(self, statement: str, wanted: Iterable[object]) -> Iterator[Any]:
        """Yield what a statement finds for "{wanted}", each of them once, so many together as it may ask for."""
        listed = list(dict.fromkeys(wanted))
        for start in range(0, len(listed), BATCH):
            batch = listed[start : start + BATCH]
            yield from self.rows(statement.format(wanted=", ".join("?" * len(batch))), batch)

    def _rows_of_ids(self, statement: str, ids: Iterable[str]) -> Iterator[Any]:
        return self._rows_of(statement, (identifier for identifier in ids if rows.is_storable(identifier)))

    def lock(self, name: str) -> AbstractContextManager[None]:
        """Keep other machines from doing what has this name; nobody where one machine alone has the store.

        Raises:
            BusyForumError: another machine has been at it for too long.
        """
        return contextlib.nullcontext()

    @abstractmethod
    def lock_if_empty(self) -> AbstractContextManager[bool]:
        """Keep everybody from writing for as long as nothing is stored here.

        Gives False, at once, where there is a question, a load is under way, or another process writes.
        """

    @abstractmethod
    def backup(self, path: Path) -> None:
        """Write the store as it is at this moment to a new file; others go on reading and writing meanwhile.

        Raises:
            ForumExistsError: there is something at ``path``.
            ForumError: the file cannot be written.
            SettingError: the store is no file.
        """

    # -- loads ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def is_loading(self) -> bool:
        """Return whether another process, or another part of this one, loads an archive into this forum."""

    @abstractmethod
    def loading(self, *, is_waiting: bool = True) -> AbstractContextManager[Path | None]:
        """Keep other loads out; give the path of the staging file, or None for a private one of the system.

        Args:
            is_waiting: for another load, for a while.

        Raises:
            BusyForumError: another load has been under way for too long.
        """

    @abstractmethod
    def staged(self, staging: Staging) -> AbstractContextManager[Connection]:
        """Give a connection, this thread's, that joins the tables of a staging file with those of the store."""

    @abstractmethod
    def after_load(self) -> None:
        """Do what the database needs after a load, such as new statistics; what fails is done another time."""
