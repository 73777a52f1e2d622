"""``askalike reproduce``: the tables of a paper, row by row, beside the figures that it reports."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.table import Table

import askalike
from askalike._version import __version__
from askalike.cli.arguments import JsonOption, interruptible, same_again
from askalike.cli.display import console, plain_table, print_aligned
from askalike.cli.messages import BarProgress, messages, print_json
from askalike.errors import SettingError
from askalike.papers.harness import Compared, Options, Paper, Part, RowResult, SeedMean

PAPERS: Final = ("lei2016", "zhang2018", "das2016")
OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "--amount": ("zhang2018",),
    "--vectors": ("lei2016",),
    "--pairs": ("das2016",),
    "--unlabelled": ("lei2016", "zhang2018"),
}
"""Options that not every paper has → the papers that have it."""


def paper_named(name: str) -> Paper:
    """Return a paper; what it needs is loaded now, since no other command needs it."""
    if name not in PAPERS:
        raise SettingError(f"there is no paper {name!r}", f"expected one of {', '.join(PAPERS)}")
    paper: Paper = importlib.import_module(f"askalike.papers.{name}.table").PAPER
    return paper


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help=f"One of {', '.join(PAPERS)}.")],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="The folder of the paper's data, or one with the sets used in its place: see docs/recipes.md.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="A row, a system or a set; may be repeated. --list shows them."),
    ] = None,
    is_listed: Annotated[bool, typer.Option("--list", help="List rows, systems and sets, and stop.")] = False,
    seeds: Annotated[int, typer.Option("--seeds", help="Training runs of each encoder.", min=1)] = 5,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of finished rows; default: named after the paper.")
    ] = None,
    recipe: Annotated[
        str, typer.Option("--recipe", help="Training recipe: a name or a file; default: the paper's.")
    ] = "",
    unlabelled: Annotated[
        list[Path] | None,
        typer.Option("--unlabelled", help="lei2016, zhang2018: another archive to learn from; may be repeated."),
    ] = None,
    amount: Annotated[
        list[int] | None,
        typer.Option(
            "--amount", help="zhang2018: texts to learn from, the first N; default: 0, all; may be repeated.", min=0
        ),
    ] = None,
    pairs: Annotated[
        int, typer.Option("--pairs", help="das2016: questions with answers to learn from; 0: all.", min=0)
    ] = 0,
    vectors: Annotated[
        Path | None,
        typer.Option(
            "--vectors", help="lei2016: a text file of vectors of 200 numbers; trained on all texts if omitted."
        ),
    ] = None,
    device: Annotated[str, typer.Option("--device", help="cpu or cuda.")] = "cpu",
    jobs: Annotated[int, typer.Option("--jobs", help="Parallel training runs, one thread each.", min=1)] = 1,
    as_json: JsonOption = False,
) -> None:
    """Reproduce a paper's tables beside the figures it reports.

    What is finished is kept in the output folder: an interrupted run goes on where it was. lei2016: every encoder is
    trained with each seed; word vectors are trained once a seed, and pre-training is done once for each network and
    seed, on the texts and training pairs of all sets in the folder. zhang2018: an autoencoder of each kind is trained
    with each seed on each amount of text; dev chooses what the paper leaves open. das2016: language models are learned
    from questions with their answers and tuned on dev; siamese networks, and models of topics, with each seed.
    """
    chosen = paper_named(paper)
    if is_listed:
        _list(chosen, as_json)
        return
    if data is None:
        raise SettingError("no data to run the rows on", "name the folder with --data")
    limits = {"--amount": amount, "--vectors": vectors, "--pairs": pairs, "--unlabelled": unlabelled}
    for option, owners in OPTIONS.items():
        if limits[option] and paper not in owners:
            raise SettingError(f"{option} is an option of {' and '.join(owners)}, not of {paper}", "leave it out")
    if device != "cpu" and importlib.util.find_spec("torch") is not None:
        from askalike.training.encoder import device_named

        device_named(device)  # before anything is read
    folder = out or Path(paper)
    if folder.exists() and not folder.is_dir():
        raise SettingError(f"{folder} is a file, but finished rows need a folder", "name a folder with --out")
    options = Options(
        data=data,
        out=folder,
        recipe=recipe or chosen.recipe,
        only=tuple(only or ()),
        seeds=seeds,
        unlabelled=tuple(unlabelled or ()),
        sizes=tuple(dict.fromkeys(amount or (0,))),
        pairs=pairs,
        vectors=vectors,
        device=device,
        jobs=jobs,
    )
    with interruptible(lambda: (f"finished rows are kept in {folder}", same_again())), BarProgress() as progress:
        progress.notice(f"reading {data}")
        parts = chosen.reproduce(options, progress)
    if as_json:
        print_json(_json(paper, parts, options))
        return
    for part in parts:
        _print(part)
    console.print(chosen.legend, style="dim", markup=False)
    messages.say(f"finished rows are kept in {folder}")


def _list(paper: Paper, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {"row": row.id, "system": row.system, "name": row.name, "is_drawn": row.is_drawn}
                for row in paper.rows.values()
            ]
        )
        return
    table = plain_table("row", "system", "the paper's name")
    for row in paper.rows.values():
        table.add_row(row.id, row.system, row.name)
    print_aligned(table)
    if paper.sets:
        messages.note(f"sets that --only takes too, where the folder has them: {', '.join(paper.sets)}")


def _json(paper: str, parts: Iterable[Part], options: Options) -> dict[str, Any]:
    """Return a paper's tables and how they came about; those of papers with several tables lie under "sets"."""
    tables: dict[str, Any] = {"name": paper, "paper": paper, **_stamp()}
    if any(result.row.is_drawn for part in parts for result in part.rows):
        tables["seeds"] = options.seeds
    for part in parts:
        if part.name:
            tables.setdefault("sets", {})[part.name] = part.as_json
        else:
            tables |= part.as_json
    return tables


