"""Word vectors are trained: corpora as ids, and what gensim makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from askalike.errors import MissingExtraError, SettingError
from askalike.models.vocabulary import Vocabulary
from askalike.training.corpus import Texts, WordList
from askalike.training.words import train_word2vec

KITCHEN = ["oven", "pan", "flour", "butter", "salt", "recipe"]
NETWORK = ["router", "modem", "cable", "packet", "switch", "wifi"]
Corpus = tuple[Vocabulary, Texts]


def read(sentences: Iterable[list[str]], vocabulary: Vocabulary | None = None) -> Corpus:
    word_list = WordList(sentences)
    vocabulary = vocabulary or Vocabulary.from_counts(word_list.counts())
    return vocabulary, word_list.over(vocabulary)


def two_worlds(sentences: int = 400, seed: int = 0) -> Corpus:
    random = np.random.default_rng(seed)
    return read(
        [str(word) for word in random.choice(KITCHEN if number % 2 else NETWORK, 8)] for number in range(sentences)
    )


def trained(corpus: Corpus, epochs: int = 20, **others: Any) -> NDArray[np.float32]:
    return train_word2vec(corpus[1], len(corpus[0]), 16, epochs, **{"sample": 0.0, **others})


def mean_cosine(vocabulary: Vocabulary, vectors: NDArray[np.float32], first: list[str], second: list[str]) -> float:
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines = units[vocabulary.ids(first)] @ units[vocabulary.ids(second)].T
    return float(cosines[~np.eye(len(first), dtype=bool)].mean())


def test_words_of_one_world_end_up_nearer_than_words_of_two() -> None:
    corpus = two_worlds()
    vectors = trained(corpus, 30, seed=1, alpha=0.05)
    assert vectors.shape == (13, 16)
    assert vectors.dtype == np.float32
    across = mean_cosine(corpus[0], vectors, KITCHEN, NETWORK)
    assert mean_cosine(corpus[0], vectors, KITCHEN, KITCHEN) > across + 0.3
    assert mean_cosine(corpus[0], vectors, NETWORK, NETWORK) > across + 0.3


def test_each_pass_is_reported_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    passes: list[int] = []
    trained(two_worlds(), seed=1, on_epoch=passes.append)
    assert passes == list(range(21))
    assert capfd.readouterr() == ("", "")


def test_vectors_stand_in_the_order_of_the_vocabulary() -> None:
    vocabulary = Vocabulary([*NETWORK, "never", *KITCHEN])  # not by count, and one word does not occur
    vectors = trained(read(([KITCHEN, NETWORK][number % 2] for number in range(200)), vocabulary), seed=1)
    assert vectors.shape == (14, 16)
    assert not vectors[vocabulary.ids(["never"])].any()
    assert mean_cosine(vocabulary, vectors, NETWORK, NETWORK) > mean_cosine(vocabulary, vectors, NETWORK, KITCHEN)


def test_texts_without_a_known_word_are_refused() -> None:
    with pytest.raises(SettingError, match="without a known word"):
        trained(read([["once", "only"]], Vocabulary([])), seed=0)


def test_missing_gensim_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gensim.models.word2vec", None)
    with pytest.raises(MissingExtraError, match="gensim"):
        trained(two_worlds(), seed=0)
