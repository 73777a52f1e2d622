"""The log of a training: what is written is read again; what a killed run wrote too much is taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from askalike.errors import DamagedModelError
from askalike.training.loop import Entry, Log, read_log

ROWS = [
    Entry("1-decoding", 0, 0, "mrr", 0.25),
    Entry("1-decoding", 1, 9, "loss, mean", 1.5),
    Entry("2-max-margin", 0, 0, "mrr", 0.5),
    Entry("2-max-margin", 1, 7, "mrr", 0.125),
    Entry("2-max-margin", 2, 7, "mrr", 0.75),
]


def written(path: Path) -> Log:
    log = Log(path)
    log.begin("1-decoding", -1)
    for row in ROWS:
        log.add(row.stage, row.epoch, row.step, {row.measure: row.value})
    return log


def test_a_log_is_a_table_of_one_value_a_line(tmp_path: Path) -> None:
    log = written(tmp_path / "log.csv")
    assert log.path.read_text(encoding="utf-8").splitlines()[:3] == [
        "stage,epoch,step,measure,value",
        "1-decoding,0,0,mrr,0.25",
        '1-decoding,1,9,"loss, mean",1.5',
    ]
    assert read_log(log.path) == ROWS
    assert read_log(tmp_path / "none.csv") == []


def test_going_on_takes_back_what_was_written_after_the_checkpoint(tmp_path: Path) -> None:
    log = written(tmp_path / "log.csv")
    log.begin("2-max-margin", 1, ["1-decoding"])
    assert read_log(log.path) == ROWS[:4]
    log.begin("2-max-margin", -1, ["1-decoding"])
    assert read_log(log.path) == ROWS[:2]


def test_beginning_a_stage_anew_takes_back_the_stages_after_it(tmp_path: Path) -> None:
    log = written(tmp_path / "log.csv")
    log.begin("1-decoding", 0)
    assert read_log(log.path) == ROWS[:1]
    log.begin("1-contrastive", -1)
    assert read_log(log.path) == []


def test_an_unfinished_last_line_is_left_out(tmp_path: Path) -> None:
    log = written(tmp_path / "log.csv")
    whole = log.path.read_bytes()
    for cut in range(1, 27):
        log.path.write_bytes(whole[:-cut])
        assert read_log(log.path) == ROWS[:4]
    log.begin("2-max-margin", 1, ["1-decoding"])
    assert log.path.read_bytes() == whole[:-26]


@pytest.mark.parametrize("line", ["1-decoding,one,0,mrr,0.5", "1-decoding,0,0,mrr", "1-decoding,0,0,mrr,", "\x00"])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    log = written(tmp_path / "log.csv")
    lines = log.path.read_text(encoding="utf-8").splitlines()
    log.path.write_text("\n".join([*lines[:2], line, *lines[2:]]) + "\n", encoding="utf-8")
    with pytest.raises(DamagedModelError, match=r"log.csv, line 3: .*, but expected stage, epoch, step"):
        read_log(log.path)
