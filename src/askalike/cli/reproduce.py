"""``askalike reproduce``: the tables of a paper, row by row, beside the figures that it reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from askalike.cli.arguments import JsonOption
from askalike.cli.display import console, errors, print_aligned, print_json, print_whole, safe
from askalike.errors import SettingError
from askalike.experiments.lei2016.outcomes import Trainer
from askalike.experiments.lei2016.rows import chosen_rows
from askalike.experiments.lei2016.sets import LeiSet, find_sets
from askalike.experiments.lei2016.table import Mean, RowResult
from askalike.experiments.lei2016.table import reproduce as run_rows

__all__ = ["reproduce"]

PAPERS = ("lei2016",)
MEASURES = ("map", "mrr", "p@1", "p@5")
LEGEND = (
    "Means times 100; ± is the standard deviation over seeds, then the 95 % interval of MAP over queries, p the "
    "paired randomisation test of MAP against BM25. Reported figures (MAP/MRR/P@1/P@5) are of AskUbuntu's test set: as "
    "the texts of paper and thesis print them, = recomputed from the released scores, ~ remembered: to be checked "
    "before it is quoted."
)


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help=f"One of {', '.join(PAPERS)}.")],
    data: Annotated[
        Path,
        typer.Option("--data", help="AskUbuntu's folder, or one with travel-stackexchange and semeval-task3-b."),
    ],
    only: Annotated[list[str] | None, typer.Option("--only", help="A row, a system or a set; may be repeated.")] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Trainings of each encoder.", min=1)] = 5,
    out: Annotated[Path, typer.Option("--out", help="Folder for finished rows.")] = Path("lei2016"),
    as_json: JsonOption = False,
) -> None:
    """Run the rows of a paper's tables and print them beside the reported figures.

    Finished rows are kept in the output folder: an interrupted run goes on where it was.
    """
    if paper not in PAPERS:
        raise SettingError(f"there is no paper {paper!r}", f"expected one of {', '.join(PAPERS)}")
    sets = find_sets(data)
    names = [name for name in only or () if name in sets]
    rows = chosen_rows(name for name in only or () if name not in sets)
    found: dict[str, Any] = {}
    for name in names or sets:
        read = sets[name]()
        results = run_rows(read, rows, range(seeds), out, trainer(), _notice)
        found[name] = _object(read, results)
        if not as_json:
            _print(read, results)
    if as_json:
        print_json({"paper": paper, "sets": found})
    else:
        console.print(LEGEND, style="dim", markup=False)
        print_whole(f"finished rows are kept in {out}", errors)


def trainer() -> Trainer | None:
    """Return what trains a row's encoder, or None where this version cannot."""
    return None


def _notice(text: str) -> None:
    errors.print(text, style="dim", markup=False)


def _print(data: LeiSet, results: list[RowResult]) -> None:
    for task in data.tests:
        counted = next(iter(results[0].means[task.name].values())).queries
        console.print(f"\n{data.title}: {task.name}, {counted} queries", style="bold", markup=False)
        if not data.is_original:
            console.print("Reported figures are of other data and show the order of the rows only.", style="dim")
        print_aligned(_table(results, task.name))
    for reason in dict.fromkeys(result.reason for result in results if result.reason):
        rows = ", ".join(result.row.id for result in results if result.reason == reason)
        console.print(f"not run, since {reason}: {rows}", markup=False, style="dim")


def _table(results: list[RowResult], task: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("row", no_wrap=True)
    for name in MEASURES:
        table.add_column(name, justify="right", min_width=9 if name == "map" else 5)
    for name in ("p", "reported"):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        means = result.means.get(task, {})
        cells = [_cell(means[name], has_interval=name == "map") if name in means else "" for name in MEASURES]
        p_value = means["map"].p_value if means else None
        reported = "/".join(str(result.row.reported.get(name, "–")) for name in MEASURES if result.row.reported)
        table.add_row(
            escape(safe(result.row.id)),
            *cells,
            "" if p_value is None else f"{p_value:.4f}",
            reported,
        )
    return table


def _cell(mean: Mean, *, has_interval: bool) -> str:
    found = mean.over_queries
    spread = "" if mean.spread is None else f" ±{100 * mean.spread:.1f}"
    interval = f" [dim]{100 * found.low:.1f}–{100 * found.high:.1f}[/dim]" if has_interval else ""
    return f"{100 * found.mean:.2f}{spread}{interval}"


def _object(data: LeiSet, results: list[RowResult]) -> dict[str, Any]:
    return {
        "title": data.title,
        "is_the_papers_data": data.is_original,
        "questions": len(data.questions),
        "training_pairs": len(data.pairs),
        "tasks": {task.name: len(task.queries) for task in (data.dev, *data.tests)},
        "rows": [_row_object(result) for result in results],
    }


def _row_object(result: RowResult) -> dict[str, Any]:
    row = result.row
    return {
        "row": row.id,
        "system": row.system,
        "pooling": row.pooling,
        "text": row.reads,
        "pre-training": row.is_pretrained,
        "parameters": row.encoder.parameter_count() if row.encoder else None,
        "how": row.about,
        "seeds": list(result.seeds),
        "not_run": result.reason or None,
        "reported": {name: {"value": one.value, "origin": one.origin} for name, one in row.reported.items()},
        "found": {
            task: {
                measure: {
                    "mean": mean.over_queries.mean,
                    "interval95": [mean.over_queries.low, mean.over_queries.high],
                    "spread": mean.spread,
                    "p_value": mean.p_value,
                }
                for measure, mean in means.items()
            }
            for task, means in result.means.items()
        },
    }
