"""Detection: one format is found, or the choices are listed."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path

import pytest

from askalike.errors import FormatError, InputError
from askalike.readers.detection import READERS, choose, find_archive, named

TOPIC = json.dumps({"post_stream": {"posts": []}, "id": 1, "title": "t"})


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("Posts.xml", '<?xml version="1.0"?>\n<posts>\n', "stackexchange"),
        ("renamed.xml", "\ufeff<posts/>", "stackexchange"),
        ("1.json", TOPIC, "discourse"),
        ("all.json", f"[{TOPIC}]", "discourse"),
        ("all.jsonl", TOPIC + "\n", "discourse"),
        ("q.jsonl", '{"id": 1, "title": "t"}\n', "jsonl"),
        ("q.jsonl", '{"qid": 1, "question": "t"}\n', "table"),
        ("q.csv", "post_id,subject\n1,t\n", "table"),
        ("q.csv", "question,answer\nt,a\n", "table"),
        ("q.jsonl", '{"title": "t"}\n', "table"),
        ("q.jsonl", '{"title": "t", "answers": []}\n', "jsonl"),
        ("q.tsv", "id\ttitle\n1\tt\n", "table"),
        ("links.tsv", "1\t2\tduplicate\n", "pairs"),
        ("links.csv", "duplicate_id,original_id\n1,2\n", "pairs"),
    ],
)
def test_a_file_is_recognised_plain_and_gzipped(tmp_path: Path, name: str, content: str, expected: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert choose(tmp_path / name).name == expected
    if not name.endswith(".xml"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
        assert choose(tmp_path / f"{name}.gz").name == expected


def test_a_folder_stands_for_the_one_archive_in_it(tmp_path: Path) -> None:
    (tmp_path / "posts.csv").write_text("id,title\n1,t\n")
    (tmp_path / "README.md").write_text("what it is")
    (tmp_path / ".hidden.csv").write_text("id,title\n1,t\n")
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    for name in (None, "table"):
        path, reader, left_out = find_archive(tmp_path, name)
        assert (path, reader.name) == (tmp_path / "posts.csv", "table")
        assert "README.md" in left_out
    assert find_archive(tmp_path / "posts.csv").path == tmp_path / "posts.csv"
    (tmp_path / "dump" / "site").mkdir(parents=True)
    (tmp_path / "dump" / "site" / "Posts.xml").write_text("<posts/>")
    assert find_archive(tmp_path / "dump").path == tmp_path / "dump" / "site"


def test_of_several_archives_in_a_folder_each_is_named_with_what_to_type(tmp_path: Path) -> None:
    for name in ("a site", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Posts.xml").write_text("<posts/>")
    (tmp_path / "links.tsv").write_text("1\t2\tduplicate\n")
    with pytest.raises(FormatError, match="holds several archives") as caught:
        find_archive(tmp_path)
    assert "a site (stackexchange), b (stackexchange), links.tsv (pairs)" in caught.value.message
    assert f"askalike index '{tmp_path / 'a site'}' --into FORUM" in caught.value.hint


def test_a_link_that_leads_out_of_a_folder_is_no_archive_of_it(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("id,title\n1,t\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "posts.csv").symlink_to(tmp_path / "secret.csv")
    with pytest.raises(FormatError, match="is not recognised"):
        find_archive(tmp_path / "folder")


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "it is an empty folder"),
        ({"a.zip": b"PK\x03\x04"}, "of a.zip in it, it is a zip archive"),
        ({"a.txt": b"hello", "b.doc": b"x"}, "no archive is among 'a.txt', 'b.doc'"),
    ],
)
def test_what_is_in_a_folder_without_an_archive_is_told(tmp_path: Path, files: dict[str, bytes], why: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=f"is not recognised: {re.escape(why)}"):
        find_archive(tmp_path)


def test_several_particular_formats_are_listed(tmp_path: Path) -> None:
    (tmp_path / "Posts.xml").write_text("<posts/>")
    (tmp_path / "1.json").write_text(TOPIC)
    with pytest.raises(FormatError, match="looks like several formats: stackexchange, discourse") as caught:
        choose(tmp_path)
    assert "--format stackexchange, --format discourse" in caught.value.hint


@pytest.mark.parametrize("name", ["a", "a.xml", "a.json", "a.csv", "a.parquet", "a.7z"])
def test_a_file_of_no_format_lists_the_choices(tmp_path: Path, name: str) -> None:
    for content in (b"hello", b"\x00\xff" * 100, b"{", b"<html>"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FormatError, match="is not recognised") as caught:
            choose(tmp_path / name)
        assert all(reader in caught.value.hint for reader in READERS)


def test_a_pipe_is_refused_whatever_its_format_is_said_to_be(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.7z")
    for name in (None, *READERS):
        with pytest.raises(InputError, match="is a device, a pipe or a socket"):
            choose(tmp_path / "pipe.7z", name)


@pytest.mark.parametrize(
    ("name", "content", "why", "what_to_do"),
    [
        ("a.jsonl", b"", "it is empty", "fetch"),
        ("a.csv", "hello".encode("utf-16"), "it is UTF-16, expected UTF-8", "iconv -f utf-16"),
        ("a.csv.gz", b"hello", "it holds no gzip data", "without .gz"),
        ("a.csv", gzip.compress(b"id,title", mtime=0), "it is packed by gzip", "posts.csv.gz"),
        (
            "a.csv.gz",
            gzip.compress(gzip.compress(b"id,title", mtime=0), mtime=0),
            "it is packed by gzip twice",
            "unpack it once",
        ),
        ("a.zip", b"PK\x03\x04" * 9, "it is a zip archive", "unpack it first"),
        ("a.xlsx", b"PK\x03\x04" * 9, "it is a workbook", "save its sheet as CSV"),
        ("a.tar", b"Posts.xml".ljust(257, b"\0") + b"ustar", "it is a tar archive", "unpack it first"),
        ("a.json", b'[{"id": 1, "title": "t"}]', "it is a JSON array", "jq -c"),
        ("a.json", b'{"id": 1, "title": "t"}\n', "it holds JSON objects", "posts.jsonl"),
        ("a.txt", b"id,title\n1,t\n", "it is a table", "name it so"),
        ("a.csv", b"sep=;\nid;title\n1;t\n", "its first line is Excel's 'sep=;'", "delete that line"),
        (
            "a.csv",
            b"title,body,parent\nt,b,1\n",
            "no column is known to hold an id, and parent_id refers to it; the columns are 'title', 'body', 'parent'",
            "id=COLUMN",
        ),
        ("a.tsv", b"id\theading\n1\tb\n", "no column is known to hold a title or a body", "--column title=COLUMN"),
        ("a.jsonl", b'{"body": "t"}\n', "it has texts, but neither ids nor titles", "--format table"),
    ],
)
def test_what_can_be_told_of_an_unknown_file_is_told(
    tmp_path: Path, name: str, content: bytes, why: str, what_to_do: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=f"is not recognised: {re.escape(why)}") as caught:
        choose(tmp_path / name)
    assert what_to_do in caught.value.hint


def test_a_named_format_is_taken_as_it_is(tmp_path: Path) -> None:
    assert choose(tmp_path, "table").name == "table"
    with pytest.raises(FormatError, match="'tabel' is no format") as caught:
        named("tabel")
    assert "table" in caught.value.hint