def _stamp() -> dict[str, Any]:
    """Return command, version, commit, moment and machine; the commit is None outside a checkout of the project."""
    package = Path(askalike.__file__).parent
    git = ["git", "-C", str(package), "log", "-1", "--format=%h", "--", "."]
    try:
        commit = subprocess.run(git, capture_output=True, text=True, timeout=10, check=False).stdout.strip() or None
    except (OSError, subprocess.TimeoutExpired):
        commit = None
    machine = {
        "cpu": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
    }
    return {
        "command": shlex.join(["askalike", *sys.argv[1:]]),
        "version": __version__,
        "commit": commit,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine,
    }


def _print(part: Part) -> None:
    for title, task in part.tables.items():
        console.print(f"\n{title}", style="bold", markup=False)
        if part.note:
            console.print(part.note, style="dim", markup=False)
        print_aligned(row_table(part, task))
    for heading, comparisons in part.compared.items():
        if comparisons:
            console.print(f"\n{heading}", style="bold", markup=False)
            print_aligned(comparison_table(comparisons))
    reasons: dict[str, list[str]] = {}
    for result in part.rows:
        if result.reason:
            reasons.setdefault(result.reason, []).append(result.row.id)
    for reason, rows in reasons.items():
        console.print(f"not run, since {reason}: {', '.join(rows)}", markup=False, style="dim")


def row_table(part: Part, task: str) -> Table:
    """Return a task's table: each row with its means and its p-value, and below it what was published of it."""
    table = plain_table("row")
    for name in ("seeds", *part.measures, "p"):
        is_measure = name in part.measures
        table.add_column(name, justify="right", no_wrap=not is_measure, min_width=9 if name == "map" else 5)
    for result in part.rows:
        means = result.means.get(task, {})
        cells = [_mean_cell(means[name], has_interval=name == "map") if means else "" for name in part.measures]
        p_value = means["map"].p_value if means else None
        chance = "" if p_value is None else f"{p_value:.4f}"
        table.add_row(result.row.id, _seed_count(result), *cells, chance)
        for whose, figures in part.reported(result.row, task).items():
            published = (figures.get(name, "–") for name in part.measures)
            table.add_row(f"  {whose}", "", *published, style="dim")
    return table


def _seed_count(result: RowResult[Any]) -> str:
    return str(len(result.seeds)) if result.row.is_drawn else ""


def _mean_cell(mean: SeedMean, *, has_interval: bool) -> str:
    """Return a mean times 100, with its spread over seeds and, dimmed, its interval."""
    bounds = mean.interval
    spread = "" if mean.spread is None else f" ±{100 * mean.spread:.1f}"
    interval = f" [dim]({100 * bounds.low:.1f}–{100 * bounds.high:.1f})[/dim]" if has_interval else ""
    return f"{100 * bounds.mean:.2f}{spread}{interval}"


def comparison_table(comparisons: Iterable[Compared]) -> Table:
    """Return a line for each comparison below the name of its task, differences times 100; it fits 80 columns."""
    numbers = ("difference", "interval", "p")
    table = plain_table("rows", *numbers, right=numbers)
    by_task: dict[str, list[Compared]] = {}
    for comparison in comparisons:
        by_task.setdefault(comparison.task, []).append(comparison)
    for task, of_task in by_task.items():
        table.add_row(task, style="bold")
        for comparison in of_task:
            difference = comparison.difference
            table.add_row(
                f"{comparison.better} vs {comparison.worse}",
                f"{100 * difference.mean:+.2f}",
                f"{100 * difference.low:+.1f} to {100 * difference.high:+.1f}",
                f"{comparison.p_value:.4f}",
            )
    return table
