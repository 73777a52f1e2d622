"""The sections on misspellings."""

from __future__ import annotations

from typing import Any

from tools.sections.misspelling import lost


def row(commit: str = "") -> dict[str, Any]:
    value = {"mean": 50.0, "interval95": [40.0, 60.0]}
    found: dict[str, Any] = {"written": value, "misspelled": value, "lost": value, "lost_share": 0.1, "p_value": 0.5}
    return found | ({"commit": commit} if commit else {})


def test_rows_that_an_earlier_run_measured_are_named_with_its_commit() -> None:
    result: dict[str, Any] = {
        "systems": {"bm25": row(), "scqa": row("0123abc"), "minilm": row("0123abc")},
        "p_lost_beside_bm25": {},
        "example": {"written": "a", "misspelled": "b"},
        "measure": "recall@10",
        "collection": 10,
        "queries": 2,
        "draws": 1,
        "siamese_pairs": 5,
    }
    assert "The rows of scqa, minilm: commit `0123abc`." in "\n".join(lost(result))
    result["systems"] = {"bm25": row()}
    assert "commit" not in "\n".join(lost(result))
