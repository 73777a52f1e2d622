"""RAMN: the paper's worked example, its layers one by one, and what it leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.tiny_models import synonym_model

from askalike.errors import DamagedModelError, SettingError
from askalike.models.encoders.model import WordStates
from askalike.models.vocabulary import QuestionReader
from askalike.papers.zhang2018.autoencoders import PlainWords, WordVectors
from askalike.papers.zhang2018.ramn import (
    ModelStates,
    Ramn,
    RamnSettings,
    Similarity,
    compare,
    importance,
    in_order,
    log_scores,
    rank_factors,
)
from askalike.types import Question

BASE = RamnSettings(has_mismatch=False, alpha=0)


def text(words: str, *states: Sequence[float]) -> WordStates:
    own = tuple(words.split())
    rows = np.array(states, np.float32).reshape(len(own), len(states[0]) if states else 1)
    return WordStates(own, np.zeros(len(own), np.int64), rows)


def random_text(words: str, seed: int) -> WordStates:
    count = len(words.split())
    return text(words, *np.random.default_rng(seed).normal(1, 1, (count, 4)).astype(np.float32))


QUERY = random_text("how do i fix a broken router router", 1)
CANDIDATES = [
    random_text("my router is broken", 2),
    random_text("", 3),
    random_text("how do i fix it", 4),
    random_text("cooking", 5),
]
COUNTS = {"how": 50, "do": 40, "i": 90, "fix": 7, "a": 100, "broken": 3, "router": 2}


def per_word(query: WordStates, *arguments: Any) -> NDArray[np.float64]:
    """Return the T-th root of g(q, Q) of each candidate."""
    return np.exp(log_scores(*arguments) / max(1, len(query.words)))


def frequencies(words: Sequence[str]) -> NDArray[np.integer]:
    return np.array([COUNTS.get(word, 0) for word in words])


def by_the_paper(query: WordStates, candidate: WordStates, rank: int, settings: RamnSettings) -> float:
    """Return log g(q, Q) by equations 10 to 19, word by word."""
    total = sum(max(COUNTS.get(word, 0), 1) for word in query.words)
    score = log(1 - settings.alpha * rank)
    for word, state in zip(query.words, query.states, strict=True):
        match = max([float(state @ other) for other in candidate.states], default=0.0)
        score += log(max(match, settings.floor))
        if settings.has_mismatch and word not in candidate.words:
            score += log(max(COUNTS.get(word, 0), 1) / total)
    return score


def test_the_papers_example_of_the_reduced_vector() -> None:
    words = "we propose an unsupervised model"
    counts = dict(zip(words.split(), (5401, 75, 4221, 8, 295), strict=True))
    query, candidate = random_text(words, 1), random_text("we propose a supervised model", 2)
    comparison = compare(query, [candidate], lambda words: np.array([counts.get(word, 1) for word in words]))
    assert comparison.importance.round(4).tolist() == [0.5401, 0.0075, 0.4221, 0.0008, 0.0295]
    assert comparison.occurs[:, 0].tolist() == [True, True, False, False, True]


@pytest.mark.parametrize(
    "settings",
    [BASE, replace(BASE, has_mismatch=True), RamnSettings(), RamnSettings(alpha=0.08, floor=0.5)],
    ids=["semantic match", "and lexical mismatch", "and initial rank", "another α and floor"],
)
def test_each_layer_is_that_of_the_paper(settings: RamnSettings) -> None:
    ranks = np.array([3, 1, 4, 2])
    scores = log_scores(compare(QUERY, CANDIDATES, frequencies), ranks, settings)
    expected = [
        by_the_paper(QUERY, candidate, rank, settings)
        for candidate, rank in zip(CANDIDATES, ranks.tolist(), strict=True)
    ]
    assert scores.tolist() == pytest.approx(expected, rel=1e-5)
    assert importance(np.array([0, 1, 98])).tolist() == [0.01, 0.01, 0.98], "an unknown word is as the rarest"


def test_a_word_that_is_missing_costs_more_the_rarer_it_is() -> None:
    states = [[1.0, 0.0]] * 2
    query = text("a router", *states)
    candidates = [text("a modem", *states), text("the router", *states), text("a router", *states)]
    compared = compare(query, candidates, frequencies)
    lacks_router, lacks_a, lacks_none = per_word(query, compared, np.ones(3, int), BASE).tolist()
    assert lacks_router == lacks_a == lacks_none
    scores = per_word(query, compared, np.ones(3, int), replace(BASE, has_mismatch=True))
    assert scores[0] < scores[1] < scores[2]
    assert scores[0] == pytest.approx((2 / 102) ** 0.5)  # of two factors 1 · 1 and 1 · 2/102, per word


def test_similarities_of_zero_or_less_count_as_the_floor() -> None:
    query, opposite = text("router", [1.0, 0.0]), text("modem", [-1.0, 0.0])
    names: tuple[Similarity, ...] = ("dot", "cosine")
    for name in names:
        settings = replace(BASE, similarity=name, floor=0.01)
        compared = compare(query, [opposite, text("")], frequencies, settings.similarity)
        assert per_word(query, compared, np.array([1, 2]), settings).tolist() == pytest.approx([0.01, 0.01])


def test_a_query_without_words_is_ranked_as_the_search_did() -> None:
    settings = RamnSettings()
    scores = log_scores(compare(text(""), CANDIDATES, frequencies), np.array([2, 1, 4, 3]), settings)
    assert np.argsort(-scores).tolist() == [1, 0, 3, 2]
    assert log_scores(compare(QUERY, [], frequencies), np.array([], int), settings).tolist() == []
    empty = log_scores(compare(QUERY, [text("")] * 2, frequencies), np.array([1, 2]), settings)
    assert np.isfinite(empty).all()


def test_an_engines_rank_is_not_scaled_and_counts_by_its_sign_or_not_at_all() -> None:
    """α = 0.05: R of the ranks 1, 20 and 40 is 0.95, 0 and -1."""
    ranks = np.array([1, 20, 40])
    assert rank_factors(ranks, 0.05, "signed") == pytest.approx([0.95, 0, -1])
    assert rank_factors(ranks, 0.05, "clamped") == pytest.approx([0.95, 1e-6, 1e-6])
    assert rank_factors(ranks, 0.05) == pytest.approx([1 - 0.05 * 10 / 40, 0.75, 0.5]), "positions are brought to ten"


def test_signed_scores_are_in_the_order_of_the_products() -> None:
    """Matches of 2, 3, 5, 2 and 3 at R of 0.9, 0.5, 0, -1 and -0.5."""
    matches, factors = np.array([2.0, 3.0, 5.0, 2.0, 3.0]), np.array([0.9, 0.5, 0.0, -1.0, -0.5])
    with np.errstate(divide="ignore"):
        scores = in_order(np.log(np.abs(matches * factors)), factors)
    assert np.argsort(-scores).tolist() == np.argsort(-(matches * factors)).tolist() == [0, 1, 2, 4, 3]
    assert in_order(np.array([-5.0, -np.inf]), np.array([0.0, 0.0])).tolist() == [0.0, 0.0]


def test_settings_out_of_range_are_refused() -> None:
    wrong: list[dict[str, Any]] = [
        {"alpha": -0.1},
        {"alpha": 0.2},
        {"floor": 0.0},
        {"floor": 1e300},
        {"floor": 1e-320},
        {"similarity": "l2"},
        {"rank_factor": "position"},
    ]
    for values in wrong:
        with pytest.raises(SettingError):
            RamnSettings(**values)


def test_no_candidate_of_a_query_with_words_comes_to_zero() -> None:
    worst = RamnSettings(alpha=0.1, floor=1e-9)
    query, candidate = text("a b", [1.0, 0.0], [1.0, 0.0]), text("x", [-1.0, 0.0])
    counts = {"a": 10**15, "b": 1}
    compared = compare(query, [candidate] * 10, lambda words: np.array([counts.get(word, 1) for word in words]))
    assert (per_word(query, compared, np.arange(1, 11), worst) > 0).all()


def test_it_re_ranks_as_any_reranker_does() -> None:
    ramn = Ramn(ModelStates(synonym_model()), RamnSettings(similarity="cosine", alpha=0.01))
    query = Question("q", "wifi drops")
    questions = [Question("1", "a cat on the mat"), Question("2", "wlan lost"), Question("3", "printer silent")]
    scores = ramn.score(query, questions)
    assert scores.argmax() == 1, "wlan stands for wifi, lost for drops"
    assert scores[0] > scores[2], "of two that match nothing the first stays first"
    signed = replace(ramn, settings=RamnSettings(similarity="cosine", alpha=0.1, rank_factor="signed"))
    assert np.isfinite(signed.score(query, questions * 5)).all()
    assert ramn.score(query, []).shape == (0,)
    with pytest.raises(DamagedModelError, match="how often its words occur"):
        ModelStates(synonym_model(has_counts=False))


def test_plain_words_match_each_other_all_alike_and_know_how_often_they_occur() -> None:
    texts = [Question("1", "wifi drops", "my wifi"), Question("2", "printers")]
    plain = PlainWords(texts, QuestionReader("joined", 3, "english"))
    (states,) = plain.states([Question("q", "Printer drops wifi daily")])
    assert states.words == ("printer", "drop", "wifi"), "stems, up to the limit"
    assert states.states.tolist() == [[1.0]] * 3
    assert plain.frequencies(["wifi", "printer", "daili"]).tolist() == [1, 1, 0]
    run = Ramn(plain, BASE).score(texts[0], texts)
    assert run.tolist() == [0, 0], "there is no match by meaning"


def test_word_vectors_are_those_that_a_models_encoder_reads() -> None:
    model = synonym_model()
    vectors = WordVectors(model)
    (plain,) = vectors.states([Question("1", "wifi gurgles")])
    assert plain.words == ("wifi", "gurgles")
    assert plain.states.tolist() == [model.embedding()[model.vocabulary.ids(["wifi"])[0]].tolist(), [0.0] * 4]
    assert vectors.frequencies(["wifi"]).tolist() == ModelStates(model).frequencies(["wifi"]).tolist()
