"""The corpus of a folder in the layout of BEIR, JSON lines.

Source: Thakur et al. 2021, "BEIR: A Heterogenous Benchmark for Zero-shot Evaluation of Information Retrieval Models",
section 3; the keys are ``_id``, ``title``, ``text`` and ``metadata``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from askalike.errors import FormatError
from askalike.readers.files import file_named, first_bytes, text_lines
from askalike.readers.frame import ReadContext, regular_size
from askalike.readers.jsonl import load_object
from askalike.readers.values import Unreadable, identifier, one_line, read_each, tags, text
from askalike.types import Question, Record


class BeirReader:
    """The corpus of a BEIR folder as a forum: every document is a question, without answers and links."""

    name = "beir"
    title = "BEIR folder (corpus.jsonl)"

    def matches(self, path: Path) -> bool:
        """Say whether this is, or holds, a ``corpus.jsonl`` whose first line has ``_id`` and ``text``."""
        corpus = file_named(path, "corpus.jsonl")
        if corpus is None:
            return False
        head = first_bytes(corpus).split(b"\n", 1)[0]
        return head.lstrip().startswith(b"{") and b'"_id"' in head and b'"text"' in head

    def size_bytes(self, path: Path) -> int:
        """Return the stored size of the corpus."""
        corpus = file_named(path, "corpus.jsonl")
        return regular_size(corpus) if corpus else 0

    def read(self, path: Path, context: ReadContext) -> Iterator[Record]:
        """Yield the documents in file order.

        Raises:
            FormatError: there is no corpus here.
            DamagedInputError: the corpus is empty, truncated or not UTF-8.
        """
        corpus = file_named(path, "corpus.jsonl")
        if corpus is None:
            raise FormatError(f"{path.name} holds no corpus.jsonl", "give the folder that corpus.jsonl lies in")
        yield from read_each(text_lines(corpus, corpus.name, context), _reader(context), corpus.name, context)


def _reader(context: ReadContext) -> Callable[[str], Question]:
    """Return what reads a line."""

    def question(line: str) -> Question:
        fields = load_object(line.encode())
        if fields.get("text") is None:
            raise Unreadable('no "text"')
        metadata = fields.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        labels, url = metadata.get("tags"), metadata.get("url")
        return Question(
            name := identifier(fields.get("_id"), "_id"),
            one_line(fields.get("title"), "title", context),
            text(fields["text"], "text", context),
            tags=tags(labels, context) if isinstance(labels, list | str) else (),
            url=text(url, "url", context) if isinstance(url, str) else context.address(name),
        )

    return question
