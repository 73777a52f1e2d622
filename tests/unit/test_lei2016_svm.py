"""The SVM of Lei et al.: its measures against examples worked by hand, the laws that they keep, what it learns."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askalike.errors import MissingExtraError, SettingError
from askalike.models.term_weighting import BM25, CollectionStatistics, TfIdf
from askalike.papers.lei2016.svm import (
    LabelledCandidates,
    RankingGroup,
    RankingSvm,
    SimilarityFeatures,
    SimilaritySvm,
    choose_cost,
    containment,
    cosine,
    greedy_string_tiling,
    jaccard,
    length_ratio,
    longest_common_run,
    monge_elkan,
    ranking_groups,
    string_similarity,
    tiles,
)
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Question


def bigrams(text: str) -> Counter[str]:
    return Counter(text[at : at + 2] for at in range(len(text) - 1))


def distance(name: str) -> Callable[[str, str], float]:
    return lambda a, b: string_similarity(name, a, b)


MEASURES: dict[str, tuple[Callable[[str, str], float], str, str, float]] = {
    # night: ni ig gh ht; nacht: na ac ch ht; shared ht: 1 of 7
    "jaccard": (lambda a, b: jaccard(bigrams(a), bigrams(b)), "night", "nacht", 1 / 7),
    # 123 and 23: bigrams {12 23 34} and {23 39}: 1 of 2
    "containment": (lambda a, b: containment(bigrams(a), bigrams(b)), "1234", "239", 0.5),
    # aaab: aa 2, ab 1; aab: aa 1, ab 1: (2 + 1) / (√5 √2)
    "cosine": (lambda a, b: cosine(bigrams(a), bigrams(b)), "aaab", "aab", 3 / 10**0.5),
    # the textbook's pair: BCAB (or BDAB, BCBA) of length 4, the longer has 7
    "subsequence": (distance("LCSseq"), "ABCBDAB", "BDCABA", 4 / 7),
    # geeks, 5 of 13
    "substring": (longest_common_run, "geeksforgeeks", "geeksquiz", 5 / 13),
    # 1 2 3 and 5 6 7: 2 · 6 / 14
    "tiling": (greedy_string_tiling, "1234567", "5670123", 12 / 14),
    # flaw → lawn: delete f, add n: 1 - 2/4
    "levenshtein": (distance("Levenshtein"), "flaw", "lawn", 0.5),
    # m = 4, t = 0: (4/6 + 4/5 + 1) / 3; common prefix d: + 0.1 · 0.1778
    "jaro": (distance("Jaro"), "dwayne", "duane", 0.8222),
    "jaro-winkler": (distance("JaroWinkler"), "dwayne", "duane", 0.8400),
    # martha-marhta .9611, xyz without partner: A → B (.9611 + 0)/2, B → A .9611
    "monge-elkan": (lambda a, b: monge_elkan(a.split(), b.split()), "martha xyz", "marhta", 0.75 * 0.96111),
    "length": (lambda a, b: length_ratio(len(a), len(b)), "abc", "abcdabcdabcd", 0.25),
}
"""Name → (measure, two texts, their similarity as a hand counts it)."""
SHORTEST = {"tiling": 3, "jaccard": 2, "containment": 2, "cosine": 2}
"""Measure → length from which on a text equals itself."""
LETTERS = st.text(alphabet="abc", max_size=30)


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_is_what_a_hand_counts(name: str) -> None:
    measure, a, b, expected = MEASURES[name]
    assert measure(a, b) == pytest.approx(expected, abs=1e-4)


@settings(max_examples=50, deadline=None)  # the first call of a measure loads rapidfuzz
@given(a=LETTERS, b=LETTERS, other=st.text(alphabet="xyz", max_size=30))
def test_measures_keep_their_laws(a: str, b: str, other: str) -> None:
    for name, (measure, *_) in MEASURES.items():
        assert 0.0 <= measure(a, b) <= 1.0, name
        if name != "tiling":  # of runs of the same length the first in a is taken
            assert measure(a, b) == pytest.approx(measure(b, a), abs=1e-12), name
        assert measure(a, a) == pytest.approx(1.0 if len(a) >= SHORTEST.get(name, 1) else 0.0), name
        assert measure(a, "") == measure("", a) == 0.0, name
        assert measure(a, other) == 0.0 or name == "length"


@settings(max_examples=50, deadline=None)
@given(a=LETTERS, b=LETTERS)
def test_the_longest_run_is_what_trying_every_run_finds(a: str, b: str) -> None:
    runs = {a[i:j] for i in range(len(a)) for j in range(i + 1, len(a) + 1)}
    assert longest_common_run(a, b) * max(len(a), len(b)) == pytest.approx(
        max(map(len, filter(b.__contains__, runs)), default=0)
    )


def test_tiles_cover_a_word_once_and_what_a_longer_tile_leaves_of_a_run_is_used() -> None:
    assert list(tiles([1, 2, 3], [1, 2, 3, 0, 1, 2, 3])) == [(3, 0, 0)]
    # the run 1 2 3 4 5 is longest; of 4 5 6 7 8 only 6 7 8 is left
    assert list(tiles([1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 0, 4, 5, 6, 7, 8])) == [(5, 0, 0), (3, 5, 8)]
    assert greedy_string_tiling([1, 2, 8, 3], [1, 2, 9, 3]) == 0
    assert greedy_string_tiling([1, 2, 8, 3], [1, 2, 9, 3], minimum_match=2) == 0.5


def test_without_rapidfuzz_or_scikit_learn_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    with pytest.raises(MissingExtraError, match="rapidfuzz"):
        string_similarity("Jaro", "a", "b")
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    with pytest.raises(MissingExtraError, match="scikit-learn"):
        RankingSvm.fit(planted_groups(0, groups=1), cost=1.0)


QUESTIONS = [
    Question("1", "Printer is offline", "It says offline since the last update of the printer."),
    Question("2", "Router reboots", "Every night the router reboots by itself."),
    Question("3", "Printer prints garbage", "<p>Strange <b>letters</b> on paper</p>", "html"),
    Question("4", "", ""),
    Question("5", "Is the printer offline", ""),
]


@pytest.fixture(scope="module")
def features() -> SimilarityFeatures:
    return SimilarityFeatures(QUESTIONS, TextSettings())


def column(features: SimilarityFeatures, name: str) -> list[float]:
    return features.matrix(QUESTIONS[0], QUESTIONS)[:, features.names.index(name)].tolist()


def test_the_matrix_has_a_column_a_measure_and_field_and_a_row_a_candidate(features: SimilarityFeatures) -> None:
    together = features.matrix(QUESTIONS[0], QUESTIONS)
    assert together.shape == (len(QUESTIONS), len(set(features.names)))
    assert features.matrix(QUESTIONS[0], []).shape == (0, len(features.names))
    alone = np.concatenate([features.matrix(QUESTIONS[0], [question]) for question in QUESTIONS])
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    assert not together[3].any(), "an empty question is like nothing"
    assert not features.matrix(QUESTIONS[3], QUESTIONS).any()
    # two words without stop words have no trigram
    bounded = {name: value for name, value in zip(features.names, together[0], strict=True) if "bm25" not in name}
    assert bounded.pop("title.jaccard_content_3") == bounded.pop("title.containment_content_3") == 0
    np.testing.assert_allclose(list(bounded.values()), 1.0, rtol=1e-6)


def test_stop_words_count_among_stems_and_not_among_content(features: SimilarityFeatures) -> None:
    # printer is offline / is the printer offline: 3 of 4 stems; without stop words 2 of 2
    assert column(features, "title.jaccard_stems_1")[4] == 0.75
    assert column(features, "title.jaccard_content_1")[4] == 1.0


def test_bm25_and_tfidf_are_those_of_the_lexical_scorers(features: SimilarityFeatures) -> None:
    analyzer = Analyzer(TextSettings())
    prepared = [analyzer.prepare(question.title, question.body, question.markup) for question in QUESTIONS]
    joined = [terms.title + terms.body for terms in prepared]
    bm25 = BM25(CollectionStatistics.count(joined))
    np.testing.assert_allclose(column(features, "joined.bm25"), bm25.scores(joined[0], joined))
    np.testing.assert_allclose(column(features, "joined.tfidf_2"), TfIdf(joined, longest=2).scores(joined[0], joined))


def test_bodies_are_cut_but_not_for_bm25_and_tfidf() -> None:
    long, other = Question("6", "t", "alpha " * 5 + "omega"), Question("7", "t", "beta " * 5 + "omega")
    cut = SimilarityFeatures([long, other], TextSettings(), most_words=5)
    row = dict(zip(cut.names, cut.matrix(long, [other])[0], strict=True))
    assert row["body.jaccard_stems_1"] == 0
    assert min(row["body.tfidf_1"], row["body.bm25"]) > 0
    with pytest.raises(SettingError, match="at least 1"):
        SimilarityFeatures(QUESTIONS, TextSettings(), most_words=0)


PLANTED = np.array([2.0, -1.0, 0.0, 0.5])


def planted_groups(seed: int, groups: int = 40, candidates: int = 8) -> list[RankingGroup]:
    """Return groups whose labels follow a linear rule over features of very different sizes, shifted by group."""
    draw = np.random.default_rng(seed)
    sizes = np.array([1.0, 100.0, 0.01, 10.0])
    planted = []
    for _ in range(groups):
        values = draw.normal(size=(candidates, 4))
        order = np.argsort(np.argsort(values @ PLANTED))
        planted.append(RankingGroup.of((values + draw.normal()) * sizes + 5.0, order >= candidates // 2))
    return planted


def test_one_pair_gives_the_weight_that_the_formula_gives_by_hand() -> None:
    # x = 0 and 2: scale 1, z_i - z_j = 2; ½ w² + C (1 - 2w)² is least at w = 4C / (1 + 8C) = 4/9 for C = 1
    model = RankingSvm.fit([RankingGroup.of([[0.0], [2.0]], [0, 1])], cost=1.0)
    assert (model.mean.tolist(), model.scale.tolist()) == ([1.0], [1.0])
    np.testing.assert_allclose(model.scores(np.array([[0.0], [2.0]])), [-4 / 9, 4 / 9], atol=1e-4)
    with pytest.raises(SettingError, match="different labels"):
        RankingSvm.fit([RankingGroup.of([[1.0], [2.0]], [1, 1])], cost=1.0)


def test_every_query_weighs_the_same_however_many_pairs_it_has() -> None:
    few = RankingGroup.of([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    many = RankingGroup.of([[1.0, 0.0]] * 9 + [[0.0, 1.0]], [0] * 9 + [1])  # says the opposite nine times over
    np.testing.assert_allclose(RankingSvm.fit([few, many], cost=1.0).weights, [0.0, 0.0], atol=1e-6)


def test_a_planted_ranking_is_found_again_whatever_the_units_and_the_same_each_time() -> None:
    groups = planted_groups(0)
    model = RankingSvm.fit(groups, cost=1.0)
    np.testing.assert_array_equal(model.weights, RankingSvm.fit(planted_groups(0), cost=1.0).weights)
    assert model.weights @ PLANTED / (np.linalg.norm(model.weights) * np.linalg.norm(PLANTED)) > 0.97
    for group in planted_groups(1):
        scores = model.scores(group.features)
        assert np.mean(scores[group.labels == 1][:, None] > scores[group.labels == 0]) > 0.85
    scaled = [RankingGroup(group.features * [1e3, 1.0, 1e-3, 7.0], group.labels) for group in groups]
    other = RankingSvm.fit(scaled, cost=1.0)
    np.testing.assert_allclose(model.scores(groups[0].features), other.scores(scaled[0].features), rtol=1e-3, atol=1e-3)


def test_a_feature_that_never_varies_gets_no_weight() -> None:
    model = RankingSvm.fit([RankingGroup.of([[0.0, 7.3], [1.0, 7.3]], [0, 1])] * 3, cost=1.0)
    assert model.weights[1] == 0 < model.weights[0]


def test_the_cost_that_the_judge_likes_best_is_chosen_and_of_equals_the_smaller() -> None:
    groups = planted_groups(0, groups=5)
    assert choose_cost(groups, lambda model: -abs(model.cost - 0.1), (1.0, 0.1, 0.01)).cost == 0.1
    assert choose_cost(groups, lambda model: 1.0, (1.0, 0.1)).cost == 0.1
    weak, strong = (RankingSvm.fit(groups, cost=cost) for cost in (1e-4, 10.0))
    assert np.linalg.norm(weak.weights) < np.linalg.norm(strong.weights)


TOPICS = ("printer", "router", "screen", "keyboard", "battery", "camera")
FORUM = [Question(f"{topic}-{copy}", f"{topic} broken", f"number {copy}") for topic in TOPICS for copy in range(3)]


def examples(topics: tuple[str, ...]) -> list[LabelledCandidates]:
    labelled = []
    for topic in topics:
        query = next(question for question in FORUM if question.id == f"{topic}-0")
        others = [question for question in FORUM if question is not query]
        labelled.append(LabelledCandidates(query, others, [int(other.id.startswith(topic)) for other in others]))
    return labelled


def test_a_scorer_learned_on_some_topics_ranks_the_duplicates_of_others_first() -> None:
    features = SimilarityFeatures(FORUM, TextSettings())
    scorer = SimilaritySvm(features, RankingSvm.fit(ranking_groups(features, examples(TOPICS[:3])), cost=0.1))
    for example in examples(TOPICS[3:]):
        scores, labels = scorer.score(example.query, example.candidates), np.array(example.labels)
        assert scores[labels == 1].min() > scores[labels == 0].max()
    assert scorer.score(FORUM[0], []).shape == (0,)
    assert np.isfinite(scorer.score(Question("x", ""), [Question("y", ""), FORUM[0]])).all()
