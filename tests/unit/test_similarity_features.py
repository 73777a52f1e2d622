"""The matrix of similarities of a query and its candidates."""

from __future__ import annotations

import numpy as np
import pytest

from askalike.errors import SettingError
from askalike.models.similarity import FEATURES, SimilarityFeatures
from askalike.models.term_weighting import BM25, CollectionStatistics, TfIdf
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Question

QUESTIONS = [
    Question("1", "Printer is offline", "It says offline since the last update of the printer."),
    Question("2", "Router reboots", "Every night the router reboots by itself."),
    Question("3", "Printer prints garbage", "<p>Strange <b>letters</b> on paper</p>", "html"),
    Question("4", "", ""),
    Question("5", "Is the printer offline", ""),
]
VECTORS = {
    "printer": np.array([1, 0, 0], np.float32),
    "offline": np.array([0, 1, 0], np.float32),
    "router": np.array([0, 0, 1], np.float32),
}


@pytest.fixture(scope="module")
def features() -> SimilarityFeatures:
    return SimilarityFeatures(QUESTIONS, TextSettings(), VECTORS)


def column(features: SimilarityFeatures, name: str, query: Question) -> list[float]:
    return features.matrix(query, QUESTIONS)[:, features.names.index(name)].tolist()


def test_there_is_one_column_for_each_measure_and_field(features: SimilarityFeatures) -> None:
    assert len(features.names) == sum(len(measure.fields) for measure in FEATURES.values())
    assert len(set(features.names)) == len(features.names)
    assert features.matrix(QUESTIONS[0], QUESTIONS).shape == (len(QUESTIONS), len(features.names))


def test_without_word_vectors_the_embedding_columns_are_left_out(features: SimilarityFeatures) -> None:
    plain = SimilarityFeatures(QUESTIONS, TextSettings())
    assert [name for name in features.names if "embedding" not in name] == list(plain.names)
    kept = [place for place, name in enumerate(features.names) if "embedding" not in name]
    np.testing.assert_array_equal(
        plain.matrix(QUESTIONS[0], QUESTIONS), features.matrix(QUESTIONS[0], QUESTIONS)[:, kept]
    )


def test_a_batch_gives_what_one_by_one_gives(features: SimilarityFeatures) -> None:
    together = features.matrix(QUESTIONS[0], QUESTIONS)
    alone = np.concatenate([features.matrix(QUESTIONS[0], [one]) for one in QUESTIONS])
    np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_a_question_is_like_itself_by_every_measure(features: SimilarityFeatures) -> None:
    row = features.matrix(QUESTIONS[0], [QUESTIONS[0]])[0]
    bounded = [place for place, name in enumerate(features.names) if not name.endswith(".bm25")]
    others = np.setdiff1d(np.arange(len(row)), bounded)
    # two words without stop words have no trigram
    expected = [0.0 if features.names[place].endswith("content_3") and row[place] == 0 else 1.0 for place in bounded]
    np.testing.assert_allclose(row[bounded], expected, rtol=1e-6)
    assert (row[others] > 0).all()


def test_an_empty_question_is_like_nothing(features: SimilarityFeatures) -> None:
    assert not features.matrix(QUESTIONS[3], QUESTIONS).any()
    assert not features.matrix(QUESTIONS[0], [QUESTIONS[3]]).any()


def test_no_candidates_give_no_rows(features: SimilarityFeatures) -> None:
    assert features.matrix(QUESTIONS[0], []).shape == (0, len(features.names))


def test_stop_words_count_among_stems_and_not_among_content(features: SimilarityFeatures) -> None:
    # printer is offline / is the printer offline: 3 of 4 stems; without stop words 2 of 2
    assert column(features, "title.jaccard_stems_1", QUESTIONS[0])[4] == 0.75
    assert column(features, "title.jaccard_content_1", QUESTIONS[0])[4] == 1.0


def test_bm25_and_tfidf_are_those_of_the_lexical_scorers(features: SimilarityFeatures) -> None:
    analyzer = Analyzer(TextSettings())
    prepared = [analyzer.prepare(question.title, question.body, question.markup) for question in QUESTIONS]
    joined = [terms.title + terms.body for terms in prepared]
    expected = BM25(CollectionStatistics.count(joined)).scores(joined[0], joined)
    np.testing.assert_allclose(column(features, "joined.bm25", QUESTIONS[0]), expected)
    titles = [terms.title for terms in prepared]
    expected = BM25(CollectionStatistics.count(titles)).scores(titles[0], titles)
    np.testing.assert_allclose(column(features, "title.bm25", QUESTIONS[0]), expected)
    np.testing.assert_allclose(
        column(features, "joined.tfidf_2", QUESTIONS[0]), TfIdf(joined, longest=2).scores(joined[0], joined)
    )


def test_embeddings_compare_means_of_word_vectors(features: SimilarityFeatures) -> None:
    # printer + offline against printer + nothing known: cos 45°
    assert column(features, "title.embedding", QUESTIONS[0])[:3] == [
        pytest.approx(1.0),
        pytest.approx(0.0),
        pytest.approx(np.sqrt(0.5)),
    ]


def test_bodies_are_cut_but_not_for_bm25_and_tfidf() -> None:
    long = Question("6", "t", "alpha " * 5 + "omega")
    other = Question("7", "t", "beta " * 5 + "omega")
    cut = SimilarityFeatures([long, other], TextSettings(), most_words=5)
    row = dict(zip(cut.names, cut.matrix(long, [other])[0], strict=True))
    assert row["body.jaccard_stems_1"] == 0
    assert row["body.tfidf_1"] > 0
    assert row["body.bm25"] > 0


def test_a_cut_after_no_word_is_refused() -> None:
    with pytest.raises(SettingError, match="at least 1"):
        SimilarityFeatures(QUESTIONS, TextSettings(), most_words=0)


def test_an_empty_collection_is_refused() -> None:
    with pytest.raises(SettingError, match="no document"):
        SimilarityFeatures([], TextSettings())
