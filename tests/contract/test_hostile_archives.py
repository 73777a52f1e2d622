"""One table of formats and one of hostile inputs: whatever a file holds, reading it into a forum ends in a clear error,
or in records of which each is stored or counted as rejected; and what was stored can be read back.
"""

from __future__ import annotations

import bz2
import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

import py7zr
import pytest

from askalike.errors import AskalikeError
from askalike.forum.exchange import ImportOptions, ImportReport, import_archive
from askalike.progress import SilentProgress
from askalike.readers.detection import READERS, find_archive
from askalike.readers.frame import Limits, ReadOptions
from askalike.store import ForumLayout, Store, create_store

Values = Mapping[str, str]
USUAL: Values = {"id": "7", "title": "Why?", "body": "Because", "date": "2020-01-01", "score": "3", "answer": "So."}
LIMITS = Limits(line_bytes=1 << 20, document_bytes=1 << 20, field_chars=1 << 18, archive_free_bytes=1 << 20)


def _json(values: Values) -> dict[str, object]:
    """Return values as they are, and those that are JSON already as what they say."""
    return {name: _Raw(value) if value.startswith("\0json") else value for name, value in values.items()}


class _Raw(str):
    """A value that is written into JSON as it is."""


def _dumps(value: object) -> str:
    if isinstance(value, _Raw):
        return value.removeprefix("\0json")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {_dumps(part)}" for name, part in value.items()) + "}"
    return "[" + ", ".join(map(_dumps, value)) + "]" if isinstance(value, list) else json.dumps(value)


def _text(value: str) -> str:
    return value.removeprefix("\0json")


def _stackexchange(values: Values) -> str:
    texts = {name: escape(_text(value)) for name, value in values.items()}
    return (
        f'<posts>\n<row Id="{texts["id"]}" PostTypeId="1" Title="{texts["title"]}" Body="{texts["body"]}"'
        f' CreationDate="{texts["date"]}" Score="{texts["score"]}" Tags="&lt;a&gt;" />\n'
        f'<row Id="8" PostTypeId="2" ParentId="{texts["id"]}" Body="{texts["answer"]}" />\n'
        '<row Id="9" PostTypeId="1" Title="How?" Body="x" />\n</posts>\n'
    )


def _discourse(values: Values) -> str:
    record = _json(values)
    posts: list[object] = [
        {"id": 1, "post_number": 1, "cooked": record["body"], "like_count": record["score"]},
        {"id": 2, "post_number": 2, "cooked": record["answer"], "created_at": record["date"]},
    ]
    topic = {
        "id": record["id"],
        "title": record["title"],
        "created_at": record["date"],
        "post_stream": {"posts": posts},
    }
    return _dumps([topic, {"id": 9, "title": "How?", "post_stream": {"posts": [{"post_number": 1, "raw": "x"}]}}])


def _jsonl(values: Values) -> str:
    record = _json(values)
    answers: object = [{"body": record["answer"], "created": record["date"], "score": record["score"]}]
    first = {name: record[name] for name in ("id", "title", "body", "score")} | {"created": record["date"]}
    return _dumps({**first, "answers": answers}) + '\n{"id": "9", "title": "How?"}\n'


def _table(values: Values) -> str:
    cells = ",".join('"' + _text(value).replace('"', '""') + '"' for value in values.values())
    return f"id,title,body,created,score,answer\n{cells}\n9,How?,x,,,\n"


def _pairs(values: Values) -> str:
    return f"{_text(values['id'])}\t{_text(values['title'])}\tduplicate\n7\t9\trelated\n"


def _semeval(values: Values) -> str:
    texts = {name: escape(_text(value)) for name, value in values.items()}
    return (
        f'<xml><OrgQuestion ORGQ_ID="{texts["id"]}"><OrgQSubject>{texts["title"]}</OrgQSubject><OrgQBody/>'
        f'<Thread><RelQuestion RELQ_ID="{texts["id"]}_R1" RELQ_RANKING_ORDER="1" RELQ_RELEVANCE2ORGQ="Relevant"'
        f' RELQ_DATE="{texts["date"]}"><RelQSubject>How?</RelQSubject><RelQBody>{texts["body"]}</RelQBody>'
        f'</RelQuestion><RelComment RELC_ID="c" RELC_DATE="{texts["date"]}"><RelCText>{texts["answer"]}</RelCText>'
        "</RelComment></Thread></OrgQuestion></xml>"
    )


