"""A folder in the layout of BEIR: a corpus and queries as JSON lines, relevance judgments as tab-separated values.

Source: Thakur et al. 2021, "BEIR: A Heterogenous Benchmark for Zero-shot Evaluation of Information Retrieval Models",
section 3 (the three kinds of file); the keys are ``_id``, ``title``, ``text`` and ``metadata``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from askalike.errors import DamagedInputError, FormatError
from askalike.readers.files import first_bytes, needed_file, stored_file, text_lines
from askalike.readers.frame import ReadContext, regular_size
from askalike.readers.values import Unreadable, identifier, one_line, tags, text
from askalike.types import Judged, Qrels, Question, Record

SPLITS = ("test", "dev", "train")
_HINT = "give a whole BEIR folder, or another split"
_HEADER = ["query-id", "corpus-id", "score"]


class BeirReader:
    """The corpus of a BEIR folder as a forum: every document is a question, without answers and links."""

    name = "beir"
    title = "BEIR folder (corpus.jsonl)"

    def matches(self, path: Path) -> bool:
        """Say whether this is, or holds, a ``corpus.jsonl`` whose first line has ``_id`` and ``text``."""
        corpus = _corpus_file(path)
        if corpus is None:
            return False
        head = first_bytes(corpus).split(b"\n", 1)[0]
        return head.lstrip().startswith(b"{") and b'"_id"' in head and b'"text"' in head

    def size_bytes(self, path: Path) -> int:
        """Return the stored size of the corpus."""
        corpus = _corpus_file(path)
        return regular_size(corpus) if corpus else 0

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield the documents in file order.

        Raises:
            FormatError: there is no corpus here.
            DamagedInputError: the corpus is empty, truncated or not UTF-8.
        """
        corpus = _corpus_file(path)
        if corpus is None:
            raise FormatError(f"{path.name} holds no corpus.jsonl", "give the folder that corpus.jsonl lies in")
        yield from _questions(corpus, context, is_query=False)


def has_beir_judgments(path: Path) -> bool:
    """Say whether a folder has a corpus, queries and at least one file of judgments."""
    has_qrels = any(stored_file(path / "qrels", f"{split}.tsv") for split in SPLITS)
    return has_qrels and stored_file(path, "queries.jsonl") is not None and BeirReader().matches(path)


def load_beir(path: Path, split: str, context: ReadContext) -> Judged:
    """Return one split as a judged set; it has no candidates, since the whole corpus is to be searched.

    Queries are those that the split judges, in the order of the judgments. Judged documents that the corpus lacks stay
    in the judgments, as the other tools score them, and the context is told how many there are.

    Raises:
        FormatError: a file is missing.
        DamagedInputError: a file is damaged, or a judged query has no text.
    """
    split = split or SPLITS[0]
    corpus, queries = needed_file(path, "corpus.jsonl", _HINT), needed_file(path, "queries.jsonl", _HINT)
    qrels_file = needed_file(path, f"qrels/{split}.tsv", _HINT)
    qrels = _read_qrels(qrels_file, context)
    texts = _by_id(queries, context, is_query=True)
    without_text = [query for query in qrels if query not in texts]
    if without_text:
        raise DamagedInputError(
            f"qrels/{qrels_file.name} judges {len(without_text)} queries that {queries.name} lacks, "
            f"first {without_text[0]!r}",
            "fetch both files from the same place",
        )
    documents = _by_id(corpus, context, is_query=False)
    missing = sum(document not in documents for grades in qrels.values() for document in grades)
    if missing:
        context.notice(f"qrels/{qrels_file.name} judges {missing} documents that {corpus.name} lacks; they stay judged")
    return Judged(f"{path.name}-{split}", {query: texts[query] for query in qrels}, documents, {}, qrels)


def _corpus_file(path: Path) -> Path | None:
    if path.is_dir():
        return stored_file(path, "corpus.jsonl")
    return path if path.is_file() and path.name in ("corpus.jsonl", "corpus.jsonl.gz") else None


def _questions(file: Path, context: ReadContext, is_query: bool) -> Iterator[Question]:
    for line, text_line in text_lines(file, file.name, context):
        try:
            question = _parse(text_line, is_query, context)
        except Unreadable as error:
            context.reject(file.name, line, "", str(error))
            continue
        context.records_in += 1
        yield question


def _by_id(file: Path, context: ReadContext, is_query: bool) -> dict[str, Question]:
    questions: dict[str, Question] = {}
    for question in _questions(file, context, is_query):
        if question.id in questions:
            raise DamagedInputError(f"{file.name} has the _id {question.id!r} twice", "make the ids unique")
        questions[question.id] = question
    return questions


def _parse(line: str, is_query: bool, context: ReadContext) -> Question:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise Unreadable(f"a JSON {type(fields).__name__}, expected an object")
    if fields.get("text") is None:
        raise Unreadable('no "text"')
    name = identifier(fields.get("_id"), "_id")
    body = text(fields["text"], "text", context)
    if is_query:
        return Question(name, one_line(body, "text", context), url=context.address(name))
    metadata = fields.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    title, url = one_line(fields.get("title"), "title", context), metadata.get("url")
    labels = tags(metadata.get("tags"), context) if isinstance(metadata.get("tags"), list | str) else ()
    address = text(url, "url", context) if isinstance(url, str) else context.address(name)
    return Question(name, title, body, tags=labels, url=address)


def _whole_number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _read_qrels(file: Path, context: ReadContext) -> Qrels:
    name = f"qrels/{file.name}"
    qrels: Qrels = {}
    for line, text_line in text_lines(file, name, context):
        fields = text_line.split("\t")
        if line == 1:
            if fields != _HEADER:
                raise FormatError(f"{name}, line 1: found {text_line!r}, expected {' '.join(_HEADER)!r} split by tabs")
            continue
        grade = _whole_number(fields[2]) if len(fields) == 3 else None
        if grade is None:
            context.reject(name, line, fields[0], "expected query id, document id and a whole number")
        elif fields[1] in qrels.get(fields[0], {}):
            context.reject(name, line, fields[0], f"document {fields[1]!r} is judged a second time")
        else:
            context.records_in += 1
            qrels.setdefault(fields[0], {})[fields[1]] = grade
    return qrels
