"""Topics of questions and answers: their equations beside loops, what they learn, and what votes do to it."""

from __future__ import annotations

import sys
from math import exp, log
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from askalike.errors import SettingError
from askalike.models.language.likelihood import Collection, QueryLikelihood, Smoothing, TermLists
from askalike.models.language.topics import (
    TopicLearning,
    TopicModel,
    Topics,
    TopicTraining,
    learn_topics,
    learn_voted_topics,
    pair_counts,
    vote_weights,
)
from askalike.models.language.topics import digamma as own_digamma

Floats = NDArray[np.float64]

V = 9
COOKING, NETWORKS = [1, 2, 3, 4], [5, 6, 7, 8]
"""Words of two topics; their answers have the words in turn."""


def two_topics(count: int, seed: int) -> tuple[TermLists, TermLists]:
    """Return questions about the first and the second topic in turn, with longer answers."""
    draw = np.random.default_rng(seed)
    about = [COOKING if number % 2 == 0 else NETWORKS for number in range(count)]
    return (
        TermLists.of(draw.choice(words[:2], 4) for words in about),
        TermLists.of(draw.choice(words[2:], 12) for words in about),
    )


def random_topics(seed: int, count: int = 3) -> Topics:
    draw = np.random.default_rng(seed)
    held = draw.random((2, V, count))
    held[:, 0] = 0
    held /= held.sum(axis=1, keepdims=True)
    return Topics(held[0].astype(np.float32), held[1].astype(np.float32), alpha=0.3, answer_weight=0.5)


# -- inference -----------------------------------------------------------------------------------------------------


def mixture_by_loops(topics: Topics, question: list[int], answer: list[int], iterations: int) -> list[float]:
    """Return θ of one text, word by word."""
    words = [(topics.questions[w].astype(float).tolist(), 1.0) for w in question if 0 < w < V]
    words += [(topics.answers[w].astype(float).tolist(), topics.answer_weight) for w in answer if 0 < w < V]
    count = topics.questions.shape[1]
    gamma = [topics.alpha + sum(weight for _, weight in words) / count] * count
    for _ in range(iterations):
        factors = [exp(float(digamma(one))) for one in gamma]
        gamma = [topics.alpha] * count
        for own, weight in words:
            shares = [factor * one for factor, one in zip(factors, own, strict=True)]
            gamma = [old + weight * share / sum(shares) for old, share in zip(gamma, shares, strict=True)]
    return [one / sum(gamma) for one in gamma]


def test_a_texts_topics_are_those_of_the_equations() -> None:
    topics = random_topics(1)
    questions, answers = [[1, 2, 1], [], [5, -4, 99], [3]], [[4, 4, 8], [7], [], [-2, 0]]
    found = topics.mixtures(TermLists.of(questions), TermLists.of(answers), iterations=7)
    expected = [mixture_by_loops(topics, *pair, 7) for pair in zip(questions, answers, strict=True)]
    np.testing.assert_allclose(found, expected)
    alone = topics.mixtures(TermLists.of(questions), iterations=7)
    np.testing.assert_allclose(alone, [mixture_by_loops(topics, one, [], 7) for one in questions])


def test_a_text_has_the_same_topics_among_others_as_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    topics, draw = random_topics(2), np.random.default_rng(3)
    texts = [draw.integers(0, V, draw.integers(0, 9)) for _ in range(40)]
    together = topics.mixtures(TermLists.of(texts))
    alone = np.concatenate([topics.mixtures(TermLists.of([one])) for one in texts])
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    monkeypatch.setattr("askalike.models.language.topics._WORDS_AT_ONCE", 5)
    np.testing.assert_array_equal(topics.mixtures(TermLists.of(texts)), together)


def test_nothing_to_go_by_gives_all_topics_alike() -> None:
    topics = random_topics(4)
    assert topics.mixtures(TermLists.of([[], [-3, 0], [V, 99]])).tolist() == [[pytest.approx(1 / 3)] * 3] * 3
    assert topics.mixtures(TermLists.of([])).shape == (0, 3)


def test_probabilities_of_words_are_mixed_by_topics() -> None:
    topics = random_topics(5)
    mixtures = np.array([[1, 0, 0], [0.5, 0.25, 0.25]])
    found = topics.probabilities(np.array([-7, 2, V]), mixtures)
    held = topics.questions[2].astype(float)
    assert found[[0, 2]].tolist() == [[0, 0]] * 2
    assert found[1].tolist() == pytest.approx([held[0], held @ [0.5, 0.25, 0.25]])
    every = topics.probabilities(np.arange(1, V), mixtures)
    np.testing.assert_allclose(every.sum(axis=0), 1, rtol=1e-6)