def _yahoo(values: Values) -> str:
    texts = {name: escape(_text(value)) for name, value in values.items()}
    first = (
        f"<uri>{texts['id']}</uri><subject>{texts['title']}</subject><content>{texts['body']}</content>"
        f"<bestanswer>{texts['answer']}</bestanswer><date>{texts['date']}</date>"
    )
    documents = [f"<document>{content}</document>" for content in (first, "<uri>9</uri><subject>How?</subject>")]
    return "".join(f"<vespaadd>{document}</vespaadd>\n" for document in documents)


def _liveqa(values: Values) -> str:
    texts = {name: _text(value) for name, value in values.items()}
    first = f"{texts['id']}\tBooks\tArts\t{texts['date']}\t{texts['title']}\t{texts['body']}\n"
    return first + "20130824170310AA9\tBooks\tArts\t2013-08-25\tHow?\tx\n"


def _threads(values: Values) -> str:
    cells = [repr(_text(values[name]).encode("utf-8", "surrogatepass")) for name in ("title", "body", "answer")]
    row = ",".join('"' + cell.replace('"', '""') + '"' for cell in [*cells, cells[-1]])
    return f"subject,content,bestanswer,ans0\n{row}\nb'How?',,b'x',b'x'\n"


def _askubuntu(values: Values) -> str:
    return f"{_text(values['id'])}\t{_text(values['title'])}\t{_text(values['body'])}\n9\tHow?\tx\n"


def _export(values: Values) -> str:
    record = _json(values)
    first = {name: record[name] for name in ("id", "title", "body", "score")} | {"created": record["date"]}
    first |= {"score": 3, "created": "2020-01-01T00:00:00Z"} if values is USUAL else {}
    return _dumps(first) + '\n{"id": "9", "title": "How?"}\n'


FORMATS: dict[str, tuple[str, Callable[[Values], str]]] = {
    "askalike": ("questions.jsonl", _export),
    "stackexchange": ("Posts.xml", _stackexchange),
    "discourse": ("topics.json", _discourse),
    "jsonl": ("questions.jsonl", _jsonl),
    "table": ("posts.csv", _table),
    "pairs": ("links.tsv", _pairs),
    "semeval": ("task.xml", _semeval),
    "yahoo": ("archive.xml", _yahoo),
    "yahoo-liveqa": ("liveqa.txt", _liveqa),
    "yahoo-threads": ("threads.csv", _threads),
    "askubuntu": ("text_tokenized.txt", _askubuntu),
}
"""Format → a file's name and the file, of one question with these values and a plain one."""

FAMILIES = (
    ("jsonl", "discourse", "askalike"),
    ("stackexchange", "semeval", "yahoo"),
    ("table", "pairs", "yahoo-liveqa", "yahoo-threads", "askubuntu"),
)
"""Formats of JSON, of XML and of lines, each of which share a parser."""
DATED = ("askalike", "jsonl", "discourse", "stackexchange", "table")
"""Formats whose records have dates and scores."""


def in_each_family(oddities: Iterable[str]) -> list[tuple[str, str]]:
    """Return (format, oddity): each oddity once in every family, whose formats take turns."""
    return [(family[place % len(family)], oddity) for place, oddity in enumerate(oddities) for family in FAMILIES]


def in_turns(oddities: Iterable[str], formats: Sequence[str]) -> list[tuple[str, str]]:
    """Return (format, oddity): each oddity once, since all formats share what reads it; the formats take turns."""
    return [(formats[place % len(formats)], oddity) for place, oddity in enumerate(oddities)]


