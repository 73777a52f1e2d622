"""BM25 and TF-IDF on SemEval (re-ranking) and on the travel duplicates (re-ranking and full retrieval).

Command: ``python -m benchmarks.quality_lexical``. Nothing is tuned here. The SemEval statistics (document frequencies)
come from the questions of the training and dev files; title and body are joined, and the official protocol scores.
The travel figures are those of the test split of the duplicate components.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

from askalike.evaluation import Report, bootstrap_mean, compare, evaluate
from askalike.evaluation.forum.evaluation import TASKS, evaluate_forum
from askalike.evaluation.forum.tasks import SCORERS, make_scorer, rerank
from askalike.forum import Forum, ForumSettings
from askalike.readers.research.judged import read_judged
from askalike.text.settings import TextSettings
from askalike.types import Judged, Question
from benchmarks.record import WORK, need_data, write

COMMAND = "python -m benchmarks.quality_lexical"
FORUM = WORK / "travel-quality.forum"
SYSTEMS = ("lexical", *SCORERS)
"""The forum's search by words alone, then what scores pairs."""

SEMEVAL_SPLITS = ("dev", "test2016", "test2017")


def row(report: Report, against: Report | None, measure: str) -> dict[str, Any]:
    """Return means with intervals, times 100, and the paired test against the first system."""
    found: dict[str, Any] = {"queries": len(report.queries)}
    for name in report.measures:
        interval = bootstrap_mean(list(report.per_query[name].values()))
        found[name] = round(100 * report.means[name], 2)
        found[f"{name}_interval95"] = [round(100 * interval.low, 2), round(100 * interval.high, 2)]
    if against is not None:
        test = compare(report, against, measure)
        found["against_first"] = {
            "measure": measure,
            "difference": round(100 * test.difference.mean, 2),
            "interval95": [round(100 * test.difference.low, 2), round(100 * test.difference.high, 2)],
            "p_value": round(test.p_value, 4),
        }
    return found


def table(reports: Mapping[str, Report], measure: str) -> dict[str, Any]:
    """Return one row a system; the first is what the others are tested against."""
    first = next(iter(reports.values()))
    return {name: row(report, None if report is first else first, measure) for name, report in reports.items()}


def questions(judged: Judged) -> list[Question]:
    """Return every distinct question of a set, queries first."""
    return list({**judged.queries, **judged.documents}.values())


def semeval() -> dict[str, Any]:
    """Score every system on the three sets; the search engine's order is the first row."""
    folder = need_data("semeval-task3-b")
    collection = [
        question for split in ("train", "dev") for question in questions(read_judged(folder, "semeval", split))
    ]
    found: dict[str, Any] = {}
    for split in SEMEVAL_SPLITS:
        judged = read_judged(folder, "semeval", split)
        reports = {"search engine": evaluate(judged.qrels, judged.candidates, "semeval")}
        for name in SCORERS:
            scorer = make_scorer(name, collection, TextSettings())
            run = rerank(judged.candidates, scorer, judged.queries, judged.documents)
            reports[name] = evaluate(judged.qrels, run, "semeval")
        found[split] = table(reports, "map")
        print(split, {name: values["map"] for name, values in found[split].items()})
    return found


def travel() -> dict[str, Any]:
    """Score every system on the test split, in both tasks."""
    shutil.rmtree(FORUM, ignore_errors=True)
    found: dict[str, Any] = {}
    with Forum.create(FORUM, settings=ForumSettings(has_vectors=False)) as forum:
        forum.load(need_data("travel-stackexchange"))
        for task in TASKS:
            trial = evaluate_forum(forum, task, SYSTEMS, "test")
            found[task] = table(trial.reports, trial.main_measure)
            print(task, {name: values[trial.main_measure] for name, values in found[task].items()})
    return found


def main() -> None:
    """Score everything and write the result."""
    write("quality-lexical", COMMAND, {"semeval": semeval(), "travel test": travel()})


if __name__ == "__main__":
    main()
