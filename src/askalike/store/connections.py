"""A connection for each thread."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from askalike.errors import ForumError


class _Closable(Protocol):
    def close(self) -> None: ...


_Connection = TypeVar("_Connection", bound=_Closable)


class ThreadConnections(Generic[_Connection]):
    """The connections of all threads to one database.

    A thread's connection is opened at its first use. It is closed when the thread ends, when this object goes, or by
    ``close``, so that threads that come and go leave no file handles.

    Args:
        opened: opens a connection, which another thread may close.
    """

    def __init__(self, opened: Callable[[], _Connection]) -> None:
        self._opened = opened
        self._closed = ""
        self._local = threading.local()
        self._guard = threading.Lock()
        self._all: weakref.WeakSet[_Closing[_Connection]] = weakref.WeakSet()

    def get(self) -> _Connection:
        """Return this thread's connection.

        Raises:
            ForumError: all were closed for good.
        """
        own: _Closing[_Connection] | None = getattr(self._local, "own", None)
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


class _Closing(Generic[_Connection]):
    """Closes its connection when nothing refers to it: what a thread has of its own goes with the thread."""

    def __init__(self, connection: _Connection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()
