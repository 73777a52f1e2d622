"""Courses and outcomes that are published can be taken up again."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

from benchmarks import logs, patience
from benchmarks.logs import Course, read_logs, write_logs
from benchmarks.outcomes import keep, take_back

from askalike.training.loop import Entry


def test_courses_are_read_as_they_were_written(tmp_path: Path) -> None:
    ones = [
        Course("20", "gru", 1, [Entry("1-a", 0, 0, "loss", 2.5), Entry("1-a", 1, 8, "semeval2016-dev map", 0.75)]),
        Course("all", "attention", 0, [Entry("1-a", 1, 8, "loss", 2.0)]),
    ]
    write_logs(ones, tmp_path / "logs.csv.gz")
    assert read_logs(tmp_path / "logs.csv.gz") == ones


def test_outcomes_come_back_where_there_are_none_and_replace_nothing(tmp_path: Path) -> None:
    for name, value in (("a", 1.5), ("b", 2.5)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"value": value}, indent=1), encoding="utf-8")
    keep(tmp_path.glob("*.json"), tmp_path / "kept.zip")
    first = (tmp_path / "kept.zip").read_bytes()
    keep(tmp_path.glob("*.json"), tmp_path / "kept.zip")
    assert (tmp_path / "kept.zip").read_bytes() == first

    other = tmp_path / "other" / "rows"
    other.mkdir(parents=True)
    (other / "b.json").write_text('{"value": 7}', encoding="utf-8")
    assert take_back(tmp_path / "kept.zip", other) == ["a.json"]
    assert json.loads((other / "a.json").read_bytes()) == {"value": 1.5}
    assert json.loads((other / "b.json").read_bytes()) == {"value": 7}
    assert take_back(tmp_path / "missing.zip", other) == []


def test_the_examples_in_docstrings_hold() -> None:
    assert [doctest.testmod(module).failed for module in (logs, patience)] == [0, 0]
    assert all(doctest.testmod(module).attempted for module in (logs, patience))
