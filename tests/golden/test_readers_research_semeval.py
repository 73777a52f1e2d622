"""SemEval Task 3 XML in the layout of the official and of the reconstructed files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from askalike.errors import DamagedInputError, FormatError, SettingError, UnsafeInputError
from askalike.readers.frame import ReadContext
from askalike.readers.research.judged import read_judged
from askalike.readers.research.semeval import SemEvalReader
from askalike.types import Answer, Link, Question

HEADER = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE xml [
<!ELEMENT xml (OrgQuestion*)>
<!ATTLIST OrgQuestion
ORGQ_ID CDATA #REQUIRED
>
<!ELEMENT OrgQSubject (#PCDATA)>
]>
<xml version="1.0">
"""
COMMENT = """
<RelComment RELC_ID="{query}_R{rank}_C1" RELC_DATE="2013-05-03 07:23:20" RELC_USERID="U5" RELC_USERNAME="lamp"
 RELC_RELEVANCE2ORGQ="Good" RELC_RELEVANCE2RELQ="Good">
<RelCText>Try the &lt;corniche&gt; {rank}.</RelCText>
</RelComment>"""
THREAD = """
<OrgQuestion ORGQ_ID="{query}">
<OrgQSubject>Where to walk {query}?</OrgQSubject>
<OrgQBody>A path &amp; shade.</OrgQBody>
<Thread THREAD_SEQUENCE="{query}_R{rank}" SubtaskA_Skip_Because_Same_As_RelQuestion_ID="Q9_R9">
<RelQuestion RELQ_ID="{query}_R{rank}" RELQ_RANKING_ORDER="{rank}" RELQ_CATEGORY="{category}" RELQ_DATE="{date}"
 RELQ_USERID="" RELQ_USERNAME="" RELQ_RELEVANCE2ORGQ="{label}">
<RelQSubject>Walking {rank}</RelQSubject>
<RelQBody>Where, {rank}?</RelQBody>
</RelQuestion>{comments}
</Thread>
</OrgQuestion>"""
LABELS = ("PerfectMatch", "Relevant", "Irrelevant")


def thread(query: str, rank: object, label: str, has_comment: bool = True) -> str:
    return THREAD.format(
        query=query,
        rank=rank,
        label=label,
        category="Sports" if has_comment else "",
        date="2013-05-02 19:43:00" if has_comment else "",
        comments=COMMENT.format(query=query, rank=rank) if has_comment else "",
    )


def write(path: Path, *threads: str) -> Path:
    path.write_text(HEADER + "".join(threads) + "\n</xml>\n", encoding="utf-8")
    return path


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    threads = [thread(query, rank, LABELS[rank % 3]) for query in ("Q1", "Q2") for rank in (2, 3, 7)]
    return write(tmp_path / "SemEval2016-Task3-CQA-QL-dev.xml", *threads)


def test_the_forum_has_every_question_once_with_answers_and_links(dev: Path) -> None:
    notices: list[str] = []
    context = ReadContext(notice=notices.append)
    records = list(SemEvalReader().read(dev, context))
    assert "PerfectMatch as duplicate" in notices[0]
    links = [record for record in records if isinstance(record, Link)]
    assert links[:2] == [Link("Q1", "Q1_R3", "duplicate"), Link("Q1", "Q1_R7", "related")]
    assert len(records) == context.records_in == 2 + 6 + 6 + 4
    assert records[0] == Question("Q1", "Where to walk Q1?", "A path & shade.")
    assert records[1] == Question(
        "Q1_R2", "Walking 2", "Where, 2?", tags=("Sports",), created=datetime(2013, 5, 2, 19, 43, tzinfo=UTC)
    )
    assert records[2] == Answer(
        "Q1_R2_C1",
        "Q1_R2",
        "Try the <corniche> 2.",
        created=datetime(2013, 5, 3, 7, 23, 20, tzinfo=UTC),
        author="lamp",
    )
    assert records[9] == Question("Q2", "Where to walk Q2?", "A path & shade.")
    assert records[-1] == Link("Q2", "Q2_R7", "related")


def test_the_judged_set_keeps_the_order_of_the_file_and_scores_one_by_rank(dev: Path) -> None:
    judged = read_judged(dev, "semeval")
    assert judged.name == "semeval2016-dev"
    assert list(judged.queries) == ["Q1", "Q2"]
    assert judged.candidates["Q1"] == [("Q1_R2", 0.5), ("Q1_R3", 1 / 3), ("Q1_R7", 1 / 7)]
    assert judged.qrels["Q2"] == {"Q2_R2": 0, "Q2_R3": 2, "Q2_R7": 1}
    assert list(judged.documents)[-1] == "Q2_R7"


def test_reconstructed_files_without_comments_dates_and_users_are_read(tmp_path: Path) -> None:
    file = write(tmp_path / "part1.reconstructed.xml", thread("Q1", 4, "Relevant", has_comment=False))
    assert list(SemEvalReader().read(file, ReadContext()))[1] == Question("Q1_R4", "Walking 4", "Where, 4?")


