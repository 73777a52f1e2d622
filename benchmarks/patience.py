"""Where trainings would have ended with less patience, from the courses that were kept; trains nothing.

Command: ``python -m benchmarks.patience LOGS [--stop-on MEASURE] [--shown MEASURE]``; prints what LOG.md tells, and
writes nothing. LOGS is a file of ``results/`` such as ``das2016-long-logs.csv.gz``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.logs import read_logs

PATIENCE = (1, 2, 3, 5, 10)


def ended(curve: Sequence[tuple[int, float]], patience: int) -> tuple[int, int]:
    """Return the last epoch and the best one of a training that ends after so many epochs without a lower value.

    >>> ended([(0, 3.0), (1, 2.0), (2, 2.5), (3, 1.0), (4, 1.5)], 1), ended([(0, 3.0), (1, 2.0)], 1)
    ((2, 1), (1, 1))
    """
    best, lowest = curve[0]
    for epoch, value in curve:
        if value < lowest:
            best, lowest = epoch, value
        if epoch - best >= patience:
            return epoch, best
    return curve[-1][0], best


def main() -> None:
    """Print a line for each course and patience."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", type=Path)
    parser.add_argument("--stop-on", default="held-out loss", help="what is to fall")
    parser.add_argument("--shown", default="map", help="what is told of the epoch that is kept")
    given = parser.parse_args()
    if not given.logs.exists():
        raise SystemExit(f"there is no file {given.logs}")
    courses = [course for course in read_logs(given.logs) if course.curve(given.stop_on)]
    if not courses:
        raise SystemExit(f"{given.logs} holds no course with {given.stop_on!r}")
    for course in courses:
        shown = dict(course.curve(given.shown))
        for patience in PATIENCE:
            last, best = ended(course.curve(given.stop_on), patience)
            told = f"{given.shown} {100 * shown[best]:.1f}" if best in shown else ""
            print(f"{course.row} seed {course.seed}: patience {patience:2d}, {last} epochs, best {best}, {told}")


if __name__ == "__main__":
    main()
