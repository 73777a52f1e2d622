"""The rows of the quality tables, and the rival's vectors that are kept on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from benchmarks.minilm import DIMENSIONS, MiniLM, joined
from benchmarks.quality_rows import pair_rows, ranking_rows, shown
from numpy.typing import NDArray

from askalike.evaluation import evaluate
from askalike.types import Question


def test_a_row_has_figures_times_100_and_a_test_against_each_rival() -> None:
    qrels = {f"q{number}": {"a": 1, "b": 0} for number in range(3)}
    good = {query: [("a", 2.0), ("b", 1.0)] for query in qrels}
    poor = {query: [("a", 1.0), ("b", 2.0)] for query in qrels}
    reports = {name: evaluate(qrels, run, "askubuntu", ("map", "p@1")) for name, run in (("bm25", poor), ("new", good))}
    rows = ranking_rows(reports, "map")
    assert rows["bm25"] == {
        "queries": 3,
        "map": 50.0,
        "map_interval95": [50.0, 50.0],
        "p@1": 0.0,
        "p@1_interval95": [0.0, 0.0],
    }
    # all three differ by the same: 2 of 8 sign patterns are as extreme
    assert rows["new"]["against_bm25"] == {
        "map": {"difference": 50.0, "interval95": [50.0, 50.0], "p_value": 0.25},
    }
    assert "p(bm25) 0.2500" in shown(rows)


def test_a_row_of_pairs_has_both_measures() -> None:
    rows = pair_rows({"bm25": [0.1, 0.9, 0.4, 0.6], "new": [0.9, 0.1, 0.8, 0.2]}, [1, 0, 1, 0])
    assert (rows["new"]["ap"], rows["new"]["auc"], rows["bm25"]["auc"]) == (100.0, 100.0, 0.0)
    assert set(rows["new"]) >= {"pairs", "ap_interval95", "against_bm25"}


def test_the_rival_reads_title_and_text_of_the_body() -> None:
    assert joined(Question("1", "Visa", "<p>For <b>whom</b>?</p>", "html")) == "Visa\nFor whom?"
    assert joined(Question("1", "Visa")) == "Visa"


def test_the_rivals_vectors_are_made_once_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def run(_: MiniLM, texts: Sequence[str]) -> NDArray[np.float32]:
        made.extend(texts)
        return np.array([[len(text)] * DIMENSIONS for text in texts], dtype=np.float32)

    monkeypatch.setattr(MiniLM, "_run", run)
    asked = [Question("1", "long title"), Question("2", "title"), Question("3", "title")]
    for _ in range(2):
        vectors = MiniLM(cache=tmp_path / "known.sqlite").encode(asked)
        assert vectors[:, 0].tolist() == [10, 5, 5]
    assert sorted(made) == ["long title", "title"]
