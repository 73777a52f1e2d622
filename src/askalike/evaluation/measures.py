"""The measures of one ranked list by name, and the protocols under which the literature applies them.

In all of them ``gains`` are the gains of the documents at rank 1, 2, …, a document being relevant when its gain is > 0,
``k`` is ≥ 1, ``relevant`` is R ≥ the number of relevant documents in ``gains``, and the value is in [0, 1], 0 where
nothing is relevant. Which documents count as relevant is the protocol's affair.

Figures of different protocols must not be compared.

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

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import Literal

from askalike.errors import EvaluationError


@dataclass(frozen=True, slots=True)
class Ranked:
    """The gains of one query's ranked list, with what they are compared to.

    Args:
        gains: gain of the document at rank 1, 2, …, after the protocol's cut; 0 where it is not relevant.
        ideal: gains (> 0) of all documents that the protocol counts as relevant, highest first; its length is R.
        candidates: how many documents the list had before the cut where precision@k may not divide by more than
            that; None where precision@k always divides by k.
    """

    gains: tuple[int, ...]
    ideal: tuple[int, ...]
    candidates: int | None = None


def average_precision(gains: Sequence[int], relevant: int) -> float:
    """Return the precision at the rank of each relevant document, summed and divided by the number of relevant ones.

    ``AP = (1 / R) · Σ_{i : gains_i > 0} (relevant ones among the first i) / i``

    A relevant document that is not in the list adds 0.

    Source: Buckley and Voorhees, "Evaluating Evaluation Measure Stability", SIGIR 2000, section 2.

    Example:
        Relevant at ranks 1 and 3 of two relevant documents, (1/1 + 2/3) / 2; the same of four, (1/1 + 2/3) / 4:

        >>> round(average_precision([1, 0, 1], 2), 4), round(average_precision([1, 0, 1], 4), 4)
        (0.8333, 0.4167)
    """
    hits = 0
    total = 0.0
    for rank, gain in enumerate(gains, start=1):
        if gain > 0:
            hits += 1
            total += hits / rank
    return total / relevant if relevant else 0.0


def reciprocal_rank(gains: Sequence[int]) -> float:
    """Return ``RR = 1 / min {i : gains_i > 0}``, one over the rank of the first relevant document.

    Source: Voorhees, "The TREC-8 Question Answering Track Report", TREC 1999.

    >>> reciprocal_rank([0, 0, 0, 1, 1]), reciprocal_rank([0, 0])
    (0.25, 0.0)
    """
    for rank, gain in enumerate(gains, start=1):
        if gain > 0:
            return 1 / rank
    return 0.0


def precision_at(gains: Sequence[int], k: int, candidates: int | None = None) -> float:
    """Return ``P@k = |{i ≤ k : gains_i > 0}| / k``, the share of relevant documents among the first k.

    With ``candidates``, how many documents there were to rank, the divisor is ``min(k, candidates)``, so that a list
    of three documents can reach P@5 = 1.

    Source: Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 2008, section 8.4.

    >>> precision_at([1, 0, 1], 5), round(precision_at([1, 0, 1], 5, candidates=3), 4)
    (0.4, 0.6667)
    """
    divisor = k if candidates is None else min(k, candidates)
    return sum(gain > 0 for gain in gains[:k]) / divisor if divisor else 0.0


def recall_at(gains: Sequence[int], k: int, relevant: int) -> float:
    """Return ``recall@k = |{i ≤ k : gains_i > 0}| / R``, the share of the relevant documents among the first k.

    Source: Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 2008, section 8.3.

    >>> recall_at([1, 0, 1, 1], 3, relevant=4)
    0.5
    """
    return sum(gain > 0 for gain in gains[:k]) / relevant if relevant else 0.0


def ndcg_at(gains: Sequence[int], k: int, ideal: Sequence[int]) -> float:
    """Return the discounted gain of the first k documents over that of the best possible first k.

    ``DCG@k = Σ_{i ≤ k} gains_i / log2(i + 1)``, ``nDCG@k = DCG@k(gains) / DCG@k(ideal)``

    The gain is the grade itself (linear; grades ≤ 0 add nothing) and rank i is discounted by log2(i + 1), as in
    trec_eval's ``ndcg_cut``.

    Args:
        ideal: gains of all relevant documents, highest first.

    Source: Järvelin and Kekäläinen, "Cumulated Gain-Based Evaluation of IR Techniques", TOIS 20(4), 2002, section 2.
    Differs: the paper does not discount ranks below the base of the logarithm (2); the form above discounts every
    rank but the first, as is usual today.

    Example:
        Grades 2 and 1 exist and only the 2 was found, at rank 2: (2 / log2 3) / (2 + 1 / log2 3):

        >>> round(ndcg_at([0, 2, 0], 10, ideal=[2, 1]), 4)
        0.4796
    """
    best = _discounted(ideal, k)
    return _discounted(gains, k) / best if best else 0.0


def _discounted(gains: Sequence[int], k: int) -> float:
    return sum(max(gain, 0) / log2(rank + 1) for rank, gain in enumerate(gains[:k], start=1))


def success_at(gains: Sequence[int], k: int) -> float:
    """Return 1 when a relevant document is among the first k, else 0; its mean is also known as hit rate.

    Source: the measure ``success`` of trec_eval.

    >>> success_at([0, 0, 1], 3), success_at([0, 0, 1], 2)
    (1.0, 0.0)
    """
    return float(any(gain > 0 for gain in gains[:k]))


MEASURES: dict[str, Callable[[Ranked, int], float]] = {
    "map": lambda ranked, _: average_precision(ranked.gains, len(ranked.ideal)),
    "mrr": lambda ranked, _: reciprocal_rank(ranked.gains),
    "p@k": lambda ranked, k: precision_at(ranked.gains, k, ranked.candidates),
    "recall@k": lambda ranked, k: recall_at(ranked.gains, k, len(ranked.ideal)),
    "ndcg@k": lambda ranked, k: ndcg_at(ranked.gains, k, ranked.ideal),
    "success@k": lambda ranked, k: success_at(ranked.gains, k),
}
"""Pattern of the name → the value of one ranked list. A name that ends in ``@k`` takes a whole number there."""

_NAME = re.compile(r"(?P<kind>[a-z]+)(?:@(?P<k>[1-9][0-9]{0,8}))?")


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure, its k filled in.

    Args:
        name: as a report prints it: ``map``, ``p@5``.
        pattern: its key in `MEASURES`: ``map``, ``p@k``.
        k: how many documents from the top it looks at; 0 when it looks at all.
    """

    name: str
    pattern: str
    k: int = 0

    def score(self, ranked: Ranked) -> float:
        """Return the value of one ranked list."""
        return MEASURES[self.pattern](ranked, self.k)


def parse_measure(name: str) -> Measure:
    """Return the measure of this name; capitals do not matter.

    Raises:
        EvaluationError: the name is not one of the table's, or its k is missing, superfluous or not 1, 2, 3, ….

    >>> parse_measure("NDCG@10")
    Measure(name='ndcg@10', pattern='ndcg@k', k=10)
    """
    match = _NAME.fullmatch(name.strip().lower())
    if match:
        kind, k = match["kind"], match["k"]
        pattern = kind if k is None else f"{kind}@k"
        if pattern in MEASURES:
            return Measure(match[0], pattern, int(k or 0))
    raise EvaluationError(
        f"there is no measure {name!r}; expected one of {', '.join(MEASURES)}",
        "write a whole number from 1 on for k, as in p@5",
    )


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
