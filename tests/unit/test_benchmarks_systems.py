"""Systems on tasks small enough to check by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from benchmarks.systems import (
    Hybrid,
    Interaction,
    LexicalSearch,
    PairTask,
    RetrievalTask,
    System,
    Terms,
    Vectors,
    tune_weight,
)
from numpy.typing import NDArray
from tests.tiny_models import synonym_model

from askalike.evaluation.forum.tasks import WEIGHTS, RerankTask, VectorScorer, best_weight, blend
from askalike.search.interaction import WeighedStates, interactions, rarities
from askalike.search.rankers import shares, weighted_sum
from askalike.search.settings import JoinSettings
from askalike.types import Question

ANGLES = {"q": 0, "a": 60, "b": 30, "c": 90}
QUESTIONS = {
    "q": Question("q", "slow wifi at home"),
    "a": Question("a", "slow wifi"),
    "b": Question("b", "sluggish wlan"),
    "c": Question("c", "slow food"),
}


class Compass:
    """An encoder that knows the direction of each question by its id, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        self.asked.extend(question.id for question in questions)
        angles = np.radians([ANGLES[question.id] for question in questions])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def reranking() -> RerankTask:
    return RerankTask(
        name="tiny",
        protocol="askubuntu",
        queries={"q": QUESTIONS["q"]},
        documents={name: QUESTIONS[name] for name in "abc"},
        given={"q": [("a", 8.0), ("c", 4.0), ("b", 0.0)]},
        lexical={"q": [("a", 8.0), ("c", 4.0), ("b", 0.0)]},
        qrels={"q": {"a": 0, "b": 1, "c": 0}},
        statistics=tuple(QUESTIONS.values()),
    )


def retrieval() -> RetrievalTask:
    lexical = {"q": [("a", 8.0), ("c", 4.0)]}
    collection = tuple(QUESTIONS[name] for name in "abcq")
    return RetrievalTask("tiny", {"q": QUESTIONS["q"]}, collection, lexical, {"q": {"b": 1}})


def test_a_blend_worked_by_hand() -> None:
    assert blend(np.array([0.5, -0.2]), np.array([2.0, 8.0]), 0.75) == pytest.approx([0.4375, 0.1])


def test_a_blend_without_any_shared_term_is_the_cosine_alone() -> None:
    assert blend(np.array([0.5, -0.2]), np.zeros(2), 0.5) == pytest.approx([0.25, -0.1])
    assert blend(np.array([]), np.array([]), 0.5).shape == (0,)


def test_of_equal_weights_the_smallest_is_taken() -> None:
    weight, seen = best_weight(lambda weight: min(weight, 0.4))
    assert weight == 0.4
    assert list(seen) == list(WEIGHTS)


def test_a_question_is_encoded_once() -> None:
    compass = Compass()
    scorer = VectorScorer(compass)
    asked = [QUESTIONS["a"], QUESTIONS["b"], QUESTIONS["a"]]
    assert scorer.vectors(asked).shape == (3, 2)
    assert scorer.scores(QUESTIONS["b"], [QUESTIONS["a"]]) == pytest.approx([np.cos(np.radians(30))])
    assert compass.asked == ["a", "b"]


@pytest.mark.parametrize(
    ("system", "order"),
    [
        (LexicalSearch(), "acb"),
        (Terms("tfidf"), "acb"),
        (Vectors(VectorScorer(Compass())), "bac"),
        (Hybrid(VectorScorer(Compass()), 0.0), "acb"),
        (Hybrid(VectorScorer(Compass()), 1.0), "bac"),
        (Hybrid(VectorScorer(Compass()), 0.8), "bac"),  # .8 · .866 = .693; .8 · .5 + .2 = .6
    ],
)
def test_each_system_orders_candidates_and_collection_alike(system: System, order: str) -> None:
    scores = dict(system.rerank(reranking())["q"])
    assert list(scores) == ["a", "c", "b"], "the candidates keep their order"
    assert "".join(sorted(scores, key=lambda name: -scores[name])) == order
    found = [name for name, _ in system.retrieve(retrieval())["q"]]
    assert "q" not in found
    assert "".join(found) == order[: len(found)]


def test_a_hybrid_scores_what_words_did_not_find() -> None:
    found = dict(Hybrid(VectorScorer(Compass()), 0.5).retrieve(retrieval())["q"])
    assert found["b"] == pytest.approx(0.5 * np.cos(np.radians(30)))
    assert found["c"] == pytest.approx(0.25)


