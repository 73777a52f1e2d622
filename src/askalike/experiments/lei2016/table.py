"""The table: every row's means over seeds, beside what was reported, tested against BM25.

Enters: rows, sets, seeds, a trainer or none. Leaves: ``RowResult`` values. May import: evaluate, errors, its own
folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev

from askalike.errors import MissingExtraError, SettingError
from askalike.evaluate import Interval, bootstrap_mean, randomisation_test
from askalike.experiments.lei2016.outcomes import Outcome, Trainer, finished, run_once
from askalike.experiments.lei2016.rows import ROWS, Row
from askalike.experiments.lei2016.sets import LeiSet

__all__ = ["Mean", "RowResult", "reproduce"]

BASELINE = "bm25"


@dataclass(frozen=True, slots=True)
class Mean:
    """One measure of a row on one task.

    Args:
        queries: how many count.
        over_queries: mean of the queries' values, each the mean over seeds, with its interval over queries.
        spread: standard deviation of the seeds' means, None where there are fewer than two.
        p_value: of the paired randomisation test against BM25 on those values; None for BM25 itself.
    """

    queries: int
    over_queries: Interval
    spread: float | None
    p_value: float | None


@dataclass(frozen=True, slots=True)
class RowResult:
    """A row of the table.

    Args:
        row: what was run.
        seeds: those that are finished.
        means: task → measure → mean; empty where the row was not run.
        reason: why it was not run, or "".
    """

    row: Row
    seeds: tuple[int, ...] = ()
    means: Mapping[str, Mapping[str, Mean]] = field(default_factory=dict)
    reason: str = ""


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


def _means(outcomes: Sequence[Outcome], baseline: Outcome | None) -> dict[str, dict[str, Mean]]:
    return {
        task: {
            measure: _mean(
                [outcome.values[task][measure] for outcome in outcomes],
                None if baseline is None else baseline.values[task][measure],
            )
            for measure in measures
        }
        for task, measures in outcomes[0].values.items()
    }


def _mean(by_seed: Sequence[Mapping[str, float]], baseline: Mapping[str, float] | None) -> Mean:
    """Return the mean of queries' values, each first averaged over seeds."""
    queries = list(by_seed[0])
    values = [fmean(values[query] for values in by_seed) for query in queries]
    return Mean(
        len(queries),
        bootstrap_mean(values),
        stdev(fmean(one.values()) for one in by_seed) if len(by_seed) > 1 else None,
        None if baseline is None else randomisation_test(values, [baseline[query] for query in queries]).p_value,
    )
