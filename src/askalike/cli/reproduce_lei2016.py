"""``askalike reproduce lei2016``: rows of the paper's and the thesis' tables, on each set of a folder.

Enters: what was asked for. Leaves: a table, or JSON. May import: experiments, train, read, cli's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from askalike.cli.display import console, print_aligned, print_json, safe
from askalike.cli.mean_cells import mean_cell, means_object
from askalike.cli.reproduction import Wanted, kept_settings, notice
from askalike.cli.row_comparisons import comparison_objects, comparison_table
from askalike.experiments.lei2016.outcomes import Trainer
from askalike.experiments.lei2016.rows import chosen_rows
from askalike.experiments.lei2016.running import train_rows
from askalike.experiments.lei2016.sets import LeiSet, find_sets
from askalike.experiments.lei2016.table import RowResult, compared
from askalike.experiments.lei2016.table import reproduce as run_rows
from askalike.experiments.lei2016.training import EncoderTrainer
from askalike.read.detection import choose
from askalike.read.frame import ReadContext
from askalike.training.recipe import network_recipe
from askalike.types import Question

__all__ = ["reproduce_lei2016", "table_object", "trainer"]

MEASURES = ("map", "mrr", "p@1", "p@5")
LEGEND = (
    "Means times 100; ± is the standard deviation over seeds, then the 95 % interval of MAP over queries, p the "
    "paired randomisation test of MAP against BM25. Reported figures (MAP/MRR/P@1/P@5) are of AskUbuntu's test set: as "
    "the texts of paper and thesis print them, = recomputed from the released scores, ~ remembered: to be checked "
    "before it is quoted."
)


def reproduce_lei2016(wanted: Wanted) -> None:
    """Train what is not finished, and print the tables.

    Raises:
        SettingError: an unknown row; or the folder of finished rows is of another recipe, texts or vectors.
        InputError: data cannot be read.
    """
    sets = find_sets(wanted.data)
    names = [name for name in wanted.only if name in sets]
    rows = chosen_rows(name for name in wanted.only if name not in sets)
    train: Trainer | None = None
    read_sets = {name: sets[name]() for name in names or sets}
    if any(row.encoder for row in rows):
        all_sets = {name: read_sets.get(name) or sets[name]() for name in sets}
        archives = {str(path): _questions(path) for path in wanted.unlabelled}
        recipe, threads = network_recipe(wanted.recipe), int(wanted.jobs > 1)
        train = trainer(EncoderTrainer(recipe, all_sets, archives, wanted.vectors, wanted.device, threads), wanted.out)
    found: dict[str, Any] = {}
    for name, read in read_sets.items():
        if train is not None:
            train_rows((read, wanted.out, train), rows, range(wanted.seeds), notice, jobs=wanted.jobs)
        results = run_rows(read, rows, range(wanted.seeds), wanted.out, train, notice)
        found[name] = table_object(read, results)
        if not wanted.as_json:
            _print(read, results)
    if wanted.as_json:
        print_json({"paper": "lei2016", "sets": found})
    else:
        console.print(LEGEND, style="dim", markup=False)


def trainer(made: EncoderTrainer, out: Path) -> Trainer | None:
    """Return what trains a row's encoder, after a look at whether the rows in ``out`` were trained as it does.

    Raises:
        SettingError: they were trained with another recipe, other texts or other word vectors.
    """
    kept_settings(out, made.described())
    return made


def _questions(archive: Path) -> tuple[Question, ...]:
    """Return the questions of an archive of any format, each id once."""
    found: dict[str, Question] = {}
    for record in choose(archive).read(archive, ReadContext()):
        if isinstance(record, Question):
            found.setdefault(record.id, record)
    return tuple(found.values())


def _print(data: LeiSet, results: list[RowResult]) -> None:
    for task in data.tests:
        counted = next(iter(results[0].means[task.name].values())).queries
        console.print(f"\n{data.title}: {task.name}, {counted} queries", style="bold", markup=False)
        if not data.is_original:
            console.print("Reported figures are of other data and show the order of the rows only.", style="dim")
        print_aligned(_table(results, task.name))
    if tests := compared(results, [task.name for task in data.tests]):
        console.print("\nWhat paper and thesis say of rows, by MAP", style="bold")
        print_aligned(comparison_table(tests))
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
        cells = [mean_cell(means[name], has_interval=name == "map") if name in means else "" for name in MEASURES]
        p_value = means["map"].p_value if means else None
        reported = "/".join(str(result.row.reported.get(name, "–")) for name in MEASURES if result.row.reported)
        table.add_row(
            escape(safe(result.row.id)),
            *cells,
            "" if p_value is None else f"{p_value:.4f}",
            reported,
        )
    return table


def table_object(data: LeiSet, results: list[RowResult]) -> dict[str, Any]:
    """Return a set's table as JSON prints it; means lie in [0, 1]."""
    return {
        "title": data.title,
        "is_the_papers_data": data.is_original,
        "questions": len(data.questions),
        "training_pairs": len(data.pairs),
        "tasks": {task.name: len(task.queries) for task in (data.dev, *data.tests)},
        "rows": [_row_object(result) for result in results],
        "compared": comparison_objects(compared(results, [task.name for task in data.tests])),
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
        "found": means_object(result.means),
    }
