"""What a model is trained on: questions, which of them are labelled as duplicates, and answers; the same as ids.

``TrainingData`` holds plain values. Texts as numbers are all words of all texts in one array, each text a slice of it.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.evaluation import CandidateTask
from askalike.models.vocabulary import UNKNOWN, QuestionReader, Vocabulary
from askalike.text.markup import plain_text
from askalike.types import Answer, Question


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts as ids of one vocabulary.

    Args:
        ids: the words of all texts, one text after the other.  # (W,) int32
        starts: where each text begins; the last number is W.  # (N + 1,) int64

    >>> texts = Texts(np.array([5, 6, 7], np.int32), np.array([0, 2, 2, 3]))
    >>> len(texts), texts[0].tolist(), texts.lengths().tolist(), texts.counts(9).tolist()
    (3, [5, 6], [2, 0, 1], [0, 0, 0, 0, 0, 1, 1, 1, 0])
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        return self.ids[self.starts[row] : self.starts[row + 1]]

    def lengths(self) -> NDArray[np.int64]:
        """Return the words of each text.  # (N,)"""
        return np.diff(self.starts)

    def without(self, number: int) -> Texts:
        """Return the texts without the words of one id.

        >>> texts = Texts(np.array([5, 6, 5, 7], np.int32), np.array([0, 3, 3, 4])).without(5)
        >>> texts.ids.tolist(), texts.starts.tolist()
        ([6, 7], [0, 1, 1, 2])
        """
        is_kept = self.ids != number
        return Texts(self.ids[is_kept], np.concatenate([[0], np.cumsum(is_kept)])[self.starts])

    def counts(self, size: int) -> NDArray[np.int64]:
        """Return how often each id below ``size`` occurs; all are below it.  # (size,)"""
        return np.bincount(self.ids, minlength=size).astype(np.int64)


class WordList:
    """Texts over the words that occur in them, before there is a vocabulary: words are numbered as they come.

    >>> read = WordList([["wifi", "drops"], ["wifi"]])
    >>> read.words, read.texts.ids.tolist(), read.counts()
    (['wifi', 'drops'], [0, 1, 0], {'wifi': 2, 'drops': 1})
    """

    def __init__(self, texts: Iterable[list[str]]) -> None:
        numbers: dict[str, int] = {}
        ids, starts = array("i"), array("q", [0])
        for text in texts:
            ids.extend([numbers.setdefault(word, len(numbers)) for word in text])
            starts.append(len(ids))
        self.words = list(numbers)
        self.texts = Texts(np.array(ids, np.int32), np.array(starts, np.int64))

    def counts(self) -> dict[str, int]:
        """Return how often each word occurs."""
        counts = np.bincount(self.texts.ids, minlength=len(self.words)).tolist()
        return dict(zip(self.words, counts, strict=True))

    def over(self, vocabulary: Vocabulary) -> Texts:
        """Return the texts as ids of ``vocabulary``, 0 for words that it does not hold."""
        ids = np.array(vocabulary.ids(self.words), np.int32)
        return Texts(ids[self.texts.ids] if len(ids) else self.texts.ids, self.texts.starts)


_Item = TypeVar("_Item")
_REPORTED: Final = 1000  # items between two reports


def reported(items: Sequence[_Item], report: Callable[[int], None]) -> Iterator[_Item]:
    """Yield items; after each thousand of them, and the last, report how many were used since the report before."""
    for done, item in enumerate(items, start=1):
        yield item
        if done % _REPORTED == 0 or done == len(items):
            report((done - 1) % _REPORTED + 1)


@dataclass(frozen=True, slots=True)
class TrainingData:
    """Questions and what is known of them.

    Args:
        questions: each id once.
        pairs: ids of two questions labelled as duplicates.
        answers: answers to the questions, by ``Answer.question_id``.
        dev: name → judged candidates, to stop by; never what a test is scored on.
        held_out: ids of questions to measure a text objective on, never learned from; none leaves the choice to chance.
    """

    questions: Sequence[Question]
    pairs: Sequence[tuple[str, str]] = ()
    answers: Sequence[Answer] = ()
    dev: Mapping[str, CandidateTask] = field(default_factory=dict)
    held_out: Collection[str] = ()

    def digest(self) -> str:
        """Return the SHA-256 of everything that is learned from, in hexadecimal; dev sets are not."""
        digest = hashlib.sha256()
        for question in self.questions:
            _add(digest, "question", question.id, question.title, question.markup, question.body)
        for pair in self.pairs:
            _add(digest, "pair", *pair)
        for answer in self.answers:
            _add(digest, "answer", answer.question_id, answer.markup, answer.body)
        if self.held_out:
            _add(digest, "held out", *sorted(self.held_out))
        return digest.hexdigest()

    def dev_digest(self) -> str:
        """Return the SHA-256 of the dev sets' questions, in hexadecimal: they decide when training stops."""
        digest = hashlib.sha256()
        for name, task in self.dev.items():
            _add(digest, name, *map(str, task.queries.tolist()))
            for question in task.questions:
                _add(digest, question.title, question.markup, question.body)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class DevSet:
    """Judged candidates with the texts of their questions: row 2i the title of question i, row 2i + 1 its body."""

    task: CandidateTask
    texts: Texts


