"""The figures that come with the released sets: they prove scorer, protocols and readers at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from askalike.evaluation import evaluate, read_gold, read_run
from askalike.evaluation.files import read_askubuntu, read_semeval_gold

pytestmark = pytest.mark.data

SEMEVAL = "semeval-task3-b/SemEval{}.xml.subtaskB.relevancy"


@pytest.mark.parametrize(
    ("part", "counted", "figures"),
    [("dev", 189, (52.03, 65.99, 51.85, 42.12)), ("test", 186, (55.99, 68.03, 53.76, 42.47))],
)
def test_the_released_scores_of_askubuntu_give_the_published_figures(
    data_dir: Path, part: str, counted: int, figures: tuple[float, ...]
) -> None:
    qrels, run = read_askubuntu(data_dir / "askubuntu-ids" / f"{part}.txt")
    report = evaluate(qrels, run, "askubuntu")
    assert tuple(round(100 * value, 2) for value in report.means.values()) == figures
    assert (len(report.queries), len(report.left_out)) == (counted, 200 - counted)
    assert report.relevant_not_ranked == 0


@pytest.mark.parametrize(
    ("part", "queries", "without", "figures"),
    [
        ("2016-Task3-CQA-QL-dev", 50, 7, (71.35, 76.67)),
        ("2016-Task3-CQA-QL-test", 70, 8, (74.75, 83.79)),
        ("2017-Task3-CQA-QL-test", 88, 29, (41.85, 46.42)),
    ],
)
def test_the_search_engines_order_gives_the_published_figures_of_semeval(
    data_dir: Path, part: str, queries: int, without: int, figures: tuple[float, float]
) -> None:
    qrels, run = read_semeval_gold(data_dir / SEMEVAL.format(part))
    report = evaluate(qrels, run, "semeval", ["map", "mrr"])
    assert tuple(round(100 * value, 2) for value in report.means.values()) == figures
    assert len(report.queries) == queries
    assert len(report.without_positives) == without


@pytest.mark.parametrize(("part", "figure"), [("2016-Task3-CQA-QL-test", 88.57), ("2017-Task3-CQA-QL-test", 67.05)])
def test_a_perfect_ranking_of_semeval_gives_the_published_oracle(data_dir: Path, part: str, figure: float) -> None:
    qrels = read_gold(data_dir / SEMEVAL.format(part))
    perfect = {query: [(name, float(grade)) for name, grade in marks.items()] for query, marks in qrels.items()}
    assert round(100 * evaluate(qrels, perfect, "semeval").means["map"], 2) == figure


def test_a_semeval_gold_file_read_as_a_run_is_the_search_engines_order(data_dir: Path) -> None:
    path = data_dir / SEMEVAL.format("2016-Task3-CQA-QL-test")
    assert round(100 * evaluate(read_gold(path), read_run(path), "semeval").means["map"], 2) == 74.75
