"""``askalike reproduce``: the tables of a paper, row by row, beside the figures that it reports."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table as RichTable

from askalike.cli.arguments import JsonOption
from askalike.cli.display import BarProgress, console, messages, print_aligned, print_json
from askalike.errors import SettingError
from askalike.papers.das2016.table import DAS2016
from askalike.papers.harness import Compared
from askalike.papers.lei2016.table import LEI2016
from askalike.papers.paper import Options, Paper, Part, Table
from askalike.papers.zhang2018.table import ZHANG2018

PAPERS: Mapping[str, Paper] = {"lei2016": LEI2016, "zhang2018": ZHANG2018, "das2016": DAS2016}


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help=f"One of {', '.join(PAPERS)}.")],
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            help="The folder of the paper's data, or one with the sets used in its place: see docs/recipes.md.",
        ),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", help="A row or a set, of das2016 a system too, of zhang2018 attention or gru; may be repeated."
        ),
    ] = None,
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
        typer.Option("--amount", help="zhang2018: the number of texts, 0 for all; may be repeated for a curve.", min=0),
    ] = None,
    first: Annotated[
        str,
        typer.Option(
            "--first", help="zhang2018: the kind of text that amounts take first: questions, comments or an archive."
        ),
    ] = "",
    pairs: Annotated[
        int, typer.Option("--pairs", help="das2016: the number of questions with answers, 0 for all.", min=0)
    ] = 0,
    vectors: Annotated[
        Path | None,
        typer.Option(
            "--vectors", help="lei2016: word vectors in word2vec's text format; trained on all texts if omitted."
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
    if paper not in PAPERS:
        raise SettingError(f"there is no paper {paper!r}", f"expected one of {', '.join(PAPERS)}")
    given = {
        "--amount": bool(amount),
        "--first": bool(first),
        "--vectors": vectors is not None,
        "--pairs": bool(pairs),
        "--unlabelled": bool(unlabelled),
    }
    _refuse_options([option for option, is_given in given.items() if is_given], paper)
    if device != "cpu" and importlib.util.find_spec("torch") is not None:
        from askalike.training.encoder import device_named

        device_named(device)  # before anything is read
    chosen, folder = PAPERS[paper], out or Path(paper)
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
        first=first,
        pairs=pairs,
        vectors=vectors,
        device=device,
        jobs=jobs,
    )
    with BarProgress() as progress:
        parts = chosen.reproduce(options, progress)
    if as_json:
        print_json(_json(paper, parts))
        return
    for part in parts:
        _print(part)
    console.print(chosen.legend, style="dim", markup=False)
    messages.say(f"finished rows are kept in {folder}")


def _refuse_options(given: Iterable[str], paper: str) -> None:
    """Raise SettingError where an option was given that is another paper's."""
    for option in given:
        if option not in PAPERS[paper].options:
            owners = " and ".join(name for name, one in PAPERS.items() if option in one.options)
            raise SettingError(f"{option} is an option of {owners}, not of {paper}", "leave it out")


def _json(paper: str, parts: Iterable[Part]) -> dict[str, Any]:
    """Return a paper's tables; those of papers with a table a set lie under "sets"."""
    found: dict[str, Any] = {"paper": paper}
    for part in parts:
        if part.name:
            found.setdefault("sets", {})[part.name] = part.as_json
        else:
            found |= part.as_json
    return found


def _print(part: Part) -> None:
    for table in part.tables:
        console.print(f"\n{table.title}", style="bold", markup=False)
        if table.note:
            console.print(table.note, style="dim", markup=False)
        print_aligned(_table(table))
    for heading, found in part.compared.items():
        if found:
            console.print(f"\n{heading}", style="bold", markup=False)
            print_aligned(comparison_table(found))
    for reason, rows in part.not_run.items():
        console.print(f"not run, since {reason}: {', '.join(rows)}", markup=False, style="dim")


def _table(shown: Table) -> RichTable:
    table = RichTable(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    first, *others = shown.columns
    table.add_column(first, no_wrap=True)
    for name in others:
        is_narrow = name in ("texts", "seeds", "p", "reported")
        table.add_column(name, justify="right", no_wrap=is_narrow, min_width=9 if name == "map" else 5)
    for line in shown.lines:
        table.add_row(*line)
    return table


def comparison_table(found: Iterable[Compared]) -> RichTable:
    """Return a line for each comparison below the name of its task, differences times 100; it fits 80 columns."""
    table = RichTable(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("rows", no_wrap=True)
    for name in ("difference", "interval", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    by_task: dict[str, list[Compared]] = {}
    for one in found:
        by_task.setdefault(one.task, []).append(one)
    for task, of_task in by_task.items():
        table.add_row(task, style="bold")
        for one in of_task:
            table.add_row(
                f"{one.better} over {one.worse}",
                f"{100 * one.difference.mean:+.2f}",
                f"{100 * one.difference.low:+.1f} to {100 * one.difference.high:+.1f}",
                f"{one.p_value:.4f}",
            )
    return table
