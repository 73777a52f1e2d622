"""BM25 and TF-IDF against numbers worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from askalike.errors import SettingError
from askalike.models.term_weighting import BM25, CollectionStatistics, TfIdf, inverse_document_frequency, saturation

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


def test_bm25_counts_a_repeated_query_term_twice() -> None:
    scorer = BM25(CollectionStatistics.count(DOCUMENTS))
    assert scorer.score(["cat", "cat"], DOCUMENTS[0]) == pytest.approx(2 * scorer.score(["cat"], DOCUMENTS[0]))


def test_bm25_scores_are_the_scores_of_the_pairs_in_order() -> None:
    scorer = BM25(CollectionStatistics.count(DOCUMENTS), k1=0.9, b=0.4)
    expected = [scorer.score(["cat", "dog"], document) for document in DOCUMENTS]
    np.testing.assert_allclose(scorer.scores(["cat", "dog"], DOCUMENTS), expected)


def test_bm25_of_nothing_shared_is_zero() -> None:
    scorer = BM25(CollectionStatistics.count(DOCUMENTS))
    assert scorer.score(["bird"], DOCUMENTS[0]) == 0.0
    assert scorer.score([], DOCUMENTS[0]) == 0.0
    assert scorer.score(["cat"], []) == 0.0


def test_idf_is_positive_even_for_a_term_that_every_document_has() -> None:
    assert inverse_document_frequency(10, 10) > 0


def test_saturation_without_length_normalisation_ignores_length() -> None:
    assert saturation(3, 1000, 10, 1.2, 0.0) == saturation(3, 1, 10, 1.2, 0.0)


@pytest.mark.parametrize(("k1", "b"), [(-0.1, 0.5), (1.2, 1.1), (1.2, -0.1)])
def test_bm25_refuses_parameters_out_of_range(k1: float, b: float) -> None:
    with pytest.raises(SettingError, match="expected k1"):
        BM25(CollectionStatistics.count(DOCUMENTS), k1=k1, b=b)


def test_an_empty_collection_is_refused() -> None:
    with pytest.raises(SettingError, match="no document"):
        CollectionStatistics.count([])
    with pytest.raises(SettingError, match="no document"):
        TfIdf([])


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
    one = TfIdf([["a", "b"], ["b", "a"]], longest=1)
    two = TfIdf([["a", "b"], ["b", "a"]], longest=2)
    assert one.scores(["a", "b"], [["b", "a"]])[0] == pytest.approx(1.0)
    assert two.scores(["a", "b"], [["b", "a"]])[0] < 0.9


def test_sublinear_frequency_damps_repetition() -> None:
    documents = [["a", "a", "a", "b"], ["b"]]
    plain = TfIdf(documents).scores(["a"], [documents[0]])[0]
    damped = TfIdf(documents, is_sublinear=True).scores(["a"], [documents[0]])[0]
    assert damped < plain


def test_tfidf_refuses_ngrams_of_no_terms() -> None:
    with pytest.raises(SettingError, match="at least 1"):
        TfIdf(DOCUMENTS, longest=0)
