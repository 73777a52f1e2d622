"""Sets as tasks: what is a candidate, which halves share nothing, what is left out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from benchmarks.labelled_pairs import Pair
from benchmarks.systems import forum_retrieval_task, judge, pair_task

from askalike import Forum, Link, Question
from askalike.errors import EvaluationError
from askalike.evaluation.forum.links import HALVES, duplicate_task, related_task
from askalike.evaluation.forum.tasks import bm25_run, candidate_task, forum_rerank_task, judged_task, questions_of
from askalike.types import Judged


@pytest.fixture
def forum(tmp_path: Path) -> Iterator[Forum]:
    titles = {"a": "printer offline", "b": "printer offline again", "c": "scanner jam", "d": "printer scanner"}
    with Forum.create(tmp_path / "f") as forum:
        forum.add([Question(name, title) for name, title in titles.items()])
        forum.store.put_links([Link("b", "a"), Link("d", "c")])
        yield forum


def judged() -> Judged:
    questions = {"q": Question("q", "slow wifi"), "x": Question("x", "fast car"), "y": Question("y", "wifi is slow")}
    documents = {name: questions[name] for name in "xy"}
    return Judged(
        "tiny-dev", {"q": questions["q"]}, documents, {"q": [("x", 1.0), ("y", 0.5)]}, {"q": {"x": 0, "y": 2}}
    )


def test_candidates_of_a_forum_are_what_words_find_and_all_are_judged(forum: Forum) -> None:
    task = forum_rerank_task("tiny", forum, duplicate_task(forum))
    assert set(task.queries) == {"b", "d"}
    assert [document for document, _ in task.given["b"]] == ["a", "d"]
    assert task.qrels == {"b": {"a": 1, "d": 0}, "d": {"a": 0, "b": 0, "c": 1}}
    assert task.name == "tiny all"


def test_the_collection_of_a_forum_is_ordered_by_id(forum: Forum) -> None:
    task = forum_retrieval_task("tiny", forum, duplicate_task(forum))
    assert [question.id for question in task.collection] == ["a", "b", "c", "d"]
    assert judge(task, task.lexical).means["recall@10"] == 1


def test_a_judged_set_of_a_web_search_gets_exact_bm25_scores_in_its_own_order() -> None:
    task = judged_task(judged(), "semeval", questions_of(judged()))
    lexical = bm25_run(task)
    (first, nothing), (second, best) = lexical["q"]
    assert (first, second) == ("x", "y")
    assert nothing == 0 < best
    assert [score for _, score in task.given["q"]] == [1.0, 0.5]
    assert judge(task, task.given).means["map"] == 0.5
    assert judge(task, lexical).means["map"] == 1


def test_a_task_in_numbers_has_the_figures_of_the_run_of_cosines() -> None:
    task = judged_task(judged(), "askubuntu", ())
    numbers = candidate_task(task)
    assert [question.id for question in numbers.questions] == ["q", "x", "y"]
    vectors = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    run = {"q": [("x", 0.6), ("y", 0.0)]}
    assert numbers.map(vectors) == judge(task, run).means["map"] == 0.5


def test_halves_of_pairs_share_no_question_and_lose_no_pair() -> None:
    pairs = [Pair(f"text {number}", f"text {number + number % 2}", number % 3 == 0) for number in range(60)]
    halves = {half: pair_task("tiny", pairs, half) for half in HALVES}
    texts = {half: {question.title for pair in task.pairs for question in pair} for half, task in halves.items()}
    assert not texts["dev"] & texts["test"]
    assert sum(len(task.labels) for task in halves.values()) == 60
    assert sum(sum(task.labels) for task in halves.values()) == 20
    assert {question.title for question in halves["test"].statistics} == texts["dev"]
    with pytest.raises(EvaluationError, match="expected one of dev, test"):
        pair_task("tiny", pairs, "train")


def test_links_are_relevant_both_ways_and_a_quoted_title_is_left_out(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "f") as forum:
        forum.add(
            [
                Question("1", "Volume rendering is slow"),
                Question("2", "Slow rendering", "As in “Volume rendering is slow”, mine is slow."),
                Question("3", "Rendering takes minutes"),
            ]
        )
        links = [("2", "1"), ("3", "1"), ("1", "3"), ("1", "1"), ("3", "99")]
        halves = {}
        for half in HALVES:
            with contextlib.suppress(EvaluationError):
                halves[half] = related_task(forum, links, half)
        (task,) = halves.values()  # one component, so one half has it all
    assert task.qrels == {"1": {"2": 1, "3": 1}, "3": {"1": 1}}
    assert set(task.queries) == {"1", "3"}
