"""The sections on the speed of language models and siamese networks, and on misspellings."""

from __future__ import annotations

from typing import Any

from tools.sections.language import speed as language_speed
from tools.sections.misspelling import corrected, lost
from tools.sections.siamese import speed as siamese_speed


def shapes(lines: list[str]) -> list[set[int]]:
    """Return for each table how many cells its lines have."""
    return [{line.count("|") for line in part.splitlines()} for part in "\n".join(lines).split("\n\n") if "|" in part]


def test_language_models_are_shown_with_median_and_best_of_each_case() -> None:
    cases = {f"{terms} terms, candidates of 50": {"median_ms": 5.5, "best_ms": 4.0} for terms in (10, 50)}
    result: dict[str, Any] = {
        "training": {
            "pairs": 80000,
            "pairs_of_terms": 4500000,
            "pairs_per_s": 29000,
            "numbering_s": 24.3,
            "peak_memory_mb": 656,
        },
        "scoring": {"translm": cases, "phrase": cases},
        "sizes": {"candidates": 1000, "rounds": 30, "target_ms": 10},
    }
    lines = language_speed(result)
    assert "| translm | 5.5 (4.0) | 5.5 (4.0) |" in lines
    assert "29,000 pairs a second" in "\n".join(lines)
    assert shapes(lines) == [{4}]


def test_the_sparse_network_is_shown_beside_the_dense_one() -> None:
    one = {"sparse_ms": 10.0, "dense_ms": 50.0, "dense_by_sparse": {"lowest": 4.5, "median": 5.0}, "rounds": 10}
    result: dict[str, Any] = {
        "sizes": {"trigrams": 48536, "batch": 100},
        "sparse_and_dense": {"5-5-4, title": {"forward": one, "both": one}},
        "questions_per_s": {"title": 3600},
        "beside": {"questions": 252, "per_s": {"SCQA": 1247, "all-MiniLM-L6-v2": 15}},
        "training_samples_per_s": {"SCQA": 1480},
    }
    lines = siamese_speed(result)
    assert "| 5-5-4, title | 10 / 50 (5.0, at least 4.5) | 10 / 50 (5.0, at least 4.5) |" in lines
    assert "| all-MiniLM-L6-v2 | 15 |" in lines
    assert shapes(lines) == [{4}, {3}]


def test_what_is_lost_by_misspellings_is_shown_beside_bm25() -> None:
    found = {"mean": 40.0, "interval95": [30.0, 50.0]}
    row = {"written": found, "misspelled": found, "lost": found, "lost_share": 0.87, "p_value": 0.0001}
    result: dict[str, Any] = {
        "measure": "recall@10",
        "collection": 4919,
        "queries": 145,
        "draws": 5,
        "siamese_pairs": 6000,
        "systems": {"bm25": row, "scqa": row},
        "p_lost_beside_bm25": {"scqa": 0.01},
        "example": {"written": "a visa", "misspelled": "a vsia"},
    }
    lines = lost(result)
    cells = "40.0 (30.0–50.0) | 40.0 (30.0–50.0) | 40.0 (30.0–50.0) | 87 % | 0.0001"
    assert f"| scqa | {cells} | 0.0100 |" in lines
    assert f"| bm25 | {cells} |  |" in lines
    assert shapes(lines) == [{8}]


def test_what_the_correction_does_is_shown_for_each_forum_and_rule() -> None:
    found = {"mean": 40.0, "interval95": [30.0, 50.0]}
    outcome = {"queries": 200, "rightly": 150, "wrongly": 10, "left": 40}
    row = {
        "as people type": outcome,
        "any letter": outcome,
        "as written": {"titles": 1200, "changed": 9},
        "code": {"pieces": 2617, "words changed": 0},
        "title_ms": {"median": 0.05, "p95": 0.7},
        "question_ms": {"median": 0.5, "p95": 3.0},
    }
    rules = {"uncorrected": found, "before": found, "now": found, "gained over before": found, "p_value": 0.5}
    result: dict[str, Any] = {
        "forums": {"travel": {"questions": 3719, "rules": {"before": row, "now": row}}},
        "search": {"queries": 145, "draws": 5, "as written": rules},
    }
    lines = corrected(result)
    shown = "75.0 % / 5.0 % / 20.0 %"
    cells = f"{shown} | {shown} | 9 of 1,200 | 0 of 2,617 | 0.05 / 0.7 | 0.50 / 3.0 |"
    assert f"| travel, 3,719 questions | before | {cells}" in lines
    assert f"|  | now | {cells}" in lines
    assert shapes(lines) == [{9}, {7}]
