"""What an encoder's word vectors begin with: found, drawn, and the row for unknown words."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.vocabulary import Vocabulary
from askalike.training.vector_files import FoundVectors
from askalike.training.words import initial_embedding

FOUND = FoundVectors(("c", "a", "other"), np.array([[0, 6], [2, 0], [9, 9]], np.float32))
WORDS = Vocabulary(["a", "b", "c"])


def initial(
    vocabulary: Vocabulary, found: FoundVectors, is_unknown_zero: bool = False, seed: int = 0
) -> tuple[NDArray[np.float32], list[str]]:
    return initial_embedding(vocabulary, found, is_unknown_zero=is_unknown_zero, seed=seed)


def test_found_vectors_stand_at_their_words_ids_with_a_mean_length_of_one() -> None:
    embedding, missing = initial(WORDS, FOUND)
    assert embedding.dtype == np.float32
    assert embedding.shape == (4, 2)
    np.testing.assert_allclose(embedding[[1, 3]], [[0.5, 0], [0, 1.5]])  # lengths 2 and 6: divided by 4
    assert missing == ["b"]


def test_the_unknown_row_is_zero_or_the_mean_of_the_rarest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert initial(WORDS, FOUND, is_unknown_zero=True)[0][0].tolist() == [0, 0]
    assert initial(WORDS, FOUND)[0][0].tolist() == [0.25, 0.75]
    monkeypatch.setattr("askalike.training.words._RARE", 1)
    assert initial(WORDS, FOUND)[0][0].tolist() == [0, 1.5]


def test_missing_words_are_drawn_at_the_scale_of_the_found() -> None:
    vocabulary = Vocabulary([f"w{number}" for number in range(2000)])
    vectors = np.random.default_rng(1).normal(0, 5, (1000, 50)).astype(np.float32)
    embedding, _ = initial(vocabulary, FoundVectors(vocabulary.words[:1000], vectors))
    assert embedding[1001:].std() == pytest.approx(embedding[1:1001].std(), rel=0.02)
    assert np.linalg.norm(embedding[1001:], axis=1).mean() == pytest.approx(1, rel=0.02)


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
