"""A run judged under a protocol, and two judged runs compared query by query.

What is refused, and what is scored although something is missing:

==================================================== =====================================================
what is found                                        what happens
==================================================== =====================================================
gold or run without any query                        error
no query that both have                              error
a query of the gold without any judgement            error
a document twice in one query's list                 error
a score that is NaN or infinite                      error
a query of the gold that the run lacks, or an empty  `Protocol.missing`: error, or 0 and named in the report
list for it
a query of the run that the gold lacks               `Protocol.unjudged`: error, or left out and named
a document of the run without a judgement            it is not relevant, under every protocol
==================================================== =====================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from numbers import Integral, Real
from typing import Any

from askalike.errors import EvaluationError
from askalike.evaluation.measures import Protocol, judged_list, parse_measure, parse_protocol
from askalike.evaluation.significance import Interval, bootstrap_difference, randomisation_test
from askalike.types import Qrels, Run

DEFAULT_MEASURES = ("map", "mrr", "p@1", "p@5")


@dataclass(frozen=True, slots=True)
class Report:
    """What a run is worth. All values are shares in [0, 1]; the literature prints them times 100.

    Args:
        per_query: measure → {query id: value}, queries in the gold's order; only those that count.
        means: measure → mean over the queries that count.
        relevant_ranked: query id → how many relevant documents the run has ranked at all, before any cut.
        left_out: judged queries that count in no mean, because nothing in them is relevant.
        without_positives: queries that count, as 0, although nothing in them is relevant to the protocol.
        missing: queries that count, as 0, although the run has no document for them.
        unjudged: queries of the run that the gold lacks: not scored.
        unjudged_documents: how many ranked documents of the gold's queries have no judgement: not relevant.
        relevant_not_ranked: how many judged relevant documents the run has not ranked, over all queries of the gold.
            Under the protocols for re-ranking these cost nothing, so the reader should know of them.
    """

    protocol: Protocol
    per_query: Mapping[str, Mapping[str, float]]
    means: Mapping[str, float]
    relevant_ranked: Mapping[str, int]
    left_out: tuple[str, ...]
    without_positives: tuple[str, ...]
    missing: tuple[str, ...]
    unjudged: tuple[str, ...]
    unjudged_documents: int
    relevant_not_ranked: int

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures, as asked for."""
        return tuple(self.means)

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries that count in the means, in the gold's order."""
        return tuple(self.relevant_ranked)


def evaluate(qrels: Qrels, run: Run, protocol: Protocol | str, measures: Sequence[str] = DEFAULT_MEASURES) -> Report:
    """Score a run.

    Args:
        qrels: query id → {document id: grade}; a grade > 0 is relevant.
        run: query id → [(document id, score), …]; the score decides, the order only between equal scores.
        protocol: one of `PROTOCOLS` or its name.

    Raises:
        EvaluationError: an unknown protocol or measure, gold and run that are malformed or do not belong together (see
            the module's table), or no query left to average over.

    Example:
        q1 has its one relevant document at rank 2; nothing is relevant to q2.

        >>> qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 0}}
        >>> run = {"q1": [("b", 0.9), ("a", 0.4)], "q2": [("c", 0.7)]}
        >>> evaluate(qrels, run, "semeval", ["mrr"]).means, evaluate(qrels, run, "askubuntu", ["mrr"]).means
        ({'mrr': 0.25}, {'mrr': 0.5})
    """
    policy = parse_protocol(protocol) if isinstance(protocol, str) else protocol
    if not measures:
        raise EvaluationError("no measure was named", "name at least one, such as map")
    parsed = [parse_measure(name) for name in measures]
    missing, unjudged = _missing_and_unjudged(qrels, run, policy)
    ranked_relevant = {query: _relevant_ranked(qrels, run, query) for query in qrels}
    relevant = {query: sum(grade > 0 for grade in qrels[query].values()) for query in qrels}
    known = relevant if policy.relevant == "judged" else ranked_relevant
    nothing = tuple(query for query in qrels if not known[query])
    leaves_out = policy.without_positives == "left out"
    counted = [query for query in qrels if known[query] or not leaves_out]
    if not counted:
        raise EvaluationError(
            f"none of the {len(nothing)} queries has a relevant document among those ranked; nothing can be averaged",
            "check that gold and run name documents by the same ids",
        )
    ranked = {query: judged_list(qrels[query], run.get(query, ()), policy) for query in counted}
    per_query = {measure.name: {query: measure.score(ranked[query]) for query in counted} for measure in parsed}
    return Report(
        protocol=policy,
        per_query=per_query,
        means={name: fsum(values.values()) / len(counted) for name, values in per_query.items()},
        relevant_ranked={query: ranked_relevant[query] for query in counted},
        left_out=nothing if leaves_out else (),
        without_positives=() if leaves_out else nothing,
        missing=missing,
        unjudged=unjudged,
        unjudged_documents=sum(
            document not in judgements for query, judgements in qrels.items() for document, _ in run.get(query, ())
        ),
        relevant_not_ranked=sum(relevant.values()) - sum(ranked_relevant.values()),
    )


