"""The data of the tables: AskUbuntu's folder as it was released, or what stands in for it.

================= ============================================= ===================================================
set               training pairs; the SVM's examples            dev and test
================= ============================================= ===================================================
askubuntu         labelled pairs of the training file; its first the released 200 + 200 queries with 20 candidates,
                  queries with 20 of their random questions     judged by experts, BM25 scores of Lucene
travel            duplicate links of the train components; the  the lexical search's 20 best for the duplicates of the
                  lexical search's 20 best for them             dev and test components; positive where linked
semeval           positive pairs of the training files; all     dev; test 2016 and 2017, official protocol; BM25 is
                  their candidates                              computed
================= ============================================= ===================================================
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from askalike.errors import FormatError
from askalike.evaluation.forum.links import duplicate_task
from askalike.evaluation.forum.tasks import RerankTask, forum_rerank_task, judged_task, questions_of
from askalike.forum import Forum, ForumSettings
from askalike.papers.lei2016.svm import LabelledCandidates
from askalike.readers.detection import named
from askalike.readers.files import stored_file
from askalike.readers.frame import ReadContext
from askalike.readers.research.askubuntu import heldout_ids, training_pairs
from askalike.readers.research.judged import read_judged
from askalike.text.settings import SNOWBALL
from askalike.training.corpus import TrainingData
from askalike.types import Question

SVM_QUERIES: Final = 1000
SVM_NEGATIVES: Final = 20


@dataclass(frozen=True, kw_only=True)
class JudgedSet:
    """Judged candidates: dev chooses, and the tests are scored with what it chose."""

    name: str
    title: str
    dev: RerankTask
    tests: tuple[RerankTask, ...]

    def tasks(self) -> tuple[RerankTask, ...]:
        """Return dev and tests."""
        return (self.dev, *self.tests)


@dataclass(frozen=True, kw_only=True)
class LeiSet(JudgedSet):
    """Everything that a row needs: judged candidates, and what is learned from.

    Args:
        is_original: the data that the reported figures are of.
        questions: all texts, for pre-training and word vectors; each id once.
        pairs: ids of labelled pairs to learn from; none of dev or test.
        examples: labelled candidates of training queries, for the SVM.
        heldout: ids of questions whose text is kept out of pre-training, for perplexity.
        notes: what was left out while it was read, with its count.
    """

    is_original: bool
    questions: tuple[Question, ...]
    pairs: tuple[tuple[str, str], ...]
    examples: tuple[LabelledCandidates, ...]
    heldout: frozenset[str]
    notes: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all texts, labelled pairs and judgements, in hexadecimal."""
        known = TrainingData(self.questions, self.pairs).digest()
        shown = [
            (TrainingData((example.query, *example.candidates)).digest(), list(example.labels))
            for example in self.examples
        ]
        judged = [task.digest() for task in self.tasks()]
        content = json.dumps([known, shown, sorted(self.heldout), judged])
        return hashlib.sha256(content.encode()).hexdigest()


def find_sets(folder: Path) -> dict[str, Callable[[], LeiSet]]:
    """Return what a folder holds, by name; a set is read when it is called for.

    Args:
        folder: AskUbuntu's, a folder with ``travel-stackexchange`` and ``semeval-task3-b``, or one of those two.

    Raises:
        FormatError: it holds none of them.
    """
    if not folder.is_dir():
        raise FormatError(f"there is no folder {folder}", "give the folder of the data")
    if (folder / "train_random.txt").exists() or (folder / "train_random.txt.gz").exists():
        return {"askubuntu": partial(_askubuntu, folder)}
    places: tuple[tuple[str, str, Callable[[Path], LeiSet]], ...] = (
        ("travel", "travel-stackexchange", _travel),
        ("semeval", "semeval-task3-b", _semeval),
    )
    readers: dict[str, Callable[[], LeiSet]] = {}
    for name, inner, read in places:
        path = folder if folder.name == inner else folder / inner
        if path.is_dir():
            readers[name] = partial(read, path)
    if not readers:
        raise FormatError(
            f"{folder} holds no train_random.txt (AskUbuntu) and no {' or '.join(inner for _, inner, _ in places)}",
            "give the folder of one of them, or the folder above them",
        )
    return readers


def labelled(task: RerankTask) -> tuple[LabelledCandidates, ...]:
    """Return a task's queries with their candidates, 1 for a positive one and 0 for others."""
    return tuple(
        LabelledCandidates(
            task.queries[query],
            [task.documents[document] for document, _ in candidates],
            [int(task.qrels[query].get(document, 0) > 0) for document, _ in candidates],
        )
        for query, candidates in task.given.items()
    )


