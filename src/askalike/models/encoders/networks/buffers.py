"""Memory for large intermediate results that is used again instead of being given back to the system.

A fresh page costs a fault and its zeroing, which for the buffers of a training step is as much time as their
arithmetic. Blocks handed out here return by themselves when the last tensor in them is gone, whoever held it.

Enters: a shape. Leaves: an uninitialised tensor. May import: torch.
"""

from __future__ import annotations

import mmap
import threading
import weakref
from math import prod
from typing import Final

import torch
from torch import Tensor

__all__ = ["KEPT_BYTES", "SMALL_BYTES", "Buffers", "empty"]

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
