"""``askalike score`` and ``askalike evaluate``: runs and judgements from files, and systems on a forum's links."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.table import Table

from askalike.cli.arguments import ForumArgument, JsonOption
from askalike.cli.display import console, plain_table, print_aligned, print_whole
from askalike.cli.messages import BarProgress, messages, print_json, safe
from askalike.errors import EvaluationError, SettingError
from askalike.evaluation import (
    PROTOCOLS,
    Comparison,
    Report,
    bootstrap_mean,
    compare,
    read_gold,
    read_run,
    write_trec_qrels,
    write_trec_run,
)
from askalike.evaluation import evaluate as judge
from askalike.evaluation.forum.evaluation import SYSTEMS, TASKS, ForumEvaluation, evaluate_forum
from askalike.evaluation.measures import parse_measure, parse_protocol
from askalike.evaluation.report import DEFAULT_MEASURES
from askalike.forum import Forum


def score(
    gold: Annotated[Path, typer.Argument(metavar="GOLD", help="TREC qrels, SemEval or AskUbuntu file.")],
    run: Annotated[Path, typer.Argument(metavar="RUN", help="TREC run, SemEval or AskUbuntu file.")],
    protocol: Annotated[str, typer.Option("--protocol", help=f"One of {', '.join(PROTOCOLS)}.")],
    against: Annotated[Path | None, typer.Option("--against", help="A second run; adds a paired test.")] = None,
    measure: Annotated[
        list[str] | None, typer.Option("--measure", help="Such as map, p@5, ndcg@10; may be repeated.")
    ] = None,
    by_query: Annotated[
        bool, typer.Option("--by-query", help="Add every query's values to the JSON, measure by measure.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Score a run against relevance judgements.

    Means come with 95 % bootstrap intervals over queries.
    """
    measures = tuple(measure or DEFAULT_MEASURES)
    try:
        policy = parse_protocol(protocol)
        for name in measures:
            parse_measure(name)
    except EvaluationError as error:  # said before any file is read: the command was used wrongly
        raise SettingError(error.message, error.hint) from error
    name, other = run.name, against.name if against is not None else ""
    if by_query and not as_json:
        raise SettingError("--by-query adds to what --json prints", "add --json")
    if name == other:
        name, other = str(run), str(against)
    if name == other:
        raise SettingError(f"--against is {other}, the run itself", "name another run")
    qrels = read_gold(gold)
    reports = {name: judge(qrels, read_run(run), policy, measures)}
    comparisons: list[Comparison] = []
    if against is not None:
        reports[other] = judge(qrels, read_run(against), policy, measures)
        first, second = reports.values()
        comparisons = [compare(first, second, measure) for measure in first.measures]
    if as_json:
        report, *rivals = (
            report_object(of_run) | ({"by_query": dict(of_run.per_query)} if by_query else {})
            for of_run in reports.values()
        )
        if rivals:
            report["against"] = rivals[0]
            report["comparison"] = [comparison_object(comparison) for comparison in comparisons]
        print_json(report)
        return
    print_aligned(report_table(reports))
    for comparison in comparisons:
        console.print(comparison_line(comparison, name), markup=False)
    shown = notes(reports[name])
    if reports[name].unjudged_documents:
        shown.append(f"ranked documents without a judgement, not relevant: {reports[name].unjudged_documents:,}")
    for note in shown:
        console.print(f"note: {note}", markup=False, style="dim")


def report_object(report: Report) -> dict[str, Any]:
    """Return a report as JSON: means as fractions, intervals, counts (docs/evaluation.md)."""
    return {
        "protocol": report.protocol.name,
        **dict(report.means),
        "queries": len(report.queries),
        "left_out": len(report.left_out),
        "without_positives": len(report.without_positives),
        "missing": len(report.missing),
        "unjudged_queries": len(report.unjudged),
        "unjudged_documents": report.unjudged_documents,
        "relevant_not_ranked": report.relevant_not_ranked,
        "interval95": {name: interval(report, name) for name in report.measures},
    }


