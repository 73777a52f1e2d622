"""Field weights and query weights of the candidate search, chosen on the train and dev parts of the travel duplicates.

Command: ``python -m benchmarks.tune_lexical``. The test part is not looked at. One setting is varied at a time from
the best so far (coordinate search, two passes), by nDCG@10 in full retrieval to three decimals; of equals the smaller.
"""

from __future__ import annotations

import itertools
import shutil
from dataclasses import asdict

from askalike.evaluate import evaluate
from askalike.experiments.duplicates import duplicate_task
from askalike.experiments.rankings import forum_run
from askalike.forum import Forum
from askalike.forum.forum import ForumSettings
from askalike.lexical import FieldWeights
from askalike.rank import QuerySettings, SearchSettings
from benchmarks.record import WORK, need_data, write

COMMAND = "python -m benchmarks.tune_lexical"
FORUM = WORK / "travel.forum"
GRID: dict[str, tuple[float, ...]] = {
    "title": (0.5, 1.0, 1.5, 2.0, 3.0),
    "body_weight": (0.1, 0.2, 0.3, 0.5, 0.7, 1.0),
    "max_terms": (16, 24, 32, 48, 64, 96, 200),
}
START = {"title": 1.0, "body_weight": 0.7, "max_terms": 32}


def settings_of(point: dict[str, float]) -> ForumSettings:
    """Return the settings of a point of the grid; the body field's weight is 1."""
    query = QuerySettings(body_weight=point["body_weight"], max_terms=int(point["max_terms"]))
    return ForumSettings(FieldWeights(point["title"], 1.0), SearchSettings(query))


def main() -> None:
    """Search the grid and write every point that was tried."""
    shutil.rmtree(FORUM, ignore_errors=True)
    with Forum.create(FORUM) as forum:
        forum.load(need_data("travel-stackexchange"))
        parts = [duplicate_task(forum, part) for part in ("train", "dev")]
    tried: dict[tuple[float, ...], dict[str, float]] = {}

    def value(point: dict[str, float]) -> float:
        key = tuple(point.values())
        if key not in tried:
            with Forum.open(FORUM, settings=settings_of(point)) as opened:
                qrels = {query: grades for part in parts for query, grades in part.qrels.items()}
                run = {query: found for part in parts for query, found in forum_run(opened, part, 20).items()}
            means = evaluate(qrels, run, "trec", ("ndcg@10", "recall@20", "mrr")).means
            tried[key] = {**point, **{name: round(mean, 4) for name, mean in means.items()}}
            print(tried[key])
        return tried[key]["ndcg@10"]

    best = dict(START)
    for _, name in itertools.product(range(2), GRID):
        points = [{**best, name: choice} for choice in GRID[name]]
        best = max(points, key=lambda point: (round(value(point), 3), -point[name]))
    write(
        "tune-lexical",
        COMMAND,
        {
            "data": "travel-stackexchange, train and dev parts",
            "queries": sum(len(part.queries) for part in parts),
            "chosen": best,
            "settings": asdict(settings_of(best)),
            "tried": list(tried.values()),
        },
    )


if __name__ == "__main__":
    main()
