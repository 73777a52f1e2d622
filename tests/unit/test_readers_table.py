"""Tables: columns guessed and given, posts, escapes, damage, Parquet."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from askalike.errors import DamagedInputError, FormatError, MissingExtraError, SettingError, UnsafeInputError
from askalike.readers.frame import Limits, ReadContext, ReadOptions
from askalike.readers.table import TableReader, choose_columns, open_table
from askalike.types import Answer, Link, Question, Record

READER = TableReader()


def read(path: Path, **options: Any) -> tuple[list[Record], ReadContext, list[str]]:
    notices: list[str] = []
    context = ReadContext(ReadOptions(**options), notice=notices.append)
    records = list(READER.read(path, context))
    assert context.records_in == len(records) + context.rejects.count
    return records, context, notices


def read_text(
    tmp_path: Path, content: str, name: str = "a.csv", **options: Any
) -> tuple[list[Record], ReadContext, list[str]]:
    (tmp_path / name).write_bytes(content.encode())
    return read(tmp_path / name, **options)


def questions(records: list[Record]) -> list[Question]:
    return [record for record in records if isinstance(record, Question)]


def test_columns_are_guessed_from_their_names_and_shown(tmp_path: Path) -> None:
    records, _, notices = read_text(tmp_path, "Post-ID,Subject,Content,Created At,views\n7,Why?,Because,2020-01-01,3\n")
    assert records == [Question("7", "Why?", "Because", created=datetime(2020, 1, 1, tzinfo=UTC))]
    assert notices[0].startswith(
        "a.csv: id = Post-ID, title = Subject, body = Content, created = Created At; left out: 'views'"
    )


def test_the_mapping_comes_before_the_guess(tmp_path: Path) -> None:
    records, _, _ = read_text(tmp_path, "id,key,title,x\n1,k,t,b\n", mapping={"id": "key", "body": "x", "title": ""})
    assert records == [Question("k", "", "b")]


def test_columns_can_be_given_by_position_where_there_is_no_header(tmp_path: Path) -> None:
    records, _, _ = read_text(tmp_path, "7\tArts\tWhy?\n8\tArts\tHow?\n", "a.tsv", mapping={"id": "#1", "title": "#3"})
    assert [(question.id, question.title) for question in questions(records)] == [("7", "Why?"), ("8", "How?")]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"idd": "a"}, "'idd' is no field of a question"),
        ({"id": "nope"}, "has no column 'nope'"),
        ({"id": "#9"}, "has no column '#9'"),
        ({"id": "#" + "9" * 5000}, "has no column '#999"),
    ],
)
def test_a_mapping_that_cannot_be_is_a_setting_error(mapping: dict[str, str], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        choose_columns(["a", "b"], mapping, "a.csv")


POSTS = """id,post_type_id,parent_id,accepted_answer_id,title,body,tags,owner_display_name,owner_user_id,deletion_date
1,1,,3,Title &amp;lt;1&amp;gt;,&lt;p&gt;a &amp;amp; b&lt;/p&gt;,&lt;x&gt;&lt;y&gt;,,5,
2,2,1,,,&lt;p&gt;no&lt;/p&gt;,,Ada,6,
3,2,1,,,&lt;p&gt;yes&lt;/p&gt;,,,,
4,5,,,,&lt;p&gt;wiki&lt;/p&gt;,,,,
6,1,,,Gone,&lt;p&gt;x&lt;/p&gt;,,,,2020-01-01
7,2,6,,,&lt;p&gt;x&lt;/p&gt;,,,,
,,,,,,,,,
"""


def test_a_table_of_posts_escaped_once_more_is_found_out_and_told(tmp_path: Path) -> None:
    records, context, notices = read_text(tmp_path, POSTS)
    assert records == [
        Question("1", "Title &lt;1&gt;", "<p>a &amp; b</p>", "html", ("x", "y"), author="5"),
        Answer("2", "1", "<p>no</p>", "html", author="Ada"),
        Answer("3", "1", "<p>yes</p>", "html", is_accepted=True),
    ]
    assert context.skipped == {
        "post of type 5": 1,
        "deleted post": 1,
        "answer to a deleted question": 1,
        "blank row": 1,
    }
    assert any("escaped once more" in text for text in notices)


def test_the_escapes_stay_when_the_user_says_so(tmp_path: Path) -> None:
    records, _, _ = read_text(tmp_path, POSTS, is_html_escaped_twice=False, markup="plain")
    assert questions(records)[0].body == "&lt;p&gt;a &amp;amp; b&lt;/p&gt;"
    assert questions(records)[0].markup == "plain"


def test_html_that_shows_escaped_html_is_not_unescaped(tmp_path: Path) -> None:
    records, _, _ = read_text(tmp_path, "id,body\n1,<p>use &lt;p&gt; here</p>\n2,<p>x</p>\n")
    assert questions(records)[0].body == "<p>use &lt;p&gt; here</p>"
    assert questions(records)[0].markup == "html"


def test_answers_and_originals_may_stand_in_the_row(tmp_path: Path) -> None:
    records, _, _ = read_text(tmp_path, 'id,question,best_answer,duplicate_of\n1,Why?,Because,\n2,Why so?,,"1, 3"\n')
    assert records == [
        Question("1", "Why?"),
        Answer("1-a1", "1", "Because"),
        Question("2", "Why so?"),
        Link("2", "1"),
        Link("2", "3"),
    ]


def test_cells_over_several_lines_keep_the_line_numbers_right(tmp_path: Path) -> None:
    content = "\r\n".join(["id,title,body", '1,t,"two', 'lines, ""quoted"""', "2,t", "3,t,b", ""])
    records, context, _ = read_text(tmp_path, content)
    assert questions(records)[0].body == 'two\r\nlines, "quoted"'
    assert [(reject.line, reject.reason) for reject in context.rejects.first] == [(4, "2 cells, expected 3")]
    assert [question.id for question in questions(records)] == ["1", "3"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("7,, ", "title and body are empty"),
        ("7,t,b,extra", "4 cells, expected 3"),
        ('7,"t"x,b', "no row of cells"),
    ],
)
def test_a_row_that_cannot_be_used_is_rejected_with_its_line(tmp_path: Path, row: str, reason: str) -> None:
    records, context, _ = read_text(tmp_path, f"id,title,body\n1,t,b\n{row}\n3,t,b\n")
    assert [question.id for question in questions(records)] == ["1", "3"]
    assert context.rejects.first[0].line == 3
    assert context.rejects.first[0].reason.startswith(reason)


