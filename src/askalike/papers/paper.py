"""What a paper is to the command line and to the benchmarks: its options, its tables, and what runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from askalike.papers.harness import Compared, RowResult, SeedMean
from askalike.progress import Progress

OTHER_DATA: Final = "Reported figures are of other data and show the order of the rows only."


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What ``askalike reproduce`` was asked for.

    Args:
        data: the folder of the paper's data, or of the sets used in its place.
        out: folder for what is finished.
        only: rows, systems or sets; all if empty.
        seeds: trainings of each row in which something is drawn.
        unlabelled: archives whose texts are learned from too.
        sizes: texts to learn from, 0 for all; of papers that vary them.
        first: the kind of text that sizes take first, "" for the usual one.
        pairs: questions with answers to learn from, 0 for all.
        vectors: a file of word vectors, or None to train them.
    """

    data: Path
    out: Path
    recipe: str
    only: tuple[str, ...] = ()
    seeds: int = 5
    unlabelled: tuple[Path, ...] = ()
    sizes: tuple[int, ...] = (0,)
    first: str = ""
    pairs: int = 0
    vectors: Path | None = None
    device: str = "cpu"
    jobs: int = 1


@dataclass(frozen=True, slots=True)
class Table:
    """Rows on one task, as text; a cell may hold rich's markup.

    Args:
        note: below the title, or "".
    """

    title: str
    note: str
    columns: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """What a reproduction shows: all of a paper, or one of its sets.

    Args:
        as_json: all of it as JSON has it.
        name: of the set, "" for all of a paper.
        compared: heading → what the paper says of rows, tested.
        not_run: why → ids of rows.
    """

    as_json: Mapping[str, Any]
    name: str = ""
    tables: Sequence[Table] = ()
    compared: Mapping[str, Sequence[Compared]] = field(default_factory=dict)
    not_run: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper that can be reproduced.

    Args:
        options: those of its own, that not every paper has.
        reproduce: trains what is not finished and returns the tables; calls the progress on the way.
    """

    recipe: str
    options: frozenset[str]
    legend: str
    reproduce: Callable[[Options, Progress], list[Part]]


def row_table(
    title: str,
    found: Iterable[RowResult[Any]],
    task: str,
    measures: Sequence[str],
    reported: Callable[[Any, str], str],
    *,
    note: str = "",
    extra: Mapping[str, Callable[[RowResult[Any]], str]] | None = None,
) -> Table:
    """Return a task's table: each row with its means, its p-value and what was reported.

    Args:
        reported: (row, task) → the figures of the paper, or "".
        extra: columns after the row's name.
    """
    more = extra or {}
    lines = []
    for one in found:
        means = one.means.get(task, {})
        p_value = means["map"].p_value if means else None
        lines.append(
            (
                one.row.id,
                *(cell(one) for cell in more.values()),
                *(_mean_cell(means[name], has_interval=name == "map") if name in means else "" for name in measures),
                "" if p_value is None else f"{p_value:.4f}",
                reported(one.row, task),
            )
        )
    return Table(title, note, ("row", *more, *measures, "p", "reported"), tuple(lines))


def seed_count(one: RowResult[Any]) -> str:
    """Return how many seeds of a row are finished, "" where nothing of it is drawn."""
    return str(len(one.seeds)) if one.row.is_drawn else ""


def not_run(found: Iterable[RowResult[Any]]) -> dict[str, list[str]]:
    """Return why rows were not run → their ids."""
    made: dict[str, list[str]] = {}
    for one in found:
        if one.reason:
            made.setdefault(one.reason, []).append(one.row.id)
    return made


def _mean_cell(mean: SeedMean, *, has_interval: bool) -> str:
    """Return a mean times 100, with its spread over seeds and, dimmed, its interval over queries."""
    found = mean.over_queries
    spread = "" if mean.spread is None else f" ±{100 * mean.spread:.1f}"
    interval = f" [dim]{100 * found.low:.1f}–{100 * found.high:.1f}[/dim]" if has_interval else ""
    return f"{100 * found.mean:.2f}{spread}{interval}"
