"""The words of a model: which words of a question it reads, and their ids.

Words are those of ``askalike.text.tokens.words``: as the text writes them, case folded; or their stems, where the
model's settings say so. Id 0 stands for every word outside the vocabulary; the id of a known word is its line in the
file, the first being 1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Final, Literal

from askalike.errors import DamagedModelError, SettingError
from askalike.text.analyzer import stemmer_of
from askalike.text.markup import plain_text
from askalike.text.tokens import words
from askalike.types import Question

Reads = Literal["title and body", "title", "joined"]

UNKNOWN: Final = 0
"""The id of every word that is not in a vocabulary."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class Vocabulary:
    """Words in a fixed order, most frequent first.

    Args:
        known: the words, each once, without white space.

    Raises:
        SettingError: a word is empty, holds white space, or occurs twice.

    >>> vocabulary = Vocabulary(["the", "router"])
    >>> len(vocabulary), vocabulary.ids(["the", "modem", "router"])
    (3, [1, 0, 2])
    """

    def __init__(self, known: Iterable[str]) -> None:
        self.words: Final = tuple(known)
        self._ids: Final = {word: number for number, word in enumerate(self.words, start=1)}
        fault = _fault(self.words, self._ids)
        if fault:
            raise SettingError(f"vocabulary with {fault}", "take words from askalike.text.tokens.words, each once")

    def __len__(self) -> int:
        """Return V: how many ids there are, the one for unknown words included."""
        return len(self.words) + 1

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def ids(self, text: Iterable[str]) -> list[int]:
        """Return the id of each word, in order."""
        return list(map(self._ids.get, text, repeat(UNKNOWN)))

    @classmethod
    def build(cls, texts: Iterable[str], *, min_count: int = 1, max_size: int | None = None) -> Vocabulary:
        """Return the vocabulary of plain texts, words as they are written.

        Args:
            min_count: a word must occur this often, ≥ 1.
            max_size: at most this many words, ≥ 0; None for all.

        >>> Vocabulary.build(["The router", "the modem or the router"], min_count=2).words
        ('the', 'router')
        """
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(words(text))
        return cls.from_counts(counts, min_count=min_count, max_size=max_size)

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], *, min_count: int = 1, max_size: int | None = None) -> Vocabulary:
        """Return the vocabulary of counted words: by falling count, words of the same count by code point."""
        if min_count < 1 or (max_size is not None and max_size < 0):
            raise SettingError(
                f"min_count {min_count} and max_size {max_size}, but expected ≥ 1 and ≥ 0", "set a larger number"
            )
        kept = sorted((-count, word) for word, count in counts.items() if count >= min_count)
        return cls(word for _, word in kept[:max_size])

    def to_bytes(self) -> bytes:
        """Return the file: UTF-8, one word a line, in the order of the ids."""
        return "".join(f"{word}\n" for word in self.words).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Vocabulary:
        """Return the vocabulary of a file.

        Raises:
            DamagedModelError: not UTF-8, an unfinished line, or what ``Vocabulary`` refuses; names the line.
        """
        again = "train the model again, or take the file from where it came"
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise DamagedModelError(f"vocabulary line {line} is not UTF-8", again) from error
        lines = text.split("\n")
        if lines.pop():
            raise DamagedModelError(f"vocabulary line {len(lines) + 1} has no end", again)
        try:
            return cls(lines)
        except SettingError as error:
            raise DamagedModelError(error.message, again) from error


def _fault(known: tuple[str, ...], ids: Mapping[str, int]) -> str:
    """Return what is wrong with the words, or nothing; where nothing is, they are looked at all together."""
    joined = "\n".join(known)
    if len(ids) == len(known) and joined.split() == list(known) and not _SURROGATE.search(joined):
        return ""
    for line, word in enumerate(known, start=1):
        if word.split() != [word]:
            return f"{word[:40]!r} in line {line}, but expected a word without white space"
        if ids[word] != line:
            return f"{word[:40]!r} in lines {line} and {ids[word]}, but expected each word once"
        if _SURROGATE.search(word):
            return f"{word[:40]!r} in line {line}, but expected characters that UTF-8 can hold"
    return ""


@dataclass(frozen=True, slots=True)
class QuestionReader:
    """Words of questions.

    Args:
        reads: title and body, each on its own; both joined to one text, which stands for the title; or the title alone.
        word_limit: words of a text that are read, the first ones, ≥ 1.
        stems: the language to whose stems words are brought, or "" for words as they are written. There are as many
            words either way.

    >>> question = Question("1", "WiFi drops daily", "Every evening.")
    >>> reader = QuestionReader("title", word_limit=2)
    >>> reader.title(question), reader.body(question)
    (['wifi', 'drops'], [])
    >>> joined = QuestionReader("joined", word_limit=4, stems="english")
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
        spelt = words(question.title)
        if self.reads == "joined" and len(spelt) < self.word_limit:
            spelt += words(plain_text(question.body, question.markup))
        return self._first(spelt)

    def body(self, question: Question) -> list[str]:
        """Return the words that are read of a question's body; none where it is joined to the title, or not read."""
        return self.text(plain_text(question.body, question.markup)) if self.reads == "title and body" else []

    def _first(self, spelt: list[str]) -> list[str]:
        first = spelt[: self.word_limit]
        return stemmer_of(self.stems).stems(first) if self.stems else first
