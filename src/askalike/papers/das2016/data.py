"""The data of the table: Yahoo! Answers as the paper had it, or what stands in for it.

================= =========================================== =====================================================
set               learned from                                dev and test
================= =========================================== =====================================================
yahoo             answers of Yahoo! Answers L6, 2 million     the labelled set of Zhang et al. 2014: a fifth of its
                  questions                                   queries is dev, the rest test
semeval           the pairs of ``read_pairs``, for all sets   dev; test 2016 and 2017, official protocol
travel            the same                                    the lexical search's 20 best for the duplicates
slicer            the same                                    the lexical search's 20 best for topics that link to
                                                              others in replies, "related"
================= =========================================== =====================================================

Differs: the paper tunes on 400,000 pairs of questions and answers, which give no MAP of questions; here a fifth of the
labelled queries chooses settings, and the reported figures are of all 1,018.

Policy of what is learned from, in this one place:

- A question without an answer is left out. Its answers come best first: the accepted one, then by votes, then as the
  archive has them. Reddit's file has a row for each of up to four answers to a question and no votes: rows of one
  subreddit and title are one question, its best answer is the first of the file, and what counts votes counts each of
  its answers alike.
- Left out is every answer of the stand-ins that says nothing: one without a letter or digit, and one that stands for
  what was deleted or overwritten.
- Left out is every question whose title, or whose title and body together, are those of a query of any dev or test
  task, but for case and white space; and every topic of the Slicer forum at either end of a link in its file, since a
  reply that makes a link names what is to be found.
- Of questions with the same text the first is taken, so that none is both learned from and held out: one of the two
  files of Yahoo! threads is a part of the other.
- A number of questions takes those whose ids have the smallest SHA-256, so that a part of the whole has all sources.
- No task is given the answers of its candidates: the paper's labelled set has none.
"""

from __future__ import annotations

import gzip
import hashlib
import heapq
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import structs

from askalike.errors import DamagedInputError, FormatError
from askalike.evaluation.forum.links import related_task
from askalike.evaluation.forum.tasks import RerankTask, forum_rerank_task, judged_task
from askalike.forum import Forum, ForumSettings
from askalike.papers.harness import read_records
from askalike.papers.lei2016.sets import JudgedSet, find_sets
from askalike.progress import Progress, SilentProgress
from askalike.readers.detection import choose, named
from askalike.readers.frame import ReadContext
from askalike.readers.research.judged import has_labelled_judgments, read_judged
from askalike.text.settings import SNOWBALL
from askalike.types import Answer, Judged, Question

PAIRS: Final = 2_000_000
"""Questions of Yahoo! Answers that the paper learns from."""
SETS: Final = ("yahoo", "semeval", "travel", "slicer")
_DEV_SHARE: Final = 5
_ERRORS: Final = "surrogatepass"

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
class DasData:
    """Everything that a row needs.

    Args:
        is_original: the data that the reported figures are of.
    """

    sets: tuple[JudgedSet, ...]
    pairs: PairData
    is_original: bool

    def tasks(self) -> tuple[RerankTask, ...]:
        """Return dev and tests of all sets."""
        return tuple(task for judged_set in self.sets for task in judged_set.tasks())


def read_data(folder: Path, size: int = 0, *, has_pairs: bool = True, progress: Progress | None = None) -> DasData:
    """Return the data of a folder.

    Args:
        folder: Yahoo! Answers L6 beside the labelled set, or the folder of the sets that stand in for them.
        size: questions to learn from, 0 for the paper's number of Yahoo! Answers, and for all of others.
        has_pairs: read what is learned from too.
    """
    progress = progress or SilentProgress()
    original = _yahoo_files(folder)
    if original:
        archive, labels = original
        labelled = _labelled(labels, progress)
        pairs = read_archive(archive, _queries([labelled]), size or PAIRS, progress) if has_pairs else PairData((), ())
        return DasData((labelled,), pairs, is_original=True)
    sets = _stand_ins(folder)
    pairs = read_pairs(folder, _queries(sets), size, progress) if has_pairs else PairData((), ())
    return DasData(tuple(sets), pairs, is_original=False)


def _queries(sets: Iterable[JudgedSet]) -> list[Question]:
    return [query for judged_set in sets for task in judged_set.tasks() for query in task.queries.values()]


def _yahoo_files(folder: Path) -> tuple[Path, Path] | None:
    """Return the L6 archive and the labelled set of a folder, or None where it is not theirs.

    Raises:
        FormatError: one of them is there and the other is not.
    """
    if not folder.is_dir():
        raise FormatError(f"there is no folder {folder}", "give the folder of the data")
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    archives = [path for path in files if named("yahoo").matches(path)]
    labelled = [path for path in files if has_labelled_judgments(path)]
    if not archives:
        return None
    if len(labelled) != 1:
        raise FormatError(
            f"{folder} holds {archives[0].name} and {len(labelled)} labelled sets, expected one",
            "put the labelled set of Zhang et al. 2014 beside the archive: query, candidate, label, key, split by tabs",
        )
    return archives[0], labelled[0]


