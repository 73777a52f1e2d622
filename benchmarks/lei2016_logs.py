"""The course of the trainings of a table: all logs in one file, and a figure of pre-training.

Enters: the folder of the trainings. Leaves: a CSV file, an SVG file. Each training belongs to a row and a seed;
pre-training belongs to a network, which the rows of all sets share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from askalike.training.loop import read_log
from benchmarks.logs import Course

PRETRAINED = "pretrained"
"""What stands in place of the set where an encoder-decoder was trained."""

PERPLEXITY = "perplexity from title"
SCORE = " mrr"
"""How the measures end that are drawn beside the perplexity; there is one for each dev set."""


def read_logs(folder: Path, done: Collection[tuple[str, str, int]]) -> list[Course]:
    """Return the courses of the trainings in ``done`` (set, row, seed), and of every pre-training that they began from.

    ::

        folder/travel/rcnn-last-seed0/log.csv
        folder/pretrained/rcnn-400-title-and-body-0123abcd-seed0/log.csv
    """
    networks = {(_kind(row), seed) for _, row, seed in done if "-pretrained" in row}
    found = []
    for path in sorted(folder.glob("*/*-seed*/log.csv")):
        place = path.parent.parent.name
        row, _, seed = path.parent.name.rpartition("-seed")
        if (_kind(row), int(seed)) in networks if place == PRETRAINED else (place, row, int(seed)) in done:
            found.append(Course(place, row, int(seed), read_log(path)))
    return found


def _kind(row: str) -> str:
    """Return the kind of the network, which the names of rows and networks begin with."""
    return row.partition("-")[0]


def draw_pretraining(courses: Iterable[Course], path: Path) -> bool:
    """Draw perplexity and dev MRR by epoch of pre-training, a line a network and seed; False where there is none."""
    shown = [course for course in courses if course.dataset == PRETRAINED]
    if not shown:
        return False
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "askalike", "svg.fonttype": "none", "font.size": 9}
    from matplotlib import pyplot

    scores = dict.fromkeys(entry.measure for entry in shown[0].entries if entry.measure.endswith(SCORE))
    networks = list(dict.fromkeys(course.row for course in shown))
    figure, axes = pyplot.subplots(1, 1 + len(scores), figsize=(4.5 * (1 + len(scores)), 3.2), squeeze=False)
    for measure, axis in zip((PERPLEXITY, *scores), axes[0], strict=True):
        for course in shown:
            _draw(axis, course, measure, f"C{networks.index(course.row)}")
        label = measure.replace(SCORE, " MRR") if measure in scores else "perplexity of held-out titles"
        axis.set(xlabel="epoch of pre-training", ylabel=label)
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(alpha=0.3)
    axes[0][0].set_yscale("log")
    lines, labels = axes[0][-1].get_legend_handles_labels()
    by_label = dict(zip(labels, lines, strict=True))  # the seeds of a network share one
    axes[0][-1].legend(by_label.values(), by_label)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    print(f"wrote {path}")
    return True


def _draw(axis: Any, course: Course, measure: str, colour: str) -> None:
    """Draw one line, with a dot on the epoch that was kept: that of the lowest perplexity."""
    curve, perplexities = course.curve(measure), course.curve(PERPLEXITY)
    if not curve or not perplexities:
        return
    axis.plot(*zip(*curve, strict=True), color=colour, linewidth=1, label=_label(course))
    kept = min(perplexities, key=lambda point: point[1])[0]
    axis.plot(*zip(*[point for point in curve if point[0] == kept], strict=True), "o", color=colour, markersize=4)


def _label(course: Course) -> str:
    """Return the network's kind and size."""
    kind, size, *_ = course.row.split("-")
    return f"{kind.upper()}, {size} dimensions"
