"""What readers wrote of drawn pairs is taken whole or refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.reading import grades_of, taken

KEY = [
    {"forum": "travel", "query": "q1", "asked": "title", "readers": [0, 1]}
    | {"candidates": [{"id": "a", "seen_by": {"words": 1}}, {"id": "b", "seen_by": {}}]},
    {"forum": "travel", "query": "q2", "asked": "title and body", "readers": [1]}
    | {"candidates": [{"id": "c", "seen_by": {"minilm, cosine": 2}}]},
]


def folder_of(path: Path, *written: str) -> Path:
    """Return a folder of these readings."""
    (path / "key.json").write_text(json.dumps(KEY), encoding="utf-8")
    for reader, text in enumerate(written):
        (path / f"grades-{reader}.tsv").write_text(text, encoding="utf-8")
    return path


def test_grades_of_two_readers_stand_beside_each_other(tmp_path: Path) -> None:
    first, second = taken(folder_of(tmp_path, "0\t0.0\t3\n0\t0.1\t0\n", "0\t0.0\t2\n0\t0.1\t0\n1\t1.0\t1\n"), "r")
    assert first["readers"] == ["r0", "r1"]
    assert [(one["id"], one["grades"]) for one in first["candidates"]] == [("a", [3, 2]), ("b", [0, 0])]
    assert second["candidates"] == [{"id": "c", "grades": [1], "seen_by": {"minilm, cosine": 2}}]


def test_a_pair_that_a_reader_left_out_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"0\.1 was not graded by all of \[0, 1\]"):
        taken(folder_of(tmp_path, "0\t0.0\t3\n", "0\t0.0\t2\n0\t0.1\t0\n1\t1.0\t1\n"), "r")


def test_grades_of_pairs_that_a_reader_was_not_given_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="1 grades are of no pair"):
        taken(folder_of(tmp_path, "0\t0.0\t3\n0\t0.1\t0\n1\t1.0\t1\n", "0\t0.0\t2\n0\t0.1\t0\n1\t1.0\t1\n"), "r")


@pytest.mark.parametrize("text", ["0\t0.0\t4\n", "0\t0.0\t1\n0\t0.0\t1\n", "1\t0.0\t1\n"])
def test_a_line_that_is_no_grade_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "grades-0.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"grades-0\.tsv, line"):
        grades_of(tmp_path / "grades-0.tsv")
