"""A re-ranking task in numbers: by hand, and held to the figures of ``evaluate``."""

from __future__ import annotations

import numpy as np
import pytest

from askalike.errors import EvaluationError
from askalike.evaluation import CandidateTask, evaluate
from askalike.types import Question


def asked(count: int) -> list[Question]:
    return [Question(f"q{number:03}", f"title {number}") for number in range(count)]


# Angles of 0, 10, 20 and 30 degrees: candidates of the first come in the order of their places.
FAN = np.array([[np.cos(angle), np.sin(angle)] for angle in np.radians([0, 10, 20, 30])])


def test_mrr_and_map_on_an_example_worked_by_hand() -> None:
    # query 0: positives at ranks 1 and 3; query 3: candidates 2, 1, 0 by nearness, the positive at rank 2
    task = CandidateTask(asked(4), [0, 3], [[3, 2, 1], [0, 1, 2]], [[1, 0, 1], [0, 1, 0]])
    assert task.mrr(FAN) == pytest.approx((1 + 1 / 2) / 2)
    assert task.map(FAN) == pytest.approx(((1 / 1 + 2 / 3) / 2 + 1 / 2) / 2)


def test_figures_are_those_of_the_protocol() -> None:
    chance = np.random.default_rng(5)
    questions = asked(120)
    queries = chance.choice(120, 30, replace=False).tolist()
    candidates = [chance.choice(120, chance.integers(1, 30), replace=False).tolist() for _ in queries]
    labels = [(chance.random(len(ranked)) < 0.2).astype(int).tolist() for ranked in candidates]
    vectors = chance.integers(-2, 3, (120, 3)).astype(np.float32)  # few values: many equal cosines, some zeros
    task = CandidateTask(questions, queries, candidates, labels)
    run, qrels = {}, {}
    for query, ranked, marks, cosines in zip(queries, candidates, labels, task.cosines(vectors), strict=True):
        ids = [questions[place].id for place in ranked]
        run[questions[query].id] = list(zip(ids, cosines.tolist(), strict=True))
        qrels[questions[query].id] = dict(zip(ids, marks, strict=True))
    means = evaluate(qrels, run, "askubuntu", ("map", "mrr")).means
    assert task.map(vectors) == pytest.approx(means["map"], abs=1e-12)
    assert task.mrr(vectors) == pytest.approx(means["mrr"], abs=1e-12)


@pytest.mark.parametrize(
    ("queries", "candidates", "labels", "message"),
    [
        ([], [], [], "0 queries"),
        ([0], [[1], [2]], [[1], [1]], "1 queries, 2 lists of candidates and 2 of labels"),
        ([0], [[1, 2]], [[1]], "has not one label for each candidate"),
        ([0], [[1, 1]], [[1, 0]], "names a candidate twice"),
        ([0], [[1, 3]], [[1, 0]], "names a position outside 0 … 2"),
        ([0], [[1, 2]], [[0, 0]], "none of the 1 queries has a positive candidate"),
    ],
)
def test_a_task_that_does_not_fit_is_refused(
    queries: list[int], candidates: list[list[int]], labels: list[list[int]], message: str
) -> None:
    with pytest.raises(EvaluationError, match=message):
        CandidateTask(asked(3), queries, candidates, labels)


def test_vectors_that_do_not_fit_are_refused() -> None:
    task = CandidateTask(asked(3), [0], [[1, 2]], [[0, 1]])
    with pytest.raises(EvaluationError, match=r"shape \(2, 4\) for 3 questions"):
        task.mrr(np.ones((2, 4)))
    with pytest.raises(EvaluationError, match="not finite"):
        task.map(np.array([[1.0], [np.nan], [1.0]]))
