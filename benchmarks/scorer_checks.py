"""The scorers against figures that were published: the released BM25 scores of AskUbuntu, the search engine of SemEval.

Command: ``python -m benchmarks.scorer_checks``.
"""

from __future__ import annotations

from typing import Any

from recipes.folders import need_data

from askalike.evaluation import evaluate, read_gold, read_run
from benchmarks.record import option_parser, write

COMMAND = "python -m benchmarks.scorer_checks"
SEMEVAL = "semeval-task3-b/SemEval{}-Task3-CQA-QL-{}.xml.subtaskB.relevancy"
CHECKS: tuple[tuple[str, str, str, dict[str, float]], ...] = (
    ("AskUbuntu dev", "askubuntu-ids/dev.txt", "askubuntu", {"map": 52.03, "mrr": 65.99, "p@1": 51.85, "p@5": 42.12}),
    ("AskUbuntu test", "askubuntu-ids/test.txt", "askubuntu", {"map": 55.99, "mrr": 68.03, "p@1": 53.76, "p@5": 42.47}),
    ("SemEval dev", SEMEVAL.format(2016, "dev"), "semeval", {"map": 71.35}),
    ("SemEval 2016 test", SEMEVAL.format(2016, "test"), "semeval", {"map": 74.75, "mrr": 83.79}),
    ("SemEval 2017 test", SEMEVAL.format(2017, "test"), "semeval", {"map": 41.85, "mrr": 46.42}),
)


def main() -> None:
    """Score each released ranking and compare with what was published."""
    option_parser(__doc__).parse_args()
    rows: dict[str, Any] = {}
    for name, file, protocol, published in CHECKS:
        path = need_data(file)
        means = evaluate(read_gold(path), read_run(path), protocol).means
        ours = {measure: round(100 * means[measure], 2) for measure in published}
        rows[name] = {"protocol": protocol, "published": published, "ours": ours, "equal": ours == published}
        print(name, rows[name])
    write("scorer-checks", COMMAND, {"checks": rows})


if __name__ == "__main__":
    main()