def test_the_weight_is_tuned_by_the_tasks_measure() -> None:
    # b beats a when w · (.866 - .5) > 1 - w, from w = .75 on
    for task in (reranking(), retrieval()):
        weight, seen = tune_weight(task, VectorScorer(Compass()))
        assert weight == 0.75
        assert seen[0.7] < seen[0.75] == 1


def test_scores_of_pairs_are_symmetric_for_words_and_cosines_for_vectors() -> None:
    pairs = ((QUESTIONS["q"], QUESTIONS["a"]), (QUESTIONS["a"], QUESTIONS["q"]), (QUESTIONS["a"], QUESTIONS["a"]))
    task = PairTask("tiny", pairs, (1, 1, 1), tuple(QUESTIONS.values()))
    first, second, same = LexicalSearch().pairs(task)
    assert 0 < first == second < same == 1
    near = Vectors(VectorScorer(Compass())).pairs(task)
    assert near == pytest.approx([0.5, 0.5, 1.0])
    assert Hybrid(VectorScorer(Compass()), 0.25).pairs(task)[0] == pytest.approx(0.25 * 0.5 + 0.75 * first)
    assert Terms("tfidf").pairs(task)[2] == pytest.approx(1)


def test_words_of_pairs_that_share_none_score_zero() -> None:
    empty = Question("e", "")
    task = PairTask("tiny", ((empty, empty), (QUESTIONS["b"], QUESTIONS["c"])), (0, 0), tuple(QUESTIONS.values()))
    assert LexicalSearch().pairs(task).tolist() == [0, 0]


def test_the_blend_is_the_rule_of_the_forums_search() -> None:
    cosines, lexical = [0.3, -0.4, 0.9], [2.0, 5.0, 0.0]
    rule = [weighted_sum(cosine, share, 0.35) for cosine, share in zip(cosines, shares(lexical), strict=True)]
    assert blend(np.array(cosines), np.array(lexical), 0.35) == pytest.approx(rule)


def test_the_interaction_of_a_task_is_that_of_the_forums_ranker() -> None:
    """Candidates share no word but "drops", and wireless stands for wifi; all by hand from the ranker's own formula."""
    model = synonym_model()
    asked = Question("q", "wifi drops")
    documents = {"a": Question("a", "printer drops"), "b": Question("b", "wireless drops"), "c": Question("c", "")}
    lexical = {"q": [("a", 4.0), ("b", 2.0), ("c", 0.0)]}
    settings = JoinSettings(weight=0.4, interaction_weight=0.7, interaction_depth=2)
    system = Interaction(model, VectorScorer(model), settings)
    read = {
        one.id: states
        for one, states in zip([asked, *documents.values()], model.states([asked, *documents.values()]), strict=True)
    }
    weighed = {
        name: WeighedStates(one.words, one.states, rarities(one.ids, len(model.vocabulary)))
        for name, one in read.items()
    }
    found = dict(zip(documents, interactions(weighed["q"], [weighed[name] for name in documents]), strict=True))
    assert found["b"] == pytest.approx(1)
    assert found["c"] == 0
    cosines = dict(zip(documents, VectorScorer(model).scores(asked, list(documents.values())), strict=True))
    shares_of = {"a": 1.0, "b": 0.5, "c": 0.0}
    expected = {name: 0.7 * (cosines[name] + 2 * found[name]) / 3 + 0.3 * shares_of[name] for name in documents}
    task = RerankTask("tiny", "trec", {"q": asked}, documents, lexical, lexical, {"q": {"b": 1}}, ())
    assert dict(system.rerank(task)["q"]) == pytest.approx(expected)
    whole = RetrievalTask("tiny", {"q": asked}, (*documents.values(), asked), lexical, {"q": {"b": 1}})
    run = system.retrieve(whole)["q"]
    assert [name for name, _ in run] == ["b", "a", "c"]
    assert dict(run)["a"] == pytest.approx(expected["a"])
    scores = [score for _, score in run]
    assert scores == sorted(scores, reverse=True)
    pairs = PairTask("tiny", ((asked, documents["b"]),), (1,), tuple(documents.values()))
    words = LexicalSearch().pairs(pairs)[0]
    assert system.pairs(pairs)[0] == pytest.approx(0.7 * (cosines["b"] + 2 * found["b"]) / 3 + 0.3 * words)
