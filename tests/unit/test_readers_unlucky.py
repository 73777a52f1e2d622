"""What exports of forums hold in practice: forbidden characters, rows in any order, floats for ids, other names."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import py7zr
import pytest

from askalike import Forum
from askalike.errors import UnsafeInputError
from askalike.forum.exchange import ImportOptions, ImportReport
from askalike.readers.detection import READERS, find_archive
from askalike.readers.frame import Limits, ReadContext, ReadOptions
from askalike.readers.xml import read_xml
from askalike.types import Answer, Link, Question, Record

pytestmark = pytest.mark.usefixtures("words_alone")

ROW = '<row Id="{}" PostTypeId="1" Title="{}" Body="x" />'


def read(path: Path, name: str = "") -> tuple[list[Record], ReadContext]:
    archive = find_archive(path, name or None)
    context = ReadContext()
    records = list(archive.reader.read(archive.path, context))
    assert context.records_in == len(records) + context.rejects.count
    return records, context


def loaded(path: Path, folder: Path) -> tuple[Forum, ImportReport]:
    forum = Forum.create(folder / "f")
    return forum, forum.load(path, options=ImportOptions())


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8", newline="")
    return folder / name


@pytest.mark.parametrize(
    ("title", "expected", "count"),
    [
        ("a&#x0E;b", "a\ufffdb", 1),
        ("a&#1;&#xFFFE;b", "a\ufffd\ufffdb", 2),
        ("a\x0bb", "a\ufffdb", 1),
        ("a&#x1F600;b", "a\U0001f600b", 0),
        ("a&#xD83D;b", "a\ufffdb", 1),
        ("a&#9;&#x41;&amp;b", "a\tA&b", 0),
    ],
)
def test_characters_that_xml_forbids_are_replaced_and_counted(
    tmp_path: Path, title: str, expected: str, count: int
) -> None:
    rows = [ROW.format(1, title), ROW.format(2, "How?")]
    records, context = read(written(tmp_path, "Posts.xml", f"<posts>\n{''.join(rows)}\n</posts>"))
    assert [record.title for record in records if isinstance(record, Question)] == [expected, "How?"]
    assert sum(context.repaired.values()) == count


def test_a_reference_is_read_whole_wherever_a_block_ends() -> None:
    content = b'<a t="' + b"x" * 50 + b'&#x0001F600;&#x1;&amp;" />'

    class Bytewise(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(1)

    kinds: list[str] = []
    (start, _) = read_xml(Bytewise(content), "a.xml", repair=kinds.append)
    assert start.attributes["t"] == "x" * 50 + "\U0001f600\ufffd&"
    assert len(kinds) == 1


def test_an_accepted_answer_is_marked_wherever_its_row_stands(tmp_path: Path) -> None:
    rows = (
        '<row Id="9" PostTypeId="2" ParentId="1" Body="Turn it on." />'
        '<row Id="1" PostTypeId="1" AcceptedAnswerId="9" Title="Why?" Body="x" />'
        '<row Id="2" PostTypeId="1" AcceptedAnswerId="3" Title="How?" Body="x" />'
        '<row Id="3" PostTypeId="2" ParentId="2" Body="So." />'
        '<row Id="4" PostTypeId="1" AcceptedAnswerId="5" Title="Where?" Body="x" />'
    )
    forum, report = loaded(written(tmp_path, "Posts.xml", f"<posts>{rows}</posts>"), tmp_path)
    with forum:
        assert [answer.is_accepted for name in ("1", "2") for answer in forum.answers(name)] == [True, True]
        assert report.load.accepted_without_answer == 1
        again = forum.load(tmp_path / "Posts.xml")
        assert (again.load.answers.edited, again.load.answers.unchanged) == (0, 2)


def test_posts_of_other_kinds_are_counted(tmp_path: Path) -> None:
    kinds = ("1", "17", "5")
    rows = "".join(f'<row Id="{n}" PostTypeId="{kind}" Title="Why?" Body="x" />' for n, kind in enumerate(kinds))
    _, context = read(written(tmp_path, "Posts.xml", f"<posts>{rows}</posts>"))
    assert context.skipped == {"post of type 17": 1, "tag wiki": 1}


def test_a_dump_is_read_from_gzip_and_from_one_archive_a_file(tmp_path: Path) -> None:
    posts = f"<posts>{ROW.format(1, 'Why?')}{ROW.format(2, 'How?')}</posts>"
    links = '<postlinks><row Id="1" PostId="2" RelatedPostId="1" LinkTypeId="3" /></postlinks>'
    packed, split = tmp_path / "packed", tmp_path / "split"
    packed.mkdir()
    split.mkdir()
    for name, text in (("Posts", posts), ("PostLinks", links)):
        (packed / f"{name}.xml.gz").write_bytes(gzip.compress(text.encode()))
        with py7zr.SevenZipFile(split / f"site.example.com-{name}.7z", "w") as archive:
            archive.writestr(text.encode(), f"{name}.xml")
    for folder in (packed, split):
        records, _ = read(folder)
        assert [type(record) for record in records] == [Question, Question, Link]
    assert len(read(packed / "Posts.xml.gz")[0]) == 2


@pytest.mark.parametrize("ids", ["1.0,1,,2.0,Why?,x,\n2.0,2,1.0,,,So.,\n3.0,1,,,How?,x,1.0\n"])
def test_whole_numbers_that_became_floats_are_ids(tmp_path: Path, ids: str) -> None:
    header = "Id,PostTypeId,ParentId,AcceptedAnswerId,Title,Body,duplicate_of\n"
    records, context = read(written(tmp_path, "posts.csv", header + ids))
    assert [record.id for record in records if isinstance(record, Question)] == ["1", "3"]
    assert [(it.id, it.question_id, it.is_accepted) for it in records if isinstance(it, Answer)] == [("2", "1", True)]
    assert [record for record in records if isinstance(record, Link)] == [Link("3", "1")]
    assert not context.rejects.count


def test_authors_and_deleted_posts_in_float_clothing(tmp_path: Path) -> None:
    table = "id,title,owner_user_id,deleted\n1,Why?,7.0,0.0\n2,How?,8.0,1.0\n"
    records, context = read(written(tmp_path, "posts.csv", table))
    assert [(it.id, it.author) for it in records if isinstance(it, Question)] == [("1", "7")]
    assert context.skipped["deleted post"] == 1


def test_gaps_are_gaps_however_they_are_written(tmp_path: Path) -> None:
    lines = ['{"id": 1, "title": "Why?", "body": NaN, "tags": NaN}', '{"id": 2, "title": "How?", "score": -Infinity}']
    records, context = read(written(tmp_path, "q.jsonl", "\n".join(lines)))
    assert [(it.body, it.tags, it.score) for it in records if isinstance(it, Question)] == [("", (), None)] * 2
    assert not context.rejects.count
    table = "id,title,body,tags,created\n1,Why?,\\N,NULL,NULL\n"
    records, _ = read(written(tmp_path, "q.csv", table))
    assert [(it.body, it.tags, it.created) for it in records if isinstance(it, Question)] == [("", (), None)]


def test_an_object_in_place_of_a_name_is_somebody(tmp_path: Path) -> None:
    people = ({"login": "ada", "name": "Ada"}, {"username": "bob"}, {"name": "Cy"}, {"id": 7}, "[deleted]")
    lines = [
        json.dumps({"number": n, "title": f"Why {n}?", "body": "x", "author": author})
        for n, author in enumerate(people)
    ]
    records, _ = read(written(tmp_path, "issues.jsonl", "\n".join(lines)))
    assert [(it.id, it.author) for it in records if isinstance(it, Question)] == [
        ("0", "ada"),
        ("1", "bob"),
        ("2", "Cy"),
        ("3", ""),
        ("4", ""),
    ]


def test_fields_of_known_exports_are_read(tmp_path: Path) -> None:
    issue = {
        "number": 7,
        "title": "App crashes",
        "body": "On start.",
        "user": {"login": "ada"},
        "createdAt": "2026-01-01T00:00:00Z",
        "closed": True,
        "closed_at": "2026-01-03T00:00:00Z",
        "labels": [{"name": "bug"}],
        "html_url": "https://forum.example.org/7",
        "comments": [{"author": {"login": "bob"}, "body": "Update it.", "createdAt": "2026-01-02T00:00:00Z"}],
    }
    (question, answer), _ = read(written(tmp_path, "issues.jsonl", json.dumps(issue)))
    assert isinstance(question, Question)
    assert isinstance(answer, Answer)
    assert (question.id, question.author, question.tags, question.url) == ("7", "ada", ("bug",), issue["html_url"])
    assert (str(question.created)[:10], str(question.closed)[:10]) == ("2026-01-01", "2026-01-03")
    assert (answer.author, answer.body, str(answer.created)[:10]) == ("bob", "Update it.", "2026-01-02")


def test_posts_of_reddit_are_read_without_those_that_were_removed(tmp_path: Path) -> None:
    usual = {"subreddit": "homenet", "created_utc": 1600000000, "score": 3}
    posts = [
        {"id": "k0", "title": "Why?", "selftext": "[removed]", **usual},
        {"id": "k1", "title": "How?", "selftext": "Every *evening*.", **usual},
    ]
    records, context = read(written(tmp_path, "RS.jsonl", "\n".join(map(json.dumps, posts))))
    assert [(it.id, it.body, it.markup, it.tags) for it in records if isinstance(it, Question)] == [
        ("k1", "Every *evening*.", "markdown", ("homenet",))
    ]
    assert context.skipped["removed post"] == 1
    comments = [{"id": "c1", "link_id": "t3_k1", "parent_id": "t1_c0", "body": "Reboot.", **usual}]
    records, _ = read(written(tmp_path, "RC.jsonl", "\n".join(map(json.dumps, comments))), "table")
    assert [(it.id, it.question_id) for it in records if isinstance(it, Answer)] == [("c1", "k1")]


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_a_table_may_end_its_lines_in_any_way(tmp_path: Path, end: str) -> None:
    text = end.join(["id,title,body", '1,Why?,"two\rlines"', "2,How?,x", ""])
    records, context = read(written(tmp_path, "posts.csv", text))
    assert [(it.id, it.body) for it in records if isinstance(it, Question)] == [("1", "two\rlines"), ("2", "x")]
    assert not context.rejects.count


def test_a_carriage_return_among_other_line_ends_loses_no_row(tmp_path: Path) -> None:
    records, context = read(written(tmp_path, "posts.csv", "id,title\n1,Why?\r2,How?\n3,Where?\n"))
    assert [it.id for it in records if isinstance(it, Question)] == ["1", "2", "3"]
    assert not context.rejects.count


def test_topics_that_not_everybody_sees_are_left_out(tmp_path: Path) -> None:
    topics = [
        {"id": n, "title": f"Why {n}?", "post_stream": {"posts": [{"post_number": 1, "raw": "x"}]}, **more}
        for n, more in enumerate(({}, {"visible": False}, {"category_id": 5}, {"category_id": 6}))
    ]
    categories = {"categories": [{"id": 5, "name": "Staff", "read_restricted": True}, {"id": 6, "name": "Help"}]}
    written(tmp_path, "topics.json", json.dumps(topics))
    written(tmp_path, "categories.json", json.dumps(categories))
    records, context = read(tmp_path)
    assert [it.id for it in records if isinstance(it, Question)] == ["0", "3"]
    assert context.skipped == {"unlisted topic": 1, "topic of a private category": 1}


def test_what_a_parquet_file_decodes_to_is_bounded(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    nulls = pyarrow.array([[None] * 10_000_000, []], pyarrow.list_(pyarrow.string()))
    parquet.write_table(pyarrow.table({"id": ["1", "2"], "title": ["a", "b"], "tags": nulls}), tmp_path / "n.parquet")
    places = pyarrow.array([0] * 1_000, pyarrow.int32())
    bodies = pyarrow.DictionaryArray.from_arrays(places, ["x" * 1_000_000])
    rows = {"id": [str(n) for n in range(1_000)], "title": ["Why?"] * 1_000, "body": bodies}
    parquet.write_table(pyarrow.table(rows), tmp_path / "d.parquet")
    for name in ("n.parquet", "d.parquet"):
        with pytest.raises(UnsafeInputError, match="unpacks to more than"):
            read(tmp_path / name)


def test_columns_tags_and_answers_are_bounded(tmp_path: Path) -> None:
    context = ReadContext(ReadOptions(limits=Limits(columns=3, parts=2)))
    path = written(tmp_path, "a.csv", "id,title,body,x\n1,Why?,b,c\n")
    with pytest.raises(UnsafeInputError, match="4 columns, at most 3"):
        list(READERS["table"].read(path, context))
    lines = [{"id": 1, "title": "Why?", "tags": ["a", "b", "c"]}, {"id": 2, "title": "How?", "answers": [{}] * 3}]
    path = written(tmp_path, "a.jsonl", "\n".join(map(json.dumps, lines)))
    assert list(READERS["jsonl"].read(path, context)) == []
    assert [reject.reason for reject in context.rejects.first] == [
        "3 tags, at most 2 are read",
        "3 answers, at most 2 are read",
    ]
