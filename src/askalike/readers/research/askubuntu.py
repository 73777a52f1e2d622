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
from askalike.readers.files import file_named, first_bytes, needed_file, stored_file, text_lines
from askalike.readers.frame import ReadContext, Reader
from askalike.readers.values import Unreadable, one_line, read_each
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


class AskUbuntuReader(Reader):
    """The texts as questions and the labelled pairs of the training file as duplicates.

    Judgments of dev and test never become links, so a forum made of this folder can be scored on them.
    """

    name = "askubuntu"

    def matches(self, path: Path) -> bool:
        """Say whether this is, or holds, a ``text_tokenized.txt`` of three fields."""
        texts = file_named(path, _TEXTS)
        return texts is not None and first_bytes(texts).split(b"\n", 1)[0].count(b"\t") == 2

    def files(self, path: Path) -> list[Path]:
        """Return the texts and the training pairs."""
        files = (file_named(path, _TEXTS), stored_file(_folder(path), _TRAIN))
        return [file for file in files if file is not None]

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield all questions, then a link for every labelled pair, in file order."""
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
    return read_each(_split_lines(file, context), _training_query, file.name, context, lambda fields: fields[0])


def _training_query(fields: list[str]) -> TrainingQuery:
    if len(fields) != 3 or not fields[0] or not fields[1].split():
        raise Unreadable("expected id, similar ids and random ids, split by tabs")
    return TrainingQuery(fields[0], tuple(fields[1].split()), tuple(fields[2].split()))


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
    annotations = needed_file(path, f"{split}.txt", "give the folder of the released set, with all of its files")
    texts = _needed_texts(path)
    qrels, run = read_askubuntu(annotations)
    context.records_in += len(run)
    wanted = {document for candidates in run.values() for document, _ in candidates} | run.keys()
    judged: dict[str, Question] = {}
    for question in _questions(texts, context):
        if question.id in judged:
            raise DamagedInputError(f"{texts.name} has the id {question.id!r} twice", "make the ids unique")
        if question.id in wanted:
            judged[question.id] = question
    missing = sorted(wanted - judged.keys())
    if missing and context.rejects.count:
        first = context.rejects.first[0]
        raise DamagedInputError(
            f"{first.file}, line {first.line}: {first.reason}; lines that cannot be read: {context.rejects.count:,},"
            f" questions of {annotations.name} without a text: {len(missing):,}",
            "mend those lines: a judged set is read whole or not at all",
        )
    if missing:
        raise DamagedInputError(
            f"{texts.name} lacks {len(missing)} of the questions that {annotations.name} names, first {missing[0]!r}",
            "fetch both files from the same release",
        )
    documents = {document: judged[document] for candidates in run.values() for document, _ in candidates}
    return Judged(f"askubuntu-{split}", {query: judged[query] for query in run}, documents, run, qrels)


def _questions(file: Path, context: ReadContext) -> Iterator[Question]:
    def question(fields: list[str]) -> Question:
        if len(fields) != 3 or not fields[0]:
            raise Unreadable(f"expected 3 fields (id, title, body) between tabs; fields: {len(fields)}")
        title, body = one_line(fields[1], "title", context), checked(fields[2], "body", context).strip()
        return Question(fields[0], title, body, url=context.address(fields[0], "/questions/{id}"))

    return read_each(_split_lines(file, context), question, file.name, context, lambda fields: fields[0])


def _split_lines(file: Path, context: ReadContext) -> Iterator[tuple[int, list[str]]]:
    return ((line, text.split("\t")) for line, text in text_lines(file, file.name, context))


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _needed_texts(path: Path) -> Path:
    file = file_named(path, _TEXTS)
    if file is None:
        raise FormatError(
            f"{path.name} holds no texts: {_TEXTS}.gz is missing",
            "put it beside the other files; scoring a run needs no texts, only dev.txt or test.txt",
        )
    return file
