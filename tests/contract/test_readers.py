"""Laws that every reader keeps, whatever it is given."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from askalike.data import bundled_forum
from askalike.errors import InputError
from askalike.readers.detection import READERS
from askalike.readers.frame import ReadContext, Reader, Rejects

ODD: dict[str, bytes] = {
    "empty": b"",
    "zeros": b"\0" * 4096,
    "noise": bytes(range(256)) * 16,
    "utf-16": '{"id": "1", "title": "x"}\n'.encode("utf-16"),
    "half a gzip": gzip.compress(b"x" * 10_000)[:30],
    "half an xml": b'<?xml version="1.0"?><posts><row Id="1" ',
    "half a json": b'{"id": "1", "title": "x',
    "entities": b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>',
    "deep json": b"[" * 100_000,
    "one long line": b"a" * 200_000,
}
NAMES = ("Posts.xml", "topics.json", "questions.jsonl", "posts.csv", "file.gz", "corpus.jsonl", "data.7z", "a.parquet")


@pytest.mark.parametrize("content", ODD.values(), ids=ODD)
def test_an_odd_file_is_never_recognised_with_an_error(tmp_path: Path, content: bytes) -> None:
    for name in NAMES:
        path = tmp_path / name
        path.write_bytes(content)
        assert {type(reader.matches(path)) for reader in READERS.values()} == {bool}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_an_odd_file_is_refused_with_a_message_or_as_rejects(tmp_path: Path, reader: Reader) -> None:
    path = tmp_path / "odd"
    for content in ODD.values():
        path.write_bytes(content)
        context = ReadContext()
        records, message = 0, ""
        try:
            for _ in reader.read(path, context):
                records += 1
        except InputError as error:
            message = str(error)
        assert "odd" in message or context.records_in == records + context.rejects.count


def test_names_and_titles_of_formats_are_fit_to_print() -> None:
    for reader in READERS.values():
        assert reader.name == reader.name.lower()
        assert 0 < len(reader.title) < 120


def test_reading_reports_all_its_bytes_and_counts_every_record() -> None:
    reader = READERS["jsonl"]
    seen: list[int] = []
    context = ReadContext(rejects=Rejects(), advance=seen.append)
    found = sum(1 for _ in reader.read(bundled_forum(), context))
    assert sum(seen) == reader.size_bytes(bundled_forum()) == bundled_forum().stat().st_size
    assert context.records_in == found + context.rejects.count
