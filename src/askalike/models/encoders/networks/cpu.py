"""What makes small operations of torch fast on a CPU: round numbers of rows, memory that is used again, threads.

Rows. In bfloat16, torch hands products to oneDNN, which generates code for every shape that it meets: milliseconds and
a megabyte each. A packed batch has another number of texts at every step. With rows rounded up, a few shapes stand for
all. What is computed in the rows too many is left alone; where rows are summed over, the ones too many have to be zero.

Memory. A fresh page costs a fault and its zeroing, which for the buffers of a training step is as much time as their
arithmetic. Blocks handed out here return by themselves when the last tensor in them is gone, whoever held it.

Threads. A step of a recurrence is a dozen operations of some ten microseconds. Waking the other cores for each of them
and waiting for the slowest costs as much as they take; a thread for a part of the batch waits once, at the end. torch
releases the interpreter's lock within an operation, so that the threads run at the same time.
"""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from math import isqrt, prod
from typing import Final, TypeVar

import torch
from torch import Tensor

GRAIN: Final = 32
"""Rows are a multiple of this; fewer stay as many as they are."""


def is_rounding(words: Tensor) -> bool:
    """Return whether products of such tensors are worth rounding: on the CPU, in less than float32."""
    return words.device.type == "cpu" and torch.get_float32_matmul_precision() != "highest"


def round_up(rows: int) -> int:
    """Return the next multiple of ``GRAIN``, or a number that is smaller than it.

    >>> round_up(7), round_up(32), round_up(33)
    (7, 32, 64)
    """
    return rows if rows < GRAIN else -(-rows // GRAIN) * GRAIN


def round_far_up(rows: int) -> int:
    """Return a number of rows of which there are few: at most an eighth more.

    >>> [round_far_up(rows) for rows in (7, 33, 500, 4097, 5000)]
    [7, 64, 512, 4608, 5120]
    """
    grain = GRAIN
    while 16 * grain <= rows:
        grain *= 2
    return rows if rows < GRAIN else -(-rows // grain) * grain


def with_more(part: Tensor, whole: Tensor) -> Tensor:
    """Return consecutive rows of a tensor with those that follow, up to a round number; as they are where it ends.

    Args:
        part: rows of ``whole``, (b, D).
        whole: (N, D), or a part of its columns.

    >>> whole = torch.arange(100).view(50, 2)
    >>> len(with_more(whole[3:36], whole)), len(with_more(whole[3:], whole)), with_more(whole[3:36], whole)[-1].tolist()
    (47, 47, [98, 99])
    """
    room = (whole.storage_offset() - part.storage_offset()) // part.stride(0) + len(whole)
    return part.as_strided((min(round_up(len(part)), room), part.shape[1]), part.stride())


SMALL_BYTES: Final = 1 << 20
"""Below this size torch's own allocator is used."""

KEPT_BYTES: Final = 1 << 30
"""Free memory beyond this is given back to the system."""

_STEP: Final = 1 << 21  # a huge page


class Buffers:
    """Free blocks of memory, by size.

    Args:
        kept_bytes: how much free memory is kept at most.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._free: list[mmap.mmap] = []
        self._lock = threading.RLock()  # a block may come back while one is taken, by the garbage collector

    @property
    def free_bytes(self) -> int:
        """Return how much memory waits for use."""
        return sum(map(len, self._free))

    def take(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Return an uninitialised tensor on the CPU; its block comes back when it and all views of it are gone."""
        size = max(prod(shape) * dtype.itemsize, 1)
        with self._lock:
            fitting = [block for block in self._free if size <= len(block) <= 2 * size + _STEP]
            block = min(fitting, key=len, default=None)
            if block is not None:
                self._free = [other for other in self._free if other is not block]
        if block is None:
            block = mmap.mmap(-1, -(-size // _STEP) * _STEP)
            if hasattr(mmap, "MADV_HUGEPAGE"):
                block.madvise(mmap.MADV_HUGEPAGE)
        view = memoryview(block)
        weakref.finalize(view, self._return, block).atexit = False
        return torch.frombuffer(view, dtype=dtype, count=prod(shape)).view(shape)

    def _return(self, block: mmap.mmap) -> None:
        with self._lock:
            self._free.append(block)
            while self.free_bytes > self._kept_bytes:
                self._free.pop(0)


_BUFFERS: Final = Buffers()


def empty(like: Tensor, *shape: int) -> Tensor:
    """Return an uninitialised tensor of ``like``'s type and device."""
    if like.device.type != "cpu" or prod(shape) * like.dtype.itemsize < SMALL_BYTES:
        return like.new_empty(shape)
    return _BUFFERS.take(shape, like.dtype)


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
