"""Laws of the forum readers: counts add up, and bytes of any kind are read, rejected or named, never worse."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from askalike.errors import AskalikeError
from askalike.readers.discourse import DiscourseReader
from askalike.readers.frame import ReadContext, Reader
from askalike.readers.jsonl import JsonlReader
from askalike.readers.pairs import PairsReader
from askalike.readers.stackexchange import StackExchangeReader
from askalike.readers.table import TableReader
from askalike.readers.values import moment
from askalike.types import Question, Record

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
FIELDS = ("id", "title", "body", "markup", "tags", "created", "closed", "score", "url", "author")
LISTS = ("answers", "duplicate_of", "related", "links")
QUESTION_FIELDS = st.sampled_from((*FIELDS, *LISTS))
SEEDS = {
    "a.jsonl": b'{"id": "1", "title": "t", "answers": [{"body": "b"}]}\n{"id": "2", "title": "u"}\n',
    "a.json": b'[{"id": 1, "title": "t", "post_stream": {"posts": [{"post_number": 1, "cooked": "c"}]}}]',
    "a.csv": b'id,title,body\n1,t,"two\nlines"\n2,u,b\n',
    "a.tsv": b"1\t2\tduplicate\n3\t4\trelated\n",
    "a.xml": b'<posts>\n<row Id="1" PostTypeId="1" Title="t" Tags="&lt;a&gt;"/>\n</posts>',
}
READERS: dict[str, Reader] = {
    "a.jsonl": JsonlReader(),
    "a.json": DiscourseReader(),
    "a.csv": TableReader(),
    "a.tsv": PairsReader(),
    "a.xml": StackExchangeReader(),
}


def read(name: str, content: bytes) -> tuple[list[Record], ReadContext]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        READERS[name].matches(path)
        context = ReadContext()
        records = list(READERS[name].read(path, context))
    return records, context


@pytest.mark.parametrize("name", SEEDS)
@QUICK
@given(data=st.data())
def test_a_changed_file_is_read_rejected_or_named(name: str, data: st.DataObject) -> None:
    content = bytearray(SEEDS[name])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=5))
    try:
        records, context = read(name, bytes(content))
    except AskalikeError as error:
        message = str(error)
    else:
        message = name
        assert context.records_in == len(records) + context.rejects.count
    assert name in message


@QUICK
@given(st.lists(st.dictionaries(QUESTION_FIELDS, JSON, max_size=8), min_size=1, max_size=4))
def test_any_json_under_our_names_gives_records_that_can_be_stored(objects: list[dict[str, object]]) -> None:
    content = "\n".join(json.dumps(item) for item in objects)
    records, context = read("a.jsonl", content.encode())
    assert context.records_in == len(records) + context.rejects.count
    for record in records:
        repr(record).encode("utf-8")
        if isinstance(record, Question):
            for value in (record.id, record.title, record.body, record.url, record.author, *record.tags):
                assert "\x00" not in value
                value.encode("utf-8")


@QUICK
@given(st.lists(st.tuples(st.integers(1, 10**6), WORDS, WORDS), min_size=1, max_size=6))
def test_a_table_gives_back_the_texts_that_were_written(rows: list[tuple[int, str, str]]) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(["id", "title", "body"])
    writer.writerows((number, f"t{title}", f"b{body}") for number, title, body in rows)
    records, context = read("a.csv", out.getvalue().encode())
    assert context.rejects.count == 0
    assert [record.body for record in records if isinstance(record, Question)] == [f"b{body}" for _, _, body in rows]


@given(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)))
def test_a_moment_written_in_iso_is_the_same_moment(value: datetime) -> None:
    assert moment(value.isoformat(), ReadContext()) == value
