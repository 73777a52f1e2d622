"""A run judged under a protocol: the value of each query and the means.

Enters: qrels, run, protocol, names of measures. Leaves: a `Report`. May import: askalike.types, askalike.errors, and
the fit, measures and protocols beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from askalike.errors import EvaluationError
from askalike.evaluation.fit import fit
from askalike.evaluation.measures.table import parse_measure
from askalike.evaluation.protocols import Protocol, judge, parse_protocol
from askalike.types import Qrels, Run

__all__ = ["DEFAULT_MEASURES", "Report", "evaluate"]

DEFAULT_MEASURES = ("map", "mrr", "p@1", "p@5")


@dataclass(frozen=True, slots=True)
class Report:
    """What a run is worth. All values are shares in [0, 1]; the literature prints them times 100.

    Args:
        protocol: how it was scored.
        per_query: measure → {query id: value}, queries in the gold's order; only those that count.
        means: measure → mean over the queries that count.
        relevant_ranked: query id → how many relevant documents the run has ranked at all, before any cut.
        left_out: judged queries that count in no mean, because nothing in them is relevant.
        without_positives: queries that count, as 0, although nothing in them is relevant to the protocol.
        missing: queries that count, as 0, although the run has no document for them.
        unjudged: queries of the run that the gold lacks: not scored.
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
        measures: names such as "map", "p@5", "ndcg@10".

    Raises:
        EvaluationError: an unknown protocol or measure, gold and run that are malformed or do not fit (see the fit's
            table), or no query left to average over.

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
    fitted = fit(qrels, run, policy)
    found = {query: _relevant_ranked(qrels, run, query) for query in fitted.queries}
    held = {query: sum(grade > 0 for grade in qrels[query].values()) for query in fitted.queries}
    known = held if policy.relevant == "judged" else found
    nothing = tuple(query for query in fitted.queries if not known[query])
    leaves_out = policy.without_positives == "left out"
    counted = [query for query in fitted.queries if known[query] or not leaves_out]
    if not counted:
        raise EvaluationError(
            f"none of the {len(nothing)} queries has a relevant document among those ranked; nothing can be averaged",
            "check that gold and run name documents by the same ids",
        )
    ranked = {query: judge(qrels[query], run.get(query, ()), policy) for query in counted}
    per_query = {measure.name: {query: measure.score(ranked[query]) for query in counted} for measure in parsed}
    return Report(
        protocol=policy,
        per_query=per_query,
        means={name: fsum(values.values()) / len(counted) for name, values in per_query.items()},
        relevant_ranked={query: found[query] for query in counted},
        left_out=nothing if leaves_out else (),
        without_positives=() if leaves_out else nothing,
        missing=fitted.missing,
        unjudged=fitted.unjudged,
        relevant_not_ranked=sum(held.values()) - sum(found.values()),
    )


def _relevant_ranked(qrels: Qrels, run: Run, query: str) -> int:
    return sum(qrels[query].get(document, 0) > 0 for document, _ in run.get(query, ()))
