"""Yahoo! Answers: the L6 archive whole and in parts, the LiveQA table, and the table of threads."""

from __future__ import annotations

import bz2
import csv
import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from askalike.errors import DamagedInputError, FormatError, UnsafeInputError
from askalike.readers.frame import Limits, ReadContext, ReadOptions
from askalike.readers.research.yahoo import YahooLiveQaReader, YahooReader, YahooThreadsReader, byte_literal
from askalike.types import Answer, Question

RECORD = """<vespaadd><document type="wisdom">
<uri>{uri}</uri>
<subject>Why do cats purr &amp;amp; knead, {uri}?</subject>
<content>Mine does,&lt;br /&gt;&#xa;all day.</content>
<bestanswer>They like it.&lt;br /&gt;</bestanswer>
<nbestanswers><answer_item>No idea.</answer_item>
<answer_item>They like it.&lt;br /&gt;</answer_item>
<answer_item></answer_item>
</nbestanswers>
<cat>Cats</cat><maincat>Pets</maincat><subcat>Cats</subcat>
<date>1180000000</date><res_date>1180500000</res_date><lastanswerts>1180100000</lastanswerts>
<qlang>en</qlang><qintl>us</qintl><language>en-us</language>
<id>u{uri}</id><best_id>u7</best_id>
</document></vespaadd>
"""


def archive(count: int, root: bool = True) -> str:
    records = "".join(RECORD.format(uri=uri) for uri in range(101, 101 + count))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<ystfeed>\n{records}</ystfeed>\n' if root else records


def test_the_archive_gives_questions_with_answers_and_the_best_one_accepted_once(tmp_path: Path) -> None:
    file = tmp_path / "FullOct2007.xml"
    file.write_text(archive(12), encoding="utf-8")
    context = ReadContext()
    assert YahooReader().matches(file)
    records = list(YahooReader().read(file, context))
    assert len(records) == context.records_in == 36
    assert records[0] == Question(
        "101",
        "Why do cats purr & knead, 101?",
        "Mine does,<br />\nall day.",
        "html",
        tags=("Pets", "Cats"),
        created=datetime.fromtimestamp(1_180_000_000, UTC),
        author="u101",
    )
    assert records[1] == Answer("101-1", "101", "No idea.", "html")
    assert records[2] == Answer("101-2", "101", "They like it.<br />", "html", author="u7", is_accepted=True)
    assert records[9].id == "104"  # type: ignore[union-attr]
    assert records[-1].id == "112-2"  # type: ignore[union-attr]
    assert context.skipped == {"empty answers": 12}


def test_parts_that_are_cut_anywhere_are_joined_and_progress_counts_stored_bytes(tmp_path: Path) -> None:
    content = archive(5).encode()
    for number, piece in enumerate((content[:700], content[700:1900], content[1900:]), start=1):
        (tmp_path / f"FullOct2007.xml.part{number}.gz").write_bytes(gzip.compress(piece))
    done: list[int] = []
    reader, context = YahooReader(), ReadContext(advance=done.append)
    assert reader.matches(tmp_path)
    assert len(list(reader.read(tmp_path, context))) == 15
    assert sum(done) == reader.size_bytes(tmp_path) > 0
    assert len(list(reader.read(tmp_path / "FullOct2007.xml.part2.gz", ReadContext()))) == 15
    (tmp_path / "sample.xml").write_text(archive(2, root=False), encoding="utf-8")
    assert len(list(reader.read(tmp_path / "sample.xml", ReadContext()))) == 6, "records without a root"
    (tmp_path / "FullOct2007.xml.part2.gz").unlink()
    with pytest.raises(FormatError, match="expected parts from 1 on without a gap"):
        list(reader.read(tmp_path, ReadContext()))


def test_bzip2_of_one_or_several_streams_is_unpacked(tmp_path: Path) -> None:
    content = archive(5).encode()
    file = tmp_path / "sample.xml.bz2"
    file.write_bytes(bz2.compress(content[:999]) + bz2.compress(content[999:]))
    assert YahooReader().matches(file)
    assert len(list(YahooReader().read(file, ReadContext()))) == 15
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(DamagedInputError, match=r"sample.xml.bz2.*ends too early"):
        list(YahooReader().read(file, ReadContext()))
    file.write_bytes(b"BZh9 is not bzip2 at all")
    with pytest.raises(DamagedInputError, match="damaged bzip2 data"):
        list(YahooReader().read(file, ReadContext()))
    assert not YahooReader().matches(file)


