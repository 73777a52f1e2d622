"""Counts, first, tenth and last records of the real research sets; skipped where they are absent."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from askalike.errors import FormatError
from askalike.evaluation.files import read_askubuntu
from askalike.readers.frame import ReadContext
from askalike.readers.research.askubuntu import heldout_ids
from askalike.readers.research.judged import read_judged
from askalike.readers.research.semeval import SemEvalReader
from askalike.readers.research.yahoo import YahooLiveQaReader, YahooThreadsReader
from askalike.types import Answer, Judged, Link, Question

pytestmark = pytest.mark.data


def grades(judged: Judged) -> tuple[int, int, int]:
    counts = Counter(grade for row in judged.qrels.values() for grade in row.values())
    return counts[2], counts[1], counts[0]


@pytest.mark.parametrize(
    ("split", "name", "queries", "labels", "has_gold"),
    [
        ("train", "semeval2016-train", 267, (235, 848, 1586), False),
        ("dev", "semeval2016-dev", 50, (59, 155, 286), True),
        ("test2016", "semeval2016-test", 70, (81, 152, 467), True),
        ("test2017", "semeval2017-test", 88, (0, 163, 717), True),
    ],
)
def test_semeval_has_the_published_counts_and_agrees_with_the_official_gold(
    data_dir: Path, split: str, name: str, queries: int, labels: tuple[int, int, int], has_gold: bool
) -> None:
    notices: list[str] = []
    context = ReadContext(notice=notices.append)
    judged = read_judged(data_dir / "semeval-task3-b", "semeval", split, context)
    assert (judged.name, len(judged.queries), grades(judged)) == (name, queries, labels)
    assert len(judged.documents) == sum(labels) == context.records_in
    assert any("subtaskB.relevancy agrees with the labels" in notice for notice in notices) is has_gold


def test_semeval_candidates_carry_the_engines_scores(data_dir: Path) -> None:
    folder = data_dir / "semeval-task3-b"
    for split, stem in (("dev", "2016-Task3-CQA-QL-dev"), ("test2017", "2017-Task3-CQA-QL-test")):
        candidates = read_judged(folder, "semeval", split).candidates
        gold = (folder / f"SemEval{stem}.xml.subtaskB.relevancy").read_text(encoding="utf-8").splitlines()
        rows = [line.split("\t") for line in gold]
        assert [(q, d) for q, listed in candidates.items() for d, _ in listed] == [(row[0], row[1]) for row in rows]
        scores = [score for listed in candidates.values() for _, score in listed]
        assert scores == pytest.approx([float(row[3]) for row in rows], abs=1e-14)


def test_the_whole_semeval_folder_is_a_forum(data_dir: Path) -> None:
    done: list[int] = []
    folder, reader = data_dir / "semeval-task3-b", SemEvalReader()
    records = list(reader.read(folder, ReadContext(advance=done.append)))
    assert Counter(type(record) for record in records) == {Answer: 18_700, Question: 5_224, Link: 1_693}
    assert sum(done) == reader.size_bytes(folder)
    assert records[0] == Question("Q268", "Good Bank", "Which is a good bank as per your experience in Doha")
    tenth, last = records[9], records[-1]
    assert isinstance(tenth, Answer)
    assert (tenth.id, tenth.question_id) == ("Q268_R4_C8", "Q268_R4")
    assert isinstance(last, Question)
    assert (last.id, last.title) == ("Q475_R72", "DUAL ???")


def test_askubuntu_ids_are_read_without_texts(data_dir: Path) -> None:
    for split, positives, empty in (("dev", 1177, 11), ("test", 1078, 14)):
        qrels, run = read_askubuntu(data_dir / "askubuntu-ids" / f"{split}.txt")
        assert (len(run), {len(listed) for listed in run.values()}) == (200, {20})
        assert sum(map(sum, (row.values() for row in qrels.values()))) == positives
        assert sum(not any(row.values()) for row in qrels.values()) == empty
    with pytest.raises(FormatError, match=r"text_tokenized.txt.gz is missing"):
        read_judged(data_dir / "askubuntu-ids", "askubuntu", "dev")
    _, run = read_askubuntu(data_dir / "askubuntu-ids" / "dev.txt")
    assert run["421122"][0] == ("502523", 136.66412)
    heldout = heldout_ids(data_dir / "askubuntu-ids")
    assert (len(heldout), heldout[0]) == (1989, "184795")


def test_yahoo_liveqa_is_read_whole(data_dir: Path) -> None:
    context = ReadContext()
    file = data_dir / "yahoo" / "liveqa-5k.gz"
    assert YahooLiveQaReader().matches(file)
    records = [record for record in YahooLiveQaReader().read(file, context) if isinstance(record, Question)]
    assert (len(records), context.rejects.count, context.repaired) == (4635, 0, {})
    assert sum(bool(record.body) for record in records) == 4166
    assert [records[place].id for place in (0, -1)] == ["20130824170310AAuRdbx", "20130831165900AAST9Rr"]
    assert records[3].title == "I'm 6'0 and 250 pounds, am I overweight or obese?"


def test_yahoo_threads_are_read_whole(data_dir: Path) -> None:
    context = ReadContext()
    path, questions, answers = data_dir / "yahoo" / "threads-dataset2.csv.gz", 1175, 2430
    assert YahooThreadsReader().matches(path)
    records = list(YahooThreadsReader().read(path, context))
    assert Counter(type(record) for record in records) == {Question: questions, Answer: answers}
    assert context.rejects.count == 0
    accepted = [record for record in records if isinstance(record, Answer) and record.is_accepted]
    assert len(accepted) == questions
    assert isinstance(records[0], Question)
    assert records[0].title == "Why are yawns contagious?"
