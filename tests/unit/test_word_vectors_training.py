"""Word vectors are trained: corpora as ids, the loss on a sample, and what gensim makes of them."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from numpy.typing import NDArray

from askalike.errors import MissingExtraError, SettingError
from askalike.models.encoders.vocabulary import Vocabulary
from askalike.training import word2vec as corpus_module
from askalike.training.word2vec import (
    LONGEST,
    Epoch,
    Probe,
    SentenceCorpus,
    Word2VecSettings,
    draw_probe,
    negative_sampling_loss,
    train_word2vec,
)

KITCHEN = ["oven", "pan", "flour", "butter", "salt", "recipe"]
NETWORK = ["router", "modem", "cable", "packet", "switch", "wifi"]
SMALL = Word2VecSettings(size=16, epochs=20, sample=0.0)


def two_worlds(sentences: int = 400, seed: int = 0) -> SentenceCorpus:
    random = np.random.default_rng(seed)
    return SentenceCorpus.from_words(
        [str(word) for word in random.choice(KITCHEN if number % 2 else NETWORK, 8)] for number in range(sentences)
    )


def mean_cosine(vocabulary: Vocabulary, vectors: NDArray[np.float32], first: list[str], second: list[str]) -> float:
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines = units[vocabulary.ids(first)] @ units[vocabulary.ids(second)].T
    return float(cosines[~np.eye(len(first), dtype=bool)].mean())


@pytest.mark.parametrize("is_skip_gram", [True, False])
def test_words_of_one_world_end_up_nearer_than_words_of_two(is_skip_gram: bool) -> None:
    settings = Word2VecSettings(size=16, epochs=30, sample=0.0, is_skip_gram=is_skip_gram, learning_rate=0.05)
    vocabulary, vectors = train_word2vec(two_worlds(), settings, seed=1)
    assert vectors.shape == (13, 16)
    assert vectors.dtype == np.float32
    across = mean_cosine(vocabulary, vectors, KITCHEN, NETWORK)
    assert mean_cosine(vocabulary, vectors, KITCHEN, KITCHEN) > across + 0.3
    assert mean_cosine(vocabulary, vectors, NETWORK, NETWORK) > across + 0.3


def test_the_same_seed_gives_the_same_vectors_and_another_seed_others() -> None:
    first, again, other = (train_word2vec(two_worlds(), SMALL, seed=seed)[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_unknown_words_get_a_row_of_zeros() -> None:
    _, vectors = train_word2vec(two_worlds(), SMALL, seed=1)
    assert not vectors[0].any()
    assert vectors[1:].any(axis=1).all()


def test_the_loss_starts_at_six_times_log_two_and_falls(capfd: pytest.CaptureFixture[str]) -> None:
    told: list[Epoch] = []
    train_word2vec(two_worlds(), SMALL, seed=1, progress=told.append)
    assert [(epoch.number, epoch.of, epoch.word_count) for epoch in told] == [(n, 20, 3200 * n) for n in range(21)]
    assert told[0].loss == pytest.approx(6 * np.log(2), abs=1e-6)
    assert told[-1].loss < told[5].loss < told[0].loss
    assert capfd.readouterr() == ("", "")


def test_the_loss_is_not_a_number_where_no_known_words_stand_side_by_side() -> None:
    told: list[Epoch] = []
    train_word2vec(SentenceCorpus.from_words([["a"], ["b"]]), SMALL, seed=0, progress=told.append)
    assert np.isnan(told[-1].loss)


def test_training_leaves_the_order_of_the_vocabulary_alone() -> None:
    vocabulary = Vocabulary([*NETWORK, "never", *KITCHEN])  # not by count, and one word does not occur
    sentences = [[KITCHEN, NETWORK][number % 2] for number in range(200)]
    given, vectors = train_word2vec(SentenceCorpus.of(vocabulary, sentences), SMALL, seed=1)
    assert given is vocabulary
    assert vectors.shape == (14, 16)
    assert not vectors[given.ids(["never"])].any()
    assert mean_cosine(given, vectors, NETWORK, NETWORK) > mean_cosine(given, vectors, NETWORK, KITCHEN)


def test_several_workers_train_as_well() -> None:
    vocabulary, vectors = train_word2vec(two_worlds(), SMALL, seed=1, workers=2)
    assert vectors.shape == (13, 16)
    assert mean_cosine(vocabulary, vectors, NETWORK, NETWORK) > mean_cosine(vocabulary, vectors, NETWORK, KITCHEN)


@pytest.mark.parametrize(("seed", "workers"), [(-1, 1), (2**32, 1), (0, 0)])
def test_a_seed_or_number_of_workers_out_of_range_is_refused(seed: int, workers: int) -> None:
    with pytest.raises(SettingError, match="expected"):
        train_word2vec(two_worlds(), SMALL, seed=seed, workers=workers)


def test_a_corpus_without_a_known_word_is_refused() -> None:
    with pytest.raises(SettingError, match="without a known word"):
        train_word2vec(SentenceCorpus.from_texts(["once only"], min_count=2), SMALL, seed=0)


def test_missing_gensim_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gensim.models.word2vec", None)
    with pytest.raises(MissingExtraError, match="gensim"):
        train_word2vec(two_worlds(), SMALL, seed=0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 0},
        {"window": 2.5},
        {"epochs": True},
        {"negative": -1},
        {"sample": 1.0},
        {"sample": float("nan")},
        {"learning_rate": 0.0},
        {"learning_rate": 1e30},
        {"learning_rate": 0.00001},
        {"last_learning_rate": 0.0},
    ],
)
def test_a_setting_out_of_range_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingError, match="word2vec"):
        Word2VecSettings(**wrong)  # type: ignore[arg-type]


def test_a_corpus_reads_a_stream_once_and_counts() -> None:
    stream = iter([["b", "a"], [], ["a", "c", "a"]])
    corpus = SentenceCorpus.from_words(stream, min_count=1, max_size=2)
    assert corpus.vocabulary.words == ("a", "b")
    assert [ids.tolist() for ids in corpus.sentences()] == [[2, 1], [1, 0, 1]]
    assert (len(corpus), corpus.known_count(), corpus.counts().tolist()) == (5, 4, [1, 3, 1])
    assert corpus.ids.dtype == np.int32


def test_a_corpus_of_nothing_is_empty() -> None:
    corpus = SentenceCorpus.from_words([])
    assert (len(corpus), list(corpus.sentences()), len(corpus.vocabulary)) == (0, [], 1)


def test_a_long_sentence_is_given_in_pieces_and_loses_no_word() -> None:
    corpus = SentenceCorpus.from_words([["a"] * (2 * LONGEST + 1), ["b"]])
    assert [len(ids) for ids in corpus.sentences()] == [LONGEST, LONGEST, 1, 1]
    assert corpus_module.LONGEST == importlib.import_module("gensim.models.word2vec").MAX_WORDS_IN_BATCH


@pytest.mark.parametrize(
    ("ids", "ends"),
    [([1, 1], [1]), ([1, 1], [2, 1, 2]), ([1, 1], []), ([1, 2], [2]), ([-1], [1]), ([1], [-1, 1])],
)
def test_ids_and_ends_that_do_not_fit_are_refused(ids: list[int], ends: list[int]) -> None:
    with pytest.raises(SettingError):
        SentenceCorpus(Vocabulary(["one"]), np.array(ids, np.int32), np.array(ends, np.int64))


def test_the_probe_pairs_known_neighbours_of_one_sentence_only() -> None:
    vocabulary = Vocabulary(["a", "b", "c", "d"])
    corpus = SentenceCorpus.of(vocabulary, [["a", "b"], ["c", "?", "d"], [], ["d", "c"]])
    probe = draw_probe(corpus, negatives=3, seed=0)
    assert sorted(zip(probe.words.tolist(), probe.contexts.tolist(), strict=True)) == [(1, 2), (4, 3)]
    assert probe.negatives.shape == (2, 3)
    assert probe.negatives.min() >= 1


def test_the_probe_of_a_large_corpus_is_as_large_as_asked_for() -> None:
    corpus = SentenceCorpus.from_words([["a", "b", "c"]] * 1000)
    probe = draw_probe(corpus, negatives=2, seed=0, size=50)
    assert probe.words.shape == (50,)
    assert {(1, 2), (2, 3)} == set(zip(probe.words.tolist(), probe.contexts.tolist(), strict=True))


def test_the_loss_of_zero_outputs_is_one_plus_k_times_log_two() -> None:
    probe = Probe(np.array([1], np.int32), np.array([1], np.int32), np.array([[1, 1, 1]], np.int32))
    zeros = np.zeros((2, 4), np.float32)
    assert negative_sampling_loss(probe, np.ones((2, 4), np.float32), zeros) == pytest.approx(4 * np.log(2))
