"""Each measure on examples worked by hand."""

from __future__ import annotations

from math import log2

import pytest

from askalike.errors import EvaluationError
from askalike.evaluation import MEASURES
from askalike.evaluation.measures import (
    Measure,
    Ranked,
    average_precision,
    ndcg_at,
    parse_measure,
    precision_at,
    recall_at,
    reciprocal_rank,
    success_at,
)

# Relevant at ranks 2, 4 and 5 of six documents.
GAINS = (0, 1, 0, 1, 1, 0)


def test_average_precision_sums_the_precision_at_each_relevant_rank() -> None:
    assert average_precision(GAINS, 3) == pytest.approx((1 / 2 + 2 / 4 + 3 / 5) / 3)


def test_reciprocal_rank_looks_at_the_first_relevant_document_only() -> None:
    assert reciprocal_rank(GAINS) == 0.5
    assert reciprocal_rank((0, 0, 2)) == pytest.approx(1 / 3)


def test_precision_divides_by_k_even_when_fewer_documents_are_ranked() -> None:
    assert precision_at(GAINS, 5) == pytest.approx(3 / 5)
    assert precision_at((1, 1), 5) == pytest.approx(2 / 5)


def test_recall_is_the_share_of_relevant_documents_among_the_first_k() -> None:
    assert recall_at(GAINS, 4, relevant=3) == pytest.approx(2 / 3)
    assert recall_at(GAINS, 10, relevant=6) == pytest.approx(3 / 6)


def test_ndcg_has_linear_gain_and_a_discount_of_log2_of_rank_plus_one() -> None:
    gain = 0 / log2(2) + 3 / log2(3) + 0 / log2(4) + 1 / log2(5)
    best = 3 / log2(2) + 2 / log2(3) + 1 / log2(4)
    assert ndcg_at((0, 3, 0, 1), 10, ideal=(3, 2, 1)) == pytest.approx(gain / best)


def test_success_asks_for_one_relevant_document_among_the_first_k() -> None:
    assert success_at(GAINS, 1) == 0.0
    assert success_at(GAINS, 2) == 1.0


def test_every_measure_is_zero_when_nothing_is_relevant() -> None:
    for pattern in MEASURES:
        measure = parse_measure(pattern.replace("@k", "@5"))
        assert measure.score(Ranked(gains=(0, 0, 0), ideal=())) == 0.0
        assert measure.score(Ranked(gains=(), ideal=(), candidates=0)) == 0.0


def test_a_name_is_read_with_its_k_and_an_unknown_one_refused_with_the_choices() -> None:
    assert parse_measure("map") == Measure("map", "map")
    assert parse_measure("recall@10") == Measure("recall@10", "recall@k", 10)
    assert parse_measure(" NDCG@10 ") == Measure("ndcg@10", "ndcg@k", 10)
    for name in ("", "bleu", "p", "p@", "p@0", "p@-1", "p@05", "p@2.5", "map@5", "ndcg", "@5", "p@5 x"):
        with pytest.raises(EvaluationError) as caught:
            parse_measure(name)
        assert all(pattern in str(caught.value) for pattern in MEASURES)
