"""The section on Zhang and Wu 2018 says what its tables are of."""

from __future__ import annotations

from typing import Any

from tools.sections.zhang2018 import other_text, reproduction

from askalike.papers.zhang2018.rows import REPORTED

SETTINGS = {
    "similarity": "dot",
    "floor": 0.001,
    "repeats": "each",
    "alpha": 0.035,
    "mismatch_weight": 1.0,
    "is_per_word": False,
}


def row(name: str, texts: int, mean: float) -> dict[str, Any]:
    found = {"mean": mean, "interval95": [mean - 0.1, mean + 0.1], "spread": None, "p_value": 0.5 if texts else None}
    return {
        "row": name,
        "texts": texts,
        "seeds": [0] if texts else [],
        "settings": SETTINGS if texts else None,
        "weights": {"match": 0.5, "bm25": 1.0} if name.endswith("combined") else None,
        "found": {task: {"map": found, "mrr": found} for task in ("dev", "test2016", "test2017")},
    }


COMPARED = {
    "better": "attention-full",
    "worse": "ir",
    "task": "test2016",
    "difference": 0.2,
    "interval95": [0.1, 0.3],
    "p_value": 0.01,
    "commit": "abc",
}
RESULT = {
    "texts": {"questions": 24, "comments": 18, "more.jsonl": 1000},
    "rows": [
        row("ir", 0, 0.5),
        row("attention-full", 20, 0.6),
        row("attention-full", 42, 0.7),
        row("attention-combined", 42, 0.7),
        row("attention-full", 100, 0.8),
    ],
    "compared": {"42": [COMPARED]},
    "reported": REPORTED,
    "tried_on_dev": {"attention, 42 texts": [{**SETTINGS, "dev_map": 0.75}]},
    "epochs": {"attention, 42 texts": {"epochs": [3], "epoch_s": [1.5], "perplexity": [20.0]}},
    "measured": {"attention, 42 texts": {"commit": "abc", "when": "then", "most_epochs": 30}},
    "reconstructions": [{"read": "wifi drops", "attention": "wifi wifi"}],
    "figure": "autoencoders.svg",
    "drawn": "42",
    "logs": "zhang2018-logs.csv.gz",
}


def test_the_table_is_of_the_amount_with_most_trainings_and_says_so() -> None:
    text = "\n".join(reproduction(RESULT))
    assert "The rows of this table learned from the first 42." in text
    lines = [line for line in text.splitlines() if line.startswith("| attention-full | 1 |")]
    assert len(lines) == 1
    assert "70.00 (60.0–80.0)" in lines[0]
    assert "77.79 / 85.76" in lines[0]


def test_what_the_paper_says_of_rows_and_the_weights_of_the_sum_are_shown() -> None:
    lines = reproduction(RESULT)
    assert "| attention-full over ir | test2016 | +20.00 (+10.0 to +30.0) | 0.0100 |" in lines
    assert "| attention-combined | 42 | 0.5 | 1.0 |" in lines


def test_what_the_limit_of_epochs_ended_is_said() -> None:
    assert "Patience ended every training." in reproduction(RESULT)
    cut = {"gru, 42 texts": {"epochs": [30, 12], "epoch_s": [1.5, 1.5], "perplexity": [20.0, 30.0]}}
    result = {**RESULT, "epochs": cut, "measured": {"gru, 42 texts": {"commit": "abc", "most_epochs": 30}}}
    (line,) = (line for line in reproduction(result) if "not by patience" in line)
    assert line.endswith("gru, 42 texts (1 of 2, after 30).")


def test_comparisons_of_another_time_are_named() -> None:
    assert not any("earlier training" in line for line in reproduction(RESULT))
    earlier = {**COMPARED, "better": "attention-base", "worse": "gru-base", "commit": "old"}
    (line,) = (
        line
        for line in reproduction({**RESULT, "compared": {"42": [COMPARED, COMPARED, earlier]}})
        if "earlier training" in line
    )
    assert line.startswith("Both rows of attention-base over gru-base are of an earlier training")


def test_how_often_the_end_of_the_grid_was_best_is_said() -> None:
    ended = [{**one, "settings": {**SETTINGS, "alpha": 0.1}} for one in RESULT["rows"] if one["texts"] == 20]
    (line,) = (line for line in reproduction({**RESULT, "rows": [*RESULT["rows"], *ended]}) if "dev chose, 42" in line)
    assert "is dev's choice in 1 of 4 rows `full` of all amounts" in line


def test_what_an_unknown_word_costs_is_shown_by_row() -> None:
    found = [{"texts": 42, "unknown": "never", "seeds": 2, "full": 0.5, "clamped": 0.625}]
    lines = reproduction({**RESULT, "unknown_on_dev": found})
    assert "| 42 | never | 2 | 50.00 | 62.50 |" in lines


def test_every_line_of_a_table_has_as_many_cells_as_its_header() -> None:
    tables = "\n".join(reproduction(RESULT)).split("\n\n")
    shapes = [{line.count("|") for line in table.splitlines()} for table in tables if table.startswith("|")]
    assert len(shapes) == 7
    assert all(len(shape) == 1 for shape in shapes)


def test_where_other_text_came_first_the_curve_alone_is_shown() -> None:
    lines = other_text({**RESULT, "first": "reddit"})
    assert lines[0] == "## Zhang and Wu 2018: RAMN, learned from reddit first"
    assert "24 of questions, 18 of comments, 1,000 of more.jsonl" in lines[2]
    assert lines[-1] == "Trained: attention, 42 texts at most 30 epochs (commit `abc`)."
    shown = [line.split(" | ")[:2] for line in lines if line.startswith("| attention-full |")]
    assert shown == [["| attention-full", "20"], ["| attention-full", "42"], ["| attention-full", "100"]]
