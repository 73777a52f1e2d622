"""``askalike evaluate``: how well a forum's own duplicates are found."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from askalike.cli.arguments import ForumArgument, JsonOption
from askalike.cli.display import BarProgress, console, messages, print_aligned, print_json
from askalike.cli.score import comparison_line, comparison_object, notes, report_object, report_table
from askalike.errors import SettingError
from askalike.evaluation import compare, write_trec_qrels, write_trec_run
from askalike.evaluation.forum.evaluation import SYSTEMS, TASKS, ForumEvaluation, evaluate_forum
from askalike.evaluation.forum.links import SPLITS
from askalike.forum import Forum

DEFAULT_SYSTEMS = ("search", "bm25", "tfidf")


def evaluate(
    forum: ForumArgument,
    protocol: Annotated[
        str, typer.Option("--protocol", help="retrieval, rerank (with AskUbuntu's scoring), or both.")
    ] = "both",
    system: Annotated[
        list[str] | None, typer.Option("--system", help=f"One of {', '.join(SYSTEMS)}; may be repeated.")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="train, dev, test or all duplicate components.")] = "all",
    seed: Annotated[int, typer.Option("--seed", help="Of the split.")] = 0,
    save: Annotated[Path | None, typer.Option("--save", help="Folder for qrels and runs in TREC's format.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how well a forum's known duplicates are found.

    The forum's questions are ranked for each one that is linked as a duplicate, and the rankings are scored. Retrieval
    searches all other questions. Rerank scores the twenty best that the lexical search found.
    """
    tasks = tuple(TASKS) if protocol == "both" else (protocol,)
    if unknown := [name for name in tasks if name not in TASKS]:
        raise SettingError(f"there is no protocol {unknown[0]!r}", f"expected both or one of {', '.join(TASKS)}")
    if split not in ("all", *SPLITS):
        raise SettingError(f"there is no split {split!r}", f"expected all or one of {', '.join(SPLITS)}")
    if save is not None:
        _prepare(save)
    found: dict[str, Any] = {}
    learned: list[tuple[int, int]] = []
    with BarProgress() as progress, Forum.open(forum, progress=progress) as opened:
        for task in tasks:
            made = evaluate_forum(opened, task, tuple(system or DEFAULT_SYSTEMS), split, seed, progress)
            if save is not None:
                _save(made, save)
            if not as_json:
                _print(made)
            found[task] = _object(made)
            learned.append((made.learned_queries, len(made.qrels)))
    most, scored = max(learned)
    if most:
        messages.note(
            f"the forum's own model learned from {most:,} of these {scored:,} questions; --split test "
            "after askalike train --hold-out-test is honest"
        )
    if as_json:
        print_json({"forum": str(forum), "split": split, "seed": seed, "learned_queries": most, **found})


def _print(made: ForumEvaluation) -> None:
    console.print(f"\n{made.title}", style="bold", markup=False)
    print_aligned(report_table(dict(made.reports)))
    first, *others = made.reports
    for other in others:
        name = made.main_measure
        found = compare(made.reports[other], made.reports[first], name)
        console.print(comparison_line(found, f"{other} against {first}"), markup=False)
    for note in notes(made.reports[first]):
        console.print(f"note: {note}", markup=False, style="dim")


def _object(made: ForumEvaluation) -> dict[str, Any]:
    first, *others = made.reports
    return {
        "systems": {name: report_object(report) for name, report in made.reports.items()},
        "against_first": {
            other: [
                comparison_object(compare(made.reports[other], made.reports[first], name))
                for name in made.reports[first].measures
            ]
            for other in others
        },
    }


def _prepare(folder: Path) -> None:
    """Make the folder before hours are spent on what goes there.

    Raises:
        SettingError: it cannot be made or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise SettingError(f"--save: {folder} cannot be written to: {error.strerror}", "name another folder") from error


def _save(made: ForumEvaluation, folder: Path) -> None:
    write_trec_qrels(folder / f"{made.task}.qrels", made.qrels)
    for name, run in made.runs.items():
        write_trec_run(folder / f"{made.task}.{name}.run", run, tag=name)
    messages.say(f"wrote {made.task} qrels and runs to {folder}")
