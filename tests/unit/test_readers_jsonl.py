"""The native format and the tables of links beside it."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from askalike.readers.frame import ReadContext, ReadOptions
from askalike.readers.jsonl import JsonlReader
from askalike.readers.pairs import PairsReader
from askalike.types import Answer, Link, Question, Record

READER = JsonlReader()


def read(path: Path, options: ReadOptions | None = None) -> tuple[list[Record], ReadContext, list[str]]:
    notices: list[str] = []
    context = ReadContext(options or ReadOptions(), notice=notices.append)
    records = list(READER.read(path, context))
    assert context.records_in == len(records) + context.rejects.count
    return records, context, notices


def read_text(tmp_path: Path, *lines: str | dict[str, object]) -> tuple[list[Record], ReadContext, list[str]]:
    path = tmp_path / "forum.jsonl"
    written = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_bytes("\n".join(written).encode("utf-8", "surrogatepass") + b"\n")
    return read(path)


def test_a_line_becomes_a_question_its_answers_and_its_links(tmp_path: Path) -> None:
    records, context, notices = read_text(
        tmp_path,
        {
            "id": 7,
            "title": "Why?",
            "body": "*because*",
            "tags": ["a"],
            "created": 0,
            "closed": "1970-01-02",
            "score": 3,
            "url": "https://example.org/7",
            "author": "Ada",
            "answers": [
                {"body": "first", "score": 1},
                {"id": "x", "body": "<p>2</p>", "markup": "html", "accepted": True},
            ],
            "duplicate_of": ["5"],
            "related": ["6", 7],
        },
    )
    assert records == [
        Question(
            id="7",
            title="Why?",
            body="*because*",
            markup="markdown",
            tags=("a",),
            created=datetime(1970, 1, 1, tzinfo=UTC),
            closed=datetime(1970, 1, 2, tzinfo=UTC),
            score=3,
            url="https://example.org/7",
            author="Ada",
        ),
        Answer("7-a1", "7", "first", "markdown", score=1),
        Answer("x", "7", "<p>2</p>", "html", is_accepted=True),
        Link("7", "5", "duplicate"),
        Link("7", "6", "related"),
    ]
    assert context.skipped == {"link of a question to itself": 1}
    assert notices == []


def test_the_export_of_a_discourse_site_is_read_with_its_answers_and_links(tmp_path: Path) -> None:
    line = {"id": "8", "title": "t", "date": "2017-04-07", "body": "b", "author": "a"}
    records, _, notices = read_text(
        tmp_path, line | {"answers": [{"author": "c", "text": "d"}], "links": [[1, "85"], [6, "85"], [2, "86"]]}
    )
    assert isinstance(records[0], Question)
    assert records[0].created == datetime(2017, 4, 7, tzinfo=UTC)
    assert records[1:] == [
        Answer("8-a1", "8", "d", "markdown", author="c"),
        Link("8", "85", "related"),
        Link("8", "86", "related"),
    ]
    assert notices == []


def test_unknown_fields_are_left_out_and_named_once(tmp_path: Path) -> None:
    records, _, notices = read_text(tmp_path, *[{"id": str(n), "title": "t", "views": 1, "z": 2} for n in range(3)])
    assert len(records) == 3
    assert notices == ["forum.jsonl: fields of questions that are not known are left out: views, z"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[1]", "a JSON list, expected an object"),
        ("[" * 100_000, "JSON nested too deep"),
        ('{"id": ' + "1" * 5000 + "}", "not JSON: Exceeds the limit"),
        ('{"title": "t"}', "no id"),
        ('{"id": "1"}', "title and body are empty"),
        ('{"id": "1", "body": "<p></p>", "markup": "html"}', "the title is empty, and the body is html without text"),
        ('{"id": "1", "title": ["t"]}', "the title is a list, expected text"),
        ('{"id": "1", "title": "t", "markup": "rtf"}', "the markup is 'rtf', expected one of html, markdown, plain"),
        ('{"id": "1", "title": "t", "answers": {}}', "answers is a dict, expected a list"),
        ('{"id": "1", "title": "t", "links": [1]}', "links is expected to hold pairs"),
        ('{"id": "a\\u0000", "title": "t"}', "the id holds NUL"),
        ('{"id": "1", "title": "t", "markup": {}}', "the markup is"),
    ],
)
def test_a_line_that_cannot_be_used_is_rejected_and_the_next_is_read(tmp_path: Path, line: str, reason: str) -> None:
    records, context, _ = read_text(tmp_path, line, {"id": "2", "title": "t"})
    assert [record.id for record in records if isinstance(record, Question)] == ["2"]
    assert context.rejects.first[0].line == 1
    assert context.rejects.first[0].reason.startswith(reason)


def test_an_answer_that_cannot_be_used_is_rejected_alone(tmp_path: Path) -> None:
    answers = [{"body": " "}, "text", {"id": {}, "body": "x"}, {"body": "good"}]
    records, context, _ = read_text(tmp_path, {"id": "1", "title": "t", "answers": answers})
    assert [record.id for record in records if isinstance(record, Answer)] == ["1-a4"]
    assert [reject.reason for reject in context.rejects.first] == [
        "the answer is empty",
        "the answer is a str, expected an object",
        "the answer id is a dict, expected text",
    ]


def test_a_line_that_is_not_utf8_is_rejected_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id": "1", "title": "t"}\n{"id": "2", "title": "\xff"}\n')
    records, context, _ = read(path)
    assert len(records) == 1
    assert context.rejects.first[0].line == 2
    assert context.rejects.first[0].reason == "not UTF-8 at byte 23 of the line"


def test_a_folder_holds_questions_duplicates_and_links(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl.gz").write_bytes(gzip.compress(b'{"id": "1", "title": "t"}\n'))
    (tmp_path / "duplicates.tsv.gz").write_bytes(gzip.compress(b"2\t1\tduplicate\n"))
    (tmp_path / "linked.tsv").write_bytes(b"3\t1\tlinked\n4\t1\n")
    (tmp_path / "notes.txt").write_text("x")
    seen: list[int] = []
    notices: list[str] = []
    assert READER.matches(tmp_path)
    assert list(READER.read(tmp_path, ReadContext(advance=seen.append, notice=notices.append)))[1:] == [
        Link("2", "1", "duplicate"),
        Link("3", "1", "related"),
        Link("4", "1", "related"),
    ]
    assert sum(seen) == READER.size_bytes(tmp_path)
    assert notices[0].endswith("not read: notes.txt")


def test_pairs_are_links_and_bad_lines_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_bytes(
        b"duplicate_id,original_id,kind\n2,1,duplicate\n3,1,RELATED\n\n4\n5,5,related\n6,1,copy\n,1,1\n7,1,3\r\n"
    )
    context = ReadContext()
    records = list(PairsReader().read(path, context))
    assert records == [Link("2", "1", "duplicate"), Link("3", "1", "related"), Link("7", "1", "duplicate")]
    assert [reject.line for reject in context.rejects.first] == [5, 6, 7, 8]
    assert context.records_in == len(records) + context.rejects.count


def test_a_file_without_any_id_has_ids_made_of_its_titles(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [{"title": "Why?", "answers": [{"body": "So."}]}, {"title": "How?", "id2": 3}]
    records, _, notices = read_text(tmp_path, *lines)
    first, answer, second = records
    assert isinstance(first, Question)
    assert isinstance(answer, Answer)
    assert isinstance(second, Question)
    assert (answer.question_id, answer.id) == (first.id, f"{first.id}-a1")
    assert any("there are no ids; they are made of" in line for line in notices)
    again, _, _ = read_text(tmp_path, {"title": "New"}, *reversed(lines))
    assert [record.id for record in again if isinstance(record, Question)][1:] == [second.id, first.id]


def test_a_line_without_an_id_among_others_is_rejected(tmp_path: Path) -> None:
    records, context, _ = read_text(tmp_path, {"title": "Why?"}, {"id": 1, "title": "How?"})
    assert [record.id for record in records if isinstance(record, Question)] == ["1"]
    assert context.rejects.first[0].reason == "no id"


ESCAPED = ["AT&amp;T", "a &lt; b", "x &gt;= y"]


def test_titles_that_were_escaped_throughout_are_plain_again(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [{"id": n, "title": title, "body": "a &lt; b"} for n, title in enumerate(ESCAPED)]
    records, _, notices = read_text(tmp_path, *lines)
    questions = [record for record in records if isinstance(record, Question)]
    assert [question.title for question in questions] == ["AT&T", "a < b", "x >= y"]
    assert questions[0].body == "a &lt; b"
    assert any("titles are escaped for HTML" in line for line in notices)


def test_it_can_be_said_that_all_texts_are_escaped_or_none(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    line = {"id": 1, "title": "a &gt; b", "body": "c &gt; d", "answers": [{"body": "e &gt; f"}]}
    path.write_text(json.dumps(line), encoding="utf-8")
    (question, answer), _, _ = read(path, ReadOptions(is_html_escaped_twice=True))
    assert isinstance(question, Question)
    assert isinstance(answer, Answer)
    assert (question.title, question.body, answer.body) == ("a > b", "c > d", "e > f")
    path.write_text("\n".join(json.dumps({"id": n, "title": title}) for n, title in enumerate(ESCAPED)))
    records, _, _ = read(path, ReadOptions(is_html_escaped_twice=False))
    assert [record.title for record in records if isinstance(record, Question)] == ESCAPED
