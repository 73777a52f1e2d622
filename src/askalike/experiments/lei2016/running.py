"""The trainings of a table, one after the other or several beside each other, each kept as it ends.

Enters: a set, rows, seeds, a trainer. Leaves: outcome files, which ``table.reproduce`` finds. May import: errors, its
own folder.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from askalike.errors import MissingExtraError
from askalike.experiments.lei2016.outcomes import Trainer, finished, run_once
from askalike.experiments.lei2016.rows import Row
from askalike.experiments.lei2016.sets import LeiSet

__all__ = ["train_rows"]

Work = tuple[LeiSet, Path, Trainer]


def train_rows(
    work: Work, rows: Iterable[Row], seeds: Sequence[int], notice: Callable[[str], None], *, jobs: int = 1
) -> None:
    """Train every row and seed that is not finished; all rows with one seed, then with the next.

    Args:
        work: the set, the folder of outcomes, what trains an encoder; with more than one job each process has its own.
        rows: those without an encoder are left to ``reproduce``.
        notice: told what begins, what has ended, and about how long the rest takes.
        jobs: trainings beside each other, ≥ 1.
    """
    data, folder, _ = work
    left = [(row, seed) for seed in seeds for row in rows if row.encoder and finished(row, seed, data, folder) is None]
    if not left:
        return
    notice(f"{data.name}: {len(left)} trainings")
    began = time.monotonic()

    def told(row: Row, seed: int, done: int) -> None:
        spent = time.monotonic() - began
        rest = spent / done * (len(left) - done) / 60
        notice(f"{data.name}: {row.id}, seed {seed}: {done} of {len(left)} done, about {rest:.0f} min left")

    try:
        if jobs == 1:
            for done, (row, seed) in enumerate(left, start=1):
                run_once(row, seed, data, folder, work[2])
                told(row, seed, done)
        else:
            _beside_each_other(work, left, jobs, told)
    except MissingExtraError:
        return  # the table says so of each row


def _beside_each_other(
    work: Work, left: Sequence[tuple[Row, int]], jobs: int, told: Callable[[Row, int, int], None]
) -> None:
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(left)), context, _hold, (work,))
    try:
        futures = {pool.submit(_run, *one): one for one in left}
        for done, future in enumerate(as_completed(futures), start=1):
            future.result()
            told(*futures[future], done)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


_HELD: list[Work] = []
"""What this process works on; set once, where it begins."""


def _hold(work: Work) -> None:
    _HELD.append(work)


def _run(row: Row, seed: int) -> None:
    data, folder, train = _HELD[0]
    run_once(row, seed, data, folder, train)
