"""One thread for NumPy's matrix products while a forum encodes and searches.

Encoding multiplies many small matrices: a second BLAS thread gains little, and waits spinning where another process
keeps a core busy (measured: 15 times slower beside one). The number belongs to the whole process, and only who set it
can set it back: so the first thread that enters does both, and one that is inside at the same time may end its work
with more. A program that encodes in many threads sets one BLAS thread for good when it starts, and nothing here
changes that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

_SETTING = threading.Lock()
"""Held by the thread that has set the number, until it has set it back."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy's BLAS run on one thread inside, and on as many as before afterwards; costs 20 µs."""
    if not _SETTING.acquire(blocking=False):
        yield  # it is one already
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _SETTING.release()


@cache
def _controller() -> Any:
    """Return what knows the loaded libraries: looking for them takes milliseconds, once."""
    return ThreadpoolController()
