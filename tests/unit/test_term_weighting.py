"""BM25 and TF-IDF against numbers worked by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from askalike.errors import SettingError
from askalike.models.term_weighting import BM25, CollectionStatistics, TfIdf

DOCUMENTS = [["cat", "sat"], ["cat", "cat", "ran", "far"], ["dog"]]


def test_statistics_count_documents_terms_and_frequencies() -> None:
    counted = CollectionStatistics.count(DOCUMENTS)
    assert counted.documents == 3
    assert counted.average_length == pytest.approx(7 / 3)
    assert dict(counted.document_frequency) == {"cat": 2, "sat": 1, "ran": 1, "far": 1, "dog": 1}


def test_bm25_of_a_pair_is_what_the_formula_gives_by_hand() -> None:
    # idf(cat) = ln(1 + 1.5 / 2.5) = ln 1.6;  |d| = 4, average 7/3: 1 - .75 + .75 · 12/7 = 1.535714
    # tf = 2: 2 · 2.2 / (2 + 1.2 · 1.535714) = 4.4 / 3.842857 = 1.144981
    scorer = BM25(CollectionStatistics.count(DOCUMENTS))
    assert scorer.score(["cat"], DOCUMENTS[1]) == pytest.approx(math.log(1.6) * 4.4 / 3.8428571428)


def test_bm25_of_nothing_shared_is_zero() -> None:
    scorer = BM25(CollectionStatistics.count(DOCUMENTS))
    assert scorer.score(["bird"], DOCUMENTS[0]) == 0.0
    assert scorer.score([], DOCUMENTS[0]) == 0.0
    assert scorer.score(["cat"], []) == 0.0


def test_tfidf_cosine_is_what_the_formula_gives_by_hand() -> None:
    # N = 2; df(a) = 2, df(b) = df(c) = 1: idf(a) = ln(3/3) + 1 = 1, idf(b) = idf(c) = ln(3/2) + 1 = 1.405465
    # q = (1, i, 0), d = (1, 0, i): cos = 1 / (1 + i²)
    model = TfIdf([["a", "b"], ["a", "c"]])
    rare = math.log(1.5) + 1
    assert model.scores(["a", "b"], [["a", "c"]])[0] == pytest.approx(1 / (1 + rare**2))


def test_tfidf_of_a_text_with_itself_is_one_and_with_strangers_zero() -> None:
    model = TfIdf(DOCUMENTS, longest=3)
    np.testing.assert_allclose(
        model.scores(DOCUMENTS[1], [DOCUMENTS[1], DOCUMENTS[2], []]), [1.0, 0.0, 0.0], atol=1e-12
    )


def test_longer_ngrams_tell_word_orders_apart() -> None:
    weighting = TfIdf([["a", "b"], ["b", "a"]], longest=1)
    two = TfIdf([["a", "b"], ["b", "a"]], longest=2)
    assert weighting.scores(["a", "b"], [["b", "a"]])[0] == pytest.approx(1.0)
    assert two.scores(["a", "b"], [["b", "a"]])[0] < 0.9


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BM25(CollectionStatistics.count(DOCUMENTS), k1=-0.1), "expected k1"),
        (lambda: BM25(CollectionStatistics.count(DOCUMENTS), b=1.1), "expected k1"),
        (lambda: CollectionStatistics.count([]), "no document"),
        (lambda: TfIdf([]), "no document"),
        (lambda: TfIdf(DOCUMENTS, longest=0), "at least 1"),
    ],
)
def test_what_cannot_be_weighed_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        make()
