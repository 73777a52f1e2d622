"""The table: every row's means over seeds beside what was reported, and what the paper says of rows, tested.

Enters: outcomes. Leaves: ``RowResult`` and ``Compared`` values. May import: its own folder and its neighbours in
experiments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from askalike.experiments.das2016.outcomes import Outcome, Runner
from askalike.experiments.das2016.reported import MEASURES
from askalike.experiments.das2016.rows import BASELINE, COMPARED, Row
from askalike.experiments.das2016.running import not_run, seeds_of
from askalike.experiments.row_comparison import Compared, compare_rows
from askalike.experiments.seed_means import SeedMean, over_seeds, seed_mean

__all__ = ["RowResult", "compared", "results"]


@dataclass(frozen=True, slots=True)
class RowResult:
    """A row of the table.

    Args:
        row: what was run.
        outcomes: of the seeds that are finished.
        means: task → measure → mean; p-values are against ``BASELINE``, None where that is not finished.
        reason: why it was not run, or "".
    """

    row: Row
    outcomes: tuple[Outcome, ...] = ()
    means: Mapping[str, Mapping[str, SeedMean]] = field(default_factory=dict)
    reason: str = ""


def results(runner: Runner, rows: Iterable[Row], seeds: Sequence[int]) -> list[RowResult]:
    """Return the rows with what is finished of them."""
    asked = list(rows)
    found = {row.id: _finished(runner, row, seeds) for row in asked}
    base = found.get(BASELINE) or ()
    return [
        RowResult(row, found[row.id], _means(found[row.id], () if row.id == BASELINE else base), not_run(row))
        for row in asked
    ]


def compared(found: Iterable[RowResult], tasks: Sequence[str]) -> list[Compared]:
    """Return what the paper says of rows, for those that are finished."""
    values = {
        one.row.id: {task: over_seeds([outcome.values[task]["map"] for outcome in one.outcomes]) for task in tasks}
        for one in found
        if one.outcomes
    }
    return compare_rows(values, COMPARED, tasks)


def _finished(runner: Runner, row: Row, seeds: Sequence[int]) -> tuple[Outcome, ...]:
    found = (runner.finished(row, seed) for seed in seeds_of(row, seeds))
    return tuple(outcome for outcome in found if outcome is not None)


def _means(outcomes: Sequence[Outcome], base: Sequence[Outcome]) -> dict[str, dict[str, SeedMean]]:
    if not outcomes:
        return {}
    return {
        task: {
            measure: seed_mean(
                [outcome.values[task][measure] for outcome in outcomes],
                [outcome.values[task][measure] for outcome in base] or None,
            )
            for measure in MEASURES
        }
        for task in outcomes[0].values
    }
