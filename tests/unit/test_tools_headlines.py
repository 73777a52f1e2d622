"""The first tables of the results."""

from __future__ import annotations

from typing import Any

from tools.headlines import BY_OTHERS, SYSTEMS, TASKS, chart, headlines
from tools.results import loaded


def test_the_page_shows_the_default_search_and_leaves_out_what_was_not_measured() -> None:
    def row(value: float) -> dict[str, Any]:
        return {
            name: value if not name.endswith("95") else [value - 1, value + 1]
            for _, measure in TASKS.values()
            for name in (measure, f"{measure}_interval95")
        }

    systems = [name for name in (*SYSTEMS, *BY_OTHERS) if "student" not in name]
    tables = {task: {name: row(10.0 + at) for at, name in enumerate(systems)} for task in TASKS}
    for name in BY_OTHERS:
        tables["quora test half"].pop(name, None)  # nothing was learned from it

    def load(name: str) -> Any:
        return {"tables": tables} if name == "quality-search" else loaded(name)

    lines = headlines(load)
    shown = {line.split(" | ")[0].removeprefix("| "): line for line in lines if line.startswith("| ")}
    at = systems.index("search, general")
    assert f"| {10 + at:.2f} ({9 + at:.1f}–{11 + at:.1f}) |" in shown["askalike as it is installed"]
    assert shown["askalike with MiniLM, weights learned without the forum"].endswith("|  |")
    assert not any("student" in name for name in shown)
    picture = chart({"tables": tables})
    assert "askalike as it is installed" in picture
    assert "student" not in picture
    tables["slicer test half"]["search, student"] = row(50.0)
    assert "askalike with a student of MiniLM" in chart({"tables": tables})
