"""The corpus of a folder in the layout of BEIR, JSON lines.

Source: Thakur et al. 2021, "BEIR: A Heterogenous Benchmark for Zero-shot Evaluation of Information Retrieval Models",
section 3; the keys are ``_id``, ``title``, ``text`` and ``metadata``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from askalike.errors import FormatError
from askalike.readers.files import first_bytes, stored_file, text_lines
from askalike.readers.frame import ReadContext, regular_size
from askalike.readers.values import Unreadable, identifier, one_line, tags, text
from askalike.types import Question, Record


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
        yield from _questions(corpus, context)


def _corpus_file(path: Path) -> Path | None:
    if path.is_dir():
        return stored_file(path, "corpus.jsonl")
    return path if path.is_file() and path.name in ("corpus.jsonl", "corpus.jsonl.gz") else None


def _questions(file: Path, context: ReadContext) -> Iterator[Question]:
    for line, text_line in text_lines(file, file.name, context):
        try:
            question = _parse(text_line, context)
        except Unreadable as error:
            context.reject(file.name, line, "", str(error))
            continue
        context.records_in += 1
        yield question


def _parse(line: str, context: ReadContext) -> Question:
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
    metadata = fields.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    title, url = one_line(fields.get("title"), "title", context), metadata.get("url")
    labels = tags(metadata.get("tags"), context) if isinstance(metadata.get("tags"), list | str) else ()
    address = text(url, "url", context) if isinstance(url, str) else context.address(name)
    return Question(name, title, body, tags=labels, url=address)