def _labelled(path: Path, progress: Progress) -> JudgedSet:
    judged = read_judged(path, "labelled", context=ReadContext(notice=progress.notice))
    parts = {
        is_dev: _of_queries(
            judged, [query for query in judged.queries if _is_dev(judged.queries[query].title) == is_dev]
        )
        for is_dev in (True, False)
    }
    dev, test = parts[True], parts[False]
    if not (dev.queries and test.queries):
        raise FormatError(f"{path.name} has too few queries to tune on some of them", "give the whole set")
    known = [*dev.queries.values(), *judged.documents.values()]
    tasks = [
        replace(judged_task(part, "trec", known), name=f"yahoo {split}")
        for split, part in (("dev", dev), ("test", test))
    ]
    return JudgedSet(
        name="yahoo", title="Yahoo! Answers, the labelled set of the paper", dev=tasks[0], tests=(tasks[1],)
    )


def _of_queries(judged: Judged, queries: Iterable[str]) -> Judged:
    kept = list(queries)
    candidates = {query: judged.candidates[query] for query in kept}
    documents = {document: judged.documents[document] for entries in candidates.values() for document, _ in entries}
    return Judged(
        judged.name,
        {query: judged.queries[query] for query in kept},
        documents,
        candidates,
        {query: judged.qrels[query] for query in kept},
    )


def _is_dev(text: str) -> bool:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()[0] % _DEV_SHARE == 0


def _stand_ins(folder: Path) -> list[JudgedSet]:
    try:
        readers = {name: read for name, read in find_sets(folder).items() if name in SETS}
    except FormatError:  # none that the other paper has too
        readers = {}
    sets = {name: _judged(read()) for name, read in readers.items()}
    if (folder / LINKS).exists():
        sets["slicer"] = _slicer(folder)
    if not sets:
        raise FormatError(
            f"{folder} holds no archive of Yahoo! Answers, and none of the sets {', '.join(SETS)}",
            "give the folder that has one; docs/recipes.md names them",
        )
    return [sets[name] for name in SETS if name in sets]


def _judged(data: JudgedSet) -> JudgedSet:
    """Return a set without what the other paper learns from."""
    return JudgedSet(name=data.name, title=data.title.partition(",")[0], dev=data.dev, tests=data.tests)


def _slicer(folder: Path) -> JudgedSet:
    """Return the topics that link to others in replies; a question that links to a topic mostly quotes its title."""
    rows = (line.split("\t") for line in (folder / LINKS).read_text(encoding="utf-8").splitlines())
    links = [(source, target) for source, target, where in rows if where == "reply"]
    settings = ForumSettings(has_vectors=False)
    with (
        TemporaryDirectory() as work,
        Forum.create(Path(work) / "slicer.forum", text=SNOWBALL, settings=settings) as forum,
    ):
        forum.load(folder / TOPICS)
        dev, test = (forum_rerank_task("slicer", forum, related_task(forum, links, half)) for half in ("dev", "test"))
    return JudgedSet(name="slicer", title="Linked topics of the 3D Slicer forum", dev=dev, tests=(test,))


@dataclass(frozen=True, slots=True)
class PairData:
    """What is learned from.

    Args:
        questions: each has an answer; each id once.
        answers: all of theirs, those of a question beside each other, best first.
        sources: where from → questions.
        left_out: what → how many.
    """

    questions: tuple[Question, ...]
    answers: tuple[Answer, ...]
    sources: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    def best(self) -> list[Answer]:
        """Return the first answer of each question, in the order of the questions."""
        first: dict[str, Answer] = {}
        for answer in self.answers:
            first.setdefault(answer.question_id, answer)
        return [first[question.id] for question in self.questions]

    def digest(self) -> str:
        """Return the SHA-256 of all of it, in hexadecimal."""
        content = hashlib.sha256()
        for question in self.questions:
            content.update(repr((question.id, question.title, question.body, question.markup)).encode(errors=_ERRORS))
        for answer in self.answers:
            values = (answer.question_id, answer.body, answer.markup, answer.score, answer.is_accepted)
            content.update(repr(values).encode(errors=_ERRORS))
        return content.hexdigest()


def read_pairs(folder: Path, queries: Iterable[Question], size: int = 0, progress: Progress | None = None) -> PairData:
    """Return the questions with answers of the sets that stand in for the paper's archive.

    Args:
        folder: holds some of ``REDDIT`` and ``ARCHIVES``.
        queries: of all dev and test tasks.
        size: questions to take, 0 for all.

    Raises:
        FormatError: it holds none of them.
    """
    linked = _linked(folder / LINKS)
    sources: list[tuple[str, Callable[[], Iterable[Thread]]]] = []
    if (folder / REDDIT).exists():
        sources.append((REDDIT, partial(read_reddit, folder / REDDIT)))
    for name in ARCHIVES:
        if (folder / name).exists():
            sources.append((name, partial(_threads, folder / name, progress or SilentProgress())))
    if not sources:
        raise FormatError(
            f"{folder} contains no questions with answers, such as {REDDIT}",
            "give the folder of Yahoo! Answers L6 with the labelled set, or the one with the sets used in its place",
        )

    def is_linked(source: str, question: Question) -> bool:
        return source == TOPICS and question.id in linked

    return _learnable(sources, queries, size, is_linked, says_something)


