"""The AskUbuntu set of Lei et al.: tokenised questions, labelled pairs, and expert judgments of 20 candidates a query.

Source: Lei et al. 2016, "Semi-supervised Question Retrieval with Gated Convolutions", NAACL, "Development and Test
Sets".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from askalike.errors import DamagedInputError, FormatError
from askalike.evaluation.files import read_askubuntu
from askalike.readers.files import first_bytes, needed_file, stored_file, text_lines
from askalike.readers.frame import ReadContext, regular_size
from askalike.readers.values import Unreadable, one_line
from askalike.readers.values import text as checked
from askalike.types import Judged, Link, Question, Record

SPLITS = ("dev", "test")
_TEXTS = "text_tokenized.txt"
_TRAIN = "train_random.txt"


@dataclass(frozen=True, slots=True)
class TrainingQuery:
    """One line of the training file.

    Args:
        query_id: the question that was marked.
        positive_ids: questions marked as asking the same, in file order.
        negative_ids: questions drawn at random by the authors (100 in the released file).
    """

    query_id: str
    positive_ids: tuple[str, ...]
    negative_ids: tuple[str, ...]


class AskUbuntuReader:
    """The texts as questions and the labelled pairs of the training file as duplicates.

    Judgments of dev and test never become links, so a forum made of this folder can be scored on them.
    """

    name = "askubuntu"
    title = "AskUbuntu set of Lei et al. (text_tokenized.txt)"

    def matches(self, path: Path) -> bool:
        """Say whether this is, or holds, a ``text_tokenized.txt`` of three fields."""
        texts = _texts_file(path)
        return texts is not None and first_bytes(texts).split(b"\n", 1)[0].count(b"\t") == 2

    def size_bytes(self, path: Path) -> int:
        """Return the stored size of the texts and the training pairs."""
        files = (_texts_file(path), stored_file(_folder(path), _TRAIN))
        return sum(regular_size(file) for file in files if file is not None)

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield all questions, then a link for every labelled pair, in file order.

        Raises:
            FormatError: there are no texts here.
            DamagedInputError: a file is empty, truncated or not UTF-8.
        """
        yield from _questions(_needed_texts(path), context)
        if stored_file(_folder(path), _TRAIN) is None:
            context.notice(f"there is no {_TRAIN} beside the texts, so no question is marked as a duplicate")
            return
        for line in training_pairs(_folder(path), context):
            context.records_in += len(line.positive_ids) - 1  # the line counted as one
            for positive in line.positive_ids:
                yield Link(line.query_id, positive)


def training_pairs(path: Path, context: ReadContext | None = None) -> Iterator[TrainingQuery]:
    """Yield the training file of a folder, line by line.

    Raises:
        FormatError: the folder lacks the training file.
        DamagedInputError: the file is empty, truncated or not UTF-8.
    """
    context = context or ReadContext()
    file = needed_file(path, _TRAIN, "give the folder of the released set")
    for line, text in text_lines(file, file.name, context):
        fields = text.split("\t")
        if len(fields) != 3 or not fields[0] or not fields[1].split():
            context.reject(file.name, line, fields[0], "expected id, similar ids and random ids, split by tabs")
            continue
        context.records_in += 1
        yield TrainingQuery(fields[0], tuple(fields[1].split()), tuple(fields[2].split()))


def heldout_ids(path: Path, context: ReadContext | None = None) -> tuple[str, ...]:
    """Return the ids that are kept out of training (for perplexity), in file order."""
    file = needed_file(path, "heldout.txt", "give the folder of the released set")
    return tuple(text.strip() for _, text in text_lines(file, file.name, context or ReadContext()))


def load_askubuntu(path: Path, split: str, context: ReadContext) -> Judged:
    """Return dev or test with the texts of its queries and candidates (not of the whole corpus: read it as a forum).

    Raises:
        FormatError: the judgments or the texts are missing; names the file.
        DamagedInputError: a file is damaged, or a query or candidate has no text.
    """
    split = split or SPLITS[0]
    annotations = needed_file(path, f"{split}.txt", "give the folder of the released set, or another split")
    texts = _needed_texts(path)
    qrels, run = read_askubuntu(annotations)
    context.records_in += len(run)
    wanted = {document for candidates in run.values() for document, _ in candidates} | run.keys()
    found: dict[str, Question] = {}
    for question in _questions(texts, context):
        if question.id in found:
            raise DamagedInputError(f"{texts.name} has the id {question.id!r} twice", "make the ids unique")
        if question.id in wanted:
            found[question.id] = question
    missing = sorted(wanted - found.keys())
    if missing:
        raise DamagedInputError(
            f"{texts.name} lacks {len(missing)} of the questions that {annotations.name} names, first {missing[0]!r}",
            "fetch both files from the same release",
        )
    documents = {document: found[document] for candidates in run.values() for document, _ in candidates}
    return Judged(f"askubuntu-{split}", {query: found[query] for query in run}, documents, run, qrels)


def _questions(file: Path, context: ReadContext) -> Iterator[Question]:
    for line, text in text_lines(file, file.name, context):
        fields = text.split("\t")
        if len(fields) != 3 or not fields[0]:
            context.reject(file.name, line, fields[0], f"{len(fields)} fields, expected id, title and body")
            continue
        try:
            title, body = one_line(fields[1], "title", context), checked(fields[2], "body", context).strip()
            question = Question(fields[0], title, body, url=context.address(fields[0], "/questions/{id}"))
        except Unreadable as error:
            context.reject(file.name, line, fields[0], str(error))
            continue
        context.records_in += 1
        yield question


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _texts_file(path: Path) -> Path | None:
    if path.is_dir():
        return stored_file(path, _TEXTS)
    return path if path.is_file() and path.name in (_TEXTS, f"{_TEXTS}.gz") else None


def _needed_texts(path: Path) -> Path:
    found = _texts_file(path)
    if found is None:
        raise FormatError(
            f"{path.name} holds no texts: {_TEXTS}.gz is missing",
            "put it beside the other files; scoring a run needs no texts, only dev.txt or test.txt",
        )
    return found
