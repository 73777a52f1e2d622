"""The course of a training as a table: one value a line, so that any tool can plot it.

Columns: ``stage, epoch, step, measure, value``. Epoch 0 is the state before the first step. A training that goes on
after a kill takes back what it had written after its checkpoint.

Enters: measures. Leaves: ``log.csv``. May import: nothing of askalike.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["COLUMNS", "Entry", "Log", "read_log"]

COLUMNS = ("stage", "epoch", "step", "measure", "value")


@dataclass(frozen=True, slots=True)
class Entry:
    """One value."""

    stage: str
    epoch: int
    step: int
    measure: str
    value: float


class Log:
    """A file that values are added to; every line is written at once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, stage: str, epoch: int) -> None:
        """Make the file if it is not there; take back what a killed run wrote of this stage after ``epoch``."""
        kept = [entry for entry in read_log(self.path) if entry.stage != stage or entry.epoch <= epoch]
        with self.path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(_row(entry) for entry in kept)

    def add(self, stage: str, epoch: int, step: int, measures: Mapping[str, float]) -> None:
        """Write the values of one moment."""
        with self.path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows(_row(Entry(stage, epoch, step, name, value)) for name, value in measures.items())


def read_log(path: Path) -> Iterator[Entry]:
    """Return what a log holds, nothing where there is none; an unfinished last line is left out."""
    if not path.exists():
        return iter(())
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file) if len(row) == len(COLUMNS)][1:]
    return (Entry(stage, int(epoch), int(step), measure, float(value)) for stage, epoch, step, measure, value in rows)


def _row(entry: Entry) -> tuple[str, int, int, str, str]:
    return (entry.stage, entry.epoch, entry.step, entry.measure, f"{entry.value:.6g}")
