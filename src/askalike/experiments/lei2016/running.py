"""The trainings of a table, one after the other or several beside each other, each kept as it ends.

Enters: a set, rows, seeds, a trainer. Leaves: outcome files, which ``table.reproduce`` finds. May import: errors, its
own folder, its neighbours in experiments.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from askalike.errors import MissingExtraError
from askalike.experiments.lei2016.outcomes import Trainer, finished, run_once
from askalike.experiments.lei2016.rows import Row
from askalike.experiments.lei2016.sets import LeiSet
from askalike.experiments.side_by_side import each_told

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
    with contextlib.suppress(MissingExtraError):  # the table says so of each row
        each_told(_run, work, left, lambda one, how: notice(f"{data.name}: {one[0].id}, seed {one[1]}: {how}"), jobs)


def _run(work: Work, one: tuple[Row, int]) -> None:
    data, folder, train = work
    run_once(*one, data, folder, train)
