"""``askalike reproduce das2016`` on a few questions in the layout of Yahoo! Answers, with networks of a few numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.command import Run
from tests.tiny_das2016 import write_yahoo

from askalike.papers.das2016.data import read_pairs

RECIPE = """
kernel_width = 3
channels = [2, 2]
poolings = [2, 2]
output_size = 4
batch_size = 10
held_out = 4

[loop]
epochs = 2
"""


@pytest.fixture
def options(tmp_path: Path) -> tuple[object, ...]:
    (tmp_path / "tiny.toml").write_text(RECIPE, encoding="utf-8")
    folder = write_yahoo(tmp_path / "yahoo")
    return ("--data", folder, "--out", tmp_path / "out", "--recipe", tmp_path / "tiny.toml", "--seeds", 2)


def test_the_whole_table_is_run_once_and_printed_beside_the_reported_figures(
    options: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    pytest.importorskip("torch", reason="training needs torch, which is not installed")
    few = "askalike.papers.das2016.rows."
    for name, values in (("LONGEST", (2,)), ("TOPICS", (2,)), ("COARSE", (("jelinek-mercer", 0.5),))):
        monkeypatch.setattr(few + name, values)
    code, shown, notices = run("reproduce", "das2016", *options, "--json")
    assert code == 0
    report: dict[str, Any] = json.loads(shown)
    assert "to run: 23, of which 14 are trained with a seed" in notices, (
        "nine rows once, three of topics and four networks twice"
    )
    rows = {row["row"]: row for row in report["sets"]["yahoo"]["rows"]}
    assert list(rows)[-1] == "dsqa-sum"
    assert rows["scqa"]["seeds"] == rows["scqa-sum-dev"]["seeds"] == [0, 1]
    assert rows["scqa-untrained"]["found"] != rows["scqa"]["found"]
    assert rows["translation"]["found"]["yahoo test"]["map"]["mean"] == 1
    assert rows["t-scqa"]["reported"]["mrr"] == {"value": 93.4, "origin": "paper"}
    assert len(rows["t-scqa"]["by_seed"]["0"]["tried"]) == 21
    assert {(comparison["better"], comparison["worse"]) for comparison in report["sets"]["yahoo"]["compared"]} >= {
        ("scqa", "dsqa"),
        ("t-scqa", "scqa"),
    }
    assert report["is_the_papers_data"]
    assert (tmp_path / "out" / "scqa-seed1" / "log.csv").exists()
    code, shown, notices = run(
        "reproduce", "das2016", *options, "--only", "t-scqa", "--only", "lmir", "--only", "yahoo"
    )
    assert code == 0
    assert "running" not in notices, "what is finished is not run again"
    assert re.search(r"paper +85\.2 +93\.4 +84\.9", shown)
    assert "t-dsqa" not in shown


def test_networks_are_not_run_where_torch_is_missing(
    options: tuple[object, ...], monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr("askalike.papers.harness.importlib.util.find_spec", lambda name: None)
    done = run("reproduce", "das2016", *options, "--only", "scqa", "--only", "bm25")
    assert done.code == 0
    assert "not run, since training a network needs torch" in done.out


def test_what_is_learned_from_is_counted_and_what_is_left_out_is_named(options: tuple[object, ...], run: Run) -> None:
    archive = Path(str(options[1])) / "FullOct2007.xml"
    text = archive.read_text(encoding="utf-8").replace("<uri>7</uri>", "<uri></uri>")
    archive.write_text(text.replace("trouble car number9<", "query9 car<"), encoding="utf-8")
    done = run("reproduce", "das2016", *options, "--only", "lmir")
    assert done.code == 0
    assert "FullOct2007.xml: records that cannot be read are left out (1), first FullOct2007.xml, line" in done.err
    counted = "58 questions to learn from, 116 answers; left out: questions with the words of a query (1)"
    assert counted in " ".join(done.err.split())


def test_rows_that_learn_nothing_read_nothing_to_learn_from(options: tuple[object, ...], run: Run) -> None:
    done = run("reproduce", "das2016", *options, "--only", "bm25", "--only", "trigrams", "--json")
    assert done.code == 0
    assert "reading" in done.err
    assert done.json["learned_from"]["questions"] == 0
    assert all(row["found"]["yahoo test"] for row in done.json["sets"]["yahoo"]["rows"])


@pytest.mark.data
def test_all_sources_of_pairs_that_stand_in_are_read(data_dir: Path) -> None:
    pairs = read_pairs(data_dir, [], 500)
    assert len(pairs.questions) == sum(pairs.sources.values()) == 500
    assert {name.partition("/")[0] for name in pairs.sources} == {
        "reddit",
        "slicer-discourse",
        "devops-stackexchange",
        "stackexchange-dumps",
        "yahoo",
    }
    assert pairs.left_out == {
        "topics at an end of a link": 3754,
        "questions with the text of another": 789,
        "answers that say nothing": 378,
        "questions of which no answer is left": 15,
    }
