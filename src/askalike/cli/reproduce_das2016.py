"""``askalike reproduce das2016``: language models, topic models and siamese networks, row by row.

Enters: what was asked for. Leaves: tables, or JSON. May import: experiments, train, cli's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from askalike.cli.display import console, print_aligned, print_json
from askalike.cli.mean_cells import mean_cell, means_object
from askalike.cli.progress import BarProgress
from askalike.cli.reproduction import Wanted, notice
from askalike.cli.row_comparisons import comparison_objects, comparison_table
from askalike.errors import SettingError
from askalike.experiments.das2016.learning import Learner
from askalike.experiments.das2016.outcomes import Runner
from askalike.experiments.das2016.reported import MEASURES
from askalike.experiments.das2016.rows import BASELINE, Row, chosen_rows
from askalike.experiments.das2016.running import run_rows
from askalike.experiments.das2016.sets import SETS, DasData, DasSet, read_data
from askalike.experiments.das2016.siamese_rows import SiameseTrainer
from askalike.experiments.das2016.table import RowResult, compared, results
from askalike.progress import Progress
from askalike.training.recipe import load_recipe
from askalike.training.siamese.recipe import SiameseRecipe

__all__ = ["reproduce_das2016", "runner_of", "table_object"]

LEGEND = (
    "Means times 100; ± is the standard deviation over seeds, then the 95 % interval of MAP over queries; p is the "
    f"paired randomisation test of MAP against {BASELINE}. Each set's dev part chose the settings. Reported figures "
    "(MAP/MRR/P@1) are of Yahoo! Answers."
)
_OTHER_DATA = "Reported figures are of other data and show the order of the rows only."


def reproduce_das2016(wanted: Wanted) -> None:
    """Run what is not finished, and print the tables.

    Raises:
        SettingError: an unknown row or set, or a recipe of something else than a siamese network.
        InputError: data cannot be read.
    """
    if wanted.unlabelled:
        raise SettingError("--unlabelled is no option of das2016, which learns from answers", "leave it out")
    rows = chosen_rows(name for name in wanted.only if name not in SETS)
    data = read_data(wanted.data, wanted.pairs)
    sets = _sets(data, [name for name in wanted.only if name in SETS])
    seeds = range(wanted.seeds)
    with BarProgress() as progress:
        runner = runner_of(data, wanted, progress)
        run_rows(runner, rows, seeds, notice, jobs=wanted.jobs)
    found = results(runner, rows, seeds)
    tasks = [task.name for one in sets for task in one.tests]
    if wanted.as_json:
        print_json({"paper": "das2016", **table_object(data, sets, found)})
        return
    for one in sets:
        for task in one.tests:
            console.print(f"\n{one.title}: {task.name}", style="bold", markup=False)
            if not data.is_original:
                console.print(_OTHER_DATA, style="dim")
            print_aligned(_table(found, task.name))
    if tests := compared(found, tasks):
        console.print("\nWhat the paper says of rows, by MAP", style="bold")
        print_aligned(comparison_table(tests))
    for reason in dict.fromkeys(one.reason for one in found if one.reason):
        names = ", ".join(one.row.id for one in found if one.reason == reason)
        console.print(f"not run, since {reason}: {names}", markup=False, style="dim")
    console.print(LEGEND, style="dim", markup=False)


def runner_of(data: DasData, wanted: Wanted, progress: Progress) -> Runner:
    """Return what runs the rows.

    Raises:
        SettingError: the recipe is not that of a siamese network.
    """
    recipe = load_recipe(wanted.recipe)
    if not isinstance(recipe, SiameseRecipe):
        raise SettingError(f"the recipe {wanted.recipe!r} is not that of a siamese network", "give one such as scqa")
    trainer = SiameseTrainer(recipe, data, wanted.out, wanted.device, progress=progress)
    return Runner(data, wanted.out, Learner(data, wanted.out, progress.notice), trainer)


def _sets(data: DasData, names: Sequence[str]) -> list[DasSet]:
    held = [one.name for one in data.sets]
    if missing := [name for name in names if name not in held]:
        raise SettingError(f"there is no set {missing[0]!r} in the folder", f"it holds {', '.join(held)}")
    return [one for one in data.sets if not names or one.name in names]


def table_object(data: DasData, sets: Sequence[DasSet], found: Sequence[RowResult]) -> dict[str, Any]:
    """Return the tables as JSON prints them; means lie in [0, 1]."""
    tasks = [task.name for one in sets for task in one.tests]
    return {
        "is_the_papers_data": data.is_original,
        "learned_from": {
            "questions": len(data.pairs.questions),
            "answers": len(data.pairs.answers),
            "sources": dict(data.pairs.sources),
            "left_out": dict(data.pairs.left_out),
        },
        "sets": {one.name: _set_object(one) for one in sets},
        "rows": [_row_object(one) for one in found],
        "compared": comparison_objects(compared(found, tasks)),
    }


def _set_object(one: DasSet) -> dict[str, Any]:
    return {
        "title": one.title,
        "dev": one.dev.name,
        "tests": [task.name for task in one.tests],
        "queries": {task.name: len(task.queries) for task in one.tasks()},
    }


def _row_object(one: RowResult) -> dict[str, Any]:
    row: Row = one.row
    settings: Mapping[str, Any] = {
        str(outcome.seed): {"settings": outcome.settings, "tried": _best(outcome.tried)} for outcome in one.outcomes
    }
    return {
        "row": row.id,
        "name": row.name,
        "system": row.system,
        "seeds": [outcome.seed for outcome in one.outcomes] if row.is_drawn else [],
        "not_run": one.reason or None,
        "reported": dict(zip(MEASURES, row.reported, strict=False)) or None,
        "found": means_object(one.means),
        "by_seed": settings,
    }


def _best(tried: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Return all α of a set, and of longer lists how many there were and the range of dev MAP."""
    made: dict[str, Any] = {}
    for name, ones in tried.items():
        values = [one["dev_map"] for one in ones]
        is_curve = "alpha" in ones[0] and len(ones[0]) == 2
        made[name] = list(ones) if is_curve else {"count": len(ones), "dev_map": [min(values), max(values)]}
    return made


def _table(found: Sequence[RowResult], task: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("row", no_wrap=True)
    for name in ("seeds", *MEASURES, "p", "reported"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found:
        means = one.means.get(task, {})
        p_value = means["map"].p_value if means else None
        table.add_row(
            one.row.id,
            str(len(one.outcomes)) if one.row.is_drawn else "",
            *(mean_cell(means[name], has_interval=name == "map") if means else "" for name in MEASURES),
            "" if p_value is None else f"{p_value:.4f}",
            "/".join(f"{value:.1f}" for value in one.row.reported),
        )
    return table