@dataclass(frozen=True, slots=True)
class Corpus:
    """Training data as ids.

    Args:
        texts: row 2i is the title of question i, row 2i + 1 its body; the answers follow.
        size: questions, N.
        pairs: two questions that ask the same.  # (M, 2) int64
        answers: a question and the row of one of its answers.  # (K, 2) int64
        dev: name → judged candidates.
        held_out: questions that are given to be kept out, rising; none where chance chooses.
    """

    texts: Texts
    size: int
    pairs: NDArray[np.int64]
    answers: NDArray[np.int64]
    dev: Mapping[str, DevSet]
    held_out: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def usable_pairs(self) -> NDArray[np.int64]:
        """Return the labelled pairs of two different questions that have words.  # (M', 2)"""
        lengths = self.texts.lengths()[: 2 * self.size]
        has_words = (lengths[0::2] + lengths[1::2]) > 0
        is_usable = has_words[self.pairs].all(axis=1) & (self.pairs[:, 0] != self.pairs[:, 1])
        return np.asarray(self.pairs[is_usable])

    def labelled(self) -> dict[int, frozenset[int]]:
        """Return question → its labelled duplicates, whichever was named first; only questions that have some."""
        neighbours: defaultdict[int, set[int]] = defaultdict(set)
        for first, second in self.pairs.tolist():
            neighbours[first].add(second)
            neighbours[second].add(first)
        return {question: frozenset(others - {question}) for question, others in neighbours.items()}


def dev_measures(
    tasks: Mapping[str, CandidateTask], vectors_of: Callable[[str], NDArray[np.float32]]
) -> dict[str, float]:
    """Return MRR and MAP of each dev set, and their means over all of them.

    Args:
        vectors_of: name of a dev set → the vectors of its questions.  # (N, D)
    """
    scores: dict[str, float] = {}
    for name, task in tasks.items():
        vectors = vectors_of(name)
        scores[f"{name} mrr"], scores[f"{name} map"] = task.mrr(vectors), task.map(vectors)
    for measure in ("mrr", "map") if tasks else ():
        values = [scores[f"{name} {measure}"] for name in tasks]
        scores[measure] = sum(values) / len(values)
    return scores


class WordSource:
    """Training data read once into words; vocabulary and vectors are made from it, then the corpus.

    Args:
        report: called with how many questions were read since the last call.
    """

    def __init__(self, data: TrainingData, reader: QuestionReader, report: Callable[[int], None]) -> None:
        self.data = data
        self._reader = reader
        self.words = WordList(_all_words(data, reader, report))

    def vocabulary(self, min_count: int, max_size: int | None) -> Vocabulary:
        """Return the most frequent words of the data."""
        return Vocabulary.from_counts(self.words.counts(), min_count=min_count, max_size=max_size)

    def corpus(self, vocabulary: Vocabulary, *, is_dropping: bool = False) -> Corpus:
        """Return the data as ids.

        Args:
            is_dropping: leave words out that the vocabulary has not.

        Raises:
            SettingError: a pair or an answer names a question that is not there.
        """
        data = self.data

        def over(read: WordList) -> Texts:
            texts = read.over(vocabulary)
            return texts.without(UNKNOWN) if is_dropping else texts

        dev = {
            name: DevSet(task, over(WordList(_question_words(task.questions, self._reader))))
            for name, task in data.dev.items()
        }
        return corpus_of(data, over(self.words), dev)


def corpus_of(data: TrainingData, texts: Texts, dev: Mapping[str, DevSet]) -> Corpus:
    """Return training data over texts: titles and bodies of its questions in turn, then its answers.

    Raises:
        SettingError: a pair or an answer names a question that is not there.
    """
    rows = {question.id: row for row, question in enumerate(data.questions)}
    if len(rows) != len(data.questions):
        raise SettingError(f"{len(data.questions)} questions with {len(rows)} ids, expected each id once")
    pairs = np.array(_located(rows, data.pairs), np.int64).reshape(-1, 2)
    question_rows = _located(rows, [(answer.question_id,) for answer in data.answers])
    answers = np.array([[row, 2 * len(rows) + place] for place, (row,) in enumerate(question_rows)], np.int64)
    kept = np.sort(np.array(_located(rows, [(identifier,) for identifier in data.held_out]), np.int64).ravel())
    return Corpus(texts, len(rows), pairs, answers.reshape(-1, 2), dev, kept)


def _all_words(data: TrainingData, reader: QuestionReader, report: Callable[[int], None]) -> Iterator[list[str]]:
    yield from _question_words(reported(data.questions, report), reader)
    for answer in data.answers:
        yield reader.text(plain_text(answer.body, answer.markup))


def _question_words(questions: Iterable[Question], reader: QuestionReader) -> Iterator[list[str]]:
    for question in questions:
        yield reader.title(question)
        yield reader.body(question)


def _add(digest: hashlib._Hash, *fields: str) -> None:
    """Hash fields with their lengths, so that no two lists of them give the same bytes."""
    for text in fields:
        content = text.encode(errors="surrogatepass")
        digest.update(b"%d:" % len(content) + content)
    digest.update(b";")


def _located(rows: Mapping[str, int], named: Sequence[Sequence[str]]) -> list[list[int]]:
    try:
        return [[rows[identifier] for identifier in entry] for entry in named]
    except KeyError as error:
        raise SettingError(
            f"training data names question {error.args[0]!r}, which is not among its questions",
            "give the questions of all pairs and answers",
        ) from None