def _missing_and_unjudged(qrels: Qrels, run: Run, protocol: Protocol) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the judged queries that the run has no document for, and the queries of the run that the gold lacks.

    Raises:
        EvaluationError: something of the table in this module's docstring; the message names query and document.
    """
    _check_gold(qrels)
    _check_run(run)
    missing = tuple(query for query in qrels if not run.get(query))
    unjudged = tuple(query for query in run if query not in qrels)
    if len(missing) == len(qrels):
        raise EvaluationError(
            f"the run ranks documents for none of the {len(qrels)} queries of the gold ({named(missing)}); "
            f"it has {named(tuple(run))}",
            "give a run for the same set of queries, with the same ids",
        )
    if missing and protocol.missing == "error":
        raise EvaluationError(
            f"the run has no documents for {len(missing)} of the {len(qrels)} queries of the gold: {named(missing)}",
            f"rank the candidates of every query; protocol {protocol.name} has no value for a missing one",
        )
    if unjudged and protocol.unjudged == "error":
        raise EvaluationError(
            f"the run has {len(unjudged)} queries that the gold lacks: {named(unjudged)}",
            f"protocol {protocol.name} wants the queries of the gold and no others; check that both are of one set",
        )
    return missing, unjudged


def _check_gold(qrels: Qrels) -> None:
    if not qrels:
        raise EvaluationError("the gold has no query", "give judgements for at least one query")
    empty = tuple(query for query, judgements in qrels.items() if not judgements)
    if empty:
        raise EvaluationError(
            f"{len(empty)} queries of the gold have no judgement at all: {named(empty)}",
            "leave such queries out, or judge a document 0 where nothing is relevant",
        )
    untyped: Any = qrels  # notebooks check no types
    for query, judgements in untyped.items():
        if not isinstance(query, str) or not isinstance(judgements, Mapping):
            raise EvaluationError(
                f"the gold has {judgements!r:.80} for the query {query!r:.80}",
                "expected a text, and document → grade for it",
            )
        for document, grade in judgements.items():
            is_whole = isinstance(grade, Integral) or (isinstance(grade, float) and grade.is_integer())
            if not isinstance(document, str) or not is_whole:
                raise EvaluationError(
                    f"query {query}: document {document!r:.80} has the grade {grade!r:.80}",
                    "expected a text, and a whole number for it",
                )


def _check_run(run: Run) -> None:
    if not run:
        raise EvaluationError("the run has no query", "give ranked documents for at least one query")
    untyped: Any = run  # notebooks check no types
    for query, entries in untyped.items():
        for entry in entries:
            if not (isinstance(entry, tuple | list) and len(entry) == 2 and isinstance(entry[1], Real)):
                raise EvaluationError(
                    f"query {query!r:.80}: the run has {entry!r:.80}", "expected pairs of a document and its score"
                )
            document, score = entry
            if not isfinite(score):
                raise EvaluationError(
                    f"query {query}: document {document} has the score {score}; expected a finite number",
                    "find out why the ranker gave it; it has no place in an order",
                )
        twice = tuple(document for document, times in Counter(document for document, _ in entries).items() if times > 1)
        if twice:
            raise EvaluationError(
                f"query {query}: {len(twice)} documents are ranked more than once: {named(twice)}",
                "keep one entry for each document",
            )


def _relevant_ranked(qrels: Qrels, run: Run, query: str) -> int:
    return sum(qrels[query].get(document, 0) > 0 for document, _ in run.get(query, ()))


@dataclass(frozen=True, slots=True)
class Comparison:
    """System a against system b under one measure.

    Args:
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

    @property
    def is_beyond_chance(self) -> bool:
        """Return whether a is better than b, and by more than chance brings: what is chosen on dev needs that.

        The interval lies above 0, and p is below 1 - level: of few queries, the bootstrap alone sees too little spread.
        """
        return self.difference.low > 0 and self.p_value < 1 - self.difference.level


def compare(
    report_a: Report, report_b: Report, measure: str, *, rounds: int = 10_000, seed: int = 0, level: float = 0.95
) -> Comparison:
    """Compare two runs that were scored on the same gold under the same protocol.

    Args:
        measure: a name that both reports hold.

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


_SHOWN = 5


def named(ids: Sequence[str]) -> str:
    """Return the first few ids and the number of the others.

    Example:
        >>> named(["a", "b", "c", "d", "e", "f", "g"])
        'a, b, c, d, e and 2 more'
    """
    more = len(ids) - _SHOWN
    return ", ".join(ids[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
