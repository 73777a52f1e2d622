"""The folder of Lei et al.: texts, labelled pairs, judgments and held-out ids."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from askalike.errors import DamagedInputError, FormatError
from askalike.evaluation import read_run
from askalike.readers.frame import ReadContext
from askalike.readers.research.askubuntu import (
    AskUbuntuReader,
    TrainingQuery,
    heldout_ids,
    training_pairs,
)
from askalike.readers.research.judged import read_judged
from askalike.types import Link, Question


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = "".join(f"{n}\thow do i mount drive {n} ?\ti have drive {n} .\n" for n in range(1, 13)) + "13\tno body\t\n"
    (tmp_path / "text_tokenized.txt.gz").write_bytes(gzip.compress(texts.encode()))
    (tmp_path / "train_random.txt").write_text("1\t2 3\t7 8 9\n4\t5\t10 11\n", encoding="utf-8")
    (tmp_path / "dev.txt").write_text("1\t3\t2 3 4\t9.5 9.5 1.25\n5\t\t6 7\t3.0 2.0\n", encoding="utf-8")
    (tmp_path / "test.txt").write_text("8\t9 10\t9 10 13\t3 2 1\n", encoding="utf-8")
    (tmp_path / "heldout.txt").write_text("11\n12\n", encoding="utf-8")
    return tmp_path


def test_the_forum_has_all_texts_and_the_marked_pairs_of_training_alone(folder: Path) -> None:
    done: list[int] = []
    context = ReadContext(advance=done.append)
    reader = AskUbuntuReader()
    assert reader.matches(folder)
    assert reader.matches(folder / "text_tokenized.txt.gz")
    records = list(reader.read(folder, context))
    assert len(records) == context.records_in == 13 + 3
    assert records[0] == Question("1", "how do i mount drive 1 ?", "i have drive 1 .")
    assert records[9] == Question("10", "how do i mount drive 10 ?", "i have drive 10 .")
    assert records[12] == Question("13", "no body", "")
    assert records[13:] == [Link("1", "2"), Link("1", "3"), Link("4", "5")]
    assert sum(done) == reader.size_bytes(folder)


def test_without_the_training_file_it_is_said_that_there_are_no_links(folder: Path) -> None:
    (folder / "train_random.txt").unlink()
    notices: list[str] = []
    assert len(list(AskUbuntuReader().read(folder, ReadContext(notice=notices.append)))) == 13
    assert "no train_random.txt" in notices[0]


def test_judgments_keep_order_scores_and_queries_without_a_positive(folder: Path) -> None:
    judged = read_judged(folder, "askubuntu")
    assert judged.name == "askubuntu-dev"
    assert judged.candidates == {"1": [("2", 9.5), ("3", 9.5), ("4", 1.25)], "5": [("6", 3.0), ("7", 2.0)]}
    assert judged.qrels == {"1": {"2": 0, "3": 1, "4": 0}, "5": {"6": 0, "7": 0}}
    assert list(judged.documents) == ["2", "3", "4", "6", "7"]
    assert judged.queries["5"].title == "how do i mount drive 5 ?"
    assert read_judged(folder, "askubuntu", "test").qrels == {"8": {"9": 1, "10": 1, "13": 0}}


def test_training_queries_and_heldout_ids_are_read(folder: Path) -> None:
    assert list(training_pairs(folder)) == [
        TrainingQuery("1", ("2", "3"), ("7", "8", "9")),
        TrainingQuery("4", ("5",), ("10", "11")),
    ]
    assert heldout_ids(folder) == ("11", "12")


def test_a_folder_of_ids_alone_scores_runs_and_says_which_file_is_missing(folder: Path) -> None:
    (folder / "text_tokenized.txt.gz").unlink()
    assert not AskUbuntuReader().matches(folder)
    assert read_run(folder / "test.txt") == {"8": [("9", 3.0), ("10", 2.0), ("13", 1.0)]}
    with pytest.raises(FormatError, match=r"text_tokenized.txt.gz is missing .*scoring a run needs no texts"):
        read_judged(folder, "askubuntu")
    (folder / "test.txt").unlink()
    with pytest.raises(FormatError, match=r"lacks test.txt \(or test.txt.gz\)"):
        read_judged(folder, "askubuntu", "test")


def test_a_line_of_judgments_that_does_not_add_up_stops_a_judged_set(folder: Path) -> None:
    (folder / "dev.txt").write_text("5\t\t6 7\t3.0 2.0\n1\t3\t2 3\t2\n", encoding="utf-8")
    with pytest.raises(DamagedInputError, match=r"dev.txt, line 2: 2 candidates but 1 scores"):
        read_judged(folder, "askubuntu")


def test_a_candidate_without_a_text_is_an_error(folder: Path) -> None:
    (folder / "test.txt").write_text("8\t9\t9 99\t3 2\n", encoding="utf-8")
    with pytest.raises(DamagedInputError, match=r"lacks 1 of the questions that test.txt names, first '99'"):
        read_judged(folder, "askubuntu", "test")


def test_broken_lines_of_a_forum_are_rejected_and_broken_files_refused(folder: Path) -> None:
    (folder / "train_random.txt").write_text("1\t2 3\n\t5\t6\n4\t5\t\n", encoding="utf-8")
    context = ReadContext()
    records = list(AskUbuntuReader().read(folder, context))
    assert records[13:] == [Link("4", "5")]
    assert [reject.line for reject in context.rejects.first] == [1, 2]
    assert context.records_in == len(records) + 2
    packed = (folder / "text_tokenized.txt.gz").read_bytes()
    (folder / "text_tokenized.txt.gz").write_bytes(packed[:-12])
    with pytest.raises(DamagedInputError, match=r"text_tokenized.txt.gz, line \d+"):
        list(AskUbuntuReader().read(folder, ReadContext()))