def test_a_corpus_of_beir_is_a_table(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"_id": "7", "title": "Why?", "text": "So.", "metadata": {}}\n', encoding="utf-8")
    assert TableReader().matches(path)
    assert list(TableReader().read(path, ReadContext())) == [Question("7", "Why?", "So.")]


@pytest.mark.parametrize("accepted", ["x" * 2000, "2\x00"])
def test_an_accepted_answer_whose_id_cannot_be_read_is_counted(tmp_path: Path, accepted: str) -> None:
    table = f"id,type,title,accepted_answer_id\n1,1,Why?,{accepted}\n"
    records, context, _ = read_text(tmp_path, table, "a.csv")
    assert [question.id for question in questions(records)] == ["1"]
    assert context.repaired == {"ids of accepted answers that cannot be read, left out": 1}


def test_a_character_reference_without_end_is_no_character(tmp_path: Path) -> None:
    body = "&lt;p&gt;&amp;#" + "9" * 5000 + "; &#" + "9" * 5000 + ";&lt;/p&gt;"
    records, _, _ = read_text(tmp_path, f"id,title,body\n1,t,{body}\n", "a.csv")
    assert questions(records)[0].body == "<p>&#" + "9" * 5000 + "; \ufffd</p>"


def test_tabs_separate_unquoted_text_with_quotes_in_it(tmp_path: Path) -> None:
    records, context, _ = read_text(tmp_path, 'id\ttitle\n1\t"Hello" means what?\n2\tSay "hi\n', "a.tsv")
    assert [question.title for question in questions(records)] == ['"Hello" means what?', 'Say "hi']
    assert context.rejects.count == 0


def test_tabs_separate_quoted_text_too(tmp_path: Path) -> None:
    records, _, _ = read_text(tmp_path, '"id"\t"title"\n"1"\t"a ""b"""\n', "a.tsv")
    assert questions(records)[0].title == 'a "b"'


def test_semicolons_and_backslashes_are_found_out(tmp_path: Path) -> None:
    records, _, _ = read_text(tmp_path, 'id;title;body\n1;"say \\"hi\\"";"b"\n')
    assert questions(records)[0].title == 'say "hi"'
    records, _, _ = read_text(tmp_path, '"id","title","body"\n"1","t","b\\"\n"2","t\\","c ""q"""\n')
    assert [(it.title, it.body) for it in questions(records)] == [("t", "b\\"), ("t\\", 'c "q"')], "no escape"


