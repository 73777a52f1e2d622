from __future__ import annotations

from typing import Any

from tools.sections.students import pools


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
