"""The queue of pairs to judge: likeliest first, every fifth drawn by chance from all strata, none twice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from askalike import Forum, Question
from askalike.forum.queue import BORDERS, EVERY, Proposal, Queue, QueuePlace, stratum_of
from askalike.schemas import DecisionRequest, PairsQuery
from askalike.server.handlers import Handlers
from askalike.store.pairs import Pair, permanent_number
from askalike.types import Draw

pytestmark = pytest.mark.usefixtures("words_alone")

COUNT = 40


@pytest.fixture
def forum(tmp_path: Path) -> Iterator[Forum]:
    """Return a forum whose 780 pairs have scores all over the range."""
    with Forum.create(tmp_path / "f") as made:
        made.add([Question(f"q{number}", f"question {number}") for number in range(COUNT)])
        chance = random.Random(0)
        nums = sorted(made.store.nums_by_id([f"q{number}" for number in range(COUNT)]).values())
        with made.pairs.store.writing() as store:
            store.put([Pair(*pair, round(chance.random(), 6)) for pair in combinations(nums, 2)])
        yield made


def walk(queue: Queue, minimum: float, limit: int) -> list[Proposal]:
    found, place = queue.page(minimum, limit)
    while place is not None:
        page, place = queue.page(minimum, limit, place)
        found += page
    return found


@pytest.mark.parametrize("limit", [1, 3, 20])
def test_every_fifth_pair_is_drawn_over_the_whole_range_and_none_comes_twice(forum: Forum, limit: int) -> None:
    shown = walk(forum.queue, 0.5, limit)
    pairs = [(one.pair.first, one.pair.second) for one in shown]
    assert len(set(pairs)) == len(pairs)
    assert {place for place, one in enumerate(shown, 1) if one.draw.by == "sample"} == set(
        range(EVERY, len(shown) + 1, EVERY)
    )
    likely = [one.pair.score for one in shown if one.draw.by == "queue"]
    assert likely == sorted(likely, reverse=True)
    likely_pairs = {(one.first, one.second) for one in forum.pairs.page(0.5, 1000)[0]}
    assert likely_pairs <= set(pairs)
    drawn = Counter(stratum_of(one.pair.score) for one in shown if one.draw.by == "sample")
    assert set(drawn) == set(range(len(BORDERS) + 1))
    assert shown == walk(Queue(forum.pairs), 0.5, limit)
    assert shown != walk(Queue(forum.pairs, seed=1), 0.5, limit)


def test_what_is_judged_comes_no_more_and_leaves_the_others_in_their_order(forum: Forum) -> None:
    shown = walk(forum.queue, 0.9, 10)
    ids = {num: one.id for num, one in forum.store.questions_by_num(range(1, COUNT + 1)).items()}
    first = next(one for one in shown if one.draw.by == "sample")
    forum.judge(ids[first.pair.first], ids[first.pair.second], "different", draw=first.draw)
    again = [one.pair for one in walk(forum.queue, 0.9, 10) if one.draw.by == "sample"]
    before = [one.pair for one in shown if one.draw.by == "sample"][1:]
    assert first.pair not in again
    assert [pair for pair in again if pair in before] == [pair for pair in before if pair in again]


def test_permanent_numbers_are_as_good_as_drawn() -> None:
    pairs = [(first, second) for first in range(1, 200) for second in range(first + 1, first + 6)]
    for seed in range(5):
        numbers = np.array([permanent_number(*pair, seed) for pair in pairs])
        assert np.histogram(numbers, 5, (0, 1))[0] / len(pairs) == pytest.approx([0.2] * 5, abs=0.04)
        scores = np.array([second - first for first, second in pairs])
        assert abs(np.corrcoef(numbers, scores)[0, 1]) < 0.15


def test_the_store_draws_the_pairs_of_the_least_permanent_numbers(forum: Forum) -> None:
    drawn = forum.pairs.store.drawn(0.25, 0.5, 10, seed=3)
    inside = [one for one in forum.pairs.store.page(0.25, 1000) if one.score < 0.5]
    assert drawn == sorted(inside, key=lambda one: permanent_number(one.first, one.second, 3))[:10]


def test_a_pair_comes_with_its_probability_and_the_first_page_is_that_of_no_place(forum: Forum) -> None:
    assert all(one.draw.probability == one.pair.score for one in walk(forum.queue, 0.5, 50))
    assert forum.queue.page(0.5, 10, QueuePlace()) == forum.queue.page(0.5, 10)


def test_a_client_sends_back_how_a_pair_was_drawn_and_gets_none_unasked(forum: Forum) -> None:
    handlers = Handlers(forum)
    assert {one.draw.by for one in handlers.pairs(PairsQuery(limit=20)).pairs} == {"queue"}
    page = handlers.pairs(PairsQuery(limit=EVERY, sample=True))
    shown = page.pairs[-1]
    assert shown.draw.by == "sample"
    handlers.decide(DecisionRequest(shown.question.id, shown.candidate.id, "different", draw=shown.draw), "")
    assert next(forum.store.all_feedback()).draw == shown.draw
    following = handlers.pairs(PairsQuery(page.next, EVERY, sample=True)).pairs
    assert {one.question.id + one.candidate.id for one in following}.isdisjoint(
        one.question.id + one.candidate.id for one in page.pairs
    )
    assert Draw() == Draw("queue", None)
