from __future__ import annotations

from typing import Any

from tools.sections.students import pools, whole_forums


def figures(value: float) -> dict[str, Any]:
    return {"devops": value, "reddit": value, "slicer": value, "travel": value, "all": value, "interval": [1.0, 99.0]}


def test_the_section_shows_every_row_difference_and_time() -> None:
    row = {
        "alone": figures(60.0),
        "with words": figures(61.0),
        "travel": {"ndcg@10": 0.42, "overlap@10": 0.6},
        "held out": {"cosine": [0.8, 0.81, 0.82]},
        "training_s": 1234,
    }
    result = {
        "queries": ["devops 1 title"],
        "query_p50_ms": {"title": 0.1},
        "card": "# A student of x\n\nText.\n",
        "differences": {"words less nothing, alone": [0.5, 1.0, 1.5]},
        "rows": {"words": {"alone": figures(48.9)}, "student": row},
    }
    text = "\n".join(pools(result))
    assert "| words | 48.9 | 48.9 | 48.9 | 48.9 | 48.9 (1.0–99.0) |" in text
    assert "| student, with words | 61.0 |" in text
    assert "| student | 0.810 | 60.0 | 42.0 | 1,234 |" in text
    assert "| words less nothing, alone | +1.0 (+0.5 to +1.5) |" in text
    assert "title 0.10 ms" in text
    assert "#### A student of x" in text


def test_the_section_on_whole_forums_shows_every_figure() -> None:
    errors = {"devops": 1.0, "reddit": 2.0, "slicer": 3.0, "travel": 4.0}
    result = {
        "rows": {"student": {**figures(64.0), "calibration error": errors}},
        "differences": {"student less general": [1.0, 2.0, 3.0]},
        "trainings": {
            "travel, student": {"texts": 1234, "agreement": [0.6, 0.7, 0.8], "gain": [0.1, 0.2, 0.3], "seconds": 99.9}
        },
        "travel, student": {
            "dev, teacher": 0.53,
            "dev, student": 0.5,
            "test, teacher": 0.43,
            "test, student": 0.41,
            "student less teacher": [-0.05, -0.02, 0.01],
        },
        "query, student": {"p50_ms": 0.05, "p95_ms": 0.09},
    }
    text = "\n".join(whole_forums(result))
    assert "| student | 64.0 | 64.0 | 64.0 | 64.0 | 64.0 (1.0–99.0) |" in text
    assert "| student less general | +2.0 (+1.0 to +3.0) |" in text
    assert "| student | 1.0 | 2.0 | 3.0 | 4.0 |" in text
    assert "| travel, student | 1,234 | 0.70 (0.60–0.80) | +0.20 | 100 |" in text
    assert "| student | 53.0 | 50.0 | 43.0 | 41.0 | -2.0 (-5.0 to +1.0) |" in text
    assert "0.05 ms (95 %: 0.09 ms)" in text
