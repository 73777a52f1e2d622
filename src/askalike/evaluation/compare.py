"""Two reports on the same queries, compared query by query.

Enters: two `Report` values of one gold and one protocol. Leaves: a `Comparison`. May import: askalike.errors, the
reports and the tests of significance beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from askalike.errors import EvaluationError
from askalike.evaluation.measures.table import parse_measure
from askalike.evaluation.named import named
from askalike.evaluation.report import Report
from askalike.evaluation.significance import Interval, bootstrap_difference, randomisation_test

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """System a against system b under one measure.

    Args:
        measure: its name.
        queries: how many both were scored on.
        mean_a, mean_b: means over them.
        difference: a minus b, with its bootstrap interval over queries.
        p_value: of the two-sided paired randomisation test.
        is_exact: all sign patterns were looked at, none drawn.
        better, worse, equal: queries where a is better than, worse than, equal to b.
    """

    measure: str
    queries: int
    mean_a: float
    mean_b: float
    difference: Interval
    p_value: float
    is_exact: bool
    better: int
    worse: int
    equal: int


def compare(
    report_a: Report, report_b: Report, measure: str, *, rounds: int = 10_000, seed: int = 0, level: float = 0.95
) -> Comparison:
    """Compare two runs that were scored on the same gold under the same protocol.

    Args:
        report_a, report_b: from `evaluate`.
        measure: a name that both reports hold.
        rounds: of the randomisation test and of the bootstrap.
        seed: of both.
        level: of the interval.

    Raises:
        EvaluationError: the protocols differ, the measure is not in both reports, the queries differ, or, under a
            protocol that counts what is ranked, the runs rank different numbers of relevant documents: then they
            did not re-rank the same candidates.
        SettingError: rounds, seed or level out of range.
    """
    if report_a.protocol != report_b.protocol:
        raise EvaluationError(
            f"one run was scored under protocol {report_a.protocol.name}, the other under {report_b.protocol.name}",
            "score both under the same protocol",
        )
    name = parse_measure(measure).name
    values_a, values_b = _values(report_a, name), _values(report_b, name)
    _check_same_queries(report_a, report_b)
    queries = list(values_a)
    first = [values_a[query] for query in queries]
    second = [values_b[query] for query in queries]
    test = randomisation_test(first, second, rounds=rounds, seed=seed)
    return Comparison(
        measure=name,
        queries=len(queries),
        mean_a=report_a.means[name],
        mean_b=report_b.means[name],
        difference=bootstrap_difference(first, second, level=level, rounds=rounds, seed=seed),
        p_value=test.p_value,
        is_exact=test.is_exact,
        better=sum(a > b for a, b in zip(first, second, strict=True)),
        worse=sum(a < b for a, b in zip(first, second, strict=True)),
        equal=sum(a == b for a, b in zip(first, second, strict=True)),
    )


def _values(report: Report, name: str) -> Mapping[str, float]:
    if name not in report.per_query:
        raise EvaluationError(
            f"a report has no {name}; it has {', '.join(report.measures)}", f"score both runs with {name}"
        )
    return report.per_query[name]


def _check_same_queries(report_a: Report, report_b: Report) -> None:
    only = sorted(set(report_a.queries) ^ set(report_b.queries))
    if only:
        raise EvaluationError(
            f"{len(only)} queries count in one run only: {named(only)}",
            "a paired test needs both runs scored on the same queries; let both rank the same candidates",
        )
    if report_a.protocol.relevant == "judged":
        return
    ranked_a, ranked_b = report_a.relevant_ranked, report_b.relevant_ranked
    unlike = [query for query in ranked_a if ranked_a[query] != ranked_b[query]]
    if unlike:
        raise EvaluationError(
            f"the runs rank different numbers of relevant documents for {len(unlike)} queries: {named(unlike)}",
            f"protocol {report_a.protocol.name} compares rankings of the same candidates",
        )
