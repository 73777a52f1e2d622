"""A question as lists of words and stems, for its title, its body, and both joined.

Enters: questions. Leaves: ``FieldTerms`` by field. May import: text, types, errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from askalike.errors import SettingError
from askalike.text.analyzer import Analyzer
from askalike.text.markup import readable
from askalike.text.settings import TextSettings
from askalike.text.tokens import words
from askalike.types import Question

__all__ = ["FIELDS", "MOST_WORDS", "FieldTerms", "Splitter"]

FIELDS = ("title", "body", "joined")

MOST_WORDS = 100
"""Bodies are cut after this many words, as the encoders cut them, for all but TF-IDF and BM25."""


@dataclass(frozen=True, slots=True)
class FieldTerms:
    """The words of one field.

    Args:
        words: as written, in one case; of the beginning.
        stems: of the beginning, with stop words.
        content: stems of the beginning, without stop words.
        whole_stems: stems of the whole field.
        whole_content: stems of the whole field, without stop words.
    """

    words: list[str]
    stems: list[str]
    content: list[str]
    whole_stems: list[str]
    whole_content: list[str]

    def then(self, other: FieldTerms) -> FieldTerms:
        """Return the terms of this field and another, one after the other."""
        return FieldTerms(
            self.words + other.words,
            self.stems + other.stems,
            self.content + other.content,
            self.whole_stems + other.whole_stems,
            self.whole_content + other.whole_content,
        )


class Splitter:
    """Takes questions apart.

    Args:
        settings: language and code; whether stop words are dropped is decided by each measure.
        most_words: bodies are cut after this many pieces between white space, ≥ 1.

    Raises:
        SettingError: ``most_words`` is below 1.
    """

    def __init__(self, settings: TextSettings, most_words: int = MOST_WORDS) -> None:
        if most_words < 1:
            raise SettingError(f"bodies are cut after {most_words} words", "expected at least 1")
        self.settings = settings
        self.most_words = most_words
        self._all = Analyzer(replace(settings, stop_words=False))
        self._content = Analyzer(replace(settings, stop_words=True))

    def fields(self, question: Question) -> dict[str, FieldTerms]:
        """Return field → its terms, for each of ``FIELDS``."""
        title = self._terms(question.title.split())
        body = self._terms(readable(question.body, question.markup, with_code=self.settings.with_code).split())
        return {"title": title, "body": body, "joined": title.then(body)}

    def _terms(self, pieces: Sequence[str]) -> FieldTerms:
        whole, beginning = " ".join(pieces), " ".join(pieces[: self.most_words])
        return FieldTerms(
            words=words(beginning),
            stems=self._all.terms(beginning),
            content=self._content.terms(beginning),
            whole_stems=self._all.terms(whole),
            whole_content=self._content.terms(whole),
        )
