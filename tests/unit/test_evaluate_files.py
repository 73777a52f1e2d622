"""Files of judgements and runs: read, written, recognised, and refused with file and line."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from askalike.errors import DamagedInputError, EvaluationError, FormatError, InputError
from askalike.evaluation import evaluate, read_gold, read_run, write_trec_qrels, write_trec_run
from askalike.evaluation.files import (
    format_of,
    read_askubuntu,
    read_semeval_gold,
    read_semeval_run,
    read_trec_qrels,
    read_trec_run,
)
from askalike.types import Qrels, Run

TREC_RUN = "q1 Q0 d1 1 2.5 tag\nq1 Q0 d2 2 -1e-3 tag\n\nq2\tQ0\td1\t1\t7\ttag\n"
TREC_QRELS = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 -1\n"
SEMEVAL = "Q1\tQ1_R4\t4\t0.25\ttrue\nQ1\tQ1_R2\t2\t0.5\tfalse\nQ2\tQ2_R1\t1\t1\tfalse\n"
ASKUBUNTU = "7\t11 13\t11 12 13\t3.5 2.5 1.5\n8\t\t12 14\t1.0 1.0\n"

RUN: Run = {"q2": [("b", 0.1), ("a", 1 / 3), ("c", 1 / 3)], "q1": [("é", -2e-300)]}
QRELS: Qrels = {"q2": {"b": 0, "a": 3, "c": -1}, "q1": {"é": 1}}


def written(folder: Path, text: str) -> Path:
    path = folder / "lines.txt"
    path.write_bytes(text.encode("utf-8"))
    return path


def test_a_trec_run_is_read_in_file_order_without_looking_at_the_rank(tmp_path: Path) -> None:
    assert read_trec_run(written(tmp_path, TREC_RUN)) == {"q1": [("d1", 2.5), ("d2", -0.001)], "q2": [("d1", 7.0)]}


def test_trec_qrels_are_read_with_their_grades(tmp_path: Path) -> None:
    assert read_trec_qrels(written(tmp_path, TREC_QRELS)) == {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": -1}}


def test_semeval_gold_gives_judgements_and_the_search_engines_run(tmp_path: Path) -> None:
    qrels, run = read_semeval_gold(written(tmp_path, SEMEVAL))
    assert qrels == {"Q1": {"Q1_R4": 1, "Q1_R2": 0}, "Q2": {"Q2_R1": 0}}
    assert run == {"Q1": [("Q1_R4", 0.25), ("Q1_R2", 0.5)], "Q2": [("Q2_R1", 1.0)]}


def test_askubuntu_lines_judge_every_candidate(tmp_path: Path) -> None:
    qrels, run = read_askubuntu(written(tmp_path, ASKUBUNTU))
    assert qrels == {"7": {"11": 1, "12": 0, "13": 1}, "8": {"12": 0, "14": 0}}
    assert run == {"7": [("11", 3.5), ("12", 2.5), ("13", 1.5)], "8": [("12", 1.0), ("14", 1.0)]}


def test_a_positive_that_is_no_candidate_is_kept_and_costs_under_trec_only(tmp_path: Path) -> None:
    qrels, run = read_askubuntu(written(tmp_path, "7\t99 11\t11 12\t2 1\n"))
    assert qrels == {"7": {"11": 1, "12": 0, "99": 1}}
    assert evaluate(qrels, run, "askubuntu").means["map"] == 1.0
    assert evaluate(qrels, run, "askubuntu").relevant_not_ranked == 1
    assert evaluate(qrels, run, "trec").means["map"] == 0.5


def test_a_trec_run_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "run"
    write_trec_run(path, RUN, tag="mine")
    tied = float(np.nextafter(np.float32(1 / 3), np.float32(0)))
    assert read_trec_run(path) == {**RUN, "q2": [("b", 0.1), ("a", 1 / 3), ("c", tied)]}
    assert list(read_trec_run(path)) == list(RUN)
    assert path.read_text(encoding="utf-8").splitlines()[:2] == ["q2 Q0 b 3 0.1 mine", f"q2 Q0 a 1 {1 / 3!r} mine"]


def test_scores_of_a_written_run_fall_in_single_precision_so_that_its_order_is_that_of_trec_eval(
    tmp_path: Path,
) -> None:
    entries = [
        ("same0", 0.5),
        ("same1", 0.5),
        ("same2", 0.5 - 1e-12),
        ("low0", -1e-45),
        ("low1", -1e-45),
        ("zero", 0.0),
    ]
    write_trec_run(tmp_path / "run", {"q": entries})
    written = read_run(tmp_path / "run")["q"]
    order = ["same0", "same1", "same2", "zero", "low0", "low1"]
    assert [name for name, _ in sorted(written, key=lambda entry: -np.float32(entry[1]))] == order
    assert len({np.float32(score) for _, score in written}) == len(entries)
    assert evaluate({"q": {"same0": 1}}, {"q": written}, "trec", ["p@1"]).means == {"p@1": 1.0}
    packed = tmp_path / "run.gz"
    packed.write_bytes(gzip.compress((tmp_path / "run").read_bytes()))
    assert read_run(packed) == {"q": written}
    packed.write_bytes(packed.read_bytes()[:-6])
    with pytest.raises(DamagedInputError, match="cannot be unpacked"):
        read_run(packed)


def test_semeval_columns_may_be_apart_by_any_white_space_as_for_the_official_scorer(tmp_path: Path) -> None:
    spaced = "Q1 A 1 0.1 false\n Q1  B\t0   0.9 TRUE \n"
    assert format_of(written(tmp_path, spaced)) == "semeval"
    assert read_run(written(tmp_path, spaced)) == {"Q1": [("A", 0.1), ("B", 0.9)]}
    assert read_gold(written(tmp_path, SEMEVAL.replace("\t", "  "))) == read_gold(written(tmp_path, SEMEVAL))


def test_a_format_is_recognised_by_its_first_line(tmp_path: Path) -> None:
    for text, name in (
        (TREC_RUN, "trec-run"),
        ("q1 0 d1 1 2.5 tag\n", "trec-run"),
        (TREC_QRELS, "trec-qrels"),
        ("q1\t0\td1\t1\n", "trec-qrels"),
        (SEMEVAL, "semeval"),
        (ASKUBUNTU, "askubuntu"),
        ("8\t\t12 14\t1.0 1.0\n", "askubuntu"),
        ("8\t5\t12 14\t1.0 1.0\n", "askubuntu"),
        ("\ufeff\r\n" + SEMEVAL.replace("\n", "\r\n"), "semeval"),
    ):
        assert format_of(written(tmp_path, text)) == name


def test_gold_and_runs_are_read_whatever_their_format(tmp_path: Path) -> None:
    assert read_gold(written(tmp_path, TREC_QRELS))["q1"] == {"d1": 2, "d2": 0}
    assert read_gold(written(tmp_path, SEMEVAL))["Q1"] == {"Q1_R4": 1, "Q1_R2": 0}
    assert read_gold(str(written(tmp_path, ASKUBUNTU)))["7"] == {"11": 1, "12": 0, "13": 1}
    assert read_run(written(tmp_path, TREC_RUN))["q2"] == [("d1", 7.0)]
    assert read_run(written(tmp_path, SEMEVAL))["Q2"] == [("Q2_R1", 1.0)]
    assert read_run(str(written(tmp_path, ASKUBUNTU)))["8"] == [("12", 1.0), ("14", 1.0)]
    assert read_askubuntu(written(tmp_path, "7\t11\t11\t3\n"))[0] == {"7": {"11": 1}}


def test_a_run_is_no_gold_and_gold_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="trec-run, expected judgements: semeval, askubuntu, trec-qrels"):
        read_gold(written(tmp_path, TREC_RUN))
    with pytest.raises(FormatError, match="trec-qrels, expected a run: semeval, askubuntu, trec-run"):
        read_run(written(tmp_path, TREC_QRELS))


def test_an_unknown_layout_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"lines\.txt, line 2 is 'id,title'; expected one of: semeval"):
        format_of(written(tmp_path, "\nid,title\n"))


def test_a_file_that_is_absent_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        read_run(tmp_path / "absent")
    with pytest.raises(DamagedInputError, match="is empty"):
        read_run(written(tmp_path, "\n \n"))


Reader = Callable[[Path], object]


@pytest.mark.parametrize(
    ("reader", "text", "line", "said"),
    [
        (read_trec_run, "q Q0 d 1 0.5 t\nq Q0 e 2 0.4\n", 2, "expected 6 fields"),
        (read_trec_run, "q Q0 d 1 nan t\n", 1, "expected a finite number"),
        (read_trec_run, "q Q0 d 1 1 t\nr Q0 d 1 1 t\nq Q0 d 2 0 t\n", 3, "document d comes a second time for query q"),
        (read_trec_qrels, "q 0 d 0.5\n", 1, "grade is '0.5'"),
        (read_trec_qrels, "q 0 d 1\nq 0 d 1\n", 2, "judged a second time"),
        (read_semeval_run, "Q\tD\t1\t1\tmaybe\n", 1, "label is 'maybe'"),
        (read_semeval_gold, f"Q\tD\t{'9' * 5000}\t0.7\ttrue\n", 1, "rank is '999"),
        (read_askubuntu, "7\t1\t1 2\t1\n", 1, "2 candidates but 1 scores"),
        (read_askubuntu, "7\t1\t\t\n", 1, "no candidate"),
        (read_askubuntu, "7\t1\t1 2 1\t1 1 1\n", 1, "candidate 1 comes a second time"),
        (read_askubuntu, "7\t1\t1 2\t1 1\n7\t1\t1 2\t1 1\n", 2, "query 7 comes a second time"),
        (read_askubuntu, "\t1\t1 2\t1 1\n", 1, "query has no id"),
    ],
)
def test_a_damaged_line_is_named_with_file_and_number(
    tmp_path: Path, reader: Reader, text: str, line: int, said: str
) -> None:
    with pytest.raises(DamagedInputError) as caught:
        reader(written(tmp_path, text))
    assert f"lines.txt, line {line}: " in str(caught.value)
    assert said in str(caught.value)


def test_a_line_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes(b"q Q0 d 1 2 t\nq Q0 caf\xe9 2 1 t\n")
    with pytest.raises(DamagedInputError, match=r"latin\.txt, line 2: byte 9 is not UTF-8"):
        read_run(path)


def test_what_a_layout_cannot_say_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "out"
    for write, said in (
        (lambda: write_trec_run(path, {"q": [("a b", 1.0)]}), "id 'a b' cannot be written as a TREC run"),
        (lambda: write_trec_run(path, {"q": []}), "query q has no document"),
        (lambda: write_trec_run(path, {"q": [("d", float("nan"))]}), "query q has a document with the score"),
        (lambda: write_trec_run(path, RUN, tag=""), "id '' cannot be written as the tag"),
        (lambda: write_trec_qrels(path, {"q": {"": 1}}), "id '' cannot be written as TREC qrels"),
        (lambda: write_trec_qrels(path, {"q": {}}), "query q has no judgement"),
    ):
        with pytest.raises(EvaluationError, match=said):
            write()
        assert not path.exists()
