"""This process: it ends with the one that started it, works on all cores that it may use, and multiplies on one.

One that went on alone would hold a core for hours and write into a folder whose lock its parent held, where another
training may have begun since; or hold a service's port, so that no other can be started.

Encoding multiplies many small matrices: a second BLAS thread gains little, and waits spinning where another process
keeps a core busy (measured: 15 times slower beside one). The number belongs to the whole process, and only who set it
can set it back: so the first thread that enters does both, and one that is inside at the same time may end its work
with more. A program that searches or encodes in several threads sets one for good when it starts.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import chain, islice
from multiprocessing.connection import wait
from typing import Any, Final, TypeVar

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

_YOUNG: Final = 10_000
"""Objects that are made until they are looked through."""

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(work: Callable[[_Given], _Made], items: Iterable[_Given], threads: int) -> Iterator[_Made]:
    """Yield what ``work`` makes of each item, in their order, made in threads; a single item is made in this one.

    At most two results a thread wait. What ``work`` raises is raised here in its item's place; whoever stops
    reading, or is interrupted, waits for what is being made alone.
    """
    ahead = iter(items)
    first = list(islice(ahead, 2))
    if threads < 2 or len(first) < 2:
        yield from map(work, chain(first, ahead))
        return
    waiting: deque[Future[_Made]] = deque()
    with ThreadPoolExecutor(threads, "side by side") as pool:
        try:
            for item in chain(first, ahead):
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(work, item))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def collect_rarely() -> None:
    """Look for cycles of objects less often in this process, which has just been started for its work, and not in what
    it holds already.

    A search makes thousands of objects, and hardly a cycle: Python, which looks after each 700, spent a fourteenth of
    the time on it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG)


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


def keep_one_native_thread() -> None:
    """Let BLAS and OpenMP compute on one thread from now on, in this process and in those that it starts.

    For a program whose own threads search side by side: with four of these on two cores, a search took 17.1 ms of
    processor time in place of 11.7, most of the difference in waiting for each other.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # what is loaded later reads it
    _SETTING.acquire(blocking=False)  # nobody sets it back
    _controller().limit(limits=1)


@cache
def _controller() -> Any:
    """Return what knows the loaded libraries: looking for them takes milliseconds, once."""
    return ThreadpoolController()