def _askubuntu(folder: Path) -> LeiSet:
    context = ReadContext()
    known: dict[str, Question] = {}
    twice = 0
    for record in named("askubuntu").read(folder, context):
        if isinstance(record, Question):
            twice += record.id in known
            known.setdefault(record.id, record)
    questions = tuple(known.values())
    lines = list(training_pairs(folder))
    pairs = [(line.query_id, positive) for line in lines for positive in line.positive_ids]
    kept = tuple(pair for pair in pairs if known.keys() >= {*pair})
    examples = [
        _example(known, line.query_id, line.positive_ids, line.negative_ids[:SVM_NEGATIVES])
        for line in islice((line for line in lines if line.query_id in known), SVM_QUERIES)
    ]
    repeated = sum(len(ids) - len(set(ids)) for line in lines for ids in (line.positive_ids, line.negative_ids))
    rejects = context.rejects
    notes = {
        "texts with an id that another has: the first counts": twice,
        "ids named twice on a training line": repeated,
        "labelled pairs that name a question without a text: left out": len(pairs) - len(kept),
        "lines that cannot be read: left out"
        + "".join(
            f", first {reject.file}, line {reject.line}: {reject.reason}" for reject in rejects.first[:1]
        ): rejects.count,
    }
    has_heldout = stored_file(folder, "heldout.txt") is not None  # without it some are drawn for perplexity
    return LeiSet(
        name="askubuntu",
        title="AskUbuntu, the data of the paper",
        is_original=True,
        questions=questions,
        pairs=kept,
        examples=tuple(example for example in examples if any(example.labels)),
        heldout=frozenset(heldout_ids(folder) if has_heldout else ()),
        dev=judged_task(read_judged(folder, "askubuntu", "dev"), "askubuntu", questions),
        tests=(judged_task(read_judged(folder, "askubuntu", "test"), "askubuntu", questions),),
        notes=tuple(f"{what} ({number:,})" for what, number in notes.items() if number),
    )


def _travel(folder: Path) -> LeiSet:
    settings = ForumSettings(has_vectors=False)  # candidates come from words alone
    with (
        TemporaryDirectory() as work,
        Forum.create(Path(work) / "travel.forum", text=SNOWBALL, settings=settings) as forum,
    ):
        forum.load(folder)
        splits = {part: forum_rerank_task("travel", forum, duplicate_task(forum, part)) for part in ("dev", "test")}
        learned = duplicate_task(forum, "train")
        train = forum_rerank_task("travel", forum, learned)
        questions = tuple(forum.questions())
        links = [(link.source_id, link.target_id) for link in forum.store.links() if link.kind == "duplicate"]
    return LeiSet(
        name="travel",
        title="duplicates of travel.stackexchange.com, standing in for AskUbuntu",
        is_original=False,
        questions=questions,
        pairs=tuple(sorted(pair for pair in links if pair[0] in learned.queries)),
        examples=labelled(train),
        heldout=frozenset(),
        dev=splits["dev"],
        tests=(splits["test"],),
    )


def _semeval(folder: Path) -> LeiSet:
    sets = {split: read_judged(folder, "semeval", split) for split in ("train", "dev", "test2016", "test2017")}
    questions = tuple(
        {question.id: question for split in ("train", "dev") for question in questions_of(sets[split])}.values()
    )
    tasks = {split: judged_task(judged, "semeval", questions) for split, judged in sets.items()}
    pairs = [
        (query, document)
        for query, grades in sets["train"].qrels.items()
        for document, grade in grades.items()
        if grade > 0
    ]
    return LeiSet(
        name="semeval",
        title="SemEval Task 3 B (Qatar Living), standing in for AskUbuntu",
        is_original=False,
        questions=questions,
        pairs=tuple(pairs),
        examples=labelled(tasks["train"]),
        heldout=frozenset(),
        dev=tasks["dev"],
        tests=(tasks["test2016"], tasks["test2017"]),
    )


def _example(
    known: dict[str, Question], query: str, positives: Iterable[str], negatives: Iterable[str]
) -> LabelledCandidates:
    labels = {**dict.fromkeys(negatives, 0), **dict.fromkeys(positives, 1)}
    labels = {identifier: label for identifier, label in labels.items() if identifier in known}
    return LabelledCandidates(known[query], [known[identifier] for identifier in labels], list(labels.values()))


def released_vectors(folder: Path) -> Path | None:
    """Return the word vectors that lie in AskUbuntu's folder as they were released, None where there are none."""
    return stored_file(folder / "vector", "vectors_pruned.200.txt")
