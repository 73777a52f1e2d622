"""How far a forum's questions stand out from one another, worked by hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest

from askalike.search.engine import Candidate, TermStatistics
from askalike.search.margin import LARGEST, SPREAD, TYPICAL, forum_margin, margin, standing
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Filters, Question

ANALYZER = Analyzer(TextSettings())


class Answers:
    """Answers a title with one list of others' scores, what has a body with another; knows all terms.

    Args:
        given: the scores of others, of a title and with a body.
        own: the score of every question with itself.
        is_found: a search finds the question itself.
    """

    def __init__(self, given: tuple[list[float], list[float]], own: float, *, is_found: bool) -> None:
        self.given, self.own, self.is_found = given, own, is_found
        self.limits: set[int] = set()

    def statistics(self, terms: Collection[str]) -> TermStatistics:
        return TermStatistics(1000, dict.fromkeys(terms, 3))

    def lexical(self, weights: Mapping[str, float], limit: int, filters: Filters) -> list[Candidate]:
        assert filters == Filters()
        self.limits.add(limit)
        asked = next(int(term[6:]) for term in weights if term.startswith("number"))
        others = list(enumerate(self.given["night" in weights], start=100))
        return ([(asked, self.own)] if self.is_found else []) + others

    def scores(self, weights: Any, unmatched: Sequence[int], vector: None, far: Sequence[int]) -> Any:
        assert not self.is_found
        return dict.fromkeys(unmatched, self.own), {}


def measured(title: list[float], text: list[float], own: float, *, is_found: bool = True, count: int = 10) -> Any:
    answers = Answers((title, text), own, is_found=is_found)
    questions = {num: Question(f"q{num}", f"router number{num} drops wifi", "at night") for num in range(1, count + 1)}
    found = forum_margin(answers, ANALYZER, questions, lambda _: None)  # type: ignore[arg-type]
    assert answers.limits <= {11}
    return found


def test_a_margin_is_how_far_the_best_stands_out_from_the_next_nine() -> None:
    # best 8, the next nine 4 on average, the eleventh is not looked at; of 20 that the text has with itself
    assert margin([4.0, 8.0, 6.0, 2.0, 5.0, 3.0, 4.0, 4.0, 4.0, 4.0, 0.0], 20.0) == 0.2


@pytest.mark.parametrize("is_found", [True, False])
def test_a_forum_is_asked_by_titles_and_with_bodies_and_a_question_is_no_match_of_itself(is_found: bool) -> None:
    # by its title (8 - 4) / 10, with its body (5 - 4) / 10: the mean of .4 and .1
    assert measured([8.0] + [4.0] * 9, [5.0] + [4.0] * 9, 10.0, is_found=is_found) == pytest.approx(0.25)


def test_nothing_is_said_of_a_forum_whose_questions_meet_no_others() -> None:
    ten = [2.0] + [1.0] * 9
    assert measured(ten, ten, 10.0) == pytest.approx(0.1)
    assert measured(ten[:9], ten[:9], 10.0) is None  # fewer than ten others
    assert measured(ten, ten, 10.0, count=9) is None  # fewer than ten questions
    assert measured(ten, ten, 0.0) is None
    assert measured(ten[:9], ten, 10.0) == pytest.approx(0.1)  # with bodies alone
    assert forum_margin(Answers(([], []), 1.0, is_found=True), ANALYZER, {}, lambda _: None) is None  # type: ignore[arg-type]
    blank = {num: Question(f"q{num}", "?!") for num in range(20)}
    assert forum_margin(Answers(([], []), 1.0, is_found=True), ANALYZER, blank, lambda _: None) is None  # type: ignore[arg-type]


def test_forums_as_others_have_nothing_added_and_none_counts_as_too_far_away() -> None:
    assert standing(TYPICAL) == standing(None) == 0.0
    assert standing(TYPICAL * 1.5) == pytest.approx(0.405465 / SPREAD) == -standing(TYPICAL / 1.5)
    assert standing(1e9) == LARGEST == -standing(0.0)
