"""The corpus of a folder in the layout of BEIR, as a forum."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askalike.readers.frame import ReadContext
from askalike.readers.research.beir import BeirReader
from askalike.types import Question


def write_lines(path: Path, *rows: object) -> None:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    documents = [{"_id": f"d{n}", "title": f"Title {n}", "text": f"Text {n}", "metadata": {}} for n in range(1, 12)]
    documents[1] = {"_id": "d2", "title": "", "text": "no title", "metadata": {"tags": ["a", "b"], "url": "http://x"}}
    documents[10] = {"_id": 11, "text": "a number as id"}
    write_lines(tmp_path / "corpus.jsonl", *documents)
    write_lines(tmp_path / "queries.jsonl", {"_id": "q1", "text": "Query 1?", "metadata": {}})
    return tmp_path


def test_the_corpus_is_a_forum(folder: Path) -> None:
    done: list[int] = []
    context = ReadContext(advance=done.append)
    assert BeirReader().matches(folder)
    assert BeirReader().matches(folder / "corpus.jsonl")
    assert not BeirReader().matches(folder / "queries.jsonl")
    records = list(BeirReader().read(folder, context))
    assert len(records) == context.records_in == 11
    assert records[0] == Question("d1", "Title 1", "Text 1")
    assert records[1] == Question("d2", "", "no title", tags=("a", "b"), url="http://x")
    assert records[9] == Question("d10", "Title 10", "Text 10")
    assert records[-1] == Question("11", "", "a number as id")
    assert sum(done) == BeirReader().size_bytes(folder)


def test_lines_that_cannot_be_read_are_rejected(folder: Path) -> None:
    rows = ["[1]", "{", {"_id": "", "text": "x"}, {"_id": "a"}, {"_id": "b", "text": ["x"]}, {"_id": "c", "text": "ok"}]
    write_lines(folder / "corpus.jsonl", *rows)
    context = ReadContext()
    records = list(BeirReader().read(folder, context))
    assert [record.id for record in records] == ["c"]  # type: ignore[union-attr]
    assert [reject.line for reject in context.rejects.first] == [1, 2, 3, 4, 5]
    assert context.records_in == 6
