"""One training in several processes of this machine, each with a part of every epoch's batches.

The processes find each other through the environment, in the names that ``torchrun`` sets; the first one shows progress
and keeps the model. When one of them fails, the others are ended; when the command is killed, all are.

Enters: a recipe, data, a run. Leaves: the model. May import: train, encode, errors, orphan, cli.progress.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

from askalike.cli.progress import BarProgress
from askalike.errors import AskalikeError, ModelError
from askalike.models.encoders.model import Model
from askalike.orphan import end_with_parent
from askalike.training.corpus import TrainingData
from askalike.training.encoder import TrainingRun, train_encoder
from askalike.training.recipe import Recipe

__all__ = ["fit_together"]

_MODEL = "model"


@dataclass(frozen=True, slots=True)
class _Work:
    """What every process is given.

    Args:
        start: folder of the model to go on from, or None.
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
    """Return what ``fit`` returns, made by several processes.

    Args:
        run: without a model to go on from.
        start: the folder of that model, which each process reads for itself.
        shape: how many processes; threads of each, 0 for a fair share of the cores.

    Raises:
        AskalikeError: as ``fit``.
        ModelError: a process ended without a word.
    """
    context = multiprocessing.get_context("spawn")
    size, threads = shape
    work = _Work(recipe, data, run, start, size, threads or max(1, (os.cpu_count() or 1) // size), _free_port())
    heard, told = context.Pipe(duplex=False)
    workers = [context.Process(target=_take_part, args=(rank, work, told), daemon=True) for rank in range(size)]
    try:
        for worker in workers:
            worker.start()
        _join(workers, heard)
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()
                worker.join()
    return Model.load(run.folder / _MODEL)


def _join(workers: Sequence[BaseProcess], heard: Connection) -> None:
    left = list(workers)
    while left:
        ended = wait([worker.sentinel for worker in left])
        for worker in [one for one in left if one.sentinel in ended]:
            worker.join()
            left.remove(worker)
            if worker.exitcode and heard.poll():
                raise heard.recv()
            if worker.exitcode:
                raise ModelError(
                    f"a process of the training ended with code {worker.exitcode}", "see what it wrote before"
                )


def _take_part(rank: int, work: _Work, told: Connection) -> None:
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
    run = replace(work.run, device=device, start=Model.load(work.start) if work.start else None)
    try:
        if rank:
            train_encoder(work.recipe, work.data, run)
            return
        with BarProgress() as progress:
            train_encoder(work.recipe, work.data, replace(run, progress=progress)).save(run.folder / _MODEL)
    except AskalikeError as error:
        told.send(error)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
