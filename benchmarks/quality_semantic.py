"""Encoders and hybrids beside BM25, TF-IDF and MiniLM on every real set.

Command: ``python -m benchmarks.quality_semantic --model FOLDER``. Without ``--test`` only dev splits are scored and
``results/quality-semantic-dev.json`` is written; with it the test splits too, into ``results/quality-semantic.json``.
``--model`` may be given several times (a general model and one that was trained on the forum) or not at all;
``--only SET`` scores one set and writes nothing. A hybrid's weight is the best on the dev split of the same set, unless
``--weight`` fixes one for all sets. ``interaction`` is the forum's ranker of that name as it is by default: the twenty
best of the hybrid of weight 0.4, compared word by word.

BM25 is the forum's own lexical search where there is a forum, and the exact formula over title and body joined on
SemEval and Quora. Intervals are bootstrap percentiles over queries (pairs), 95 %; tests are paired randomisation tests.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from askalike.evaluation.forum.tasks import RerankTask, VectorScorer, best_weight
from askalike.models.encoders.model import Model
from askalike.search.settings import JoinSettings
from benchmarks.labelled_pairs import pair_average_precision
from benchmarks.minilm import MiniLM
from benchmarks.quality_rows import pair_rows, ranking_rows, shown
from benchmarks.quality_sets import SETS, Task, present_sets
from benchmarks.record import write
from benchmarks.systems import (
    DEPTH,
    RETRIEVAL_MEASURES,
    Hybrid,
    Interaction,
    LexicalSearch,
    PairTask,
    System,
    Terms,
    Vectors,
    judge,
    tune_weight,
)

COMMAND = "python -m benchmarks.quality_semantic"
WORDS: dict[str, System] = {"bm25": LexicalSearch(), "tfidf": Terms("tfidf")}


def answer(task: Task, systems: Mapping[str, System], shown: int = DEPTH) -> dict[str, Any]:
    """Return the table of one task.

    Args:
        shown: so many questions that a system retrieves count; measures that look further are left out.
    """
    if isinstance(task, PairTask):
        return pair_rows({name: system.pairs(task).tolist() for name, system in systems.items()}, task.labels)
    if isinstance(task, RerankTask):
        return ranking_rows({name: judge(task, system.rerank(task)) for name, system in systems.items()}, task.main)
    reports = {}
    for name, system in systems.items():
        run = {query: found[:shown] for query, found in system.retrieve(task).items()}
        reports[name] = judge(task, run, [one for one in RETRIEVAL_MEASURES if _cut(one) <= shown])
    return ranking_rows(reports, task.main)


def _cut(measure: str) -> int:
    """Return how many places a measure looks at; 0 for one that looks at all there are."""
    return int(measure.partition("@")[2] or 0)


def tuned(task: Task, scorer: VectorScorer) -> dict[str, Any]:
    """Return the best weight on a dev task and what each weight gives."""
    if isinstance(task, PairTask):
        words, near = LexicalSearch().pairs(task), Vectors(scorer).pairs(task)
        weight, seen = best_weight(
            lambda weight: pair_average_precision(weight * near + (1 - weight) * words, task.labels)
        )
    else:
        weight, seen = tune_weight(task, scorer)
    return {"weight": weight, "seen": {str(one): round(100 * value, 2) for one, value in seen.items()}}


def score_set(
    name: str, encoders: dict[str, VectorScorer], models: dict[str, Model], fixed: float | None, is_testing: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tables of a set's tasks, and how the hybrids' weights were found, by dev task."""
    tables: dict[str, Any] = {}
    tuning: dict[str, Any] = {}
    weights: dict[tuple[str, type], float] = {}
    for part in ("dev", "test") if is_testing else ("dev",):
        for title, task in SETS[name](part).items():
            systems: dict[str, System] = dict(WORDS)
            for encoder, scorer in encoders.items():
                if part == "dev":
                    found = tuned(task, scorer)
                    tuning.setdefault(title, {})[encoder] = found
                    weights[encoder, type(task)] = found["weight"] if fixed is None else fixed
                systems[encoder] = Vectors(scorer)
                systems[f"bm25 + {encoder}"] = Hybrid(scorer, weights[encoder, type(task)])
                if encoder in models:
                    systems[f"interaction, {encoder}"] = Interaction(models[encoder], scorer, JoinSettings())
            tables[title] = answer(task, systems)
            print(f"{title}\n{shown(tables[title])}", flush=True)
    return tables, tuning


def main() -> None:
    """Score the sets and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", type=Path, default=[], help="a model's folder")
    parser.add_argument("--only", action="append", choices=list(SETS), help="one set; nothing is written")
    parser.add_argument("--weight", type=float, help="of the cosine in every hybrid, instead of tuning")
    parser.add_argument("--test", action="store_true", help="score the test splits too")
    parser.add_argument("--no-minilm", action="store_true", help="leave the rival out")
    given = parser.parse_args()
    models = {path.name: Model.load(path) for path in given.model}
    if len(models) < len(given.model):
        parser.error("two models have the same folder name, which names their rows; rename one")
    encoders = {} if given.no_minilm else {"minilm": VectorScorer(MiniLM())}
    encoders |= {name: VectorScorer(model) for name, model in models.items()}
    tables: dict[str, Any] = {}
    tuning: dict[str, Any] = {}
    for name in given.only or present_sets():
        found, weights = score_set(name, encoders, models, given.weight, given.test)
        tables |= found
        tuning |= weights
    if given.only:
        return
    body = {
        "models": {
            name: {
                "encoder": model.settings.encoder.to_json(),
                "parameters": model.settings.encoder.parameter_count(),
                "words": len(model.vocabulary),
                "training_data": model.origin.training_data,
                "dev_scores": dict(model.origin.dev_scores),
            }
            for name, model in models.items()
        },
        "fixed_weight": given.weight,
        "tuning": tuning,
        "tables": tables,
    }
    words = [f"--model {path}" for path in given.model]
    words += [f"--weight {given.weight}"] if given.weight is not None else []
    options = " ".join([*words, *(["--test"] if given.test else [])])
    write("quality-semantic" if given.test else "quality-semantic-dev", f"{COMMAND} {options}".strip(), body)


if __name__ == "__main__":
    main()
