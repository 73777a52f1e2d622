"""The processes that train one model together, through torch's own distributed package; one process is the usual case.

Each process takes every R-th batch; gradients are averaged by ``DistributedDataParallel``. The first process alone
measures, writes and shows progress. In-batch negatives are those of a process' own batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeVar, cast

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from askalike.errors import SettingError

_PATIENCE: Final = timedelta(days=1)  # the others wait while the first one trains word vectors or measures

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class DistributedContext:
    """One process' place among those that train together."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Return whether this process measures, writes and reports."""
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

    def wait(self) -> None:
        """Return when every process has come here."""
        if self.size > 1:
            distributed.barrier()

    @contextmanager
    def first_alone(self) -> Iterator[None]:
        """Let the first process through before the others, who find what it has written."""
        if not self.is_first:
            self.wait()
        yield
        if self.is_first:
            self.wait()


@contextmanager
def joined(device: torch.device) -> Iterator[DistributedContext]:
    """Give the world that the environment describes, in the names that ``torchrun`` sets; or that is there already.

    Raises:
        SettingError: the environment names processes, but not how they find each other.
    """
    if distributed.is_available() and distributed.is_initialized():
        yield DistributedContext(distributed.get_rank(), distributed.get_world_size())
        return
    named = os.environ.get("WORLD_SIZE", "1")
    if named == "1":
        yield DistributedContext()
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    try:
        distributed.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", timeout=_PATIENCE)
    except ValueError as error:
        raise SettingError(
            f"WORLD_SIZE is {named!r}, but the processes cannot find each other: {error}",
            "start them with torchrun, or take WORLD_SIZE out of the environment",
        ) from error
    try:
        yield DistributedContext(distributed.get_rank(), distributed.get_world_size())
    finally:
        distributed.destroy_process_group()
