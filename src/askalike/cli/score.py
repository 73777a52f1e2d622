"""``askalike score``: a run judged against gold under a published protocol, alone or against another run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from askalike.cli.arguments import JsonOption
from askalike.cli.display import console, print_aligned, print_json, safe
from askalike.errors import EvaluationError, SettingError
from askalike.evaluation import PROTOCOLS, Comparison, Report, bootstrap_mean, compare, read_gold, read_run
from askalike.evaluation import evaluate as judge
from askalike.evaluation.measures import parse_measure, parse_protocol
from askalike.evaluation.report import DEFAULT_MEASURES


def score(
    gold: Annotated[Path, typer.Argument(metavar="GOLD", help="TREC qrels, SemEval or AskUbuntu file.")],
    run: Annotated[Path, typer.Argument(metavar="RUN", help="TREC run, SemEval or AskUbuntu file.")],
    protocol: Annotated[str, typer.Option("--protocol", help=f"One of {', '.join(PROTOCOLS)}.")],
    against: Annotated[Path | None, typer.Option("--against", help="A second run; adds a paired test.")] = None,
    measure: Annotated[
        list[str] | None, typer.Option("--measure", help="Such as map, p@5, ndcg@10; may be repeated.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Score a run against relevance judgements.

    Means come with 95 % bootstrap intervals over queries.
    """
    measures = tuple(measure or DEFAULT_MEASURES)
    try:
        policy = parse_protocol(protocol)
        for one in measures:
            parse_measure(one)
    except EvaluationError as error:  # said before any file is read: the command was used wrongly
        raise SettingError(error.message, error.hint) from error
    name, other = run.name, against.name if against is not None else ""
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
        comparisons = [compare(first, second, one) for one in first.measures]
    if as_json:
        found = report_object(reports[name])
        if against is not None:
            found["against"] = report_object(list(reports.values())[1])
            found["comparison"] = [comparison_object(one) for one in comparisons]
        print_json(found)
        return
    print_aligned(report_table(reports))
    for found_one in comparisons:
        console.print(comparison_line(found_one, name), markup=False)
    for note in notes(reports[name]):
        console.print(f"note: {note}", markup=False, style="dim")


def report_object(report: Report) -> dict[str, Any]:
    """Return a report as JSON: means as fractions, intervals, counts of queries."""
    return {
        "protocol": report.protocol.name,
        **dict(report.means),
        "queries": len(report.queries),
        "left_out": len(report.left_out),
        "without_positives": len(report.without_positives),
        "missing": len(report.missing),
        "unjudged": len(report.unjudged),
        "interval95": {name: interval(report, name) for name in report.measures},
    }


def interval(report: Report, measure: str) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval of a mean over queries, None for a single one."""
    values = list(report.per_query[measure].values())
    if len(values) < 2:
        return None
    found = bootstrap_mean(values)
    return found.low, found.high


def report_table(reports: dict[str, Report]) -> Table:
    """Return means times 100 with intervals, one row a run."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
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


def comparison_object(found: Comparison) -> dict[str, Any]:
    """Return a paired test as JSON."""
    return {
        "measure": found.measure,
        "difference": found.difference.mean,
        "interval95": [found.difference.low, found.difference.high],
        "p_value": found.p_value,
        "better": found.better,
        "worse": found.worse,
        "equal": found.equal,
    }


def comparison_line(found: Comparison, name: str) -> str:
    """Return a paired test in words."""
    low, high = 100 * found.difference.low, 100 * found.difference.high
    return (
        f"{found.measure}: {name} is {100 * found.difference.mean:+.2f} ({low:+.2f} to {high:+.2f}), "
        f"p = {found.p_value:.4f}; better on {found.better} queries, worse on {found.worse}, equal on {found.equal}"
    )


def notes(report: Report) -> list[str]:
    """Return what the means do not show."""
    found: list[str] = []
    if report.left_out:
        found.append(f"{len(report.left_out)} queries without a relevant candidate are left out of the means")
    if report.without_positives:
        found.append(f"{len(report.without_positives)} queries without anything relevant count as 0")
    if report.missing:
        found.append(f"{len(report.missing)} judged queries are not in the run and count as 0")
    if report.unjudged:
        found.append(f"{len(report.unjudged)} queries of the run are not judged and not scored")
    if report.relevant_not_ranked:
        found.append(f"{report.relevant_not_ranked} judged relevant documents are not ranked by the run")
    return found
