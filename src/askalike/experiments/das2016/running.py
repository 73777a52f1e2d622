"""All rows of a table that are not finished, one after the other or some beside each other, each kept as it ends.

Enters: a ``Runner``, rows, seeds. Leaves: outcome files. May import: its own folder, its neighbours in experiments.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from askalike.errors import install_command
from askalike.experiments.das2016.outcomes import Runner
from askalike.experiments.das2016.rows import Row
from askalike.experiments.side_by_side import each_told
from askalike.progress import SilentProgress

__all__ = ["not_run", "run_rows", "seeds_of"]

One = tuple[tuple[Row, ...], int]
"""Rows that share what they learn, and a seed."""


def seeds_of(row: Row, seeds: Sequence[int]) -> Sequence[int]:
    """Return the seeds that a row is run with: the first alone where nothing is drawn."""
    return seeds if row.is_drawn else seeds[:1]


def not_run(row: Row) -> str:
    """Return why a row cannot be run here, or ""."""
    if row.system == "siamese" and importlib.util.find_spec("torch") is None:
        return f"training a siamese network needs torch: {install_command('train')}"
    return ""


def run_rows(
    runner: Runner, rows: Iterable[Row], seeds: Sequence[int], notice: Callable[[str], None], *, jobs: int = 1
) -> None:
    """Run what is not finished: all rows with one seed, then with the next.

    Args:
        notice: told what begins, what has ended, and about how long the rest takes.
        jobs: processes, ≥ 1.
    """
    left: list[One] = []
    for seed in seeds:
        groups: dict[str, list[Row]] = {}
        for row in rows:
            if not not_run(row) and seed in seeds_of(row, seeds) and runner.finished(row, seed) is None:
                groups.setdefault(row.learner or row.id, []).append(row)
        left += [(tuple(group), seed) for group in groups.values()]
    if not left:
        return
    notice(f"{len(left)} trainings and measurements")
    if jobs > 1:  # what is told on the way stays in a process
        learner = replace(runner.learner, notice=_unheard)
        trainer = replace(runner.trainer, threads=1, progress=SilentProgress())
        runner = Runner(runner.data, runner.out, learner, trainer)
    each_told(_run, runner, left, lambda one, how: notice(f"{_named(one)}: {how}"), jobs)


def _run(runner: Runner, one: One) -> None:
    rows, seed = one
    for row in rows:
        runner.run(row, seed)


def _named(one: One) -> str:
    rows, seed = one
    return f"{' and '.join(row.id for row in rows)}, seed {seed}"


def _unheard(text: str) -> None:
    """Tell nobody."""
