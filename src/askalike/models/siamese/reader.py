"""Which trigrams of a question or an answer a siamese model takes in, the same in training and after.

Enters: questions, answers, texts. Leaves: lists of trigrams. May import: types, text, settings.

Reading: a question's title and description are joined to one text: the paper says that its questions have both, and
feeds one vector of a question to the network. Repetitions count, so that the order of the two does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Final

from askalike.models.siamese.settings import SiameseReads
from askalike.text.markup import readable
from askalike.text.settings import TextSettings
from askalike.text.trigrams import TrigramReader, trigrams
from askalike.types import Answer, Question

__all__ = ["SiameseReader"]


class SiameseReader:
    """Trigrams of questions and answers.

    Args:
        text: language, stop words, stems, code.
        reads: what of a question is read.

    >>> question = Question("1", "Slow wifi", "On trains")
    >>> len(SiameseReader(TextSettings(), "joined").question(question))  # slow, wifi, train
    13
    >>> SiameseReader(TextSettings(), "title").question(question)
    ['#sl', 'slo', 'low', 'ow#', '#wi', 'wif', 'ifi', 'fi#']
    """

    def __init__(self, text: TextSettings, reads: SiameseReads) -> None:
        self._settings: Final = text
        self._reads: Final = reads
        self._reader: Final = TrigramReader(text)

    def text(self, plain: str) -> list[str]:
        """Return the trigrams of a plain text."""
        return self._reader.trigrams(plain)

    def trigrams(self, words: Iterable[str]) -> list[str]:
        """Return the trigrams of words, as they are read of a text."""
        return list(chain.from_iterable(map(trigrams, words)))

    def question(self, question: Question) -> list[str]:
        """Return the trigrams of a question."""
        return self.trigrams(self.question_words(question))

    def question_words(self, question: Question) -> list[str]:
        """Return the words whose trigrams are read of a question."""
        title = self._reader.words(question.title)
        if self._reads == "title":
            return title
        body = readable(question.body, question.markup, with_code=self._settings.with_code)
        return title + self._reader.words(body)

    def answer(self, answer: Answer) -> list[str]:
        """Return the trigrams of an answer."""
        return self.text(readable(answer.body, answer.markup, with_code=self._settings.with_code))
