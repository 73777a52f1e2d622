"""Several trainings side by side, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

from askalike.processes import end_with_parent

_One = TypeVar("_One")
_Held = TypeVar("_Held")
_Found = TypeVar("_Found")


def do_each(
    work: Callable[[_Held, _One], _Found],
    held: _Held,
    ones: Sequence[_One],
    on_done: Callable[[_One, str], None],
    jobs: int,
) -> list[_Found]:
    """Return ``work(held, one)`` of each, in the order of their ending; some run side by side.

    Args:
        work: a function of a module; ``held`` and ``one`` travel to other processes where there are several jobs.
        on_done: called with each that is done, and how far all are, as in "2 of 9 done, about 7 min left".
        jobs: processes, ≥ 1; one is this process.
    """
    began = time.monotonic()
    found: list[_Found] = []

    def add(one: _One, result: _Found) -> None:
        found.append(result)
        rest = (time.monotonic() - began) / len(found) * (len(ones) - len(found)) / 60
        on_done(one, f"{len(found)} of {len(ones)} done, about {rest:.0f} min left")

    if jobs == 1 or len(ones) < 2:
        for one in ones:
            add(one, work(held, one))
        return found
    pool = ProcessPoolExecutor(min(jobs, len(ones)), multiprocessing.get_context("spawn"), _hold, (work, held))
    try:
        futures = {pool.submit(_do, one): one for one in ones}
        for future in as_completed(futures):
            add(futures[future], future.result())
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()  # or the error would be reported when all the others have ended, which may take hours
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    return found


_HELD: list[tuple[Callable[[Any, Any], Any], Any]] = []
"""What this process works with; set once, where it begins."""


def _hold(work: Callable[[Any, Any], Any], held: object) -> None:
    end_with_parent()
    _HELD.append((work, held))


def _do(one: object) -> Any:
    work, held = _HELD[0]
    return work(held, one)
