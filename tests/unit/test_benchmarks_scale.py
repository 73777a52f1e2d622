"""The benchmark of sizes: its copies have other words, and a run of a few hundred questions measures everything."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("faiss")
pytest.importorskip("hnswlib")
pytest.importorskip("usearch")
pytest.importorskip("bm25s")

from benchmarks import scale
from benchmarks.record import DATA

TEXT = "the router drops the wireless connection every evening and nothing that I tried so far has helped at all"


def test_a_copy_has_other_words_in_about_three_of_ten_places() -> None:
    chance = np.random.default_rng(0)
    copies = [scale.changed(TEXT, ["zebra", "giraffe"], chance).split() for _ in range(200)]
    assert {len(copy) for copy in copies} == {len(TEXT.split())}
    drawn = sum(word in ("zebra", "giraffe") for copy in copies for word in copy) / sum(map(len, copies))
    assert drawn == pytest.approx(scale.REPLACED, abs=0.03)
    assert scale.changed("", ["zebra"], chance) == ""


def test_the_time_left_is_compared_with_what_it_took() -> None:
    course = scale.Course()
    course.phases.append(("steady", 100, 0.0, [(1.0, 10), (2.0, 20), (5.0, 50)]))
    course.phases.append(("slowing", 100, 10.0, [(11.0, 25), (12.0, 50)]))
    report = course.report(22.0)
    assert report["steady"] == {"seconds": 10.0, "time left wrong by at most": 1.0}
    assert report["slowing"] == {"seconds": 12.0, "time left wrong by at most": 5.0}  # 2 s are told, it took 10


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "reddit" / "questions.jsonl.gz").exists(), reason="needs the questions of Reddit")
def test_a_run_of_a_few_hundred_questions_measures_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "REAL", 200)
    monkeypatch.setattr(scale, "ADDED", 3)
    monkeypatch.setattr(scale, "COMPARED", 5)
    folder = tmp_path / "scale"
    body = scale.measure(folder, size=300, queries=20, rivals=1_000)
    assert body["indexing"]["questions"] == body["indexing"]["encoded"] == 300
    assert set(body["indexing"]["phases"]) == {"reading", "indexing", "encoding"}
    assert body["copies"] == 100
    assert body["nearest vectors"]["recall_at_10"] == 1.0
    assert [row["name"] for row in body["vectors beside rivals"]][2:] == [
        "NumPy, float32",
        "FAISS HNSW",
        "hnswlib",
        "usearch",
    ]
    assert {"tantivy alone, title", "bm25s, title", "askalike by words, title"} <= body["words"].keys()
    assert body["likely pairs"]["questions compared"] >= 5
    json.dumps(body)

    kept = folder / "measured.json"
    held = json.loads(kept.read_text())
    kept.write_text(json.dumps({name: part for name, part in held.items() if name != "opening"}))
    again = scale.measure(folder, size=300, queries=20, rivals=1_000)  # as if the run had been ended on its way
    assert {name: part for name, part in again.items() if not name.startswith(("opening", "load"))} == {
        name: part for name, part in body.items() if not name.startswith(("opening", "load"))
    }
    kept.write_text(json.dumps({name: held[name] for name in ("commit", "questions", "copies", "queries")}))
    monkeypatch.setattr(scale, "nearest_of", lambda *_: {})
    monkeypatch.setattr(scale, "beside", lambda *_: [])
    built_on = scale.measure(folder, size=300, queries=20, rivals=1_000)["indexing"]
    assert built_on["resumed"]
    assert built_on["questions"] == built_on["encoded"] == 300
