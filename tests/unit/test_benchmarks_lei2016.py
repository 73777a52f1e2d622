"""The logs of a table's trainings, taken together in one file."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from benchmarks.lei2016 import with_baselines
from benchmarks.lei2016_logs import PRETRAINED, draw_pretraining, read_logs
from benchmarks.logs import write_logs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, stage in (
        ("travel/rcnn-last-seed0", "1-max-margin"),
        ("travel/rcnn-last-pretrained-seed1", "1-max-margin"),
        ("travel/cnn-max-seed0", "1-max-margin"),
        ("pretrained/rcnn-400-title-and-body-0123abcd-seed0", "1-decoding"),
        ("pretrained/rcnn-400-title-and-body-0123abcd-seed1", "1-decoding"),
        ("pretrained/lstm-240-title-and-body-0123abcd-seed1", "1-decoding"),
    ):
        (tmp_path / name).mkdir(parents=True)
        lines = ["stage,epoch,step,measure,value", f"{stage},0,0,mrr,0.25", f"{stage},1,8,mrr,0.5"]
        (tmp_path / name / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


DONE = {("travel", "rcnn-last", 0), ("travel", "rcnn-last-pretrained", 1)}


def test_logs_are_of_finished_trainings_and_of_what_they_began_from(folder: Path) -> None:
    courses = {(one.dataset, one.row, one.seed): one for one in read_logs(folder, DONE)}
    pretrained = (PRETRAINED, "rcnn-400-title-and-body-0123abcd", 1)
    assert set(courses) == {*DONE, pretrained}
    assert [key for key, one in courses.items() if one.dataset == PRETRAINED] == [pretrained]
    assert courses[pretrained].curve("mrr") == [(0, 0.25), (1, 0.5)]


def test_the_same_logs_give_the_same_file(folder: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.gz", tmp_path / "second.gz"
    for path in (first, second):
        write_logs(read_logs(folder, {("travel", "rcnn-last", 0)}), path)
    assert first.read_bytes() == second.read_bytes()
    assert gzip.decompress(first.read_bytes()).decode().splitlines() == [
        "set,row,seed,stage,epoch,step,measure,value",
        "travel,rcnn-last,0,1-max-margin,0,0,mrr,0.25",
        "travel,rcnn-last,0,1-max-margin,1,8,mrr,0.5",
    ]


def test_pretraining_is_drawn_with_a_score_for_each_dev_set(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures are drawn by matplotlib, which is not installed")
    with (folder / "pretrained/rcnn-400-title-and-body-0123abcd-seed1/log.csv").open("a", encoding="utf-8") as log:
        for measure in ("perplexity from title", "travel dev mrr", "semeval dev mrr"):
            log.write("".join(f"1-decoding,{epoch},8,{measure},{value}\n" for epoch, value in ((0, 0.5), (1, 0.25))))
    assert draw_pretraining(read_logs(folder, DONE), tmp_path / "figure.svg")
    drawn = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    for text in ("perplexity of held-out titles", "travel dev MRR", "semeval dev MRR", "RCNN, 400 dimensions"):
        assert text in drawn


def test_nothing_is_drawn_without_pretraining(folder: Path, tmp_path: Path) -> None:
    courses = read_logs(folder, {("travel", "rcnn-last", 0)})
    assert not draw_pretraining(courses, tmp_path / "figure.svg")
    assert not (tmp_path / "figure.svg").exists()


def found(mean: float, p_value: float | None = None) -> dict[str, Any]:
    return {"travel test": {"map": {"mean": mean, "interval95": [0.1, 0.9], "spread": None, "p_value": p_value}}}


def test_a_new_bm25_leaves_published_encoders_without_p_and_renames_what_they_were_compared_with() -> None:
    compared = {"better": "rcnn-last", "worse": "bm25", "task": "travel test", "difference": -0.1}
    row = {"reported": {}, "thesis": {"p@1": {"value": 64.2, "origin": "thesis"}}}
    before = {
        "rows": [{"row": "bm25", "found": found(0.465)}, {"row": "rcnn-last", "found": found(0.3, 0.001)}],
        "compared": [compared],
    }
    now = {
        "tasks": {"travel test": 126},
        "rows": [
            {**row, "row": "bm25", "found": found(0.422)},
            {**row, "row": "candidate-search", "found": found(0.465, 0.01)},
            {**row, "row": "rcnn-last", "found": {}},
        ],
        "compared": [{"better": "candidate-search", "worse": "bm25", "task": "travel test", "difference": 0.043}],
    }
    made = with_baselines({"travel": before}, {"travel": now})["travel"]
    values = {one["row"]: one["found"]["travel test"]["map"] for one in made["rows"]}
    assert [(one, value["mean"], value["p_value"]) for one, value in values.items()] == [
        ("bm25", 0.422, None),
        ("candidate-search", 0.465, 0.01),
        ("rcnn-last", 0.3, None),
    ]
    assert made["rows"][-1]["thesis"] == row["thesis"]
    assert [(one["better"], one["worse"]) for one in made["compared"]] == [
        ("rcnn-last", "candidate-search"),
        ("candidate-search", "bm25"),
    ]
    same = with_baselines({"travel": before}, {"travel": {**now, "rows": before["rows"][:1] + now["rows"][1:]}})
    assert same["travel"]["rows"][-1]["found"]["travel test"]["map"]["p_value"] == 0.001
