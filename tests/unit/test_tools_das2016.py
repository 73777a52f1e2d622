"""The section on Das et al. 2016 and what its benchmark makes of finished rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.das2016 import alpha_curves, by_epoch, courses, examples
from benchmarks.logs import Course
from tests.tiny_das2016 import write_yahoo
from tools.sections.das2016 import earlier, part_of_the_pairs, reproduction

from askalike.papers.das2016.data import DasData, read_data
from askalike.papers.das2016.rows import ROWS, DasRow
from askalike.papers.harness import Outcome, RowResult
from askalike.training.loop import Entry

FOUND = {"mean": 0.5, "interval95": [0.4, 0.6], "spread": None, "p_value": 0.25}
MEASURES = {"map": FOUND, "mrr": FOUND, "p@1": FOUND}


def row(name: str, by_seed: dict[str, Any], *, is_found: bool = True) -> dict[str, Any]:
    made = ROWS[name]
    return {
        "row": name,
        "name": made.name,
        "system": made.system,
        "seeds": [0] if made.is_drawn else [],
        "not_run": None,
        "reported": dict(zip(("map", "mrr", "p@1"), made.reported, strict=True)) if made.reported else None,
        "found": {"travel dev": MEASURES, "travel test": MEASURES} if is_found else {},
        "by_seed": by_seed,
    }


RESULT: dict[str, Any] = {
    "is_the_papers_data": False,
    "learned_from": {"questions": 1200, "answers": 1300, "sources": {"reddit": 1200}, "left_out": {"of a query": 3}},
    "sets": {"travel": {"title": "duplicates", "dev": "travel dev", "tests": ["travel test"], "queries": {}}},
    "rows": [
        row("lmir", {"0": {"settings": {"travel": {"smoothing": "dirichlet", "weight": 30.0}}}}),
        row("t-scqa", {"0": {"settings": {"travel": {"alpha": 0.2}}}}),
        row("phrase", {}, is_found=False),
    ],
    "compared": [
        {
            "better": "t-scqa",
            "worse": "lmir",
            "task": "travel test",
            "difference": 0.01,
            "interval95": [-0.01, 0.03],
            "p_value": 0.5,
        }
    ],
    "by_alpha": {"t-scqa": {"travel": [[0.0, 0.4], [0.2, 0.5], [1.0, 0.3]]}},
    "examples": [{"task": "travel dev", "query": "A visa?", "rival": "lmir", "found": {"t-scqa": [["Visas", 1]]}}],
    "figure": "siamese.svg",
    "logs": "das2016-logs.csv.gz",
    "outcomes": "das2016-outcomes.zip",
}


def test_rows_stand_beside_the_reported_figures_and_what_is_not_finished_is_named() -> None:
    text = "\n".join(reproduction(RESULT))
    assert "| lmir | LMIR |  | 50.00 | 50.00 (40.0–60.0) | 50.00 | 50.00 | 0.2500 | 76.2 / 84.4 / 71.7 |" in text
    assert "Not finished: phrase." in text
    assert "stand in for Yahoo! Answers" in text
    assert "| t-scqa over lmir | travel test | +1.00 (-1.0 to +3.0) | 0.5000 |" in text
    assert "| t-scqa | travel | 0.2 | 50.00 |" in text
    assert "smoothing dirichlet, weight 30.0" in text
    assert "  - t-scqa: + Visas" in text
    assert "[das2016-outcomes.zip](../results/das2016-outcomes.zip)" in text


def test_a_table_of_fewer_questions_says_so() -> None:
    whole, part = reproduction(RESULT), part_of_the_pairs(RESULT)
    assert part[0] == "## Das et al. 2016, learned from 1,200 questions"
    assert part[1:] == whole[1:]


def test_every_line_of_a_table_has_as_many_cells_as_its_header() -> None:
    tables = "\n".join(reproduction(RESULT)).split("\n\n")
    shapes = [{line.count("|") for line in one.splitlines()} for one in tables if one.startswith("|")]
    assert len(shapes) == 4
    assert all(len(shape) == 1 for shape in shapes)


@pytest.fixture
def data(tmp_path: Path) -> DasData:
    return read_data(write_yahoo(tmp_path / "yahoo"))


def result(name: str, *outcomes: dict[str, Any]) -> RowResult[DasRow]:
    made = tuple(Outcome(name, seed, "", {}, **one) for seed, one in enumerate(outcomes))
    return RowResult(ROWS[name], outcomes=made)


def test_an_example_is_a_query_that_one_of_two_has_right(data: DasData) -> None:
    dev = data.sets[0].dev
    right = {query: next(found for found, grade in grades.items() if grade) for query, grades in dev.qrels.items()}
    wrong = {query: next(found for found, grade in grades.items() if not grade) for query, grades in dev.qrels.items()}
    queries = sorted(dev.queries)
    ours = {query: [right[query] if query == queries[-1] else wrong[query]] for query in queries}
    theirs = {query: [wrong[query]] for query in queries}
    made = list(
        examples(data, [result("t-scqa", {"first": {dev.name: ours}}), result("lmir", {"first": {dev.name: theirs}})])
    )
    assert [(one["rival"], one["is_better"], one["query"]) for one in made] == [
        ("lmir", True, dev.queries[queries[-1]].title)
    ]
    assert made[0]["found"]["t-scqa"][0][1] == 1
    assert not list(examples(data, [result("lmir", {"first": {dev.name: theirs}})]))


def test_the_curve_of_alpha_is_the_mean_over_seeds() -> None:
    tried = [{"tried": {"travel": [{"alpha": 0.0, "dev_map": value}]}} for value in (0.25, 0.75)]
    assert alpha_curves([result("t-scqa", *tried), result("lmir", {})]) == {"t-scqa": {"travel": [(0.0, 0.5)]}}


def test_curves_by_epoch_are_means_as_far_as_all_seeds_went(tmp_path: Path) -> None:
    def course(seed: int, *values: float) -> Course:
        entries = [Entry("siamese", epoch, epoch, "dev map", value) for epoch, value in enumerate(values)]
        return Course("stand-ins", "scqa", seed, entries)

    found = by_epoch([course(0, 0.5, 0.75), course(1, 0.25)], ["dev", "other"])
    assert found == {"scqa": {"dev": {"map": [[0, 0.375]]}}}
    (tmp_path / "scqa-seed0").mkdir()
    (tmp_path / "scqa-seed0" / "log.csv").write_text("stage,epoch,step,measure,value\nsiamese,1,8,loss,2\n", "utf-8")
    published = [Course("stand-ins", "scqa", seed, [Entry("siamese", 1, 8, "loss", 5.0)]) for seed in (0, 1, 2)]
    read = courses(tmp_path, [result("scqa", {}, {}), result("lmir", {})], published)
    assert [(one.row, one.seed, one.curve("loss")) for one in read] == [
        ("scqa", 0, [(1, 2.0)]),
        ("scqa", 1, [(1, 5.0)]),
    ]


def test_rows_of_the_earlier_count_say_so() -> None:
    lines = earlier(RESULT)
    assert lines[0] == "## Das et al. 2016, an earlier version: learned from 1,200 rows"
    assert "counted each answer of Reddit's file as a question" in lines[2]
    new = {**RESULT, "rows": [*RESULT["rows"], row("trigrams", {})]}
    assert "counted each answer" not in "\n".join(reproduction(new))
