"""The three ways of scoring a run that the literature uses; figures of different ones must not be compared.

=========== ==================== ====================== ==== ==================== ================== =======
protocol    queries with no      AP, recall and the     cut  ties                 P@k divides by     missing
            positive             ideal nDCG count                                                    queries
=========== ==================== ====================== ==== ==================== ================== =======
askubuntu   left out of every    positives among the    20   the run's own order  min(k, candidates) error
            mean                 run's candidates
semeval     count as 0           relevant ones found    10   the run's own order  k                  error
                                 within the cut
trec        count as 0           all judged relevant    none id descending        k                  0
=========== ==================== ====================== ==== ==================== ================== =======

Source: Lei et al., "Semi-supervised Question Retrieval with Gated Convolutions", NAACL 2016, "Baselines and Evaluation
Metrics" (askubuntu); the official scorer of SemEval-2016 and -2017 Task 3 (semeval); trec_eval (trec).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from askalike.errors import EvaluationError
from askalike.evaluation.measures import Ranked


@dataclass(frozen=True, slots=True)
class Protocol:
    """Every choice that changes a figure and is not the measure itself.

    Args:
        name: its key in `PROTOCOLS`.
        without_positives: a judged query with nothing relevant is "left out" of every mean or counts as "zero". For a
            protocol that counts what was "ranked", positives outside the run do not make a query have one.
        relevant: what average precision and recall divide by, and what the ideal list of nDCG holds: relevant
            documents that are "judged" at all, that the run has "ranked", or that it has ranked "within cut".
        cut: how many documents from the top are looked at; None for all.
        ties: equal scores stay in the "run order" or go by "id descending".
        precision_divisor: P@k divides by "k", or by "k or candidates", the smaller.
        missing: a judged query that the run lacks, or has no document for, is an "error" or counts as "zero".
        unjudged: a query of the run that the gold lacks is an "error" or is "left out", and named in the report.
    """

    name: str
    without_positives: Literal["left out", "zero"]
    relevant: Literal["ranked", "within cut", "judged"]
    cut: int | None
    ties: Literal["run order", "id descending"]
    precision_divisor: Literal["k", "k or candidates"]
    missing: Literal["error", "zero"]
    unjudged: Literal["error", "left out"]


PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol
    for protocol in (
        # Re-ranking of 20 candidates: of the 200 test queries 14 have no positive and are left out.
        Protocol("askubuntu", "left out", "ranked", 20, "run order", "k or candidates", "error", "error"),
        # Re-ranking of 10 candidates. Of the 88 test queries of 2017, 29 have no positive: MAP is 67.05 at most.
        Protocol("semeval", "zero", "within cut", 10, "run order", "k", "error", "error"),
        # Retrieval from a whole collection, as ``trec_eval -c`` scores it: a judged query that the run lacks counts as
        # 0, as ir-measures has it too. Without -c trec_eval leaves such a query out, and a system gains by answering
        # only what it is sure of. A judged query without positives counts as 0 with and without it: checked against
        # pytrec_eval and ir-measures, which agree.
        Protocol("trec", "zero", "judged", None, "id descending", "k", "zero", "left out"),
    )
}


def parse_protocol(name: str) -> Protocol:
    """Return the protocol of this name; capitals do not matter.

    Raises:
        EvaluationError: there is none of this name.
    """
    protocol = PROTOCOLS.get(name.strip().lower())
    if protocol is None:
        raise EvaluationError(f"there is no protocol {name!r}", f"expected one of {', '.join(PROTOCOLS)}")
    return protocol


def judged_list(judgements: Mapping[str, int], entries: Sequence[tuple[str, float]], protocol: Protocol) -> Ranked:
    """Return one query's list as the measures see it under a protocol.

    A document without a judgement is not relevant; neither is one with a grade ≤ 0. A query's own id is a document
    like any other: an engine that searches its own collection leaves it out.

    Args:
        judgements: document id → grade.
        entries: (document id, score), no id twice, scores finite, in the run's own order.

    Differs: trec_eval keeps scores in single precision, so that two scores that differ only after the seventh digit or
    so are a tie there; here they are compared as given, in double precision.

    Example:
        A second relevant document "z" was not ranked: only trec counts it.

        >>> judged_list({"a": 1, "z": 1}, [("a", 0.5), ("b", 0.5)], PROTOCOLS["trec"])
        Ranked(gains=(0, 1), ideal=(1, 1), candidates=None)
        >>> judged_list({"a": 1, "z": 1}, [("a", 0.5), ("b", 0.5)], PROTOCOLS["semeval"])
        Ranked(gains=(1, 0), ideal=(1,), candidates=None)
    """
    if protocol.ties == "run order":
        ordered = sorted(entries, key=lambda entry: -entry[1])
    else:
        ordered = sorted(entries, key=lambda entry: (entry[1], entry[0]), reverse=True)
    all_gains = tuple(max(judgements.get(document, 0), 0) for document, _ in ordered)
    gains = all_gains[: protocol.cut]
    counted = {"ranked": all_gains, "within cut": gains, "judged": tuple(judgements.values())}[protocol.relevant]
    return Ranked(
        gains=gains,
        ideal=tuple(sorted((gain for gain in counted if gain > 0), reverse=True)),
        candidates=len(entries) if protocol.precision_divisor == "k or candidates" else None,
    )
