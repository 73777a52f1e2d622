"""How a model reads questions: which words of a title and of a body it takes in, the same in training and after.

Enters: questions, texts. Leaves: lists of words. May import: types, text, settings.
"""

from __future__ import annotations

from dataclasses import dataclass

from askalike.encode.settings import Reads
from askalike.text.markup import plain_text
from askalike.text.tokens import words
from askalike.types import Question

__all__ = ["Reader"]


@dataclass(frozen=True, slots=True)
class Reader:
    """Words of questions.

    Args:
        reads: title and body, each on its own, or the title alone.
        word_limit: words of a title or body that are read, the first ones, ≥ 1.

    >>> reader = Reader("title", word_limit=2)
    >>> question = Question("1", "WiFi drops daily", "Every evening.")
    >>> reader.title(question), reader.body(question)
    (['wifi', 'drops'], [])
    """

    reads: Reads
    word_limit: int

    def text(self, plain: str) -> list[str]:
        """Return the words that are read of a plain text."""
        return words(plain)[: self.word_limit]

    def title(self, question: Question) -> list[str]:
        """Return the words that are read of a question's title."""
        return self.text(question.title)

    def body(self, question: Question) -> list[str]:
        """Return the words that are read of a question's body; none where titles alone are read."""
        return [] if self.reads == "title" else self.text(plain_text(question.body, question.markup))
