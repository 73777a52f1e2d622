"""SCQA alone and beside BM25 as rankers, and the threshold of the average, worked by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.test_search import ListEngine

from askalike.errors import SettingError
from askalike.search import Query, Searcher, SearchSettings
from askalike.search.networks import SiameseReranker, TextualSettings
from askalike.search.pool import Pooled, Scored
from askalike.search.settings import MAX_HITS, THRESHOLDS, above_average
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Question, WordEffect

Vector = NDArray[np.float32]

DIRECTIONS = {"slow": (1.0, 0.0), "wifi": (0.0, 1.0), "slow wifi": (0.6, 0.8), "?": (0.0, 0.0)}


class ByTitle:
    """Vectors of two dimensions by a title."""

    def __init__(self) -> None:
        self.read = 0

    def of_query(self, query: Query) -> Vector:
        return np.array(DIRECTIONS[query.title], np.float32)

    def of_questions(self, questions: Sequence[tuple[int, Question]]) -> list[Vector]:
        self.read += len(questions)
        return [np.array(DIRECTIONS[question.title], np.float32) for _, question in questions]

    def without_words(self, query: Query) -> tuple[list[str], Vector]:
        words = query.title.split()
        rest = [" ".join(one for one in words if one != word) or "?" for word in words]
        return words, np.array([DIRECTIONS[one] for one in rest], np.float32)


def candidate(key: int, bm25: float) -> Pooled:
    return Pooled(key, {"bm25": bm25}, {"lexical": key})


FOUND = [(candidate(1, 10.0), Question("a", "slow")), (candidate(2, 5.0), Question("b", "wifi"))]


def test_the_score_of_scqa_is_the_cosine() -> None:
    found = SiameseReranker(ByTitle()).scores(Query("slow wifi"), FOUND)
    assert [one.key for one in found] == [1, 2]
    assert [one.score for one in found] == pytest.approx([0.6, 0.8])
    assert found[0].components == pytest.approx({"bm25": 10.0, "cosine": 0.6})


def test_the_score_of_t_scqa_adds_bm25_as_a_share_of_the_best_candidates() -> None:
    found = SiameseReranker(ByTitle(), TextualSettings(0.8)).scores(Query("slow wifi"), FOUND)
    assert [one.score for one in found] == pytest.approx([0.8 * 0.6 + 0.2 * 1.0, 0.8 * 0.8 + 0.2 * 0.5])
    assert found[1].components == pytest.approx({"bm25": 5.0, "cosine": 0.8, "bm25_share": 0.5})


@pytest.mark.parametrize(("alpha", "expected"), [(0.0, [1.0, 0.5]), (1.0, [0.6, 0.8])])
def test_alpha_leads_from_bm25_alone_to_the_cosine_alone(alpha: float, expected: list[float]) -> None:
    found = SiameseReranker(ByTitle(), TextualSettings(alpha)).scores(Query("slow wifi"), FOUND)
    assert [one.score for one in found] == pytest.approx(expected)


def test_a_query_of_which_nothing_is_known_is_like_nothing_and_reads_no_candidate() -> None:
    source = ByTitle()
    assert [one.score for one in SiameseReranker(source).scores(Query("?"), FOUND)] == [0.0, 0.0]
    assert source.read == 0
    beside = SiameseReranker(source, TextualSettings(0.8)).scores(Query("?"), FOUND)
    assert [one.score for one in beside] == pytest.approx([0.2, 0.1]), "what BM25 says is left"


def test_a_word_brings_what_the_cosine_loses_without_it() -> None:
    questions = [question for _, question in FOUND]
    first, second = SiameseReranker(ByTitle()).explain(Query("slow wifi"), questions)
    assert [one.word for one in first.effects] == ["slow", "wifi"]
    assert [one.effect for one in first.effects] == pytest.approx([0.6 - 0.0, 0.6 - 1.0])
    assert [one.effect for one in second.effects] == pytest.approx([0.8 - 1.0, 0.8 - 0.0])
    assert isinstance(first.effects[0], WordEffect)


def test_of_a_query_of_one_word_nothing_is_said() -> None:
    assert [one.effects for one in SiameseReranker(ByTitle()).explain(Query("slow"), [FOUND[0][1]])] == [()]
    assert SiameseReranker(ByTitle()).explain(Query("slow wifi"), []) == []


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_an_alpha_that_cannot_be_is_refused(alpha: float) -> None:
    with pytest.raises(SettingError, match="alpha is"):
        TextualSettings(alpha)


@pytest.mark.parametrize(
    ("scores", "left"),
    [
        ([4.0, 1.0, 1.0], [4.0]),
        ([3.0, 2.0, 1.0], [3.0, 2.0]),
        ([0.1, 0.1, 0.1], [0.1, 0.1, 0.1]),
        ([0.7], [0.7]),
        ([0.5, -0.9, -0.8], [0.5]),
        ([], []),
    ],
)
def test_the_threshold_is_the_average_and_what_has_just_that_is_shown(scores: list[float], left: list[float]) -> None:
    scored = [Scored(key, score, {}) for key, score in enumerate(scores)]
    assert [one.score for one in above_average(scored)] == left
    assert [one.score for one in THRESHOLDS["none"](scored)] == scores


def test_a_threshold_that_is_not_there_is_refused() -> None:
    with pytest.raises(SettingError, match="there is no threshold 'best'") as raised:
        SearchSettings(threshold="best")
    assert raised.value.hint == "expected one of none, average"


def test_a_ranker_that_finds_nothing_near_looks_at_so_many_candidates_and_no_more() -> None:
    class Away(ByTitle):
        def of_questions(self, questions: Sequence[tuple[int, Question]]) -> list[Vector]:
            self.read = max(self.read, len(questions))
            return [np.array((-1.0, 0.0), np.float32) for _ in questions]

    source = Away()
    engine = ListEngine([Question(str(number), "slow") for number in range(MAX_HITS + 500)])
    searcher = Searcher(engine, Analyzer(TextSettings()), reranker=lambda _: SiameseReranker(source))
    assert searcher.search(Query("slow", ranker="scqa")).hits == ()
    assert source.read == MAX_HITS
