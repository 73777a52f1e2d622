"""What an encoder's word vectors begin with: found, drawn, and the row for unknown words."""

from __future__ import annotations

import numpy as np
import pytest

from askalike.errors import SettingError
from askalike.models.encoders.vocabulary import Vocabulary
from askalike.training.vector_files import FoundVectors
from askalike.training.words import InitialSettings, initial_embedding

FOUND = FoundVectors(("c", "a", "other"), np.array([[0, 6], [2, 0], [9, 9]], np.float32))
WORDS = Vocabulary(["a", "b", "c"])


def test_found_vectors_stand_at_their_words_ids() -> None:
    initial = initial_embedding(WORDS, FOUND, InitialSettings(has_unit_norm=False), seed=0)
    assert initial.embedding.dtype == np.float32
    assert initial.embedding.shape == (4, 2)
    np.testing.assert_array_equal(initial.embedding[[1, 3]], [[2, 0], [0, 6]])
    assert initial.missing == ("b",)


def test_scaling_makes_the_mean_length_of_found_vectors_one() -> None:
    embedding = initial_embedding(WORDS, FOUND, InitialSettings(), seed=0).embedding
    np.testing.assert_allclose(embedding[[1, 3]], [[0.5, 0], [0, 1.5]])  # lengths 2 and 6: divided by 4


def test_the_unknown_row_is_zero_or_the_mean_of_the_rarest() -> None:
    def row(settings: InitialSettings) -> list[float]:
        return [float(number) for number in initial_embedding(WORDS, FOUND, settings, seed=0).embedding[0]]

    assert row(InitialSettings("zero", has_unit_norm=False)) == [0, 0]
    assert row(InitialSettings("rare mean", has_unit_norm=False)) == [1, 3]
    assert row(InitialSettings("rare mean", rare_count=1, has_unit_norm=False)) == [0, 6]


def test_the_unknown_row_and_missing_words_are_drawn_at_the_scale_of_the_found() -> None:
    vocabulary = Vocabulary([f"w{number}" for number in range(2000)])
    vectors = np.random.default_rng(1).normal(0, 5, (1000, 50)).astype(np.float32)
    found = FoundVectors(vocabulary.words[:1000], vectors)
    embedding = initial_embedding(vocabulary, found, InitialSettings("random", has_unit_norm=False), seed=0).embedding
    assert embedding[1001:].std() == pytest.approx(5, rel=0.02)
    assert embedding[0].std() == pytest.approx(5, rel=0.3)
    scaled = initial_embedding(vocabulary, found, InitialSettings(), seed=0).embedding
    assert np.linalg.norm(scaled[1001:], axis=1).mean() == pytest.approx(1, rel=0.02)


def test_without_any_found_vector_all_words_are_drawn_with_length_one() -> None:
    nothing = FoundVectors((), np.zeros((0, 400), np.float32))
    initial = initial_embedding(WORDS, nothing, InitialSettings(), seed=0)
    assert initial.missing == WORDS.words
    assert not initial.embedding[0].any()
    np.testing.assert_allclose(np.linalg.norm(initial.embedding[1:], axis=1), 1, rtol=0.15)


def test_the_same_seed_draws_the_same_vectors_and_another_seed_others() -> None:
    settings = InitialSettings("random")
    first, again, other = (initial_embedding(WORDS, FOUND, settings, seed=seed).embedding for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[2], other[2])
    np.testing.assert_array_equal(first[1], other[1])


def test_trained_vectors_count_as_found_where_they_are_not_zero() -> None:
    vectors = np.array([[5, 5], [1, 2], [0, 0], [3, 4]], np.float32)
    found = FoundVectors.trained(WORDS, vectors)
    assert (found.words, found.vectors.tolist()) == (("a", "c"), [[1, 2], [3, 4]])
    with pytest.raises(SettingError, match="4 ids but 3 vectors"):
        FoundVectors.trained(WORDS, vectors[:3])


@pytest.mark.parametrize(
    ("words", "vectors"),
    [(("a",), np.zeros((2, 3))), (("a", "a"), np.zeros((2, 3))), (("a",), np.full((1, 3), np.inf))],
)
def test_found_vectors_that_do_not_fit_are_refused(words: tuple[str, ...], vectors: np.ndarray) -> None:
    with pytest.raises(SettingError):
        FoundVectors(words, vectors.astype(np.float32))


def test_a_policy_that_is_not_listed_is_refused() -> None:
    for settings in ({"unknown": "mean"}, {"rare_count": 0}):
        with pytest.raises(SettingError, match="expected one of: zero, rare mean, random"):
            InitialSettings(**settings)