def test_a_gzipped_table_with_a_byte_order_mark_is_read_and_progress_adds_up(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress("\ufeffid,title\n1,é\n".encode()))
    seen: list[int] = []
    assert list(READER.read(path, ReadContext(advance=seen.append))) == [Question("1", "é")]
    assert sum(seen) == READER.size_bytes(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"a\.csv is empty"),
        (b"id,title\n1,\xe9\n", r"a\.csv, line 2: not UTF-8"),
        ("id,title\n1,é\n".encode("utf-16"), r"a\.csv, line 1: not UTF-8"),
        (b'id,title\n1,x\n2,"no end\n3,x\n', r"a\.csv, line 3: the file ends inside a quoted cell"),
    ],
)
def test_a_damaged_table_is_named_with_its_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(DamagedInputError, match=message):
        read(tmp_path / "a.csv")


def test_a_cell_that_no_line_could_hold_is_rejected_with_the_limit(tmp_path: Path) -> None:
    before = csv.field_size_limit(10_000)  # it holds for the process, and another reader may have raised it
    try:
        lines = "\n".join(["x" * 100] * 150)
        content = f'id,title,body\n1,t,"{lines}"\n2,t,"{lines}\n{lines}"\n'
        records, context, _ = read_text(tmp_path, content, limits=Limits(line_bytes=20_000))
    finally:
        csv.field_size_limit(before)
    assert [question.id for question in questions(records)] == ["1"]
    assert context.rejects.first[0].reason == "a cell longer than 20,000 characters"


def test_json_lines_under_other_names_are_a_table(tmp_path: Path) -> None:
    lines = [{"qid": 1, "question": "Why?", "answer": "So."}, {"qid": 2, "question": "How?", "extra": 1}]
    records, context, _ = read_text(tmp_path, "\n".join(map(json.dumps, lines)) + "\nno json\n", "a.jsonl")
    assert records == [Question("1", "Why?"), Answer("1-a1", "1", "So."), Question("2", "How?")]
    assert context.rejects.first[0].line == 3


def test_ids_of_originals_may_be_numbers_as_databases_give_them(tmp_path: Path) -> None:
    rows = [
        '{"nr": 1, "subject": "Why?", "duplicate_of": 2}',
        '{"nr": 2, "subject": "Why not?", "duplicate_of": [3, "4"]}',
    ]
    records, context, _ = read_text(
        tmp_path,
        "\n".join([*rows, '{"nr": 3, "subject": "How?", "duplicate_of": null}']),
        "a.jsonl",
        mapping={"id": "nr"},
    )
    assert [(link.source_id, link.target_id) for link in records if isinstance(link, Link)] == [
        ("1", "2"),
        ("2", "3"),
        ("2", "4"),
    ]
    assert context.rejects.count == 0


def test_ids_are_made_where_no_column_holds_them_and_an_edit_elsewhere_leaves_them(tmp_path: Path) -> None:
    rows = ["Why?,one,2020-01-01,A", "How?,two,,B", "Why?,three,2021-01-01,", "How?,four,,"]
    header = "title,body,created,answer"
    records, _, notices = read_text(tmp_path, "\n".join([header, *rows]))
    first = {question.body: question.id for question in questions(records)}
    assert len(set(first.values())) == 4
    assert [record.question_id for record in records if isinstance(record, Answer)] == [first["one"], first["two"]]
    assert any("there are no ids; they are made of" in line for line in notices)
    changed = ["When?,five,,", rows[2], rows[1].replace("two", "2"), rows[0].replace("Why", "Since when")]
    records, _, _ = read_text(tmp_path, "\n".join([header, *changed]))
    again = {question.body: question.id for question in questions(records)}
    assert (again["three"], again["2"]) == (first["three"], first["two"])
    assert {again["five"], again["one"]}.isdisjoint(first.values())


def test_ids_are_made_of_addresses_unless_several_questions_share_one(tmp_path: Path) -> None:
    records, _, _ = read_text(tmp_path, "title,url\nWhy?,https://a.example/1\nHow?,https://a.example/2\n")
    edited, _, _ = read_text(tmp_path, "title,url\nWhy not?,https://a.example/1\nHow so?,https://a.example/2\n")
    assert [question.id for question in questions(records)] == [question.id for question in questions(edited)]
    shared, _, _ = read_text(tmp_path, "title,url\nA,https://a.example/\nB,https://a.example/\nC,https://a.example/\n")
    fewer, _, _ = read_text(tmp_path, "title,url\nA,https://a.example/\nC,https://a.example/\n")
    assert questions(shared)[2].id == questions(fewer)[1].id


def test_ids_are_made_on_demand_where_the_id_column_is_not_to_be_used(tmp_path: Path) -> None:
    records, _, _ = read_text(tmp_path, "id,title\nx,Why?\nx,How?\n", mapping={"id": ""})
    assert len({question.id for question in questions(records)}) == 2
    with pytest.raises(FormatError, match="no column is known to hold an id, and duplicate_of refers to it"):
        read_text(tmp_path, "id,title,duplicate_of\n1,Why?,2\n", mapping={"id": ""})


