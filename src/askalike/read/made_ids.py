"""Ids for questions whose archive has none: the same at the next reading, whatever was added, removed or moved since.

An id is made of the question's address; where there is none, of its title (or of its body, if it has no title) and
its date. So an edited body or tag stays an edit of the same question, and an edited title is a new question that takes
the place of the old one. Row numbers would keep that one question and confuse all others behind a row that has gone.
Questions that are alike in all of this are numbered in their order.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Final

from askalike.types import Question

MADE_IDS: Final = (
    "there are no ids; they are made of each question's address, or of its title and date: a question whose title is"
    " edited is a new one at the next reading"
)
"""What the user should know about it."""


class MadeIds:
    """The ids of one reading; what is held for each is a number of 64 bits."""

    def __init__(self) -> None:
        self._times: Counter[int] = Counter()

    def of(self, question: Question) -> str:
        """Return a question's id.

        >>> ids = MadeIds()
        >>> ids.of(Question("", "How do I exit vim?", "I am stuck.")), ids.of(Question("", "How do I exit vim?"))
        ('q-63be661d285ad823', 'q-63be661d285ad823-2')
        """
        created = question.created.isoformat() if question.created else ""
        own = f"{question.title or question.body}\0{created}"
        digest = _digest(question.url or own)
        if question.url and digest in self._times:  # an address that several share tells them not apart
            digest = _digest(f"{question.url}\0{own}")
        self._times[digest] += 1
        times = self._times[digest]
        return f"q-{digest:016x}" if times == 1 else f"q-{digest:016x}-{times}"


def _digest(key: str) -> int:
    return int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:8])
