"""Parts of a batch side by side in threads, instead of many threads for each small operation.

A step of the recurrence is a dozen operations of some ten microseconds. Waking the other cores for each of them and
waiting for the slowest costs as much as they take; a thread for a part of the batch waits once, at the end. torch
releases the interpreter's lock within an operation, so that the threads run at the same time.

Enters: functions. Leaves: their results. May import: torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from math import isqrt
from typing import Final, TypeVar

import torch

__all__ = ["TEXTS_PER_LANE", "lane_count", "side_by_side"]

TEXTS_PER_LANE: Final = 25
"""L lanes need this many texts times L²: below that the lanes wait for the interpreter's lock."""

_Found = TypeVar("_Found")


def lane_count(texts: int, device: torch.device) -> int:
    """Return how many lanes a batch is worth on this device, with the threads that torch may use; at least 1."""
    if device.type != "cpu":
        return 1
    return max(1, min(torch.get_num_threads(), isqrt(texts // TEXTS_PER_LANE)))


def side_by_side(works: Sequence[Callable[[], _Found]], device: torch.device) -> list[_Found]:
    """Return the results of all functions, which run without gradient.

    On the CPU they run at the same time and share torch's threads. On another device they run one after the other: it
    has threads enough, and other threads here would put their work into another stream.
    """
    if len(works) < 2 or device.type != "cpu":
        return [_without_gradient(work) for work in works]
    pool = _pool(len(works), torch.get_num_threads(), os.getpid())
    return [future.result() for future in [pool.submit(_without_gradient, work) for work in works]]


def _without_gradient(work: Callable[[], _Found]) -> _Found:
    with torch.no_grad():  # what is set in one thread does not hold in another
        return work()


@lru_cache(maxsize=1)
def _pool(workers: int, threads: int, process: int) -> ThreadPoolExecutor:
    """Return workers that share ``threads`` among them; ``process`` makes a forked process start its own."""
    del process
    pool = ThreadPoolExecutor(workers, "lane", torch.set_num_threads, (max(1, threads // workers),))
    for started in [pool.submit(torch.get_num_threads) for _ in range(workers)]:
        started.result()
    torch.set_num_threads(threads)  # the workers' number is theirs alone, but threads started later would inherit it
    return pool
