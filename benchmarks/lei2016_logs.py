"""The course of the trainings of a table: all logs in one file, and a figure of pre-training.

Enters: the folder of the trainings. Leaves: a CSV file, an SVG file. Each training belongs to a row and a seed;
pre-training belongs to a network, which rows share, and stands there in place of the row.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askalike.train.log import COLUMNS, Entry, read_log

PRETRAINING = "decoding"
CURVES = {"perplexity from title": "perplexity of held-out titles", "mrr": "MRR on dev"}
"""Measure of the log → what its axis is called."""


@dataclass(frozen=True, slots=True)
class Course:
    """The log of one training.

    Args:
        row: its row, or the network that was pre-trained.
    """

    dataset: str
    row: str
    seed: int
    entries: Sequence[Entry]

    @property
    def is_pretraining(self) -> bool:
        """Whether this trained an encoder-decoder."""
        return bool(self.entries) and self.entries[0].stage.endswith(PRETRAINING)

    def curve(self, measure: str) -> list[tuple[int, float]]:
        """Return a measure by epoch."""
        return [(entry.epoch, entry.value) for entry in self.entries if entry.measure == measure]


def read_logs(folder: Path, done: Collection[tuple[str, str, int]]) -> list[Course]:
    """Return the courses of the trainings in ``done`` (set, row, seed), and of every pre-training that they began from.

    ::

        folder/travel/rcnn-last-seed0/log.csv
        folder/pretrained/travel-rcnn-400-title-and-body-seed0/log.csv
    """
    networks = {(name, _kind(row), seed) for name, row, seed in done if row.endswith("-pretrained")}
    found = []
    for path in sorted(folder.glob("*/*-seed*/log.csv")):
        place = path.parent.parent.name
        row, _, seed = path.parent.name.rpartition("-seed")
        if place == "pretrained":
            place, _, row = row.partition("-")
            is_done = (place, _kind(row), int(seed)) in networks
        else:
            is_done = (place, row, int(seed)) in done
        if is_done:
            found.append(Course(place, row, int(seed), read_log(path)))
    return found


def _kind(row: str) -> str:
    """Return the kind of the network, which the names of rows and networks begin with."""
    return row.partition("-")[0]


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


def draw_pretraining(courses: Iterable[Course], titles: Mapping[str, str], path: Path) -> bool:
    """Draw perplexity and dev MRR by epoch of pre-training, a line a network and seed; False where there is none.

    Args:
        titles: set → what it is.
    """
    shown = [course for course in courses if course.is_pretraining]
    if not shown:
        return False
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "askalike", "svg.fonttype": "none", "font.size": 9}
    from matplotlib import pyplot

    sets = [name for name in titles if any(course.dataset == name for course in shown)]
    networks = list(dict.fromkeys(course.row for course in shown))
    figure, axes = pyplot.subplots(len(sets), len(CURVES), figsize=(9, 3.2 * len(sets)), squeeze=False)
    for name, row in zip(sets, axes, strict=True):
        for (measure, label), axis in zip(CURVES.items(), row, strict=True):
            for course in shown:
                if course.dataset == name:
                    _draw(axis, course, measure, f"C{networks.index(course.row)}")
            axis.set(xlabel="epoch of pre-training", ylabel=label)
            axis.xaxis.get_major_locator().set_params(integer=True)
            axis.grid(alpha=0.3)
        row[0].set_title(titles[name].partition(", ")[0], loc="left")
        row[0].set_yscale("log")
        lines, labels = row[-1].get_legend_handles_labels()
        by_label = dict(zip(labels, lines, strict=True))  # the seeds of a network share one
        row[-1].legend(by_label.values(), by_label)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    print(f"wrote {path}")
    return True


def _draw(axis: Any, course: Course, measure: str, colour: str) -> None:
    """Draw one line, with a dot on the epoch that was kept: that of the lowest perplexity."""
    curve = course.curve(measure)
    perplexities = course.curve(next(iter(CURVES)))
    if not curve or not perplexities:
        return
    axis.plot(*zip(*curve, strict=True), color=colour, linewidth=1, label=_label(course))
    kept = min(perplexities, key=lambda point: point[1])[0]
    axis.plot(*zip(*[point for point in curve if point[0] == kept], strict=True), "o", color=colour, markersize=4)


def _label(course: Course) -> str:
    """Return the network's kind and size."""
    kind, size, *_ = course.row.split("-")
    return f"{kind.upper()}, {size} dimensions"
