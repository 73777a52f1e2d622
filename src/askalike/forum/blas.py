"""One thread for NumPy's matrix products while a forum encodes and searches.

Encoding multiplies many small matrices: a second BLAS thread gains little, and waits spinning where another process
keeps a core busy (measured: 15 times slower beside one). The number of threads belongs to the whole process, so it is
set by the first who encodes and set back by the last.

May import: nothing of askalike.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

__all__ = ["one_blas_thread"]


class _Limit:
    """Counts who needs one thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._users = 0
        self._controller: Any = None
        self._limiter: Any = None

    def enter(self) -> None:
        with self._guard:
            if not self._users:
                if self._controller is None:
                    self._controller = ThreadpoolController()  # looks through the loaded libraries: 1 ms, once
                self._limiter = self._controller.limit(limits=1, user_api="blas")
            self._users += 1

    def leave(self) -> None:
        with self._guard:
            self._users -= 1
            if not self._users:
                self._limiter.restore_original_limits()


_LIMIT = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy's BLAS run on one thread inside; may be entered by several threads at once."""
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()