def interval(report: Report, measure: str) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval of a mean over queries, None for a single one."""
    values = list(report.per_query[measure].values())
    if len(values) < 2:
        return None
    mean = bootstrap_mean(values)
    return mean.low, mean.high


def report_table(reports: dict[str, Report]) -> Table:
    """Return means times 100 with intervals, one row a run."""
    table = plain_table()
    table.add_column("run", overflow="fold", min_width=8)
    measures = next(iter(reports.values())).measures
    for name in (*measures, "queries"):
        table.add_column(name, justify="right", min_width=0 if name == "queries" else 11)
    for run, report in reports.items():
        cells = [escape(safe(run))]
        for name in measures:
            bounds = interval(report, name)
            shown = f" [dim]({_bound(bounds[0])}–{_bound(bounds[1])})[/dim]" if bounds else ""
            cells.append(f"{100 * report.means[name]:.2f}{shown}")
        table.add_row(*cells, str(len(report.queries)))
    return table


def _bound(share: float) -> str:
    """Return an end of an interval times 100, in at most four characters."""
    return f"{100 * share:.1f}" if share < 0.9995 else "100"


def comparison_object(comparison: Comparison) -> dict[str, Any]:
    """Return a paired test as JSON."""
    return {
        "measure": comparison.measure,
        "difference": comparison.difference.mean,
        "interval95": [comparison.difference.low, comparison.difference.high],
        "p_value": comparison.p_value,
        "better": comparison.better,
        "worse": comparison.worse,
        "equal": comparison.equal,
    }


def comparison_line(comparison: Comparison, name: str) -> str:
    """Return a paired test in words."""
    low, high = 100 * comparison.difference.low, 100 * comparison.difference.high
    return (
        f"{comparison.measure}: {name} is {100 * comparison.difference.mean:+.2f} ({low:+.2f} to {high:+.2f}), "
        f"p = {comparison.p_value:.4f}; better on {comparison.better} queries, worse on {comparison.worse}, equal on"
        f" {comparison.equal}"
    )


def notes(report: Report) -> list[str]:
    """Return what the means do not show."""
    lines: list[str] = []
    if report.left_out:
        lines.append(f"{len(report.left_out)} queries without a relevant candidate are left out of the means")
    if report.without_positives:
        lines.append(f"{len(report.without_positives)} queries without anything relevant count as 0")
    if report.missing:
        lines.append(f"{len(report.missing)} judged queries are not in the run and count as 0")
    if report.unjudged:
        lines.append(f"{len(report.unjudged)} queries of the run are not judged and not scored")
    if report.relevant_not_ranked:
        lines.append(f"{report.relevant_not_ranked} judged relevant documents are not ranked by the run")
    return lines


DEFAULT_SYSTEMS = ("search", "bm25", "tfidf")


def evaluate(
    forum: ForumArgument,
    protocol: Annotated[
        Literal["retrieval", "rerank", "both"], typer.Option("--protocol", help="rerank: with AskUbuntu's scoring.")
    ] = "both",
    system: Annotated[
        list[str] | None, typer.Option("--system", help=f"One of {', '.join(SYSTEMS)}; may be repeated.")
    ] = None,
    split: Annotated[
        Literal["train", "dev", "test", "all"], typer.Option("--split", help="Of the duplicate components.")
    ] = "all",
    seed: Annotated[int, typer.Option("--seed", help="Of the split.")] = 0,
    save: Annotated[Path | None, typer.Option("--save", help="Folder for qrels and runs in TREC's format.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how well a forum's known duplicates are found.

    The forum's questions are ranked for each one that is linked as a duplicate, and the rankings are scored. Retrieval
    searches all other questions. Rerank scores the twenty best that the lexical search found.
    """
    tasks = tuple(TASKS) if protocol == "both" else (protocol,)
    if save is not None:
        _prepare(save)
    evaluations: dict[str, Any] = {}
    learned: list[tuple[int, int]] = []
    with BarProgress() as progress, Forum.open(forum, progress=progress) as opened:
        for task in tasks:
            evaluation = evaluate_forum(opened, task, tuple(system or DEFAULT_SYSTEMS), split, seed, progress)
            if save is not None:
                _save(evaluation, save)
            if not as_json:
                _print(evaluation)
            evaluations[task] = _object(evaluation)
            learned.append((evaluation.learned_queries, len(evaluation.qrels)))
    most, scored = max(learned)
    if most:
        messages.note(
            f"the forum's own model learned from {most:,} of these {scored:,} questions; --split test "
            "after askalike train --hold-out-test is honest"
        )
    if as_json:
        print_json({"forum": str(forum), "split": split, "seed": seed, "learned_queries": most, **evaluations})


def _print(evaluation: ForumEvaluation) -> None:
    console.print(f"\n{evaluation.title}", style="bold", markup=False)
    print_aligned(report_table(dict(evaluation.reports)))
    first, *others = evaluation.reports
    shown = evaluation.reports[first].per_query["success@1" if evaluation.task == "retrieval" else "p@1"]
    print_whole(
        f"{first} puts a question that asks the same first for {sum(shown.values()):.0f} of {len(shown)} queries"
    )
    for other in others:
        name = evaluation.main_measure
        comparison = compare(evaluation.reports[other], evaluation.reports[first], name)
        console.print(comparison_line(comparison, f"{other} against {first}"), markup=False)
    for note in notes(evaluation.reports[first]):
        console.print(f"note: {note}", markup=False, style="dim")


def _object(evaluation: ForumEvaluation) -> dict[str, Any]:
    first, *others = evaluation.reports
    return {
        "systems": {name: report_object(report) for name, report in evaluation.reports.items()},
        "against_first": {
            other: [
                comparison_object(compare(evaluation.reports[other], evaluation.reports[first], name))
                for name in evaluation.reports[first].measures
            ]
            for other in others
        },
    }


def _prepare(folder: Path) -> None:
    """Make the folder before hours are spent on what goes there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise SettingError(f"--save: {folder} cannot be written to: {error.strerror}", "name another folder") from error


def _save(evaluation: ForumEvaluation, folder: Path) -> None:
    write_trec_qrels(folder / f"{evaluation.task}.qrels", evaluation.qrels)
    for name, run in evaluation.runs.items():
        write_trec_run(folder / f"{evaluation.task}.{name}.run", run, tag=name)
    messages.say(f"wrote {evaluation.task} qrels and runs to {folder}")
