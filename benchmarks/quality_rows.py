"""One row of a quality table: figures times 100 with intervals, and paired tests against rivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from askalike.evaluation import Interval, Report, bootstrap_mean, compare
from benchmarks.labelled_pairs import PAIR_MEASURES, compare_pairs, pair_interval

RIVALS = ("bm25", "minilm")
TESTED = ("map", "mrr", "ndcg@10", "recall@10")


def ranking_rows(reports: Mapping[str, Report], main: str) -> dict[str, Any]:
    """Return one row a system, tested against each rival that is in the table, the main measure first."""
    rows: dict[str, Any] = {}
    for name, report in reports.items():
        row: dict[str, Any] = {"queries": len(report.queries)}
        for measure in report.measures:
            row |= _figure(measure, bootstrap_mean(list(report.per_query[measure].values())))
        for rival in RIVALS:
            if rival != name and rival in reports:
                tested = [main, *(name for name in TESTED if name in report.measures and name != main)]
                row[f"against_{rival}"] = {
                    measure: _test(comparison.difference, comparison.p_value)
                    for measure in tested
                    for comparison in [compare(report, reports[rival], measure)]
                }
        rows[name] = row
    return rows


def pair_rows(scores: Mapping[str, Sequence[float]], labels: Sequence[int]) -> dict[str, Any]:
    """Return one row a system over labelled pairs, tested against each rival that is in the table."""
    rows: dict[str, Any] = {}
    for name, of_system in scores.items():
        row: dict[str, Any] = {"pairs": len(labels)}
        for measure in PAIR_MEASURES:
            row |= _figure(measure, pair_interval(of_system, labels, measure))
        for rival in RIVALS:
            if rival != name and rival in scores:
                row[f"against_{rival}"] = {"ap": _test(*compare_pairs(of_system, scores[rival], labels))}
        rows[name] = row
    return rows


def shown(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of rows for a terminal, with the p values of the main measure."""
    lines: list[str] = []
    width = max(map(len, rows), default=0) + 2
    for name, row in rows.items():
        figures = [f"{key} {row[key]:.2f}" for key in row if f"{key}_interval95" in row]
        tests = [
            f"p({rival}) {next(iter(row[f'against_{rival}'].values()))['p_value']:.4f}"
            for rival in RIVALS
            if f"against_{rival}" in row
        ]
        lines.append(f"  {name:<{width}}{'  '.join(figures + tests)}")
    return "\n".join(lines)


def _figure(measure: str, interval: Interval) -> dict[str, Any]:
    bounds = [_hundred(interval.low), _hundred(interval.high)]
    return {measure: _hundred(interval.mean), f"{measure}_interval95": bounds}


def _test(difference: Interval, p_value: float) -> dict[str, Any]:
    return {
        "difference": _hundred(difference.mean),
        "interval95": [_hundred(difference.low), _hundred(difference.high)],
        "p_value": round(p_value, 4),
    }


def _hundred(value: float) -> float:
    return round(100 * value, 2)
