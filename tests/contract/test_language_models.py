"""Laws that every language model of retrieval keeps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from askalike.models.language.likelihood import Collection, Parallel, QueryLikelihood, QueryModel, Smoothing, TermLists
from askalike.models.language.phrases import PhraseLearning, PhraseModel
from askalike.models.language.topics import TopicLearning, TopicModel, learn_topics, learn_voted_topics
from askalike.models.language.translation import Alignment, Mixture, TransLM, learn_translations, word_translation

SIZE = 12
TEXTS = TermLists.of([[1, 2, 3, 2], [4, 5], [6, 7, 8, 1, 1], [9]])
COUNTED = Collection.count(TEXTS, SIZE)
PAIRS = Parallel.of([([1, 2], [3, 4]), ([2, 5], [4, 1]), ([6], [7, 8])])
LEARNED = learn_translations(PAIRS, SIZE, Alignment(5))
PHRASES = PhraseLearning(least=1).learned(PAIRS, learn_translations(PAIRS.both_ways(), SIZE, Alignment(5)), SIZE)
TOPICS = learn_topics(TEXTS, TermLists.of([[7, 8], [9], [], [4, 5]]), SIZE, TopicLearning(topics=3, iterations=20))
VOTED = learn_voted_topics(
    TEXTS,
    TermLists.of([[7, 8], [9, 2], [4, 5]]),
    np.array([0, 0, 3]),
    np.array([5, 0, 1]),
    SIZE,
    TopicLearning(topics=3, iterations=20),
)
CANDIDATES = [[1, 2, 3], [], [4, 4, 5, -8], [-3], [6, 7, 8, 9, 1, 1, 2], [11], [2, 1, 3]]
ANSWERS = [[4], [3, 3], [], [-8, 1], [1, 5, 5], [], [4]]
UNKNOWN = -3

WORD_MODELS: dict[str, Callable[[], QueryModel]] = {
    "lmir": lambda: QueryLikelihood(COUNTED),
    "lmir, Jelinek-Mercer": lambda: QueryLikelihood(COUNTED, Smoothing("jelinek-mercer", 0.3)),
    "translation": lambda: word_translation(COUNTED, LEARNED),
    "translation, some kept": lambda: word_translation(COUNTED, LEARNED, Smoothing("dirichlet", 5.0), 0.5),
    "translm": lambda: TransLM(COUNTED, LEARNED),
    "translm, answers": lambda: TransLM(COUNTED, LEARNED, Smoothing("dirichlet", 5.0), Mixture(0.4, 0.3, 0.3)),
    "qatm": lambda: TopicModel(QueryLikelihood(COUNTED), TOPICS),
    "sqatm": lambda: TopicModel(
        TransLM(COUNTED, LEARNED, Smoothing("jelinek-mercer", 0.5), Mixture(0.4, 0.3, 0.3)), VOTED, 0.6
    ),
}


MODELS: dict[str, Callable[[], QueryModel]] = {
    **WORD_MODELS,
    "qatm, topics known or not": lambda: TopicModel(QueryLikelihood(COUNTED), TOPICS, 0.4),
    "phrase": lambda: PhraseModel(COUNTED, PHRASES),
    "phrase, all ways": lambda: PhraseModel(COUNTED, PHRASES, Smoothing("dirichlet", 5.0), 0.2, "sum"),
}


@pytest.fixture(params=list(MODELS))
def model(request: pytest.FixtureRequest) -> QueryModel:
    return MODELS[request.param]()


@pytest.fixture(params=list(WORD_MODELS))
def word_model(request: pytest.FixtureRequest) -> QueryModel:
    return WORD_MODELS[request.param]()


def scored(model: QueryModel, query: list[int], candidates: list[list[int]], answers: list[list[int]]) -> list[float]:
    lists = TermLists.of(candidates), TermLists.of(answers)
    return model.log_likelihoods(np.array(query, np.int64), *lists).tolist()


def test_one_candidate_scores_as_it_does_among_many(model: QueryModel) -> None:
    query = [1, 4, 1, UNKNOWN, 11]
    together = scored(model, query, CANDIDATES, ANSWERS)
    alone = [scored(model, query, [one], [own])[0] for one, own in zip(CANDIDATES, ANSWERS, strict=True)]
    assert together == pytest.approx(alone, rel=1e-12)


def test_the_order_of_candidates_changes_nothing(model: QueryModel) -> None:
    query, order = [1, 4, 1, 7], np.random.default_rng(0).permutation(len(CANDIDATES)).tolist()
    given = scored(model, query, CANDIDATES, ANSWERS)
    moved = scored(model, query, [CANDIDATES[i] for i in order], [ANSWERS[i] for i in order])
    assert moved == pytest.approx([given[i] for i in order], rel=1e-12)


def test_the_order_of_words_changes_nothing_to_a_model_of_words(word_model: QueryModel) -> None:
    query, model = [1, 4, 1, 7], word_model
    turned = scored(model, query[::-1], [one[::-1] for one in CANDIDATES], [one[::-1] for one in ANSWERS])
    assert turned == pytest.approx(scored(model, query, CANDIDATES, ANSWERS), rel=1e-12)


def test_a_word_asked_twice_counts_twice(model: QueryModel) -> None:
    once, twice = scored(model, [4], CANDIDATES, ANSWERS), scored(model, [4, 4], CANDIDATES, ANSWERS)
    assert twice == pytest.approx([2 * one for one in once])


def test_every_score_is_a_finite_logarithm(model: QueryModel) -> None:
    found = np.array(scored(model, [1, UNKNOWN, 10, 11, -77], CANDIDATES, ANSWERS))
    assert np.isfinite(found).all()
    assert (found < 0).all()


def test_a_query_without_terms_likes_all_candidates_the_same(model: QueryModel) -> None:
    assert scored(model, [], CANDIDATES, ANSWERS) == [0.0] * len(CANDIDATES)
    lists = TermLists.of(CANDIDATES), TermLists.of(ANSWERS)
    assert model.mean_ratios(np.zeros(0, np.int64), *lists).tolist() == [1.0] * len(CANDIDATES)


def test_no_candidates_give_no_scores(model: QueryModel) -> None:
    assert scored(model, [1, 2], [], []) == []


def test_a_candidate_without_terms_is_no_better_than_the_collection(word_model: QueryModel) -> None:
    nothing = TermLists.of([[]])
    words = np.array([UNKNOWN, 1, 4])
    assert (word_model.word_probabilities(words, nothing)[:, 0] <= word_model.background(words) * (1 + 1e-12)).all()


def test_probabilities_sum_to_at_most_one(word_model: QueryModel) -> None:
    words, lists = np.arange(1, SIZE), (TermLists.of(CANDIDATES), TermLists.of(ANSWERS))
    behind = word_model.background(words).sum()  # above 1 by what was never seen and counts as one
    assert (word_model.word_probabilities(words, *lists).sum(axis=0) <= max(1.0, behind) + 1e-6).all()


def test_a_word_that_was_never_learned_still_matches_itself(word_model: QueryModel) -> None:
    words = np.array([UNKNOWN])
    with_it, without = word_model.word_probabilities(words, TermLists.of([[UNKNOWN, 9], [10, 9]]))[0]
    if isinstance(word_model, TransLM) and not word_model.mixture.words:
        assert with_it == without, "the plain model matches what it has learned alone"
    else:
        assert with_it > without


def test_the_score_that_is_shown_orders_as_the_likelihood_does(model: QueryModel) -> None:
    query = np.array([1, 4, 1, 7])
    lists = TermLists.of(CANDIDATES), TermLists.of(ANSWERS)
    shown, likelihoods = model.mean_ratios(query, *lists), model.log_likelihoods(query, *lists)
    assert (shown > 0).all()
    differences = np.log(shown)[:, None] - np.log(shown)[None]
    np.testing.assert_allclose(4 * differences, likelihoods[:, None] - likelihoods[None], atol=1e-12)


def test_mixtures_that_are_known_before_change_no_score(model: QueryModel) -> None:
    query, lists = np.array([1, 4, 1, UNKNOWN]), (TermLists.of(CANDIDATES), TermLists.of(ANSWERS))
    known = (model.topics if isinstance(model, TopicModel) else TOPICS).mixtures(*lists)
    assert model.log_likelihoods(query, *lists, known).tolist() == model.log_likelihoods(query, *lists).tolist()
    assert model.mean_ratios(query, *lists, known).tolist() == model.mean_ratios(query, *lists).tolist()
