"""One training in several processes of this machine, each with a part of every epoch's batches.

The processes find each other through the environment, in the names that ``torchrun`` sets; the first one reports
progress and keeps the model. When one of them fails, the others are ended; when the caller is killed, all are.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

import torch

from askalike.errors import AskalikeError, ModelError
from askalike.models.encoders.model import Model
from askalike.processes import end_with_parent
from askalike.progress import Progress, SilentProgress
from askalike.training.corpus import TrainingData
from askalike.training.encoder import TrainingRun, train_encoder
from askalike.training.recipe import Recipe

_MODEL: Final = "model"


@dataclass(frozen=True, slots=True)
class _Work:
    """What every process is given.

    Args:
        run: without progress, and without a model to go on from.
        start: folder of that model, or None.
        port: where they find each other.
    """

    recipe: Recipe
    data: TrainingData
    run: TrainingRun
    start: Path | None
    size: int
    threads: int
    port: int


def fit_together(
    recipe: Recipe, data: TrainingData, run: TrainingRun, start: Path | None, shape: tuple[int, int]
) -> Model:
    """Return what ``train_encoder`` returns, made by several processes.

    Args:
        run: without a model to go on from.
        start: the folder of that model, which each process reads for itself.
        shape: how many processes; threads of each, 0 for a fair share of the cores.
    """
    context = multiprocessing.get_context("spawn")
    size, threads = shape
    quiet = replace(run, progress=SilentProgress())
    work = _Work(recipe, data, quiet, start, size, threads or max(1, (os.cpu_count() or 1) // size), _free_port())
    pipes = [context.Pipe(duplex=False) for _ in range(size)]
    workers: dict[BaseProcess, Connection] = {
        context.Process(target=_take_part, args=(rank, work, sender), daemon=True): receiver
        for rank, (receiver, sender) in enumerate(pipes)
    }
    try:
        for worker in workers:
            worker.start()
        _join(workers, run.progress)
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()
                worker.join()
    return Model.load(run.folder / _MODEL)


def _join(workers: dict[BaseProcess, Connection], progress: Progress) -> None:
    """Pass the progress of workers on until all have ended; raise what the first one failed with."""
    left = dict(workers)
    while left:
        wait([*(worker.sentinel for worker in left), *left.values()])
        for worker, messages in list(left.items()):
            has_ended = not worker.is_alive()  # before its messages are read: then all of them are there
            _pass_on(messages, progress)
            if has_ended:
                worker.join()
                del left[worker]
                if worker.exitcode:
                    raise ModelError(
                        f"a process of the training ended with code {worker.exitcode}", "see what it wrote before"
                    )


def _pass_on(messages: Connection, progress: Progress) -> None:
    while messages.poll():
        method, values = messages.recv()
        if method == "error":
            raise values
        getattr(progress, method)(*values)


@dataclass(frozen=True, slots=True)
class _Sender:
    """A progress that is shown in the process that began this one."""

    to: Connection

    def start(self, phase: str, total: int, unit: str) -> None:
        self._send("start", phase, total, unit)

    def advance(self, count: int) -> None:
        self._send("advance", count)

    def notice(self, text: str) -> None:
        self._send("notice", text)

    def _send(self, method: str, *values: Any) -> None:
        self.to.send((method, values))


def _take_part(rank: int, work: _Work, to: Connection) -> None:
    end_with_parent()
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(work.size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(work.port),
    }
    torch.set_num_threads(work.threads)
    device = f"cuda:{rank}" if work.run.device == "cuda" else work.run.device
    try:
        run = replace(work.run, device=device, start=Model.load(work.start) if work.start else None)
        if rank:
            train_encoder(work.recipe, work.data, run)
        else:
            train_encoder(work.recipe, work.data, replace(run, progress=_Sender(to))).save(run.folder / _MODEL)
    except AskalikeError as error:
        to.send(("error", error))
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
