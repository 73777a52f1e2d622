"""What happens to gold and runs that are malformed or do not fit each other."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest

from askalike.errors import EvaluationError
from askalike.evaluation import PROTOCOLS, evaluate
from askalike.types import Qrels, Run

QRELS: Qrels = {"q1": {"a": 1, "b": 0}, "q2": {"a": 0, "b": 1}}
RUN: Run = {"q1": [("a", 2.0), ("b", 1.0)], "q2": [("b", 2.0), ("a", 1.0)]}

MALFORMED: list[tuple[Any, Any, str]] = [
    ({}, RUN, "gold has no query"),
    (QRELS, {}, "run has no query"),
    ({**QRELS, "q3": {}}, RUN, "no judgement at all: q3"),
    *((QRELS, {**RUN, "q2": [("b", score)]}, "query q2: document b has the score") for score in (nan, inf, -inf)),
    (QRELS, {**RUN, "q2": [("a", 1.0), ("b", 0.5), ("a", 0.1)]}, "1 documents are ranked more than once: a"),
    (QRELS, {"other": [("a", 1.0)]}, "none of the 2 queries"),
    (QRELS, {"q1": [], "q2": []}, "none of the 2 queries"),
    *(({"q": {"d": grade}}, RUN, "has the grade") for grade in (nan, 1.5, "1")),
    *((gold, RUN, "the gold has|has the grade") for gold in ({"q": ["d"]}, {1: {"d": 1}}, {"q": {2: 1}})),
    *(
        ({"q": {"d": 1}}, {"q": entries}, "query 'q': the run has .*pairs of a document and its score")
        for entries in ({"d": 1.0}, ["d"], [("d", None)], [("d", "1")], [("d", 1.0, 2)])
    ),
]
"""(gold, run, what is said of it)."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_malformed_is_an_error_that_names_it(protocol: str) -> None:
    for qrels, run, said in MALFORMED:
        with pytest.raises(EvaluationError, match=said):
            evaluate(qrels, run, protocol)


def test_whole_numbers_of_numpy_and_data_frames_are_grades() -> None:
    wanted = evaluate({"q": {"d": 1, "e": 0}}, {"q": [("e", 2.0), ("d", 1.0)]}, "trec").means
    gold: Any = {"q": {"d": np.int64(1), "e": 0.0}}
    assert evaluate(gold, {"q": [("e", np.float32(2)), ("d", 1)]}, "trec").means == wanted


@pytest.mark.parametrize("run", [{"q1": RUN["q1"]}, {"q1": RUN["q1"], "q2": []}])
def test_a_missing_query_counts_zero_under_trec_and_is_an_error_when_candidates_are_re_ranked(run: Run) -> None:
    report = evaluate(QRELS, run, "trec")
    assert (report.means["map"], report.missing) == (0.5, ("q2",))
    assert report.per_query["map"] == {"q1": 1.0, "q2": 0.0}
    for protocol in ("askubuntu", "semeval"):
        with pytest.raises(EvaluationError, match=r"1 of the 2 queries of the gold: q2"):
            evaluate(QRELS, run, protocol)


def test_a_query_that_the_gold_lacks_is_left_out_under_trec_and_an_error_when_candidates_are_re_ranked() -> None:
    run = {**RUN, "q9": [("a", 1.0)]}
    report = evaluate(QRELS, run, "trec")
    assert (report.unjudged, report.queries, report.means["map"]) == (("q9",), ("q1", "q2"), 1.0)
    for protocol in ("askubuntu", "semeval"):
        with pytest.raises(EvaluationError, match=r"1 queries that the gold lacks: q9"):
            evaluate(QRELS, run, protocol)


def test_nothing_to_average_and_no_measure_are_errors_and_a_long_list_is_named_in_part() -> None:
    with pytest.raises(EvaluationError, match="nothing can be averaged"):
        evaluate({"q1": {"a": 0}}, {"q1": [("a", 1.0)]}, "askubuntu")
    with pytest.raises(EvaluationError, match="no measure"):
        evaluate(QRELS, RUN, "trec", [])
    assert evaluate(QRELS, RUN, "trec", ["P@5", "map"]).measures == ("p@5", "map"), "in the order asked for"
    with pytest.raises(EvaluationError, match="q1, q2, q3, q4, q5 and 3 more"):
        evaluate({f"q{number}": {"a": 1} for number in range(9)}, {"q0": [("a", 1.0)]}, "semeval")