# -- learning ------------------------------------------------------------------------------------------------------


def step_by_loops(counts: Floats, words: Floats, gamma: Floats, eta: float, alpha: float) -> tuple[Floats, Floats]:
    """Return φ over ψ and γ after one step, count by count."""
    found, mixtures = np.full(words.shape, eta), np.full(gamma.shape, alpha)
    found[[0, V]] = 0
    for text, word in np.argwhere(counts):
        shares = np.exp(digamma(gamma[text])) * words[word]
        shares *= counts[text, word] / shares.sum()
        found[word] += shares
        mixtures[text] += shares
    found[:V] /= found[:V].sum(axis=0)
    found[V:] /= found[V:].sum(axis=0)
    return found, mixtures


def bound_by_loops(counts: Floats, words: Floats, gamma: Floats, eta: float, alpha: float) -> float:
    """Return the bound at φ, ψ and γ, with the best responsibilities for them."""
    total = 0.0
    for text, own in enumerate(gamma):
        expected = digamma(own) - digamma(own.sum())
        for word in np.flatnonzero(counts[text]):
            total += counts[text, word] * log(float(np.exp(expected) @ words[word]))
        total += gammaln(alpha * len(own)) - len(own) * gammaln(alpha) + (alpha - 1) * expected.sum()
        total -= gammaln(own.sum()) - gammaln(own).sum() + ((own - 1) * expected).sum()
    held = np.delete(words, [0, V], axis=0)
    return float(total + eta * np.log(held).sum())


def test_a_step_is_that_of_the_equations_and_the_bound_is_the_bound() -> None:
    questions, answers = two_topics(6, seed=1)
    counts = pair_counts(questions, answers, V, np.linspace(0.2, 2, len(answers.ids)))
    settings = TopicLearning(topics=3, alpha=0.3, eta=0.05, seed=5)
    training = TopicTraining(counts, settings)
    dense = np.zeros((len(questions), counts.width))
    dense[np.repeat(np.arange(len(questions)), np.diff(counts.starts)), counts.columns] = counts.values
    for _ in range(3):
        words, gamma = training._words.copy(), training._gamma.copy()
        bound = training.step()
        assert bound * dense.sum() == pytest.approx(bound_by_loops(dense, words, gamma, 0.05, 0.3))
        expected = step_by_loops(dense, words, gamma, 0.05, 0.3)
        np.testing.assert_allclose(training._words, expected[0])
        np.testing.assert_allclose(training._gamma, expected[1])


def test_the_digamma_function_is_scipys() -> None:
    values = np.concatenate([np.geomspace(1e-6, 1e6, 500), np.linspace(0.01, 20, 500)])
    np.testing.assert_allclose(own_digamma(values), digamma(values), rtol=1e-13, atol=1e-14)


def test_a_text_gets_its_topics_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    questions, answers = two_topics(6, seed=1)
    topics = learn_topics(questions, answers, V, TopicLearning(topics=2, iterations=5))
    expected = topics.mixtures(questions, answers)
    for name in ("scipy", "scipy.sparse", "scipy.special"):
        monkeypatch.setitem(sys.modules, name, None)
    np.testing.assert_array_equal(topics.mixtures(questions, answers), expected)


def test_no_step_makes_the_bound_smaller() -> None:
    draw = np.random.default_rng(6)
    questions = TermLists.of(draw.integers(0, V, 5) for _ in range(30))
    answers = TermLists.of(draw.integers(0, V, draw.integers(0, 15)) for _ in range(30))
    bounds: list[float] = []
    settings = TopicLearning(topics=4, alpha=0.2, iterations=60)
    learn_topics(questions, answers, V, settings, on_progress=lambda _, bound: bounds.append(bound))
    assert len(bounds) == 60
    assert (np.diff(bounds) >= -1e-12).all()
    assert bounds[-1] > bounds[0]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_two_obvious_topics_are_found_in_both_languages(seed: int) -> None:
    questions, answers = two_topics(60, seed)
    topics = learn_topics(questions, answers, V, TopicLearning(topics=2, iterations=60, seed=seed))
    first = int(topics.questions[1].argmax())
    for of_questions, of_answers, topic in ((COOKING[:2], COOKING[2:], first), (NETWORKS[:2], NETWORKS[2:], 1 - first)):
        assert topics.questions[of_questions, topic].sum() > 0.99
        assert topics.answers[of_answers, topic].sum() > 0.99  # the same topic: θ is shared
    np.testing.assert_allclose(topics.questions.sum(axis=0), 1, rtol=1e-5)
    np.testing.assert_allclose(topics.answers.sum(axis=0), 1, rtol=1e-5)
    assert topics.mixtures(TermLists.of([[1, 2]]))[0, first] > 0.9
    nothing = TermLists.of([[]])
    assert topics.mixtures(nothing, TermLists.of([[3, 4]]))[0, first] > 0.9


