"""Golden values of the forum readers: count, first, tenth and last record, on small files in the exact layouts."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from xml.sax.saxutils import quoteattr

import py7zr
import pytest

from askalike.readers.detection import choose
from askalike.readers.frame import ReadContext
from askalike.types import Answer, Link, Question, Record

FIRST = datetime(2018, 3, 12, 17, 0, 45, 567000, tzinfo=UTC)


def records_of(path: Path, expected_format: str) -> list[Record]:
    """Read a path as its detected format; progress and counts must add up."""
    reader = choose(path)
    assert reader.name == expected_format
    seen: list[int] = []
    context = ReadContext(advance=seen.append)
    records = list(reader.read(path, context))
    assert sum(seen) == reader.size_bytes(path)
    assert context.records_in == len(records)
    return records


def stackexchange_folder(folder: Path) -> Path:
    """Write eight questions, of which every second has an accepted answer; the last is a duplicate of the first."""
    rows = []
    for number in range(1, 9):
        values = {"Id": 2 * number - 1, "PostTypeId": 1, "AcceptedAnswerId": 2 * number if number % 2 == 0 else ""}
        values |= {"CreationDate": f"2018-03-{11 + number}T17:00:45.567", "Score": number, "ViewCount": 1163}
        values |= {
            "Body": f"<p>Body & {number}</p>\n",
            "OwnerUserId": 7,
            "Title": f'Title "{number}"',
            "Tags": "<a><b-c>",
        }
        rows.append({name: value for name, value in values.items() if value != ""})
        rows.append(
            {"Id": 2 * number, "PostTypeId": 2, "ParentId": 2 * number - 1} | {"Score": -1, "Body": "<p>so</p>"}
        )
    rows.append({"Id": 17, "PostTypeId": 5, "Body": "a tag wiki"})
    links = [{"Id": 1, "CreationDate": "2018-03-20T00:00:00.000", "PostId": 15, "RelatedPostId": 1, "LinkTypeId": 3}]
    for name, root, items in (("Posts.xml", "posts", rows), ("PostLinks.xml", "postlinks", links)):
        lines = [" ".join(f"{key}={quoteattr(str(value))}" for key, value in item.items()) for item in items]
        text = "\n".join(f"  <row {line} />" for line in lines)
        content = f'\ufeff<?xml version="1.0" encoding="utf-8"?>\n<{root}>\n{text}\n</{root}>'
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def stackexchange_7z(folder: Path) -> Path:
    stackexchange_folder(folder)
    with py7zr.SevenZipFile(folder / "site.7z", "w") as archive:
        for name in ("Posts.xml", "PostLinks.xml"):
            archive.write(folder / name, name)
    return folder / "site.7z"


@pytest.mark.parametrize("make", [stackexchange_folder, stackexchange_7z])
def test_a_stack_exchange_dump(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    records = records_of(make(tmp_path), "stackexchange")
    assert len(records) == 8 + 8 + 1
    assert records[0] == Question(
        "1", 'Title "1"', "<p>Body & 1</p>\n", "html", ("a", "b-c"), created=FIRST, score=1, author="7"
    )
    assert records[9] == Answer("10", "9", "<p>so</p>", "html", score=-1)
    assert records[3] == Answer("4", "3", "<p>so</p>", "html", score=-1, is_accepted=True)
    assert records[-1] == Link("15", "1", "duplicate")


def test_discourse_topics(tmp_path: Path) -> None:
    def topic(number: int) -> dict[str, object]:
        first = {"id": 10 * number, "post_number": 1, "post_type": 1, "username": "ada", "cooked": "<p>Why?</p>"}
        first |= {"actions_summary": [{"id": 2, "count": 3}], "link_counts": [{"url": "/t/x/99", "internal": True}]}
        second = {"id": 10 * number + 1, "post_number": 2, "post_type": 1, "username": "bob", "cooked": "<p>So.</p>"}
        second |= {"created_at": "2018-03-12T17:00:45.567Z", "accepted_answer": True, "actions_summary": []}
        value = {"post_stream": {"posts": [first, second], "stream": [1, 2]}, "id": number, "title": f"T{number}"}
        return value | {"tags": ["a"], "category_id": 4, "created_at": "2018-03-12T17:00:45.567Z", "slug": "t"}

    for number in range(1, 6):
        (tmp_path / f"{number}.json").write_text(json.dumps(topic(number)))
    records = records_of(tmp_path, "discourse")
    assert len(records) == 15
    assert records[0] == Question("1", "T1", "<p>Why?</p>", "html", ("category-4", "a"), FIRST, score=3, author="ada")
    assert records[9] == Question("4", "T4", "<p>Why?</p>", "html", ("category-4", "a"), FIRST, score=3, author="ada")
    assert records[-2] == Answer("51", "5", "<p>So.</p>", "html", FIRST, 0, "bob", is_accepted=True)
    assert records[-1] == Link("5", "99", "related")


def test_the_native_format_in_a_folder(tmp_path: Path) -> None:
    lines = [json.dumps({"id": str(n), "title": f"T{n}", "body": "b", "created": 1520874045.567}) for n in range(1, 11)]
    (tmp_path / "questions.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "duplicates.tsv").write_text("3\t1\tduplicate\n")
    (tmp_path / "linked.tsv").write_text("2\t1\tlinked\n")
    records = records_of(tmp_path, "jsonl")
    assert len(records) == 12
    assert records[0] == Question("1", "T1", "b", "markdown", created=FIRST)
    assert records[9] == Question("10", "T10", "b", "markdown", created=FIRST)
    assert records[-1] == Link("2", "1", "related")


def test_a_table_of_posts(tmp_path: Path) -> None:
    rows = ["id,post_type_id,accepted_answer_id,parent_id,creation_date,score,body,owner_user_id,title,tags"]
    for n in range(1, 12, 2):
        rows.append(
            f'"{n}","1","{n + 1}",,"2018-03-12T17:00:45.567","{n}","&lt;p&gt;q&lt;/p&gt;","5","T{n}","&lt;a&gt;"'
        )
        rows.append(f'"{n + 1}","2",,"{n}","2018-03-12T17:00:45.567","0","&lt;p&gt;a&lt;/p&gt;",,,')
    (tmp_path / "posts.csv").write_text("\n".join(rows) + "\n")
    records = records_of(tmp_path / "posts.csv", "table")
    assert len(records) == 12
    assert records[0] == Question("1", "T1", "<p>q</p>", "html", ("a",), FIRST, score=1, author="5")
    assert records[9] == Answer("10", "9", "<p>a</p>", "html", FIRST, 0, is_accepted=True)
    assert records[-1] == Answer("12", "11", "<p>a</p>", "html", FIRST, 0, is_accepted=True)
