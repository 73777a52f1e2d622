"""A folder in the layout of BEIR, as a forum and as a judged set."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from askalike.errors import DamagedInputError, FormatError, SettingError
from askalike.readers.frame import ReadContext
from askalike.readers.research.beir import BeirReader
from askalike.readers.research.judged import JUDGED, read_judged
from askalike.types import Question


def write_lines(path: Path, *rows: object) -> None:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    documents = [{"_id": f"d{n}", "title": f"Title {n}", "text": f"Text {n}", "metadata": {}} for n in range(1, 12)]
    documents[1] = {"_id": "d2", "title": "", "text": "no title", "metadata": {"tags": ["a", "b"], "url": "http://x"}}
    documents[10] = {"_id": 11, "text": "a number as id"}
    write_lines(tmp_path / "corpus.jsonl", *documents)
    queries = [{"_id": f"q{n}", "text": f"Query {n}?", "metadata": {}} for n in (1, 2, 3)]
    write_lines(tmp_path / "queries.jsonl", *queries)
    (tmp_path / "qrels").mkdir()
    write_lines(tmp_path / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore", "q3\td1\t2", "q3\td9\t0", "q1\td2\t1")
    (tmp_path / "qrels" / "dev.tsv.gz").write_bytes(gzip.compress(b"query-id\tcorpus-id\tscore\r\nq2\td4\t1\r\n"))
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


def test_the_judged_set_has_the_queries_of_its_split_and_no_candidates(folder: Path) -> None:
    judged = read_judged(folder)
    assert judged.name == f"{folder.name}-test"
    assert judged.queries == {"q3": Question("q3", "Query 3?"), "q1": Question("q1", "Query 1?")}
    assert judged.qrels == {"q3": {"d1": 2, "d9": 0}, "q1": {"d2": 1}}
    assert len(judged.documents) == 11
    assert judged.candidates == {}
    assert read_judged(folder, split="dev").qrels == {"q2": {"d4": 1}}


def test_native_lines_with_id_and_title_are_not_taken_for_beir(tmp_path: Path) -> None:
    write_lines(tmp_path / "corpus.jsonl", {"id": "1", "title": "a", "body": "b"})
    assert not BeirReader().matches(tmp_path)
    assert not any(reader.matches(tmp_path) for reader in JUDGED.values())
    with pytest.raises(FormatError, match="looks like no format, expected exactly one"):
        read_judged(tmp_path)


def test_lines_that_cannot_be_read_are_rejected_and_stop_a_judged_set(folder: Path) -> None:
    rows = ["[1]", "{", {"_id": "", "text": "x"}, {"_id": "a"}, {"_id": "b", "text": ["x"]}, {"_id": "c", "text": "ok"}]
    write_lines(folder / "corpus.jsonl", *rows)
    context = ReadContext()
    records = list(BeirReader().read(folder, context))
    assert [record.id for record in records] == ["c"]  # type: ignore[union-attr]
    assert [reject.line for reject in context.rejects.first] == [1, 2, 3, 4, 5]
    assert context.records_in == 6
    with pytest.raises(DamagedInputError, match=r"5 records cannot be read, first corpus.jsonl, line 1: a JSON list"):
        read_judged(folder, "beir")


@pytest.mark.parametrize("line", ["q1\td1", "q1\td1\tyes", "q3\td1\t1", "q1 d1 1"])
def test_a_judgment_that_cannot_be_read_stops_a_judged_set(folder: Path, line: str) -> None:
    write_lines(folder / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore", "q3\td1\t2", line)
    with pytest.raises(DamagedInputError, match=r"first qrels/test.tsv, line 3"):
        read_judged(folder)


def test_missing_files_headers_queries_and_double_ids_are_errors(folder: Path) -> None:
    with pytest.raises(FormatError, match=r"lacks qrels/train.tsv \(or qrels/train.tsv.gz\)"):
        read_judged(folder, split="train")
    with pytest.raises(SettingError, match="splits: test, dev, train"):
        read_judged(folder, split="validation")
    write_lines(folder / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore", "q7\td1\t2")
    with pytest.raises(DamagedInputError, match=r"judges 1 queries that queries.jsonl lacks, first 'q7'"):
        read_judged(folder)
    write_lines(folder / "qrels" / "test.tsv", "q1\td1\t2")
    with pytest.raises(FormatError, match="line 1: found"):
        read_judged(folder)
    write_lines(folder / "corpus.jsonl", {"_id": "d", "text": "x"}, {"_id": "d", "text": "y"})
    with pytest.raises(DamagedInputError, match="has the _id 'd' twice"):
        read_judged(folder, split="dev")


def test_judged_documents_that_the_corpus_lacks_stay_judged_and_are_told(folder: Path) -> None:
    write_lines(folder / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore", "q3\tgone\t1")
    notices: list[str] = []
    assert read_judged(folder, context=ReadContext(notice=notices.append)).qrels == {"q3": {"gone": 1}}
    assert "judges 1 documents that corpus.jsonl lacks" in notices[0]
