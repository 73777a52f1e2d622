"""Questions with their answers, to learn from: of the paper's archive, or of what stands in for it.

Enters: a folder, the queries of all tasks. Leaves: ``PairData``. May import: read, types, errors.

Policy of what is learned from, in this one place:

- A question without an answer is left out. Its answers come best first: the accepted one, then by votes, then as the
  archive has them.
- Left out is every question whose title, or whose title and body together, are those of a query of any dev or test
  task, but for case and white space; and every topic of the Slicer forum at either end of a link in its file, since a
  reply that makes a link names what is to be found.
- An amount takes the questions whose ids have the smallest SHA-256, so that a part of the whole has all sources.
- No task is given the answers of its candidates: the paper's labelled set has none.
"""

from __future__ import annotations

import gzip
import hashlib
import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from askalike.errors import DamagedInputError, FormatError
from askalike.read.detection import choose, named
from askalike.read.frame import ReadContext
from askalike.types import Answer, Question

__all__ = ["LINKS", "TOPICS", "PairData", "read_archive", "read_pairs", "read_reddit"]

LINKS: Final = "slicer-discourse/related_links.tsv"
TOPICS: Final = "slicer-discourse/topics.jsonl.gz"
REDDIT: Final = "reddit/question-answers.jsonl.gz"
ARCHIVES: Final = (
    TOPICS,
    "devops-stackexchange/posts.csv.gz",
    "stackexchange-dumps/cardano-2021",
    "stackexchange-dumps/matheducators-2014",
    "stackexchange-dumps/quantumcomputing-2018",
    "stackexchange-dumps/scicomp-meta",
    "yahoo/threads-dataset.csv.gz",
    "yahoo/threads-dataset2.csv.gz",
)

Thread = tuple[Question, tuple[Answer, ...]]
"""A question with its answers, best first."""


@dataclass(frozen=True, slots=True)
class PairData:
    """What is learned from.

    Args:
        questions: each has an answer; each id once.
        answers: all of theirs, those of a question beside each other, best first.
        sources: where from → questions.
        left_out: why → questions.
    """

    questions: tuple[Question, ...]
    answers: tuple[Answer, ...]
    sources: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    def best(self) -> list[Answer]:
        """Return the first answer of each question, in the order of the questions."""
        found: dict[str, Answer] = {}
        for answer in self.answers:
            found.setdefault(answer.question_id, answer)
        return [found[question.id] for question in self.questions]

    def digest(self) -> str:
        """Return the SHA-256 of all of it, in hexadecimal."""
        found = hashlib.sha256()
        for question in self.questions:
            found.update(repr((question.id, question.title, question.body, question.markup)).encode(errors=_ERRORS))
        for answer in self.answers:
            one = (answer.question_id, answer.body, answer.markup, answer.score, answer.is_accepted)
            found.update(repr(one).encode(errors=_ERRORS))
        return found.hexdigest()


def read_pairs(folder: Path, queries: Iterable[Question], amount: int = 0) -> PairData:
    """Return the questions with answers of the sets that stand in for the paper's archive.

    Args:
        folder: holds some of ``REDDIT`` and ``ARCHIVES``.
        queries: of all dev and test tasks.
        amount: questions to take, 0 for all.

    Raises:
        FormatError: it holds none of them.
    """
    linked = _linked(folder / LINKS)
    found: list[tuple[str, Callable[[], Iterable[Thread]]]] = []
    if (folder / REDDIT).exists():
        found.append((REDDIT, lambda: read_reddit(folder / REDDIT)))
    for name in ARCHIVES:
        if (folder / name).exists():
            found.append((name, _reading(folder / name)))
    if not found:
        raise FormatError(
            f"{folder} holds no questions with answers, such as {REDDIT}",
            "give the folder of Yahoo! Answers L6 with the labelled set, or the one with the sets that stand in for it",
        )
    return _taken(found, queries, amount, lambda source, one: source == TOPICS and one.id in linked)


def read_archive(path: Path, queries: Iterable[Question], amount: int) -> PairData:
    """Return the questions with answers of one archive, such as Yahoo! Answers L6, of which no whole fits in memory.

    Raises:
        InputError: it cannot be read.
    """
    return _taken([(path.name, _reading(path))], queries, amount, lambda *_: False)


