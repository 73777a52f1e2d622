"""The processes that train one model together, through torch's own distributed package; one process is the usual case.

Each process takes every R-th batch; gradients are averaged by ``DistributedDataParallel``. The first process alone
measures, writes and shows progress. In-batch negatives are those of a process' own batch.

Enters: a number of processes, or the environment that ``torchrun`` sets. Leaves: ``World``. May import: torch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar, cast

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

__all__ = ["World", "joined"]

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class World:
    """One process' place among those that train together.

    Args:
        rank: number of this process, from 0.
        size: processes in all.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Return whether this process measures, writes and tells."""
        return self.rank == 0

    def parallel(self, module: nn.Module) -> nn.Module:
        """Return the module with its gradients averaged over the processes; itself where there is one."""
        return DistributedDataParallel(module, find_unused_parameters=True) if self.size > 1 else module

    def agreed(self, value: _Value) -> _Value:
        """Return the first process' value in every process."""
        if self.size == 1:
            return value
        held: list[object] = [value]
        distributed.broadcast_object_list(held, src=0)
        return cast("_Value", held[0])


@contextmanager
def joined(device: torch.device) -> Iterator[World]:
    """Give the world that the environment describes, in the names that ``torchrun`` sets."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World()
        return
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield World(distributed.get_rank(), size)
    finally:
        distributed.destroy_process_group()
