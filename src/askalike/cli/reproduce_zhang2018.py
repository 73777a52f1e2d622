"""``askalike reproduce zhang2018``: RAMN's layers one by one, for both autoencoders and each amount of text.

Enters: what was asked for. Leaves: tables, or JSON. May import: experiments, train, cli's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from askalike.cli.display import console, print_aligned, print_json
from askalike.cli.mean_cells import mean_cell, means_object
from askalike.cli.progress import BarProgress
from askalike.cli.reproduction import Wanted, kept_settings, notice
from askalike.cli.row_comparisons import comparison_objects, comparison_table
from askalike.errors import SettingError
from askalike.experiments.zhang2018.data import TESTS, ZhangData, read_data
from askalike.experiments.zhang2018.reported import REPORTED
from askalike.experiments.zhang2018.rows import Choice
from askalike.experiments.zhang2018.table import (
    MEASURES,
    TableRow,
    compared,
    kind_rows,
    search_rows,
    trained,
    whitened,
    words_alone,
)
from askalike.experiments.zhang2018.training import KINDS, Autoencoder, AutoencoderTrainer, Kind, train_all
from askalike.training.recipe import network_recipe

__all__ = ["reproduce_zhang2018", "tables_object"]

LEGEND = (
    "MAP and MRR times 100 by the official protocol; means over seeds, ± their standard deviation, then the 95 % "
    "interval of MAP over queries; p is the paired randomisation test of MAP against the search engine's order. Dev "
    "chose every setting. Rows: base is the match by meaning, mismatch adds the missing words, full adds the initial "
    "rank, tuned weighs the same three, both matches the candidate's words too, and combined adds up all of these and "
    "BM25; white are the same with whitened states, and words all that without the match by meaning."
)

Found = tuple[list[TableRow], dict[str, Choice]]


def reproduce_zhang2018(wanted: Wanted) -> None:
    """Train what is not finished, and print the tables.

    Raises:
        SettingError: an unknown kind of autoencoder or of text; too few texts; or the folder is of another recipe or of
            other texts.
        InputError: data cannot be read.
    """
    kinds = _kinds(wanted.only)
    data = read_data(wanted.data, wanted.unlabelled)
    if wanted.first:
        data = data.beginning_with(wanted.first)
    for archive, count in data.rejected.items():
        notice(f"{count:,} records of {archive} could not be read; askalike index names them")
    for amount in wanted.amounts:
        data.first(amount)
    with BarProgress() as progress:
        trainer = AutoencoderTrainer(network_recipe(wanted.recipe), data, wanted.out, wanted.device, progress=progress)
        kept_settings(wanted.out, trainer.described())
        seeds = range(wanted.seeds)
        ones = [Autoencoder(kind, amount, seed) for amount in wanted.amounts for seed in seeds for kind in kinds]
        train_all(trainer, ones, wanted.jobs)
    rows, choices = measured(data, trainer, kinds, wanted)
    if wanted.as_json:
        print_json({"paper": "zhang2018", **tables_object(data, rows, choices)})
        return
    for task in ("dev", *TESTS):
        console.print(f"\n{task}", style="bold")
        print_aligned(_table(rows, task))
    for amount in sorted({row.amount for row in rows if row.amount}):
        console.print(f"\nWhat the paper says of rows, by MAP, {amount:,} texts", style="bold")
        print_aligned(comparison_table(compared(rows, amount)))
    console.print(LEGEND, style="dim", markup=False)


def measured(data: ZhangData, trainer: AutoencoderTrainer, kinds: Sequence[Kind], wanted: Wanted) -> Found:
    """Return all rows, and what dev chose for each kind and amount of which a seed is finished."""
    rows, choices = search_rows(data), {}
    for amount in wanted.amounts:
        ready = [found for kind in kinds if (found := trained(trainer, kind, amount, range(wanted.seeds))).seeds]
        rows += [row for found in ready[:1] for row in kind_rows(data, words_alone(found))[0]]
        for found in ready:
            notice(f"scoring {found.kind}, {found.amount:,} texts, {len(found.seeds)} seeds")
            for one in (found, whitened(found, data)):
                of_kind, choice = kind_rows(data, one)
                rows += of_kind
                choices[f"{one.kind}, {one.amount:,} texts"] = choice
    return rows, choices


def _kinds(only: Sequence[str]) -> list[Kind]:
    if unknown := [name for name in only if name not in KINDS]:
        raise SettingError(f"there is no autoencoder {unknown[0]!r}", f"expected one of {', '.join(KINDS)}")
    return [kind for kind in KINDS if not only or kind in only]


def tables_object(data: ZhangData, rows: Sequence[TableRow], choices: dict[str, Choice]) -> dict[str, Any]:
    """Return the tables as JSON prints them; means lie in [0, 1]."""
    return {
        "texts": data.kinds,
        "queries": {name: len(task.queries) for name, task in {"dev": data.dev, **data.tests}.items()},
        "rows": [_row_object(row) for row in rows],
        "compared": {
            str(amount): comparison_objects(compared(rows, amount))
            for amount in sorted({row.amount for row in rows if row.amount})
        },
        "reported": {row: {task: list(one) for task, one in found.items()} for row, found in REPORTED.items()},
        "tried_on_dev": {name: list(choice.tried) for name, choice in choices.items()},
    }


def _row_object(row: TableRow) -> dict[str, Any]:
    return {
        "row": row.id,
        "texts": row.amount,
        "seeds": list(row.seeds),
        "settings": asdict(row.settings) if row.settings else None,
        "weights": row.weights,
        "found": means_object(row.means),
        "average_precision": {
            task: {query: round(value, 6) for query, value in found.items()} for task, found in row.precisions.items()
        },
    }


def _table(rows: Sequence[TableRow], task: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("row", no_wrap=True)
    for name in ("texts", "seeds", *MEASURES, "p", "reported"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        p_value = row.means[task]["map"].p_value
        table.add_row(
            row.id,
            f"{row.amount:,}" if row.amount else "",
            str(len(row.seeds)) if row.seeds else "",
            mean_cell(row.means[task]["map"], has_interval=True),
            mean_cell(row.means[task]["mrr"], has_interval=False),
            "" if p_value is None else f"{p_value:.4f}",
            "/".join(f"{one:.2f}" for one in REPORTED.get(row.id, {}).get(task, ())),
        )
    return table
