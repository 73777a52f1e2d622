"""Each policy of each protocol on examples worked by hand."""

from __future__ import annotations

import dataclasses

import pytest

from askalike.errors import EvaluationError
from askalike.evaluation import PROTOCOLS, evaluate
from askalike.evaluation.measures import Protocol, Ranked, judged_list, parse_protocol
from askalike.types import Qrels, Run

# q1: "a" relevant at rank 2 and "z" relevant but not ranked; q2: nothing relevant.
QRELS: Qrels = {"q1": {"a": 1, "b": 0, "c": 0, "z": 1}, "q2": {"d": 0, "e": 0}}
RUN: Run = {"q1": [("b", 3.0), ("a", 2.0), ("c", 1.0)], "q2": [("d", 1.0), ("e", 0.5)]}


def test_askubuntu_leaves_queries_without_positives_out_and_divides_by_what_is_ranked() -> None:
    report = evaluate(QRELS, RUN, "askubuntu")
    assert report.queries == ("q1",)
    assert report.left_out == ("q2",)
    assert report.without_positives == ()
    assert (report.relevant_not_ranked, report.relevant_ranked["q1"]) == (1, 1)
    assert report.means == pytest.approx({"map": 1 / 2, "mrr": 1 / 2, "p@1": 0.0, "p@5": 1 / 3})


def test_semeval_counts_queries_without_positives_as_zero_and_divides_by_what_is_found_in_the_cut() -> None:
    report = evaluate(QRELS, RUN, "semeval")
    assert report.queries == ("q1", "q2")
    assert report.left_out == ()
    assert report.without_positives == ("q2",)
    assert report.means == pytest.approx({"map": 1 / 4, "mrr": 1 / 4, "p@1": 0.0, "p@5": 1 / 10})


def test_trec_counts_queries_without_positives_as_zero_and_divides_by_all_relevant() -> None:
    report = evaluate(QRELS, RUN, "trec")
    assert report.without_positives == ("q2",)
    assert report.means == pytest.approx({"map": 1 / 8, "mrr": 1 / 4, "p@1": 0.0, "p@5": 1 / 10})


def test_a_query_whose_only_positive_is_not_ranked_is_left_out_by_askubuntu_only() -> None:
    qrels: Qrels = {"q1": {"a": 1}, "q2": {"z": 1}}
    run: Run = {"q1": [("a", 1.0)], "q2": [("d", 1.0)]}
    assert evaluate(qrels, run, "askubuntu").left_out == ("q2",)
    assert evaluate(qrels, run, "askubuntu").means["map"] == 1.0
    assert evaluate(qrels, run, "semeval").means["map"] == 0.5
    assert evaluate(qrels, run, "semeval").without_positives == ("q2",)
    assert evaluate(qrels, run, "trec").means["map"] == 0.5
    assert evaluate(qrels, run, "trec").without_positives == ()


@pytest.mark.parametrize(("name", "cut"), [("askubuntu", 20), ("semeval", 10), ("trec", None)])
def test_documents_after_the_cut_are_not_looked_at(name: str, cut: int | None) -> None:
    entries = [(f"d{rank:03}", float(-rank)) for rank in range(1, 101)]
    ranked = judged_list({"d020": 1, "d021": 1, "d011": 1}, entries, PROTOCOLS[name])
    assert len(ranked.gains) == (cut or 100)
    expected = {"askubuntu": 3, "semeval": 0, "trec": 3}[name]
    assert len(ranked.ideal) == expected


@pytest.mark.parametrize("name", ["askubuntu", "semeval"])
def test_equal_scores_stay_in_the_order_of_the_run(name: str) -> None:
    entries = [("low", 0.1), ("m", 0.5), ("a", 0.5), ("z", 0.5), ("top", 0.9)]
    ranked = judged_list({"a": 1}, entries, PROTOCOLS[name])
    assert ranked.gains == (0, 0, 1, 0, 0)


def test_trec_puts_equal_scores_by_document_id_descending() -> None:
    entries = [("a", 0.5), ("m", 0.5), ("z", 0.5), ("top", 0.9)]
    assert judged_list({"a": 3, "m": 2, "z": 1}, entries, PROTOCOLS["trec"]).gains == (0, 1, 2, 3)


def test_trec_compares_ids_as_text_and_scores_in_double_precision() -> None:
    assert judged_list({"9": 1}, [("10", 1.0), ("9", 1.0)], PROTOCOLS["trec"]).gains == (1, 0)
    assert judged_list({"a": 1}, [("b", 1.0), ("a", 1.0 + 1e-12)], PROTOCOLS["trec"]).gains == (1, 0)


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=list(PROTOCOLS))
def test_documents_without_a_judgement_or_with_a_grade_below_one_are_not_relevant(protocol: Protocol) -> None:
    ranked = judged_list({"a": -1, "b": 0, "c": 2}, [("x", 4.0), ("a", 3.0), ("b", 2.0), ("c", 1.0)], protocol)
    assert ranked == Ranked((0, 0, 0, 2), (2,), 4 if protocol.name == "askubuntu" else None)


def test_a_protocol_of_ones_own_can_be_given() -> None:
    own = dataclasses.replace(PROTOCOLS["trec"], name="mine", cut=1)
    assert evaluate(QRELS, RUN, own).means["mrr"] == 0.0


def test_an_unknown_protocol_is_refused_with_the_choices() -> None:
    assert parse_protocol(" TREC ") is PROTOCOLS["trec"]
    with pytest.raises(EvaluationError, match="askubuntu, semeval, trec"):
        parse_protocol("msmarco")