def test_words_that_never_meet_in_a_question_share_a_topic_through_their_answers() -> None:
    # 1 and 2 are asked apart, and answered with the same words; so are 5 and 6
    questions = TermLists.of([[1], [2], [5], [6]] * 15)
    answers = TermLists.of([[3, 4, 3], [4, 3, 4], [7, 8, 7], [8, 7, 8]] * 15)
    topics = learn_topics(questions, answers, V, TopicLearning(topics=2, iterations=60))
    model = TopicModel(QueryLikelihood(Collection.count(questions, V)), topics, 0.5)
    candidates = TermLists.of([[1], [5]])
    asked_one, asked_five = model.log_likelihoods(np.array([2]), candidates)
    assert exp(asked_one - asked_five) > 2  # the model of words gives both the same


def test_a_seed_gives_one_model_and_another_seed_another() -> None:
    questions, answers = two_topics(20, seed=3)
    first, again, other = (
        learn_topics(questions, answers, V, TopicLearning(topics=3, iterations=5, seed=seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.questions, again.questions)
    np.testing.assert_array_equal(first.answers, again.answers)
    assert not np.array_equal(first.questions, other.questions)


def test_answers_that_weigh_nothing_teach_nothing() -> None:
    questions, answers = two_topics(20, seed=4)
    settings = TopicLearning(topics=2, iterations=10, answer_weight=0)
    given = learn_topics(questions, answers, V, settings)
    without = learn_topics(questions, TermLists.of([[]] * 20), V, settings)
    np.testing.assert_array_equal(given.questions, without.questions)
    np.testing.assert_allclose(given.answers[1:], 1 / (V - 1), rtol=1e-6)
    np.testing.assert_array_equal(given.mixtures(questions, answers), given.mixtures(questions))


def test_a_forum_without_questions_still_gives_a_model() -> None:
    topics = learn_topics(TermLists.of([]), TermLists.of([]), V, TopicLearning(topics=2, iterations=2))
    assert topics.mixtures(TermLists.of([[1]])).tolist() == [[pytest.approx(0.5)] * 2]


@pytest.mark.parametrize(
    "wrong",
    [{"topics": 0}, {"alpha": 0.0}, {"eta": -1.0}, {"answer_weight": -1.0}, {"iterations": 0}, {"alpha": float("inf")}],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        TopicLearning(**wrong)


def test_questions_and_answers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SettingError, match="2 questions, 1 answers"):
        learn_topics(TermLists.of([[1], [2]]), TermLists.of([[1]]), V, TopicLearning())
    with pytest.raises(SettingError, match="2 of 1 terms"):
        learn_topics(TermLists.of([[1]]), TermLists.of([[1]]), V, TopicLearning(), np.ones(2))


# -- the score -----------------------------------------------------------------------------------------------------

WORDS = QueryLikelihood(Collection(np.array([2, 9, 7, 5, 4, 3, 2, 1, 0])), Smoothing("jelinek-mercer", 0.3))
CANDIDATES = TermLists.of([[1, 2, 3], [], [3, 1, 2, 2, 6], [-5, -5], [4]])
ANSWERS = TermLists.of([[8], [7, 7], [], [1], [-2]])


@pytest.mark.parametrize("with_answers", [False, True])
def test_the_score_is_that_of_the_equation(with_answers: bool) -> None:
    model = TopicModel(WORDS, random_topics(7), 0.6)
    answers = ANSWERS if with_answers else None
    found = model.log_likelihoods(np.array([2, -5, 6, 2]), CANDIDATES, answers)
    query, times = np.array([-5, 2, 6]), np.array([1, 2, 1])
    lexical = WORDS.word_probabilities(query, CANDIDATES)
    behind = WORDS.background(query)
    mixtures = model.topics.mixtures(CANDIDATES, answers)
    for place in range(5):
        has_topics = place in ((0, 1, 2, 3, 4) if with_answers else (0, 2, 4))
        about = model.topics.probabilities(query, mixtures[[place]])[:, 0] if has_topics else behind
        assert found[place] == pytest.approx(times @ np.log(0.6 * lexical[:, place] + 0.4 * about))
    given = model.word_probabilities(query, CANDIDATES, answers, mixtures)
    np.testing.assert_array_equal(given, model.word_probabilities(query, CANDIDATES, answers))


def test_the_order_of_candidates_changes_no_score() -> None:
    model, query, order = TopicModel(WORDS, random_topics(7), 0.6), np.array([2, 6, -5]), [3, 0, 4, 2, 1]
    texts = np.split(CANDIDATES.ids, CANDIDATES.starts[1:-1])
    found = model.log_likelihoods(query, TermLists.of(texts[place] for place in order))
    np.testing.assert_allclose(found, model.log_likelihoods(query, CANDIDATES)[order], rtol=1e-12)
    assert model.log_likelihoods(query, TermLists.of([])).tolist() == []


def test_with_the_share_of_words_alone_it_is_the_model_of_words() -> None:
    model, query = TopicModel(WORDS, random_topics(8), 1.0), np.array([1, 4, -3])
    np.testing.assert_allclose(model.log_likelihoods(query, CANDIDATES), WORDS.log_likelihoods(query, CANDIDATES))


def test_a_candidate_without_terms_is_as_likely_as_the_collection() -> None:
    words = QueryLikelihood(WORDS.collection, Smoothing("dirichlet", 5.0))
    model, nothing = TopicModel(words, random_topics(9), 0.4), TermLists.of([[]])
    assert model.mean_ratios(np.array([1, 5, -3]), nothing).tolist() == [pytest.approx(1)]
    assert model.mean_ratios(np.zeros(0, np.int64), CANDIDATES).tolist() == [1] * 5


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, float("nan")])
def test_a_share_out_of_range_is_refused(share: float) -> None:
    with pytest.raises(SettingError):
        TopicModel(WORDS, random_topics(1), share)