TEXTS: dict[str, Values] = {
    "nothing": dict.fromkeys(USUAL, ""),
    "white space": dict.fromkeys(USUAL, " \t\v\f\u2028\u00a0"),
    "line ends": dict.fromkeys(USUAL, "a\r\nb\rc\nd"),
    "NUL": dict.fromkeys(USUAL, "a\0b"),
    "controls": dict.fromkeys(USUAL, "\x1b[31m\x07\x7f\x85\ufffe\ufeff\u202e"),
    "half a surrogate pair": dict.fromkeys(USUAL, "a\ud800b"),
    "quotes": dict.fromkeys(USUAL, '"\'`\\,;|\\"\'\'\'"""'),
    "separators": dict.fromkeys(USUAL, ",\t;|\x1c\x1d\x1e"),
    "markup": dict.fromkeys(USUAL, "]]><!--<script>alert(1)</script>&#0;&#xFFFFFFFFFF;&nope;" + "&#9" * 400),
    "nested markup": {**USUAL, "body": "<div>" * 40_000, "answer": "> " * 40_000},
    "long": dict.fromkeys(USUAL, "x" * 300_000),
    "an id too long": {**USUAL, "id": "7" * 5_000},
    "an id with letters that combine": {**USUAL, "id": "e\u0301" * 200},
    "an id like that of the other": {**USUAL, "id": "9"},
    "an id like that of the answer": {**USUAL, "id": "8"},
}
"""Texts of a record that a hostile or clumsy person may give."""
DATES = (
    "9999-12-31T23:59:59-14:00",
    "0000-00-00",
    "2020-02-30",
    "2020-W01-1",
    "yesterday",
    "1e308",
    "9" * 5_000,
    "nan",
    "२०२०-०१-०१",
)
SCORES = ("nan", "-inf", "1e308", "9" * 5_000, "1_000", "٣", "0x10", "3,5", "true")
MOMENTS_AND_NUMBERS: dict[str, Values] = {
    **{f"the date {date}": {**USUAL, "date": date} for date in DATES},
    **{f"the score {score}": {**USUAL, "score": score} for score in SCORES},
}
JSON_VALUES: dict[str, Values] = {
    f"the JSON {value[:20]}": dict.fromkeys(USUAL, f"\0json{value}")
    for value in (
        "null",
        "true",
        "NaN",
        "-Infinity",
        "1e400",
        "9" * 5_000,
        "0.1",
        "[]",
        '[["a"]]',
        '{"name": {"name": 1}}',
        '"\\ud800"',
        '"\\u0000"',
        "[" * 100_000,
    )
}
"""Values that go into formats of JSON as they are."""
VALUES = TEXTS | MOMENTS_AND_NUMBERS | JSON_VALUES

