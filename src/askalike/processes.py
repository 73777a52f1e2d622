"""This process: it ends with the one that started it, and computes matrix products with one thread.

One that went on alone would hold a core for hours and write into a folder whose lock its parent held, where another
training may have begun since; or hold a service's port, so that no other can be started.

Encoding multiplies many small matrices: a second BLAS thread gains little, and waits spinning where another process
keeps a core busy (measured: 15 times slower beside one). The number belongs to the whole process, and only who set it
can set it back: so the first thread that enters does both, and one that is inside at the same time may end its work
with more. A program that encodes in many threads sets one BLAS thread for good when it starts, and nothing here
changes that.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing.connection import wait
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


def end_with_parent(end: Callable[[], None] = lambda: os._exit(1)) -> None:
    """End this process as soon as the one that started it through ``multiprocessing`` has ended.

    In a process that no other one started, nothing is done.

    Args:
        end: how. Unless told otherwise at once: what it was writing is lost, so that it must write in ways that a kill
            cannot harm.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        arguments = (parent.sentinel, end)
        threading.Thread(target=_end_after, args=arguments, name="end with parent", daemon=True).start()


def _end_after(sentinel: int, end: Callable[[], None]) -> None:
    wait([sentinel])
    end()


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