def test_a_best_answer_that_is_not_among_the_others_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_text(archive(1).replace("They like it.&lt;br /&gt;</answer_item>", "Ask.</answer_item>"), "utf-8")
    answers = list(YahooReader().read(file, ReadContext()))[1:]
    assert [(a.id, a.is_accepted) for a in answers if isinstance(a, Answer)] == [
        ("101-0", True),
        ("101-1", False),
        ("101-2", False),
    ]


@pytest.mark.parametrize(
    ("old", "new", "reason", "line"),
    [
        ("<uri>102</uri>", "<uri></uri>", "no uri", 17),
        ("102?</subject>", "102? < 3</subject>", "not well-formed XML", 17),
        ("<id>u102</id><best_id>u7</best_id>\n</document></vespaadd>", "<id>u102</id>", "ends too early", 17),
    ],
)
def test_one_broken_question_is_rejected_with_its_line_and_its_neighbours_are_read(
    tmp_path: Path, old: str, new: str, reason: str, line: int
) -> None:
    file = tmp_path / "a.xml"
    file.write_text(archive(3).replace(old, new), encoding="utf-8")
    context = ReadContext()
    records = list(YahooReader().read(file, context))
    assert [record.id for record in records if isinstance(record, Question)] == ["101", "103"]
    (reject,) = context.rejects.first
    assert (reject.file, reject.line) == ("a.xml", line)
    assert reason in reject.reason
    assert context.records_in == len(records) + 1


def test_a_truncated_empty_or_foreign_file_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_text(archive(3)[:-300], encoding="utf-8")
    with pytest.raises(DamagedInputError, match=r"a.xml, line 31: the file ends too early"):
        list(YahooReader().read(file, ReadContext()))
    file.write_text(archive(3).replace("</ystfeed>", ""), encoding="utf-8")
    with pytest.raises(DamagedInputError, match="its root is not closed"):
        list(YahooReader().read(file, ReadContext()))
    file.write_text("<posts/>", encoding="utf-8")
    assert not YahooReader().matches(file)
    with pytest.raises(FormatError, match="no <vespaadd>"):
        list(YahooReader().read(file, ReadContext()))
    file.write_bytes(b"")
    with pytest.raises(DamagedInputError, match="is empty"):
        list(YahooReader().read(file, ReadContext()))


def test_entities_and_endless_questions_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_text(archive(1).replace("<ystfeed>", "<!DOCTYPE a [<!ENTITY b 'c'>]><ystfeed>", 1), encoding="utf-8")
    with pytest.raises(UnsafeInputError, match="a document type or entity is declared"):
        list(YahooReader().read(file, ReadContext()))
    file.write_text(archive(1).replace("all day.", "all day. " * 500), encoding="utf-8")
    with pytest.raises(UnsafeInputError, match=r"without the end of a question|characters inside one element"):
        list(YahooReader().read(file, ReadContext(ReadOptions(limits=Limits(xml_token_bytes=1000)))))


LIVEQA = "20130824170310AAuRd{n:02}\tBooks\tArts &amp; Humanities\t2013-08-25\tWhat&#39;s {n}?\tOne&#xA;two\t{n}\n"


