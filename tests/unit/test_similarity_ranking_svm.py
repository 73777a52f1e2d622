"""The ranking SVM: what it learns, that it is the same every time, what it refuses."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from askalike.errors import MissingExtraError, SettingError
from askalike.models.ranking_svm import (
    LabelledCandidates,
    RankingGroup,
    RankingSvm,
    SimilaritySvm,
    choose_cost,
    preference_differences,
    ranking_groups,
)
from askalike.models.similarity import SimilarityFeatures
from askalike.text.settings import TextSettings
from askalike.types import Question

PLANTED = np.array([2.0, -1.0, 0.0, 0.5])


def planted_groups(seed: int, groups: int = 40, candidates: int = 8) -> list[RankingGroup]:
    """Return groups whose labels follow a linear rule over features of very different sizes, shifted by group."""
    draw = np.random.default_rng(seed)
    sizes = np.array([1.0, 100.0, 0.01, 10.0])
    found = []
    for _ in range(groups):
        values = draw.normal(size=(candidates, 4))
        order = np.argsort(np.argsort(values @ PLANTED))
        found.append(RankingGroup.of((values + draw.normal()) * sizes + 5.0, order >= candidates // 2))
    return found


def test_a_pair_gives_the_difference_of_its_features() -> None:
    # labels 2, 0, 1: pairs (0, 1), (0, 2), (2, 1)
    group = RankingGroup.of([[10.0, 1.0], [4.0, 2.0], [7.0, 0.0]], [2, 0, 1])
    assert preference_differences(group).tolist() == [[6.0, -1.0], [3.0, 1.0], [3.0, -2.0]]


def test_one_pair_gives_the_weight_that_the_formula_gives_by_hand() -> None:
    # x = 0 and 2: scale 1, z_i - z_j = 2; ½ w² + C (1 - 2w)² is least at w = 4C / (1 + 8C) = 4/9 for C = 1
    model = RankingSvm.fit([RankingGroup.of([[0.0], [2.0]], [0, 1])], cost=1.0)
    assert model.mean.tolist() == [1.0]
    assert model.scale.tolist() == [1.0]
    assert model.weights[0] == pytest.approx(4 / 9, abs=1e-4)
    np.testing.assert_allclose(model.scores(np.array([[0.0], [2.0]])), [-4 / 9, 4 / 9], atol=1e-4)


def test_every_query_weighs_the_same_however_many_pairs_it_has() -> None:
    few = RankingGroup.of([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    many = RankingGroup.of([[1.0, 0.0]] * 9 + [[0.0, 1.0]], [0] * 9 + [1])  # says the opposite nine times over
    np.testing.assert_allclose(RankingSvm.fit([few, many], cost=1.0).weights, [0.0, 0.0], atol=1e-6)


def test_a_planted_linear_ranking_is_found_again() -> None:
    model = RankingSvm.fit(planted_groups(0), cost=1.0)
    cosine = model.weights @ PLANTED / (np.linalg.norm(model.weights) * np.linalg.norm(PLANTED))
    assert cosine > 0.97
    for group in planted_groups(1):
        scores = model.scores(group.features)
        assert np.mean(scores[group.labels == 1][:, None] > scores[group.labels == 0]) > 0.85


def test_the_same_groups_give_the_same_model() -> None:
    first, second = (RankingSvm.fit(planted_groups(0), cost=0.1) for _ in range(2))
    np.testing.assert_array_equal(first.weights, second.weights)


def test_a_feature_that_never_varies_gets_no_weight() -> None:
    groups = [RankingGroup.of([[0.0, 7.3], [1.0, 7.3]], [0, 1])] * 3
    model = RankingSvm.fit(groups, cost=1.0)
    assert model.weights[1] == 0.0
    assert model.weights[0] > 0


def test_units_of_features_do_not_matter() -> None:
    groups = planted_groups(0)
    factors = np.array([1e3, 1.0, 1e-3, 7.0])
    scaled = [RankingGroup(group.features * factors, group.labels) for group in groups]
    plain, other = RankingSvm.fit(groups, cost=0.1), RankingSvm.fit(scaled, cost=0.1)
    np.testing.assert_allclose(plain.scores(groups[0].features), other.scores(scaled[0].features), rtol=1e-3, atol=1e-3)


def test_a_higher_cost_fits_the_training_pairs_closer() -> None:
    weak, strong = (RankingSvm.fit(planted_groups(0), cost=cost) for cost in (1e-4, 10.0))
    assert np.linalg.norm(weak.weights) < np.linalg.norm(strong.weights)


def test_the_cost_that_the_judge_likes_best_is_chosen_and_of_equals_the_smaller() -> None:
    groups = planted_groups(0, groups=5)
    model, judged = choose_cost(groups, lambda model: -abs(model.cost - 0.1), (1.0, 0.1, 0.01))
    assert model.cost == 0.1
    assert list(judged) == [0.01, 0.1, 1.0]
    assert choose_cost(groups, lambda model: 1.0, (1.0, 0.1))[0].cost == 0.1


def test_what_cannot_be_learned_from_is_refused() -> None:
    group = RankingGroup.of([[1.0], [2.0]], [1, 1])
    with pytest.raises(SettingError, match="different labels"):
        RankingSvm.fit([group], cost=1.0)
    with pytest.raises(SettingError, match="above 0"):
        RankingSvm.fit(planted_groups(0, groups=1), cost=0.0)
    with pytest.raises(SettingError, match="columns"):
        RankingSvm.fit([group, RankingGroup.of([[1.0, 2.0]], [1])], cost=1.0)
    with pytest.raises(SettingError, match="columns"):
        RankingSvm.fit([], cost=1.0)
    with pytest.raises(SettingError, match="one row and one label"):
        RankingGroup.of([[1.0], [2.0]], [1])
    with pytest.raises(SettingError, match="no cost"):
        choose_cost([group], lambda model: 1.0, ())


def test_without_scikit_learn_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    with pytest.raises(MissingExtraError, match="scikit-learn"):
        RankingSvm.fit(planted_groups(0, groups=1), cost=1.0)


TOPICS = ("printer", "router", "screen", "keyboard", "battery", "camera")
FORUM = [Question(f"{topic}-{copy}", f"{topic} broken", f"number {copy}") for topic in TOPICS for copy in range(3)]


def examples(topics: tuple[str, ...]) -> list[LabelledCandidates]:
    found = []
    for topic in topics:
        query = next(question for question in FORUM if question.id == f"{topic}-0")
        others = [question for question in FORUM if question is not query]
        found.append(LabelledCandidates(query, others, [int(other.id.startswith(topic)) for other in others]))
    return found


def test_a_scorer_learned_on_some_topics_ranks_the_duplicates_of_others_first() -> None:
    features = SimilarityFeatures(FORUM, TextSettings())
    scorer = SimilaritySvm.fit(features, examples(TOPICS[:3]), cost=0.1)
    for example in examples(TOPICS[3:]):
        scores = scorer.scores(example.query, example.candidates)
        labels = np.array(example.labels)
        assert scores[labels == 1].min() > scores[labels == 0].max()


def test_a_scorer_shows_the_weight_of_each_feature_strongest_first() -> None:
    features = SimilarityFeatures(FORUM, TextSettings())
    weights = SimilaritySvm.fit(features, examples(TOPICS[:2]), cost=0.1).weights()
    assert set(weights) == set(features.names)
    sizes = [abs(weight) for weight in weights.values()]
    assert sizes == sorted(sizes, reverse=True)


def test_a_scorer_takes_any_number_of_candidates() -> None:
    features = SimilarityFeatures(FORUM, TextSettings())
    scorer = SimilaritySvm.fit(features, examples(TOPICS[:2]), cost=0.1)
    assert scorer.scores(FORUM[0], []).shape == (0,)
    assert np.isfinite(scorer.scores(Question("x", ""), [Question("y", ""), FORUM[0]])).all()


def test_examples_need_a_label_for_each_candidate() -> None:
    with pytest.raises(SettingError, match="one row and one label"):
        ranking_groups(SimilarityFeatures(FORUM, TextSettings()), [LabelledCandidates(FORUM[0], FORUM[1:3], [1])])