def read_reddit(path: Path) -> Iterator[Thread]:
    """Yield a file's pairs; each of the answers to a question makes a pair, since nothing tells which is the best.

    Raises:
        DamagedInputError: a line is no pair.
    """
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                one = json.loads(line)
                question = Question(str(one["id"]), str(one["question"]))
                answer = str(one["answer"])
            except (ValueError, KeyError, TypeError) as error:
                raise DamagedInputError(f"{path.name}, line {number}: {error!r}", "get the file again") from error
            yield question, (Answer(f"a-{question.id}", question.id, answer, "markdown"),)


def _taken(
    sources: Sequence[tuple[str, Callable[[], Iterable[Thread]]]],
    queries: Iterable[Question],
    amount: int,
    is_linked: Callable[[str, Question], bool],
) -> PairData:
    """Return the threads of all sources that may be learned from, in an order that does not hang on the amount."""
    asked = {text for query in queries for text in (_words(query.title), _words(f"{query.title} {query.body}"))}
    left_out: Counter[str] = Counter()

    def fair() -> Iterator[tuple[int, str, Thread]]:
        seen: set[str] = set()
        for source, read in sources:
            for question, answers in read():
                named_so = replace(question, id=f"{source}/{question.id}")
                if named_so.id in seen:
                    continue
                seen.add(named_so.id)
                if is_linked(source, question):
                    left_out["topics at an end of a link"] += 1
                elif {_words(question.title), _words(f"{question.title} {question.body}")} & asked:
                    left_out["questions with the words of a query"] += 1
                else:
                    yield _place(named_so.id), source, (named_so, answers)

    chosen = heapq.nsmallest(amount, fair(), key=_by_place) if amount else sorted(fair(), key=_by_place)
    threads = [(source, thread) for _, source, thread in chosen]
    return PairData(
        tuple(question for _, (question, _) in threads),
        tuple(replace(answer, question_id=question.id) for _, (question, own) in threads for answer in own),
        dict(Counter(source for source, _ in threads)),
        dict(left_out),
    )


def _reading(path: Path) -> Callable[[], Iterator[Thread]]:
    return lambda: _threads(path)


def _threads(path: Path) -> Iterator[Thread]:
    """Yield an archive's questions that have answers; where answers follow their question, one is held at a time."""
    reader = choose(path)
    records = reader.read(path, ReadContext())
    if reader.name == named("yahoo").name:
        yield from _one_by_one(records)
        return
    questions: dict[str, Question] = {}
    answers: defaultdict[str, list[Answer]] = defaultdict(list)
    for record in records:
        if isinstance(record, Question):
            questions.setdefault(record.id, record)
        elif isinstance(record, Answer):
            answers[record.question_id].append(record)
    for identifier, question in questions.items():
        if identifier in answers:
            yield question, _best_first(answers[identifier])


def _one_by_one(records: Iterable[object]) -> Iterator[Thread]:
    asked: Question | None = None
    answers: list[Answer] = []
    for record in records:
        if isinstance(record, Question):
            if asked and answers:
                yield asked, _best_first(answers)
            asked, answers = record, []
        elif isinstance(record, Answer):
            answers.append(record)
    if asked and answers:
        yield asked, _best_first(answers)


def _best_first(answers: Iterable[Answer]) -> tuple[Answer, ...]:
    return tuple(sorted(answers, key=lambda one: one.standing, reverse=True))


def _linked(path: Path) -> frozenset[str]:
    """Return the ids at either end of a link; none where there is no file of links."""
    if not path.exists():
        return frozenset()
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return frozenset(identifier for row in rows for identifier in row[:2])


def _words(text: str) -> str:
    """Return what makes two texts the same: all but case and white space."""
    return " ".join(text.casefold().split())


def _place(identifier: str) -> int:
    return int.from_bytes(hashlib.sha256(identifier.encode(errors=_ERRORS)).digest()[:8], "big")


def _by_place(found: tuple[int, str, Thread]) -> tuple[int, str]:
    return found[0], found[2][0].id


_ERRORS: Final = "surrogatepass"