_DEEP = 100_000
_BOMB = b"x" * 4_000_000
CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "white space": b" \n\r\n\t\n",
    "a byte order mark": b"\xef\xbb\xbf",
    "NUL bytes": b"\0" * 100_000,
    "random bytes": bytes((n * 7919 + n // 13) % 256 for n in range(50_000)),
    "UTF-16": '{"id": "1", "title": "é"}\n'.encode("utf-16"),
    "a long line": b"x" * 3_000_000,
    "half a gzip": gzip.compress(b"x" * 10_000)[:30],
}
"""Files that are odd in any format."""
JSON_FILES: dict[str, bytes] = {
    "deep lists": b"[" * _DEEP + b"]" * _DEEP,
    "deep objects": b'{"a":' * _DEEP,
    "a line of deep lists": b'{"id": 1, "title": ' + b"[" * _DEEP + b"]" * _DEEP + b"}\n",
    "a number of many digits": b'{"id": ' + b"9" * 5_000 + b', "title": "t"}\n',
    "null": b"null\n",
    "a list of numbers": b"[1, 2, 3]",
    "an empty list": b"[]",
    "a list of lists without end": b"[[[[",
}
XML_FILES: dict[str, bytes] = {
    "deep elements": b"<posts>" + b"<row>" * _DEEP,
    "many attributes": b"<posts><row " + b" ".join(b'a%d=""' % n for n in range(50_000)) + b"/></posts>",
    "entities": b'<!DOCTYPE a [<!ENTITY b "bb">]><posts><row Id="1" Title="&b;"/></posts>',
    "a document type outside": b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><posts/>',
    "an encoding that there is not": b'<?xml version="1.0" encoding="klingon"?><posts/>',
    "XML that ends early": b'<posts><row Id="1" Title="t"',
    "a tag without end": b"<posts><row " + b"x" * 2_000_000,
    "many questions without end": b"<vespaadd>" * 20_000,
}
LINES: dict[str, bytes] = {
    "a long quoted cell": b'id,title\n1,"' + b"x\n" * 20_000,
    "many columns": b"id,title" + b",x" * 100_000 + b"\n" + b"1,t" + b"," * 100_000 + b"\n",
    "many cells": b"id,title\n" + b"," * 500_000 + b"\n",
    "columns of one name": b"id,id,title,title\n1,2,a,b\n",
    "lines of tabs": b"\t" * 200_000 + b"\n" + b"\t\t\t\t\t\n" * 1_000,
    "old line ends": b"id,title\r1,a\r2,b\r",
    "quotes without end": b'id,title\n1,"a\n2,b\n',
    "a Python expression": b'subject,content,bestanswer,ans0\n"b\'\'.__class__","(1).__pow__(9)",,\n',
}
OF_FAMILIES = (JSON_FILES, XML_FILES, LINES)
FILES = CONTENTS | JSON_FILES | XML_FILES | LINES


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Store]:
    store = create_store(ForumLayout(tmp_path / "forum"), {"language": "english"})
    yield store
    store.close()


def put(folder: Path, name: str, content: bytes) -> Path:
    """Write a file of a format; return what is read: an export's folder, or the file."""
    path = folder / FORMATS[name][0]
    path.write_bytes(content)
    if name != "askalike":
        return path
    manifest = {"format": 1, "askalike": "0", "form": "jsonl", "tables": {"questions": 2}}
    (folder / "export.json").write_text(json.dumps(manifest))
    return folder


def ends_well(archive: Store, path: Path, name: str, folder: Path) -> ImportReport | None:
    """Read an archive into a forum: check what every reading promises, and return its report, None after an error."""
    options = ImportOptions(format=name, read=ReadOptions(limits=LIMITS))
    rejects = folder / "rejects.jsonl"
    try:
        report = import_archive(archive, path, options, rejects, SilentProgress())
    except AskalikeError as error:
        refused: AskalikeError | None = error
    else:
        refused = None
    if refused is not None:
        assert len(refused.message) < 2_000, "an error can be read"
        assert archive.count_questions() == 0, "after an error nothing is stored"
        return None
    counts = (report.load.questions, report.load.answers, report.load.links)
    taken = sum(count.added + count.edited + count.unchanged for count in counts)
    assert report.records_in == taken + report.rejected
    lines = rejects.read_text(encoding="utf-8").splitlines() if rejects.exists() else []
    assert len(lines) == report.rejected
    assert all(isinstance(json.loads(line), dict) for line in lines)
    stored = [question for _, question in archive.all_questions()]
    assert len(stored) == report.load.questions.added
    assert sum(archive.answer_counts([question.id for question in stored]).values()) == report.load.answers.added
    return report


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_in_the_table_and_its_usual_file_is_read(archive: Store, tmp_path: Path, name: str) -> None:
    assert FORMATS.keys() == READERS.keys() == {name for family in FAMILIES for name in family}
    report = ends_well(archive, put(tmp_path, name, FORMATS[name][1](USUAL).encode()), name, tmp_path)
    assert name == "pairs" or (report is not None and report.load.questions.added == 2 and not report.rejected)


