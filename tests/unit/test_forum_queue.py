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
    with Forum.create(tmp_path / "f") as forum:
        forum.add([Question(f"q{number}", f"question {number}") for number in range(COUNT)])
        chance = random.Random(0)
        nums = sorted(forum.store.nums_by_id([f"q{number}" for number in range(COUNT)]).values())
        with forum.pairs.store.writing() as store:
            store.put([Pair(*pair, round(chance.random(), 6)) for pair in combinations(nums, 2)])
        yield forum


def walk(queue: Queue, minimum: float, limit: int) -> list[Proposal]:
    proposals, place = queue.page(minimum, limit)
    while place is not None:
        page, place = queue.page(minimum, limit, place)
        proposals += page
    return proposals


@pytest.mark.parametrize("limit", [1, 3, 20])
def test_every_fifth_pair_is_drawn_over_the_whole_range_and_none_comes_twice(forum: Forum, limit: int) -> None:
    shown = walk(forum.queue, 0.5, limit)
    pairs = [(proposal.pair.first, proposal.pair.second) for proposal in shown]
    assert len(set(pairs)) == len(pairs)
    assert {place for place, proposal in enumerate(shown, 1) if proposal.draw.by == "sample"} == set(
        range(EVERY, len(shown) + 1, EVERY)
    )
    likely = [proposal.pair.score for proposal in shown if proposal.draw.by == "queue"]
    assert likely == sorted(likely, reverse=True)
    likely_pairs = {(pair.first, pair.second) for pair in forum.pairs.page(0.5, 1000)[0]}
    assert likely_pairs <= set(pairs)
    drawn = Counter(stratum_of(proposal.pair.score) for proposal in shown if proposal.draw.by == "sample")
    assert set(drawn) == set(range(len(BORDERS) + 1))
    assert shown == walk(Queue(forum.pairs), 0.5, limit)
    assert shown != walk(Queue(forum.pairs, seed=1), 0.5, limit)


def test_what_is_judged_comes_no_more_and_leaves_the_others_in_their_order(forum: Forum) -> None:
    shown = walk(forum.queue, 0.9, 10)
    ids = {num: question.id for num, question in forum.store.questions_by_num(range(1, COUNT + 1)).items()}
    first = next(proposal for proposal in shown if proposal.draw.by == "sample")
    forum.judge(ids[first.pair.first], ids[first.pair.second], "different", draw=first.draw)
    again = [proposal.pair for proposal in walk(forum.queue, 0.9, 10) if proposal.draw.by == "sample"]
    before = [proposal.pair for proposal in shown if proposal.draw.by == "sample"][1:]
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
    inside = [pair for pair in forum.pairs.store.page(0.25, 1000) if pair.score < 0.5]
    assert drawn == sorted(inside, key=lambda pair: permanent_number(pair.first, pair.second, 3))[:10]


def test_a_pair_comes_with_its_probability_and_the_first_page_is_that_of_no_place(forum: Forum) -> None:
    assert all(proposal.draw.probability == proposal.pair.score for proposal in walk(forum.queue, 0.5, 50))
    assert forum.queue.page(0.5, 10, QueuePlace()) == forum.queue.page(0.5, 10)


def test_a_client_sends_back_how_a_pair_was_drawn_and_gets_none_unasked(forum: Forum) -> None:
    handlers = Handlers(forum)
    assert {pair.draw.by for pair in handlers.pairs(PairsQuery(limit=20)).pairs} == {"queue"}
    page = handlers.pairs(PairsQuery(limit=EVERY, sample=True))
    shown = page.pairs[-1]
    assert shown.draw.by == "sample"
    handlers.decide(DecisionRequest(shown.question.id, shown.candidate.id, "different", draw=shown.draw), "")
    assert next(forum.store.all_judgements()).draw == shown.draw
    following = handlers.pairs(PairsQuery(page.next, EVERY, sample=True)).pairs
    assert {pair.question.id + pair.candidate.id for pair in following}.isdisjoint(
        pair.question.id + pair.candidate.id for pair in page.pairs
    )
    assert Draw() == Draw("queue", None)
