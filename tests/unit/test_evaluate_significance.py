"""The randomisation test, the bootstrap and comparisons on examples worked by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from askalike.errors import EvaluationError, SettingError
from askalike.evaluation import (
    bootstrap_difference,
    bootstrap_mean,
    bootstrap_over_seeds,
    compare,
    evaluate,
    randomisation_test,
)
from askalike.types import Qrels, Run


def test_three_equal_gains_leave_two_of_eight_sign_patterns_as_extreme() -> None:
    test = randomisation_test([0.5, 0.6, 0.7], [0.4, 0.5, 0.6])
    assert (test.p_value, test.rounds, test.is_exact) == (2 / 8, 8, True)
    assert test.difference == pytest.approx(0.1)


def test_a_difference_against_the_others_is_worked_out_pattern_by_pattern() -> None:
    # d = (3, 1, -2): the sum is 2; |±3 ±1 ±2| over the patterns is 6, 2, 4, 0 twice each, so 6 of 8 are ≥ 2.
    assert randomisation_test([3, 1, 0], [0, 0, 2]).p_value == 6 / 8


def test_the_same_seed_gives_the_same_p_value_and_another_another() -> None:
    differences = np.random.default_rng(7).normal(0.2, 1.0, size=60).tolist()
    first, again, other = (randomisation_test(differences, [0.0] * 60, seed=seed).p_value for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_many_rounds_are_drawn_in_parts_that_together_make_the_number_asked_for() -> None:
    test = randomisation_test([1.0] * 600, [0.0] * 600, rounds=5_000)
    assert test.p_value == 1 / 5_001


def test_equal_queries_change_nothing_and_do_not_prevent_the_exact_test() -> None:
    padded = randomisation_test([0.5, 0.6, 0.7] + [0.3] * 97, [0.4, 0.5, 0.6] + [0.3] * 97)
    assert padded.is_exact
    assert padded.p_value == 2 / 8
    assert randomisation_test([0.3, 0.3], [0.3, 0.3]).p_value == 1.0


def test_a_bootstrap_of_two_values_has_their_extremes_as_ends() -> None:
    # Means of two draws from {0, 1} are 0, 1/2, 1 with chances 1/4, 1/2, 1/4: both 2.5 % tails lie at the ends.
    interval = bootstrap_mean([0.0, 1.0], seed=1)
    assert (interval.mean, interval.low, interval.high) == (0.5, 0.0, 1.0)
    narrow = bootstrap_mean([0.0, 1.0], level=0.4, seed=1)
    assert (narrow.low, narrow.high) == (0.5, 0.5)


def test_a_paired_difference_has_no_width_when_every_query_gains_the_same() -> None:
    interval = bootstrap_difference([0.25, 0.5, 1.0], [0.0, 0.25, 0.75])
    assert (interval.mean, interval.low, interval.high) == (0.25, 0.25, 0.25)


@pytest.mark.parametrize(
    ("settings", "said"), [({"rounds": 0}, "0 rounds"), ({"seed": -1}, "seed is -1"), ({"level": 1.0}, "level is 1.0")]
)
def test_settings_out_of_range_are_refused(settings: dict[str, float], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        bootstrap_mean([0.0, 1.0], **settings)  # type: ignore[arg-type]


def test_values_that_cannot_be_compared_are_refused() -> None:
    for first, second, said in (
        ([0.1, 0.2], [0.1], "2 values of the first system but 1"),
        ([], [], "no query"),
        ([float("nan")], [0.1], "not a finite number"),
    ):
        with pytest.raises(EvaluationError, match=said):
            randomisation_test(first, second)
    with pytest.raises(EvaluationError, match="1 queries; expected at least 2"):
        bootstrap_mean([0.5])
    wrong: list[Any] = [["a", "b"], [[1.0, 2.0], [3.0, 4.0]], None]
    for values in wrong:
        with pytest.raises(EvaluationError, match="expected a number for each query"):
            bootstrap_mean(values)


QRELS: Qrels = {f"q{number}": {"a": 1, "b": 0} for number in range(4)}
GOOD: Run = {query: [("a", 2.0), ("b", 1.0)] for query in QRELS}
POOR: Run = {**{query: [("b", 2.0), ("a", 1.0)] for query in QRELS}, "q3": GOOD["q3"]}


def test_a_comparison_counts_wins_and_gives_the_p_value_of_the_difference() -> None:
    comparison = compare(evaluate(QRELS, GOOD, "semeval"), evaluate(QRELS, POOR, "semeval"), "MAP")
    # Three queries gain 1/2: 2 of 8 sign patterns are as extreme.
    assert (comparison.measure, comparison.queries, comparison.mean_a, comparison.mean_b) == ("map", 4, 1.0, 0.625)
    assert (comparison.better, comparison.worse, comparison.equal) == (3, 0, 1)
    assert comparison.difference.mean == 0.375
    assert comparison.difference.low <= 0.375 <= comparison.difference.high
    assert (comparison.p_value, comparison.is_exact) == (0.25, True)


def test_reports_under_different_protocols_cannot_be_compared() -> None:
    with pytest.raises(EvaluationError, match="protocol semeval, the other under trec"):
        compare(evaluate(QRELS, GOOD, "semeval"), evaluate(QRELS, POOR, "trec"), "map")


def test_a_measure_that_a_report_lacks_cannot_be_compared() -> None:
    with pytest.raises(EvaluationError, match=r"no ndcg@10; it has map, mrr, p@1, p@5"):
        compare(evaluate(QRELS, GOOD, "trec"), evaluate(QRELS, POOR, "trec"), "ndcg@10")


def test_reports_that_count_different_queries_cannot_be_compared() -> None:
    without = {**POOR, "q1": [("b", 1.0)]}
    with pytest.raises(EvaluationError, match="1 queries count in one run only: q1"):
        compare(evaluate(QRELS, GOOD, "askubuntu"), evaluate(QRELS, without, "askubuntu"), "map")


def test_a_run_that_drops_positives_cannot_be_compared_under_a_protocol_that_counts_what_is_ranked() -> None:
    qrels: Qrels = {"q": {"a": 1, "b": 1, "c": 0}, "r": {"a": 1}}
    full: Run = {"q": [("a", 3.0), ("c", 2.0), ("b", 1.0)], "r": [("a", 1.0)]}
    dropped: Run = {"q": [("a", 3.0), ("c", 2.0)], "r": [("a", 1.0)]}
    for protocol in ("askubuntu", "semeval"):
        with pytest.raises(EvaluationError, match="different numbers of relevant documents for 1 queries: q"):
            compare(evaluate(qrels, full, protocol), evaluate(qrels, dropped, protocol), "map")
    assert compare(evaluate(qrels, full, "trec"), evaluate(qrels, dropped, "trec"), "map").better == 1


def test_the_order_of_the_queries_in_a_report_does_not_matter() -> None:
    report = evaluate(QRELS, GOOD, "trec")
    turned = dataclasses.replace(
        evaluate(QRELS, POOR, "trec"),
        per_query={
            name: dict(reversed(values.items())) for name, values in evaluate(QRELS, POOR, "trec").per_query.items()
        },
    )
    assert compare(report, turned, "map") == compare(report, evaluate(QRELS, POOR, "trec"), "map")


def test_an_interval_over_seeds_is_wider_by_what_seeds_differ_and_the_same_for_one() -> None:
    values = [0.1, 0.4, 0.5, 0.9, 0.3]
    assert bootstrap_over_seeds([values]) == bootstrap_mean(values)
    alike, apart = (
        bootstrap_over_seeds([[value + shift for value in values] for shift in shifts])
        for shifts in ((0.0, 0.0), (-0.3, 0.3))
    )
    assert alike.mean == pytest.approx(apart.mean)
    assert apart.low < alike.low < alike.high < apart.high
    with pytest.raises(EvaluationError, match="other numbers of queries"):
        bootstrap_over_seeds([values, values[1:]])
    with pytest.raises(EvaluationError):
        bootstrap_over_seeds([])