def test_titles_that_were_escaped_are_plain_again_though_bodies_were_not(tmp_path: Path) -> None:
    rows = ["1,AT&amp;T,<p>a &lt; b</p>", "2,a &lt; b,<p>x</p>", "3,Why &quot;x&quot;?,<p>y</p>", "4,How?,<p>z</p>"]
    records, _, notices = read_text(tmp_path, "\n".join(["id,title,body", *rows]))
    assert [question.title for question in questions(records)] == ["AT&T", "a < b", 'Why "x"?', "How?"]
    assert questions(records)[0].body == "<p>a &lt; b</p>"
    assert any("titles are escaped for HTML" in line for line in notices)
    records, _, _ = read_text(tmp_path, "\n".join(["id,title,body", *rows]), is_html_escaped_twice=False)
    assert questions(records)[0].title == "AT&amp;T"


def test_parquet_gives_the_same_as_csv(tmp_path: Path) -> None:
    created = datetime(2020, 1, 1, 12, tzinfo=UTC)
    table = pyarrow.table(
        {
            "id": pyarrow.array([1.0, 2.0, None]),
            "title": ["a", "b", "c"],
            "tags": [["x", "y"], [], None],
            "created": pyarrow.array([created, None, None], pyarrow.timestamp("ns", "UTC")),
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    seen: list[int] = []
    records, context, _ = read(tmp_path / "a.parquet")
    assert records == [Question("1", "a", tags=("x", "y"), created=created), Question("2", "b")]
    assert (context.rejects.first[0].line, context.rejects.first[0].reason) == (
        3,
        "the id is a float, expected text",
    ) or (context.rejects.first[0].reason == "no id")
    list(READER.read(tmp_path / "a.parquet", ReadContext(advance=seen.append)))
    assert sum(seen) == READER.size_bytes(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    "odd",
    [
        pyarrow.array([2**31 - 1, 0], pyarrow.int32()).cast(pyarrow.date32()),
        pyarrow.array([-(2**62), 0], pyarrow.int64()).cast(pyarrow.timestamp("ms")),
        pyarrow.array([b"\xff", b"2020-01-01"]).view(pyarrow.string()),
    ],
    ids=str,
)
def test_a_cell_of_parquet_that_python_has_no_value_for_costs_no_other(tmp_path: Path, odd: pyarrow.Array) -> None:
    named = {"id": ["1", "2"], "title": ["a", "b"]}
    parquet.write_table(pyarrow.table({**named, "created": odd}), tmp_path / "a.parquet")
    records, context, _ = read(tmp_path / "a.parquet")
    assert [question.created is None for question in questions(records)] == [True, False]
    assert sum(context.repaired.values()) == 1
    parquet.write_table(pyarrow.table({**named, "title": odd, "body": ["x", "y"]}), tmp_path / "a.parquet")
    _, context, _ = read(tmp_path / "a.parquet")
    assert context.rejects.first[0].reason == "the title is a BrokenCell, expected text"


def test_parquet_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    table = pyarrow.table({"id": range(1_000), "body": [f"{number:05d}" + "x" * 10_000 for number in range(1_000)]})
    parquet.write_table(table, tmp_path / "a.parquet", compression="zstd")
    with pytest.raises(UnsafeInputError, match=r"a\.parquet unpacks to more than 1,000,000 bytes"):
        read(tmp_path / "a.parquet", limits=Limits(archive_unpacked_bytes=1_000_000))
    assert len(read(tmp_path / "a.parquet")[0]) == 1_000


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(MissingExtraError) as caught:
        read(tmp_path / "a.parquet")
    assert caught.value.hint.startswith('pip install "pyarrow')


def test_memory_does_not_grow_with_the_table(tmp_path: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["id", "title", "body"])
    writer.writerows([number, "t", "x" * 2_000] for number in range(5_000))
    (tmp_path / "a.csv").write_text(text.getvalue())
    del text, writer
    tracemalloc.start()
    try:
        count = sum(1 for _ in READER.read(tmp_path / "a.csv", ReadContext()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 5_000
    assert peak < 6 << 20


@pytest.mark.parametrize(("encoding", "named"), [("latin-1", "-f latin1"), ("utf-16", "-f utf-16")])
def test_a_table_in_another_encoding_names_the_command_that_converts_it(
    tmp_path: Path, encoding: str, named: str
) -> None:
    (tmp_path / "posts.csv").write_text("id,title\n1,Café closes early\n", encoding=encoding)
    with pytest.raises(DamagedInputError, match="not UTF-8") as refused:
        list(open_table(tmp_path / "posts.csv", "posts.csv", ReadContext()).rows)
    assert f"iconv {named} -t utf-8 OLD > NEW" in str(refused.value.hint)