@pytest.mark.parametrize(
    ("name", "values"),
    [*in_each_family(TEXTS), *in_turns(MOMENTS_AND_NUMBERS, DATED), *in_turns(JSON_VALUES, FAMILIES[0])],
)
def test_odd_values_are_stored_mended_or_rejected(archive: Store, tmp_path: Path, name: str, values: str) -> None:
    path = put(tmp_path, name, FORMATS[name][1](VALUES[values]).encode("utf-8", "surrogatepass"))
    READERS[name].matches(path)
    ends_well(archive, path, name, tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *in_each_family(CONTENTS),
        *(case for family, files in zip(FAMILIES, OF_FAMILIES, strict=True) for case in in_turns(files, family)),
    ],
)
def test_odd_files_are_read_or_refused(archive: Store, tmp_path: Path, name: str, content: str) -> None:
    usual = FORMATS[name][1](USUAL).encode()
    for place, written in enumerate((FILES[content], usual + FILES[content])):
        (tmp_path / str(place)).mkdir()
        path = put(tmp_path / str(place), name, written)
        assert {type(reader.matches(path)) for reader in READERS.values()} == {bool}
        if ends_well(archive, path, name, tmp_path) is not None:
            break


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda content: gzip.compress(content * 50)[:-20],
    "with more behind it": lambda content: gzip.compress(content) + b"\0" * 100 + b"more",
    "with a wrong sum": lambda content: gzip.compress(content)[:-8] + b"\0" * 8,
    "not packed": lambda content: content,
    "of nothing": lambda content: gzip.compress(b""),
    "twice": lambda content: gzip.compress(gzip.compress(content)),
    "in two streams": lambda content: gzip.compress(content[:20]) + gzip.compress(content[20:]),
    "a bomb": lambda content: gzip.compress(content + b"\n" + _BOMB),
    "bzip2": bz2.compress,
}


@pytest.mark.parametrize(("name", "how"), in_turns(PACKED, [name for name in FORMATS if name != "askalike"]))
def test_packed_files_are_read_or_refused(archive: Store, tmp_path: Path, name: str, how: str) -> None:
    file, content_of = FORMATS[name]
    (tmp_path / f"{file}.gz").write_bytes(PACKED[how](content_of(USUAL).encode()))
    READERS[name].matches(tmp_path / f"{file}.gz")
    ends_well(archive, tmp_path / f"{file}.gz", name, tmp_path)


def _is_pipe(path: Path) -> None:
    os.mkfifo(path)


def _is_folder(path: Path) -> None:
    path.mkdir()
    (path / path.name).mkdir()


def _is_loop(path: Path) -> None:
    path.symlink_to(path.name)


def _leads_nowhere(path: Path) -> None:
    path.symlink_to("none")


def _is_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


ODD_FILES = {make.__name__: make for make in (_is_pipe, _is_folder, _is_loop, _leads_nowhere, _is_device)}


@pytest.mark.parametrize(("name", "kind"), in_turns(ODD_FILES, list(FORMATS)))
def test_what_is_no_file_is_refused_alone_and_in_a_folder(archive: Store, tmp_path: Path, name: str, kind: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    ODD_FILES[kind](folder / FORMATS[name][0])
    for path in (folder / FORMATS[name][0], folder):
        with pytest.raises(AskalikeError):
            find_archive(path)
        assert ends_well(archive, path, name, tmp_path) is None


@pytest.mark.parametrize("name", [family[0] for family in FAMILIES])
def test_a_name_that_is_no_utf8_is_read_and_shown(archive: Store, tmp_path: Path, name: str) -> None:
    file, content_of = FORMATS[name]
    folder = tmp_path / os.fsdecode(b"caf\xe9 \xff")
    folder.mkdir()
    (folder / file).write_text(content_of(USUAL), encoding="utf-8")
    report = ends_well(archive, folder / file, name, tmp_path)
    if report is not None:
        assert "caf\\xe9 \\xff" in report.source


@pytest.mark.parametrize("content", ["empty", "NUL bytes", "deep elements", "entities", "random bytes"])
def test_odd_members_of_an_archive_are_refused(archive: Store, tmp_path: Path, content: str) -> None:
    with py7zr.SevenZipFile(tmp_path / "site.7z", "w") as packed:
        packed.writestr(FILES[content], "Posts.xml")
        packed.writestr(FILES[content], "PostLinks.xml")
    assert ends_well(archive, tmp_path / "site.7z", "stackexchange", tmp_path) is None
