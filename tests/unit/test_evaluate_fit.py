"""What happens to gold and runs that are malformed or do not fit each other."""

from __future__ import annotations

from math import inf, nan

import pytest

from askalike.errors import EvaluationError
from askalike.evaluation import PROTOCOLS, evaluate
from askalike.types import Qrels, Run

QRELS: Qrels = {"q1": {"a": 1, "b": 0}, "q2": {"a": 0, "b": 1}}
RUN: Run = {"q1": [("a", 2.0), ("b", 1.0)], "q2": [("b", 2.0), ("a", 1.0)]}
EVERY = pytest.mark.parametrize("protocol", PROTOCOLS)


@EVERY
def test_a_perfect_run_is_worth_one(protocol: str) -> None:
    means = evaluate(QRELS, RUN, protocol, ["map", "mrr", "p@1", "recall@1", "ndcg@10", "success@1"]).means
    assert set(means.values()) == {1.0}


@EVERY
@pytest.mark.parametrize(("qrels", "run", "said"), [({}, RUN, "gold has no query"), (QRELS, {}, "run has no query")])
def test_empty_gold_and_empty_runs_are_errors(protocol: str, qrels: Qrels, run: Run, said: str) -> None:
    with pytest.raises(EvaluationError, match=said):
        evaluate(qrels, run, protocol)


@EVERY
def test_a_query_of_the_gold_without_judgements_is_an_error(protocol: str) -> None:
    with pytest.raises(EvaluationError, match=r"no judgement at all: q3"):
        evaluate({**QRELS, "q3": {}}, RUN, protocol)


@EVERY
@pytest.mark.parametrize("score", [nan, inf, -inf])
def test_a_score_that_is_not_finite_is_an_error(protocol: str, score: float) -> None:
    with pytest.raises(EvaluationError, match=r"query q2: document b has the score"):
        evaluate(QRELS, {**RUN, "q2": [("a", 1.0), ("b", score)]}, protocol)


@EVERY
def test_a_document_twice_in_a_query_is_an_error(protocol: str) -> None:
    with pytest.raises(EvaluationError, match=r"query q2: 1 documents are ranked more than once: a"):
        evaluate(QRELS, {**RUN, "q2": [("a", 1.0), ("b", 0.5), ("a", 0.1)]}, protocol)


@EVERY
@pytest.mark.parametrize("run", [{"other": [("a", 1.0)]}, {"q1": [], "q2": []}])
def test_a_run_that_shares_no_query_with_the_gold_is_an_error(protocol: str, run: Run) -> None:
    with pytest.raises(EvaluationError, match="none of the 2 queries"):
        evaluate(QRELS, run, protocol)


@pytest.mark.parametrize("protocol", ["askubuntu", "semeval"])
@pytest.mark.parametrize("run", [{"q1": RUN["q1"]}, {"q1": RUN["q1"], "q2": []}])
def test_a_missing_query_is_an_error_when_candidates_are_re_ranked(protocol: str, run: Run) -> None:
    with pytest.raises(EvaluationError, match=r"1 of the 2 queries of the gold: q2"):
        evaluate(QRELS, run, protocol)


@pytest.mark.parametrize("run", [{"q1": RUN["q1"]}, {"q1": RUN["q1"], "q2": []}])
def test_a_missing_query_counts_zero_under_trec_and_is_named(run: Run) -> None:
    report = evaluate(QRELS, run, "trec")
    assert report.means["map"] == 0.5
    assert report.missing == ("q2",)
    assert report.per_query["map"] == {"q1": 1.0, "q2": 0.0}


@pytest.mark.parametrize("protocol", ["askubuntu", "semeval"])
def test_a_query_that_the_gold_lacks_is_an_error_when_candidates_are_re_ranked(protocol: str) -> None:
    with pytest.raises(EvaluationError, match=r"1 queries that the gold lacks: q9"):
        evaluate(QRELS, {**RUN, "q9": [("a", 1.0)]}, protocol)


def test_a_query_that_the_gold_lacks_is_left_out_under_trec_and_named() -> None:
    report = evaluate(QRELS, {**RUN, "q9": [("a", 1.0)]}, "trec")
    assert report.unjudged == ("q9",)
    assert report.queries == ("q1", "q2")
    assert report.means["map"] == 1.0


def test_askubuntu_without_any_positive_has_nothing_to_average() -> None:
    with pytest.raises(EvaluationError, match="nothing can be averaged"):
        evaluate({"q1": {"a": 0}}, {"q1": [("a", 1.0)]}, "askubuntu")


def test_no_measure_is_an_error_and_names_are_kept_in_the_order_asked_for() -> None:
    with pytest.raises(EvaluationError, match="no measure"):
        evaluate(QRELS, RUN, "trec", [])
    assert evaluate(QRELS, RUN, "trec").measures == ("map", "mrr", "p@1", "p@5")
    assert evaluate(QRELS, RUN, "trec", ["P@5", "map"]).measures == ("p@5", "map")


def test_a_long_list_of_queries_is_named_in_part() -> None:
    qrels = {f"q{number}": {"a": 1} for number in range(9)}
    with pytest.raises(EvaluationError, match="q1, q2, q3, q4, q5 and 3 more"):
        evaluate(qrels, {"q0": [("a", 1.0)]}, "semeval")