def test_the_parts_of_the_training_set_are_joined_and_other_splits_left_out(dev: Path) -> None:
    for part, query in ((1, "Q3"), (2, "Q4")):
        write(dev.with_name(f"SemEval2016-Task3-CQA-QL-train-part{part}.xml"), thread(query, 1, "Relevant"))
    judged = read_judged(dev.parent, "semeval", "train")
    assert (judged.name, list(judged.queries)) == ("semeval2016-train", ["Q3", "Q4"])
    assert list(read_judged(dev.parent, "semeval").queries) == ["Q1", "Q2"]
    assert len(list(SemEvalReader().read(dev.parent, ReadContext()))) == 18 + 2 * 4


def test_a_split_that_is_not_there_is_named_with_those_that_are(dev: Path) -> None:
    with pytest.raises(FormatError, match=r"no file of split 'test2017' \(it has: dev\)"):
        read_judged(dev.parent, "semeval", "test2017")
    with pytest.raises(FormatError, match="is of split 'dev', not 'train'"):
        read_judged(dev, "semeval", "train")
    with pytest.raises(SettingError, match="splits: dev, test2016, test2017, train"):
        read_judged(dev, "semeval", "test")


def test_gold_beside_the_file_has_to_agree(dev: Path) -> None:
    gold = dev.with_name(f"{dev.name}.subtaskB.relevancy")
    gold.write_text("Q1\tQ1_R2\t2\t0.5\tfalse\nQ1\tQ1_R3\t3\t0.33\ttrue\n", encoding="utf-8")
    read_judged(dev, "semeval")
    gold.write_text("Q1\tQ1_R2\t2\t0.5\tfalse\nQ1\tQ1_R3\t3\t0.33\tfalse\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"Q1_R3 of Q1 is false, .* SemEval2016-Task3-CQA-QL-dev.xml, .* is 2"):
        read_judged(dev, "semeval")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('RELQ_RANKING_ORDER="3"', 'RELQ_RANKING_ORDER="x"', "RELQ_RANKING_ORDER is 'x'"),
        ('RELEVANCE2ORGQ="PerfectMatch"', 'RELEVANCE2ORGQ="Perfect"', "RELQ_RELEVANCE2ORGQ is 'Perfect'"),
        ('RELQ_ID="Q1_R3"', "", "no RELQ_ID"),
        ('RELQ_ID="Q1_R3"', 'RELQ_ID="Q1_R2"', "this related question was met before"),
        ('ORGQ_ID="Q1"', 'ORGQ_ID=""', "no ORGQ_ID"),
    ],
)
def test_a_thread_that_cannot_be_used_is_rejected_with_its_comments(dev: Path, old: str, new: str, reason: str) -> None:
    dev.write_text(dev.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    context = ReadContext()
    records = list(SemEvalReader().read(dev, context))
    assert context.records_in == len(records) + context.rejects.count
    assert context.rejects.first[0].reason.startswith(reason)
    assert context.rejects.first[0].line > 9
    assert context.rejects.first[1].reason == "its question cannot be used"
    with pytest.raises(DamagedInputError, match="a judged set is read whole or not at all"):
        read_judged(dev, "semeval")


def test_unlabelled_input_makes_no_judged_set_and_no_links(dev: Path) -> None:
    dev.write_text(dev.read_text(encoding="utf-8").replace('2ORGQ="PerfectMatch"', '2ORGQ="?"'), encoding="utf-8")
    assert sum(isinstance(record, Link) for record in SemEvalReader().read(dev, ReadContext())) == 2
    with pytest.raises(FormatError, match="has no labels"):
        read_judged(dev, "semeval")


def test_the_unlabelled_archive_of_the_forum_has_threads_without_an_original(tmp_path: Path) -> None:
    threads = [thread("Q1", rank, "?") for rank in (1, 2)]
    bare = "".join(thread[thread.index("<Thread") : thread.index("</OrgQuestion>")] for thread in threads)
    bare = bare.replace(' RELQ_RELEVANCE2ORGQ="?"', "")
    file = write(tmp_path / "QL-unannotated-data-subtaskA.xml", bare, '<Thread><RelQuestion RELQ_ID=""/></Thread>')
    context = ReadContext()
    records = list(SemEvalReader().read(file, context))
    assert [record.id for record in records if isinstance(record, Question)] == ["Q1_R1", "Q1_R2"]
    assert [record.question_id for record in records if isinstance(record, Answer)] == ["Q1_R1", "Q1_R2"]
    assert not [record for record in records if isinstance(record, Link)]
    assert [reject.reason for reject in context.rejects.first] == ["no RELQ_ID"]
    assert SemEvalReader().matches(file)
    with pytest.raises(FormatError, match="has no labels"):
        read_judged(file, "semeval", "")


def test_entities_are_refused_and_broken_files_name_the_line(dev: Path) -> None:
    text = dev.read_text(encoding="utf-8")
    dev.write_text(text.replace("]>", "<!ENTITY a 'b'>\n]>"), encoding="utf-8")
    with pytest.raises(UnsafeInputError, match="line 8"):
        list(SemEvalReader().read(dev, ReadContext()))
    dev.write_text(text[:900], encoding="utf-8")
    with pytest.raises(DamagedInputError, match=r"CQA-QL-dev.xml, line \d+: the file ends too early"):
        read_judged(dev, "semeval")
