"""Joins an answer with the mark of acceptance that its question carries, while posts stream by in order of their ids.

A forum's posts are stored by rising id, and an answer is written after its question, so the question is nearly always
met first: its accepted id waits in a set until the answer comes. Where questions were merged, an answer is older than
the question that it hangs on; such an answer is held back until that question has been met.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from askalike.readers.frame import ReadContext
from askalike.types import Answer

_MOST_HELD = 10_000


class AcceptedAnswers:
    """The accepted ids that wait for their answer, and the few answers that wait for their question."""

    def __init__(self) -> None:
        self._expected: set[str] = set()
        self._held: dict[str, list[Answer]] = {}
        self._held_count = 0

    def take_question(self, question_id: str, accepted_id: str) -> Iterator[Answer]:
        """Remember a question's accepted answer ("" for none), and yield the answers that waited for it."""
        if accepted_id:
            self._expected.add(accepted_id)
        for answer in self._held.pop(question_id, ()):
            self._held_count -= 1
            yield self._marked(answer)

    def take_answer(self, answer: Answer) -> Iterator[Answer]:
        """Yield the answer, marked; or hold it back when its question is still to come."""
        if answer.id not in self._expected and _is_before_its_question(answer) and self._held_count < _MOST_HELD:
            self._held.setdefault(answer.question_id, []).append(answer)
            self._held_count += 1
        else:
            yield self._marked(answer)

    def finish(self, context: ReadContext) -> Iterator[Answer]:
        """Yield the answers whose question never came, and say how many accepted answers were not met."""
        for answers in self._held.values():
            yield from map(self._marked, answers)
        self._held.clear()
        if self._expected:
            context.notice(
                f"{len(self._expected):,} accepted answers are not in the input after their question,"
                " and could not be marked as accepted"
            )

    def _marked(self, answer: Answer) -> Answer:
        if answer.id not in self._expected:
            return answer
        self._expected.discard(answer.id)
        return structs.replace(answer, is_accepted=True)


def _is_before_its_question(answer: Answer) -> bool:
    both = answer.id + answer.question_id
    return both.isascii() and both.isdigit() and int(answer.id) < int(answer.question_id)
