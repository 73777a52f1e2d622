"""How a model reads questions: which words of a title and of a body it takes in, the same in training and after.

Enters: questions, texts. Leaves: lists of words. May import: types, text, settings.
"""

from __future__ import annotations

from dataclasses import dataclass

from askalike.models.encoders.settings import Reads
from askalike.text.markup import plain_text
from askalike.text.stemmer import stemmer_of
from askalike.text.tokens import words
from askalike.types import Question

__all__ = ["Reader"]


@dataclass(frozen=True, slots=True)
class Reader:
    """Words of questions.

    Args:
        reads: title and body, each on its own; both joined to one text, which stands for the title; or the title alone.
        word_limit: words of a text that are read, the first ones, ≥ 1.
        stems: the language to whose stems words are brought, or "" for words as they are written. There are as many
            words either way.

    >>> question = Question("1", "WiFi drops daily", "Every evening.")
    >>> reader = Reader("title", word_limit=2)
    >>> reader.title(question), reader.body(question)
    (['wifi', 'drops'], [])
    >>> joined = Reader("joined", word_limit=4, stems="english")
    >>> joined.title(question), joined.body(question)
    (['wifi', 'drop', 'daili', 'everi'], [])
    """

    reads: Reads
    word_limit: int
    stems: str = ""

    def text(self, plain: str) -> list[str]:
        """Return the words that are read of a plain text."""
        return self._first(words(plain))

    def title(self, question: Question) -> list[str]:
        """Return the words that are read of a question's title, or of title and body where they are joined."""
        found = words(question.title)
        if self.reads == "joined" and len(found) < self.word_limit:
            found += words(plain_text(question.body, question.markup))
        return self._first(found)

    def body(self, question: Question) -> list[str]:
        """Return the words that are read of a question's body; none where it is joined to the title, or not read."""
        return self.text(plain_text(question.body, question.markup)) if self.reads == "title and body" else []

    def _first(self, found: list[str]) -> list[str]:
        first = found[: self.word_limit]
        return stemmer_of(self.stems).stems(first) if self.stems else first
