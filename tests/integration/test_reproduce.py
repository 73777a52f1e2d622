"""``askalike reproduce`` as a user types it."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.command import Run
from tests.tiny_das2016 import write_yahoo
from tests.unit.test_lei2016 import write_askubuntu

from askalike.errors import install_command


@pytest.fixture
def askubuntu(tmp_path: Path) -> Path:
    return write_askubuntu(tmp_path / "askubuntu")


def test_rows_are_printed_beside_the_reported_figures(askubuntu: Path, tmp_path: Path, run: Run) -> None:
    words = ("lei2016", "--data", askubuntu, "--only", "tfidf-title", "--only", "askubuntu", "--out", tmp_path / "out")
    code, out, err = run("reproduce", *words)
    assert code == 0
    assert "AskUbuntu, the data of the paper: askubuntu-test, 2 queries" in out
    published = [line.split() for line in out.splitlines() if line.split()[:1] in (["paper"], ["thesis"])]
    assert published == [["paper", "=56.0", "=68.0", "=53.8", "=42.5"], ["thesis", "54.3", "66.8", "52.7", "–"]]
    assert "66.67" in out  # BM25 has the positives at ranks 3 and 1
    assert "askubuntu: tfidf-title" in err
    done = run("reproduce", *words)
    assert done.code == 0
    assert "askubuntu: tfidf-title" not in done.err, "what is finished is not run again"


def test_json_holds_what_was_found_and_what_was_not_run(
    askubuntu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr("askalike.papers.harness.importlib.util.find_spec", lambda name: None)
    done = run("reproduce", "lei2016", "--data", askubuntu, "--only", "gru", "--out", tmp_path / "out", "--json")
    assert done.code == 0
    judged_set = done.json["sets"]["askubuntu"]
    assert judged_set["is_the_papers_data"]
    assert judged_set["tasks"] == {"askubuntu-dev": 2, "askubuntu-test": 2}
    first, *others = judged_set["rows"]
    assert first["found"]["askubuntu-test"]["map"]["mean"] == pytest.approx(2 / 3)
    assert [row["row"] for row in others] == ["gru-last", "gru-mean", "gru-last-pretrained"]
    assert {row["not_run"] for row in others} == {f"training a network needs torch ({install_command('train')})"}
    assert others[0]["parameters"] == 404_880


@pytest.fixture
def heard_interrupt() -> Iterator[None]:
    """Hear SIGINT, which a shell's background jobs ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard_interrupt")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_says_that_the_same_command_goes_on(
    how: signal.Signals, askubuntu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("askalike.papers.harness.do_each", lambda *_, **__: os.kill(os.getpid(), how))
    done = run("reproduce", "lei2016", "--data", askubuntu, "--only", "bm25", "--out", tmp_path / "out")
    assert done.code == 130
    assert f"stopped; finished rows are kept in {tmp_path / 'out'}. To go on:" in done.err
    assert signal.getsignal(signal.SIGTERM) == before


