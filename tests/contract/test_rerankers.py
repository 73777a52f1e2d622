"""What re-orders hits, and the laws that hold for every one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from tests.embedding_server import serving

from askalike import Question
from askalike.models.remote import RemoteReranker
from askalike.search import Query, Reranker
from askalike.search.originals import Found
from askalike.search.pool import Scored
from askalike.search.reranker import as_question, checked_scores, in_unit, reranked

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
        return np.array([len(words & set(f"{one.title} {one.body}".split())) for one in questions], dtype=np.int64)


@pytest.fixture(params=["object", "endpoint"])
def reranker(request: pytest.FixtureRequest) -> Iterator[Reranker]:
    if request.param == "object":
        yield SharedWords()
        return
    with serving() as server:
        yield RemoteReranker(f"{server.address}/v2", "served")


def test_each_question_has_a_finite_score_in_its_place_whatever_is_beside_it(reranker: Reranker) -> None:
    query, held = as_question(QUERY), [one for one in QUESTIONS if one.title]
    together = checked_scores(reranker, query, held)
    assert np.isfinite(together).all()
    assert together == [checked_scores(reranker, query, [one])[0] for one in held]
    assert checked_scores(reranker, query, held[::-1]) == together[::-1]
    assert max(together) == together[1]


def test_no_questions_have_no_scores(reranker: Reranker) -> None:
    assert checked_scores(reranker, as_question(QUERY), []) == []


def test_the_best_are_put_in_its_order_and_the_others_follow(reranker: Reranker) -> None:
    held = [Found(Scored(place, 0.9 - place / 10, {}), one) for place, one in enumerate(QUESTIONS) if one.title]
    shown = reranked(reranker, QUERY, held, 2)
    assert [one.question.id for one in shown] == ["1", "0", "3"]
    numbers = [one.scored.components.get("reranker") for one in shown]
    assert [one.scored.score for one in shown][:2] == in_unit([float(one) for one in numbers[:2] if one is not None])
    assert (numbers[2], shown[2].scored.components["first"]) == (None, pytest.approx(0.6))
    assert shown[2].scored.score <= shown[1].scored.score
