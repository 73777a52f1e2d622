"""Several trainings beside each other, each in a process of its own.

Enters: what all of them work with, one value for each. Leaves: nothing but what they write. May import: orphan.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

from askalike.orphan import end_with_parent

__all__ = ["each_told"]

_One = TypeVar("_One")
_Held = TypeVar("_Held")


def each_told(
    work: Callable[[_Held, _One], None], held: _Held, ones: Sequence[_One], told: Callable[[_One, str], None], jobs: int
) -> None:
    """Do ``work(held, one)`` for each, some beside each other.

    Args:
        work: a function of a module; ``held`` and ``one`` travel to other processes where there are several jobs.
        told: told of each that is done, and how far all are, as in "2 of 9 done, about 7 min left".
        jobs: processes, ≥ 1; one is this process.
    """
    began = time.monotonic()

    def tell(one: _One, done: int) -> None:
        rest = (time.monotonic() - began) / done * (len(ones) - done) / 60
        told(one, f"{done} of {len(ones)} done, about {rest:.0f} min left")

    if jobs == 1 or len(ones) < 2:
        for done, one in enumerate(ones, start=1):
            work(held, one)
            tell(one, done)
        return
    pool = ProcessPoolExecutor(min(jobs, len(ones)), multiprocessing.get_context("spawn"), _hold, (work, held))
    try:
        futures = {pool.submit(_do, one): one for one in ones}
        for done, future in enumerate(as_completed(futures), start=1):
            future.result()
            tell(futures[future], done)
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()  # or the error would be told when all the others have ended, which may take hours
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


_HELD: list[tuple[Callable[[Any, Any], None], Any]] = []
"""What this process works with; set once, where it begins."""


def _hold(work: Callable[[Any, Any], None], held: object) -> None:
    end_with_parent()
    _HELD.append((work, held))


def _do(one: object) -> None:
    work, held = _HELD[0]
    work(held, one)
