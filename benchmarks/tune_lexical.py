"""Field weights and query weights of the search, chosen on two forums' duplicate links.

Command: ``python -m benchmarks.tune_lexical``. The travel forum's train and dev splits and the bundled forum; the
travel test part is not looked at. One setting is varied at a time from the best so far (coordinate search, two passes).
What is maximised is nDCG@10 in full retrieval, averaged over the two forums and over queries with and without their
body; of points that are equal to a tenth of a point, the one with the smaller setting is taken.
"""

from __future__ import annotations

import itertools
import shutil
from dataclasses import asdict

from askalike.data import bundled_forum
from askalike.evaluation import evaluate
from askalike.evaluation.forum.links import DuplicateTask, duplicate_task
from askalike.evaluation.forum.tasks import forum_run
from askalike.forum import Forum, ForumSettings
from askalike.index.words import FieldWeights
from askalike.search import QuerySettings, SearchSettings
from askalike.types import Run
from benchmarks.record import WORK, need_data, write

COMMAND = "python -m benchmarks.tune_lexical"
MEASURE = "ndcg@10"
GRID: dict[str, tuple[float, ...]] = {
    "title": (0.0, 0.25, 0.5, 1.0, 2.0),
    "body_weight": (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0),
    "max_terms": (16, 32, 48, 64, 96, 200),
}
START = {"title": 0.25, "body_weight": 0.5, "max_terms": 64}
PARTS = {"travel": ("train", "dev"), "homenet": ("all",)}


def settings_of(point: dict[str, float]) -> ForumSettings:
    """Return the settings of a point of the grid, words alone; the weight of the joined text is 1."""
    query = QuerySettings(body_weight=point["body_weight"], max_terms=int(point["max_terms"]))
    return ForumSettings(FieldWeights(point["title"], 1.0), SearchSettings(query), has_vectors=False)


def joined_task(forum: Forum, parts: tuple[str, ...]) -> DuplicateTask:
    """Return several parts of a forum's duplicate links as one task."""
    tasks = [duplicate_task(forum, part) for part in parts]
    queries = {query: question for task in tasks for query, question in task.queries.items()}
    qrels = {query: found for task in tasks for query, found in task.qrels.items()}
    return DuplicateTask("+".join(parts), queries, qrels, tasks[0].collection)


def main() -> None:
    """Search the grid and write every point that was tried."""
    archives = {"travel": need_data("travel-stackexchange"), "homenet": bundled_forum()}
    tasks: dict[str, DuplicateTask] = {}
    for name, archive in archives.items():
        shutil.rmtree(WORK / f"tune-{name}.forum", ignore_errors=True)
        with Forum.create(WORK / f"tune-{name}.forum", settings=settings_of(START)) as forum:
            forum.load(archive)
            tasks[name] = joined_task(forum, PARTS[name])
    tried: dict[tuple[float, ...], dict[str, float]] = {}

    def value(point: dict[str, float]) -> float:
        key = tuple(point.values())
        if key not in tried:
            found = {
                f"{name}, {kind}": 100 * evaluate(task.qrels, run, "trec", (MEASURE,)).means[MEASURE]
                for name, task in tasks.items()
                for kind, run in runs(name, task, point).items()
            }
            mean = sum(found.values()) / len(found)
            tried[key] = {**point, **{name: round(one, 2) for name, one in found.items()}, "mean": round(mean, 2)}
            print(tried[key], flush=True)
        return tried[key]["mean"]

    best = dict(START)
    for _, name in itertools.product(range(2), GRID):
        points = [{**best, name: choice} for choice in GRID[name]]
        best = max(points, key=lambda point: (round(value(point), 1), -point[name]))
    write(
        "tune-lexical",
        COMMAND,
        {
            "data": "travel duplicates (train and dev splits) and the bundled forum",
            "measure": MEASURE,
            "queries": {name: len(task.queries) for name, task in tasks.items()},
            "chosen": best,
            "settings": asdict(settings_of(best)),
            "tried": list(tried.values()),
        },
    )


def runs(name: str, task: DuplicateTask, point: dict[str, float]) -> dict[str, Run]:
    """Return what the forum's search answers at a point, to whole questions and to titles alone."""
    with Forum.open(WORK / f"tune-{name}.forum", settings=settings_of(point)) as forum:
        return {
            "title and body": forum_run(forum, task, 20),
            "title": forum_run(forum, task, 20, title_only=True),
        }


if __name__ == "__main__":
    main()
