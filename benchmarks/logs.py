"""The course of many trainings in one file.

Enters: logs of trainings. Leaves: a CSV file, and from it the same logs.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from askalike.training.loop import COLUMNS, Entry


@dataclass(frozen=True, slots=True)
class Course:
    """The log of one training.

    Args:
        dataset: what it learned from or was measured on.
        row: what was trained.
    """

    dataset: str
    row: str
    seed: int
    entries: Sequence[Entry]

    def curve(self, measure: str) -> list[tuple[int, float]]:
        """Return a measure by epoch."""
        return [(entry.epoch, entry.value) for entry in self.entries if entry.measure == measure]


def read_logs(path: Path) -> list[Course]:
    """Return what ``write_logs`` wrote; nothing where there is no file.

    >>> read_logs(Path("nowhere.csv.gz"))
    []
    """
    found: dict[tuple[str, str, int], list[Entry]] = {}
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                entry = Entry(row["stage"], int(row["epoch"]), int(row["step"]), row["measure"], float(row["value"]))
                found.setdefault((row["set"], row["row"], int(row["seed"])), []).append(entry)
    return [Course(*name, entries) for name, entries in found.items()]


def write_logs(courses: Iterable[Course], path: Path) -> None:
    """Write all logs into one file; the same logs give the same bytes."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("set", "row", "seed", *COLUMNS))
    for course in courses:
        for entry in course.entries:
            at = (entry.stage, entry.epoch, entry.step, entry.measure, f"{entry.value:.6g}")
            rows.writerow((course.dataset, course.row, course.seed, *at))
    path.write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))
    print(f"wrote {path}")