# -- votes ---------------------------------------------------------------------------------------------------------


def test_votes_are_shared_within_a_question() -> None:
    found = vote_weights(np.array([3, 0, 0, -9]), np.array([2, 0, 2, 0]))
    assert found.tolist() == pytest.approx([4 / 5, 1 / 2, 1 / 5, 1 / 2])
    assert vote_weights(np.zeros(0, int), np.zeros(0, int)).tolist() == []


def test_voted_topics_are_those_of_weighted_counts() -> None:
    questions = TermLists.of([[1, 2], [5], [6]])
    answers, answered, votes = TermLists.of([[7], [3, 4], [4], []]), np.array([1, 0, 0, 1]), np.array([0, 2, 0, 4])
    settings = TopicLearning(topics=2, iterations=5)
    found = learn_voted_topics(questions, answers, answered, votes, V, settings)
    together, weights = TermLists.of([[3, 4, 4], [7], []]), np.array([3 / 4, 3 / 4, 1 / 4, 1 / 6])
    expected = learn_topics(questions, together, V, settings, weights)
    np.testing.assert_array_equal(found.questions, expected.questions)
    np.testing.assert_array_equal(found.answers, expected.answers)


def test_an_answer_that_was_voted_for_says_what_a_question_is_about() -> None:
    questions = TermLists.of([[1]] * 20 + [[5]] * 20)
    answers = TermLists.of([[3], [7]] * 20 + [[7], [3]] * 20)  # each question has one answer of either kind
    answered = np.repeat(np.arange(40), 2)
    topics = learn_voted_topics(
        questions, answers, answered, np.array([30, 0] * 40), V, TopicLearning(topics=2, iterations=100)
    )
    first = int(topics.questions[1].argmax())
    assert topics.questions[5].argmax() == 1 - first
    assert topics.answers[3, first] > 0.8
    assert topics.answers[7, 1 - first] > 0.8


def test_questions_without_answers_are_learned_from_too() -> None:
    nothing = np.zeros(0, np.int64)
    settings = TopicLearning(topics=2, iterations=3)
    found = learn_voted_topics(TermLists.of([[1], [2]]), TermLists.of([]), nothing, nothing, V, settings)
    expected = learn_topics(TermLists.of([[1], [2]]), TermLists.of([[], []]), V, settings)
    np.testing.assert_array_equal(found.questions, expected.questions)


def test_answers_that_do_not_fit_are_refused() -> None:
    questions, answers = TermLists.of([[1]]), TermLists.of([[2]])
    with pytest.raises(SettingError, match="1 answers to 1 questions with 2 votes"):
        learn_voted_topics(questions, answers, np.array([0]), np.array([1, 2]), V, TopicLearning())
    with pytest.raises(SettingError, match="expected 0 ≤ number < N"):
        learn_voted_topics(questions, answers, np.array([1]), np.array([1]), V, TopicLearning())
