"""Whether gold and run are well formed and fit each other: the one place where that is decided.

Enters: qrels, run, protocol. Leaves: the queries to score, and those that were missing or unjudged. May import:
askalike.types, askalike.errors and the protocols.

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
from dataclasses import dataclass
from math import isfinite

from askalike.errors import EvaluationError
from askalike.evaluation.named import named
from askalike.evaluation.protocols import Protocol
from askalike.types import Qrels, Run

__all__ = ["Fit", "fit"]


@dataclass(frozen=True, slots=True)
class Fit:
    """Which queries can be scored.

    Args:
        queries: judged queries, in the gold's order; those that are missing too.
        missing: judged queries that the run has no document for.
        unjudged: queries of the run that the gold lacks.
    """

    queries: tuple[str, ...]
    missing: tuple[str, ...]
    unjudged: tuple[str, ...]


def fit(qrels: Qrels, run: Run, protocol: Protocol) -> Fit:
    """Check gold and run, each and together.

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
    return Fit(tuple(qrels), missing, unjudged)


def _check_gold(qrels: Qrels) -> None:
    if not qrels:
        raise EvaluationError("the gold has no query", "give judgements for at least one query")
    empty = tuple(query for query, judgements in qrels.items() if not judgements)
    if empty:
        raise EvaluationError(
            f"{len(empty)} queries of the gold have no judgement at all: {named(empty)}",
            "leave such queries out, or judge a document 0 where nothing is relevant",
        )


def _check_run(run: Run) -> None:
    if not run:
        raise EvaluationError("the run has no query", "give ranked documents for at least one query")
    for query, entries in run.items():
        for document, score in entries:
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
