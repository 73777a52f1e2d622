"""The mark of acceptance reaches the answer, whichever of question and answer comes first."""

from __future__ import annotations

from askalike.readers.frame import AcceptedAnswers, ReadContext
from askalike.types import Answer


def answer(number: int, question: int) -> Answer:
    return Answer(str(number), str(question), "text")


def test_an_answer_after_its_question_is_marked_at_once() -> None:
    accepted = AcceptedAnswers()
    assert list(accepted.take_question("1", "3")) == []
    assert [(a.id, a.is_accepted) for n in (2, 3) for a in accepted.take_answer(answer(n, 1))] == [
        ("2", False),
        ("3", True),
    ]


def test_an_answer_older_than_its_question_waits_for_it() -> None:
    accepted = AcceptedAnswers()
    assert list(accepted.take_answer(answer(5, 9))) == []
    assert list(accepted.take_answer(answer(6, 9))) == []
    assert [(a.id, a.is_accepted) for a in accepted.take_question("9", "6")] == [("5", False), ("6", True)]


def test_answers_whose_question_never_comes_are_given_at_the_end() -> None:
    accepted = AcceptedAnswers()
    assert list(accepted.take_answer(answer(5, 9))) == []
    assert [a.id for a in accepted.finish(ReadContext())] == ["5"]


def test_accepted_answers_that_were_not_met_are_told() -> None:
    told: list[str] = []
    accepted = AcceptedAnswers()
    assert list(accepted.take_question("1", "99")) == []
    assert list(accepted.finish(ReadContext(notice=told.append))) == []
    assert told[0].startswith("1 accepted answers are not in the input")


def test_ids_that_are_no_numbers_do_not_wait() -> None:
    accepted = AcceptedAnswers()
    assert [a.id for a in accepted.take_answer(Answer("a", "b", "text"))] == ["a"]