RECIPE = """
[words]
size = 200
min_count = 1
epochs = 1

[encoder]
kind = "rcnn"
hidden_size = 400

[[stage]]
objective = "decoding"
held_out = 0
epochs = 1
patience = 0

[[stage]]
objective = "max-margin"
epochs = 1
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "quick.toml"
    path.write_text(RECIPE, encoding="utf-8")
    return path


def test_an_encoders_rows_are_trained_each_once_and_share_word_vectors(
    askubuntu: Path,
    recipe: Path,
    tmp_path: Path,
    run: Run,
) -> None:
    out = tmp_path / "out"
    rows = ("rcnn-last", "rcnn-last-title", "rcnn-last-pretrained", "gru-last")
    named = [word for row in rows for word in ("--only", row)]
    words = ("lei2016", "--data", askubuntu, "--out", out, "--recipe", recipe, "--seeds", 1, "--json", *named)
    code, shown, notices = run("reproduce", *words)
    assert code == 0
    row_of = {row["row"]: row for row in json.loads(shown)["sets"]["askubuntu"]["rows"]}
    for row in rows:
        assert row_of[row]["seeds"] == [0]
        assert 0 <= row_of[row]["found"]["askubuntu-test"]["map"]["mean"] <= 1
    assert "to run: 5, of which 4 are trained with a seed" in notices, "four encoders, and BM25"
    assert "running askubuntu: rcnn-last-pretrained, seed 0 (5 of 5" in notices
    assert len(list((out / "words").glob("*/words.txt"))) == 1
    (pretrained,) = (out / "pretrained").iterdir()
    assert re.fullmatch("rcnn-400-title-and-body-[0-9a-f]{8}-seed0", pretrained.name)
    assert (out / "askubuntu" / "rcnn-last-seed0" / "log.csv").exists()
    done = run("reproduce", *words)
    assert done.code == 0
    assert "running" not in done.err, "what is finished is not trained again"
    recipe.write_text(RECIPE.replace("min_count = 1", "min_count = 2"), encoding="utf-8")
    done = run("reproduce", *words)
    assert done.code == 2
    assert "--out" in done.err, "rows of other settings are not mixed in one table"


def test_word_vectors_of_a_file_and_more_texts_are_taken(
    askubuntu: Path,
    recipe: Path,
    tmp_path: Path,
    run: Run,
) -> None:
    numbers = " ".join(["0.1"] * 200)
    (tmp_path / "vectors.txt").write_text(f"2 200\nprinter {numbers}\nwifi {numbers}\n", encoding="utf-8")
    (tmp_path / "more.jsonl").write_text(
        '{"kind": "question", "id": "m1", "title": "new words here"}\n', encoding="utf-8"
    )
    words = ("lei2016", "--data", askubuntu, "--recipe", recipe, "--seeds", 1, "--only", "cnn-max", "--json")
    assert run("reproduce", *words, "--out", tmp_path / "a", "--vectors", tmp_path / "vectors.txt").code == 0
    assert not (tmp_path / "a" / "words").exists()
    (askubuntu / "vector").mkdir()
    (askubuntu / "vector" / "vectors_pruned.200.txt.gz").write_bytes(gzip.compress(f"printer {numbers}\n".encode()))
    released = run("reproduce", *words, "--out", tmp_path / "c")
    assert released.code == 0
    assert "vectors_pruned.200.txt.gz" in released.err
    assert not (tmp_path / "c" / "words").exists()
    (askubuntu / "vector" / "vectors_pruned.200.txt.gz").unlink()
    assert run("reproduce", *words, "--out", tmp_path / "b", "--unlabelled", tmp_path / "more.jsonl").code == 0
    (trained,) = (tmp_path / "b" / "words").glob("*/words.txt")
    assert "here" in {line.split()[0] for line in trained.read_text(encoding="utf-8").splitlines()}


@pytest.mark.parametrize("paper", ["lei2016", "zhang2018", "das2016"])
def test_the_rows_of_a_paper_are_listed_by_the_names_that_only_takes(paper: str, run: Run) -> None:
    listed = run("reproduce", paper, "--list")
    assert listed.code == 0
    rows = run("reproduce", paper, "--list", "--json").json
    assert [line.split()[0] for line in listed.out.splitlines()[1:]] == [row["row"] for row in rows]
    assert "bm25" in {row["row"] for row in rows}
    assert any(row["name"] for row in rows)
    assert ("travel" in listed.err) == (paper != "zhang2018")
    without_data = run("reproduce", paper, "--only", "bm25")
    assert without_data.code == 2
    assert "--data" in without_data.err


WRONG = (
    ("lei2015", (), "expected one of lei2016"),
    ("lei2016", ("--only", "bert"), "rcnn-last-pretrained"),
    ("lei2016", ("--only", "travel"), "or a set of this folder (askubuntu)"),
    ("zhang2018", ("--only", "lstm"), "no row or set 'lstm'"),
    ("lei2016", ("--amount", 20), "--amount is an option of zhang2018, not of lei2016"),
    ("zhang2018", ("--vectors", "vectors.txt"), "--vectors is an option of lei2016, not of zhang2018"),
    ("das2016", ("--unlabelled", "more"), "--unlabelled is an option of lei2016 and zhang2018, not of das2016"),
    ("das2016", ("--recipe", "none.toml"), "cannot be read"),
    ("lei2016", ("--out", "OUT"), "is a file"),
    ("lei2016", ("--device", "abacus"), "device 'abacus' is not known"),
)


@pytest.mark.parametrize(("paper", "words", "said"), WRONG, ids=[said for *_, said in WRONG])
def test_a_wrong_use_is_named(
    paper: str, words: tuple[object, ...], said: str, askubuntu: Path, tmp_path: Path, run: Run
) -> None:
    if "--device" in words:
        pytest.importorskip("torch", reason="devices are torch's, which is not installed")
    (tmp_path / "out").write_text("notes", encoding="utf-8")
    words = tuple(tmp_path / "out" if word == "OUT" else word for word in words)
    data = write_yahoo(tmp_path / "yahoo") if paper == "das2016" else askubuntu
    done = run("reproduce", paper, "--data", data, "--out", tmp_path / "rows", *words)
    assert done.code == 2
    assert said in done.err