def read_archive(path: Path, queries: Iterable[Question], size: int, progress: Progress) -> PairData:
    """Return the questions with answers of one archive, such as Yahoo! Answers L6, of which no whole fits in memory."""
    return _learnable([(path.name, partial(_threads, path, progress))], queries, size, lambda *_: False, lambda _: True)


_STUB: Final = re.compile(
    r"[\W_]*(delete|deleted|removed)?[\W_]*|\[(deleted|removed)\]\s+\^.*|this comment has been overwritten by .*",
    re.IGNORECASE | re.DOTALL,
)


def says_something(answer: Answer) -> bool:
    """Return whether an answer is more than a sign that it was taken back.

    >>> [says_something(Answer("a", "q", body)) for body in ("No.", ".", "delete", "[deleted]", "Delete the file")]
    [True, False, False, False, True]
    """
    return not _STUB.fullmatch(answer.body)


def read_reddit(path: Path) -> Iterator[Thread]:
    """Yield a file's questions, each with all answers that have its subreddit and title, in the file's order.

    A question has the id of its first row.

    Raises:
        DamagedInputError: a line is no pair.
    """
    threads: dict[tuple[str, str], tuple[Question, list[Answer]]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                identifier, forum, title, body = (str(row[key]) for key in ("id", "forum", "question", "answer"))
            except (ValueError, KeyError, TypeError) as error:
                raise DamagedInputError(f"{path.name}, line {number}: {error!r}", "get the file again") from error
            question, answers = threads.setdefault((forum, _words(title)), (Question(identifier, title), []))
            answers.append(Answer(f"a-{identifier}", question.id, body, "markdown"))
    for question, answers in threads.values():
        yield question, tuple(answers)


def _learnable(
    sources: Sequence[tuple[str, Callable[[], Iterable[Thread]]]],
    queries: Iterable[Question],
    size: int,
    is_linked: Callable[[str, Question], bool],
    is_kept: Callable[[Answer], bool],
) -> PairData:
    """Return the threads of all sources that may be learned from, in an order that does not hang on the size.

    Args:
        is_kept: whether an answer is learned from.
    """
    query_texts = {text for query in queries for text in (_words(query.title), _words(f"{query.title} {query.body}"))}
    left_out: Counter[str] = Counter()

    def fair() -> Iterator[tuple[int, str, Thread]]:
        seen: set[str] = set()
        texts: set[str] = set()
        for source, read in sources:
            for question, answers in read():
                named_so = replace(question, id=f"{source}/{question.id}")
                if named_so.id in seen:
                    continue
                seen.add(named_so.id)
                text = _words(f"{question.title} {question.body}")
                if is_linked(source, question):
                    left_out["topics at an end of a link"] += 1
                elif {_words(question.title), text} & query_texts:
                    left_out["questions with the words of a query"] += 1
                elif text in texts:
                    left_out["questions with the text of another"] += 1
                else:
                    kept = tuple(answer for answer in answers if is_kept(answer))
                    left_out["answers that say nothing"] += len(answers) - len(kept)
                    if kept:
                        texts.add(text)
                        yield _place(named_so.id), source, (named_so, kept)
                    else:
                        left_out["questions of which no answer is left"] += 1

    chosen = heapq.nsmallest(size, fair(), key=_by_place) if size else sorted(fair(), key=_by_place)
    threads = [(source, thread) for _, source, thread in chosen]
    return PairData(
        tuple(question for _, (question, _) in threads),
        tuple(structs.replace(answer, question_id=question.id) for _, (question, own) in threads for answer in own),
        dict(Counter(source for source, _ in threads)),
        {what: count for what, count in left_out.items() if count},
    )


def _threads(path: Path, progress: Progress) -> Iterator[Thread]:
    """Yield an archive's questions that have answers; Yahoo's, which are too many for memory, one by one."""
    reader = choose(path)
    records = read_records(reader, path, progress)
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
    question: Question | None = None
    answers: list[Answer] = []
    for record in records:
        if isinstance(record, Question):
            if question and answers:
                yield question, _best_first(answers)
            question, answers = record, []
        elif isinstance(record, Answer):
            answers.append(record)
    if question and answers:
        yield question, _best_first(answers)


def _best_first(answers: Iterable[Answer]) -> tuple[Answer, ...]:
    return tuple(sorted(answers, key=lambda answer: answer.standing, reverse=True))


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


def _by_place(entry: tuple[int, str, Thread]) -> tuple[int, str]:
    place, _, (question, _) = entry
    return place, question.id