def test_liveqa_lines_have_entities_resolved_and_further_tabs_in_the_body(tmp_path: Path) -> None:
    file = tmp_path / "liveqa.gz"
    lines = [LIVEQA.format(n=n) for n in range(1, 12)]
    lines[4] = "20130824170310AAuRdxx\tonly\tthree\n"
    lines[5] = lines[5].replace("2013-08-25", "yesterday")
    file.write_bytes(gzip.compress("".join(lines).encode()))
    context = ReadContext()
    assert YahooLiveQaReader().matches(file)
    records = list(YahooLiveQaReader().read(file, context))
    assert len(records) == 10
    assert records[0] == Question(
        "20130824170310AAuRd01",
        "What's 1?",
        "One\ntwo\t1",
        tags=("Arts & Humanities", "Books"),
        created=datetime(2013, 8, 25, tzinfo=UTC),
    )
    assert records[-1].id == "20130824170310AAuRd11"  # type: ignore[union-attr]
    assert [(reject.line, reject.record_id) for reject in context.rejects.first] == [(5, "20130824170310AAuRdxx")]
    assert context.repaired == {"dates that cannot be read, left out": 1}


HEADER = "subject,content,bestanswer," + ",".join(f"ans{n}" for n in range(10)) + "\r\n"


def row(*cells: str) -> str:
    padded = [*cells, *["None"] * (13 - len(cells))]
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in padded) + "\r\n"


def test_threads_of_byte_literals_become_questions_and_answers(tmp_path: Path) -> None:
    file = tmp_path / "threads.csv.gz"
    rows = [
        row(f"b'Why {n}?'", "", 'b"It\'s\\n<br />so"', 'b"It\'s\\n<br />so"', "b'caf\\xc3\\xa9'") for n in range(11)
    ]
    file.write_bytes(gzip.compress((HEADER + "\r\n".join(rows)).encode()))  # blank lines between the rows
    context = ReadContext()
    assert YahooThreadsReader().matches(file)
    records = list(YahooThreadsReader().read(file, context))
    assert len(records) == context.records_in == 33
    first = records[0]
    assert isinstance(first, Question)
    assert (first.title, first.body, first.markup) == ("Why 0?", "", "html")
    assert records[1] == Answer(f"{first.id}-1", first.id, "It's\n<br />so", "html", is_accepted=True)
    assert records[2] == Answer(f"{first.id}-2", first.id, "café", "html")
    assert records[9].title == "Why 3?"  # type: ignore[union-attr]
    assert len({record.id for record in records}) == 33  # type: ignore[union-attr]


def test_a_repeated_row_and_a_cell_that_is_no_literal_are_rejected_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "threads.csv"
    good = row("b'Why?'", "", "b'So.'", "b'So.'")
    file.write_text(HEADER + good + good + row("open('x')", "", "b''", "b''") + row("b'\\xff'", "", "", ""), "utf-8")
    context = ReadContext()
    assert len(list(YahooThreadsReader().read(file, context))) == 2
    assert [(reject.line, reject.reason.split(" ")[0]) for reject in context.rejects.first] == [
        (3, "this"),
        (4, "\"open('x')\""),
        (5, "'utf-8'"),
    ]
    file.write_text(HEADER + "\"b'Why", encoding="utf-8")
    with pytest.raises(DamagedInputError, match=r"threads.csv, line 2: the file ends inside a quoted cell"):
        list(YahooThreadsReader().read(file, ReadContext()))


def test_a_thread_with_a_very_long_answer_is_read_and_one_beyond_the_limit_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "threads.csv"
    rows = [row(f"b'Why {n}?'", "", "None", f"b'{'x' * size}'") for n, size in enumerate((200_000, 5_000_000, 9))]
    file.write_text(HEADER + "".join(rows), encoding="utf-8")
    limit = csv.field_size_limit(131_072)  # whatever another reader raised it to
    try:
        context = ReadContext()
        records = list(YahooThreadsReader().read(file, context))
    finally:
        csv.field_size_limit(limit)
    assert [record.title for record in records if isinstance(record, Question)] == ["Why 0?", "Why 2?"]
    assert [len(record.body) for record in records if isinstance(record, Answer)] == [200_000, 9]
    (reject,) = context.rejects.first
    assert (reject.line, reject.reason) == (3, "a cell of 5,000,003 characters, at most 4,194,304 are read")


def test_only_one_short_byte_literal_is_evaluated() -> None:
    for cell in ("b'a' * 9", "b'a' b'b'", "(b'a')", "'a'", "__import__('os')", "b'a", "b'" + "a" * 99):
        with pytest.raises(ValueError, match=r"literal|characters"):
            byte_literal(cell, 50)
