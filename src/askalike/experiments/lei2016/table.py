"""The table: every row's means over seeds, beside what was reported, tested against BM25.

Enters: rows, sets, seeds, a trainer or none. Leaves: ``RowResult`` values. May import: errors, its own
folder, its neighbours in experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from askalike.errors import MissingExtraError, SettingError
from askalike.experiments.lei2016.outcomes import Outcome, Trainer, finished, run_once
from askalike.experiments.lei2016.rows import COMPARED, ROWS, Row
from askalike.experiments.lei2016.sets import LeiSet
from askalike.experiments.row_comparison import Compared, compare_rows
from askalike.experiments.seed_means import SeedMean, over_seeds, seed_mean

__all__ = ["RowResult", "compared", "reproduce"]

BASELINE = "bm25"


@dataclass(frozen=True, slots=True)
class RowResult:
    """A row of the table.

    Args:
        row: what was run.
        seeds: those that are finished.
        means: task → measure → mean; empty where the row was not run.
        precisions: task → query → average precision, the mean over seeds.
        reason: why it was not run, or "".
    """

    row: Row
    seeds: tuple[int, ...] = ()
    means: Mapping[str, Mapping[str, SeedMean]] = field(default_factory=dict)
    precisions: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    reason: str = ""


def compared(found: Iterable[RowResult], tasks: Sequence[str]) -> list[Compared]:
    """Return what paper and thesis say of rows, for those that were run."""
    return compare_rows({one.row.id: one.precisions for one in found if one.means}, COMPARED, tasks)


def reproduce(
    data: LeiSet,
    rows: Iterable[Row],
    seeds: Sequence[int],
    folder: Path,
    train: Trainer | None,
    notice: Callable[[str], None],
) -> list[RowResult]:
    """Run what is not finished yet and return the rows, BM25 first.

    Args:
        rows: those asked for; BM25 is run anyhow, since the others are tested against it.
        seeds: of rows with an encoder; the others draw nothing and are run once.
        folder: where outcomes are kept, and found again when a run was interrupted.
        train: what trains an encoder, or None: then those rows are not run.
        notice: told what begins.

    Raises:
        SettingError: no seed was given.
    """
    if not seeds:
        raise SettingError("no seed to run with", "give at least one")
    asked = [ROWS[BASELINE], *(row for row in rows if row.id != BASELINE)]
    found: dict[str, list[Outcome]] = {}
    reasons: dict[str, str] = {}
    for row in asked:
        if row.encoder is not None and train is None:
            reasons[row.id] = "no trainer of encoders was given"
            continue
        try:
            found[row.id] = [
                _outcome(row, seed, data, folder, train, notice) for seed in (seeds if row.encoder else (0,))
            ]
        except MissingExtraError as error:
            reasons[row.id] = str(error)
    baseline = found[BASELINE][0]
    return [
        RowResult(
            row,
            tuple(one.seed for one in found.get(row.id, ())),
            _means(found[row.id], None if row.id == BASELINE else baseline) if row.id in found else {},
            _precisions(found.get(row.id, ())),
            reasons.get(row.id, ""),
        )
        for row in asked
    ]


def _outcome(
    row: Row, seed: int, data: LeiSet, folder: Path, train: Trainer | None, notice: Callable[[str], None]
) -> Outcome:
    kept = finished(row, seed, data, folder)
    if kept is not None:
        return kept
    notice(f"{data.name}: {row.id}" + (f", seed {seed}" if row.encoder else ""))
    return run_once(row, seed, data, folder, train)


def _precisions(outcomes: Sequence[Outcome]) -> dict[str, dict[str, float]]:
    if not outcomes:
        return {}
    return {task: over_seeds([one.values[task]["map"] for one in outcomes]) for task in outcomes[0].values}


def _means(outcomes: Sequence[Outcome], baseline: Outcome | None) -> dict[str, dict[str, SeedMean]]:
    return {
        task: {
            measure: seed_mean(
                [outcome.values[task][measure] for outcome in outcomes],
                None if baseline is None else [baseline.values[task][measure]],
            )
            for measure in measures
        }
        for task, measures in outcomes[0].values.items()
    }
