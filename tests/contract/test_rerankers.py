"""What re-orders hits, and the laws that hold for every one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from tests.embedding_server import serving

from askalike import Question
from askalike.models.remote import RemoteReranker
from askalike.search import RANKERS, Candidates, Query, Reranker
from askalike.search.query import TermCounts
from askalike.search.reranker import as_question, checked_scores, in_unit, rerank

QUESTIONS = [
    Question("0", "printer offline"),
    Question("1", "wifi drops", "every evening"),
    Question("2", ""),
    Question("3", "<b>wifi</b>", "the <i>printer</i> has no wifi", "html"),
]
QUERY = Query("wifi drops every evening")


class SharedWords:
    """A program's object: how many words of the query a question has, as an array."""

    def score(self, query: Question, questions: Sequence[Question]) -> np.ndarray:
        words = set(query.title.split())
        return np.array(
            [len(words & set(f"{question.title} {question.body}".split())) for question in questions], dtype=np.int64
        )


@pytest.fixture(params=["object", "endpoint"])
def reranker(request: pytest.FixtureRequest) -> Iterator[Reranker]:
    if request.param == "object":
        yield SharedWords()
        return
    with serving() as server:
        yield RemoteReranker(f"{server.address}/v2", "served")


def test_each_question_has_a_finite_score_in_its_place_whatever_is_beside_it(reranker: Reranker) -> None:
    query, questions = as_question(QUERY), [question for question in QUESTIONS if question.title]
    together = checked_scores(reranker, query, questions)
    assert np.isfinite(together).all()
    assert together == [checked_scores(reranker, query, [question])[0] for question in questions]
    assert checked_scores(reranker, query, questions[::-1]) == together[::-1]
    assert max(together) == together[1]


def test_no_questions_have_no_scores(reranker: Reranker) -> None:
    assert checked_scores(reranker, as_question(QUERY), []) == []


def test_the_best_are_put_in_its_order_and_the_others_follow(reranker: Reranker) -> None:
    questions = [question for question in QUESTIONS if question.title]
    counts = TermCounts(None)  # type: ignore[arg-type]  # no term is looked up
    table = Candidates(QUERY, RANKERS["probability"], {}, counts, 3, 3, scores=np.array([0.9, 0.8, 0.6]))
    table.keys, table.questions, table.via = np.arange(3), questions, [None] * 3
    rerank(reranker, table, 2)
    assert [question.id for question in table.questions] == ["1", "0", "3"]
    numbers = table.components["reranker"].tolist()
    assert table.scores[:2].tolist() == in_unit(numbers[:2])
    assert (numbers[2] != numbers[2], table.components["first"][2]) == (True, pytest.approx(0.6))
    assert table.scores[2] <= table.scores[1]
