"""What SCQA begins as and learns at, and how much its cosine counts beside BM25; on dev, no test split is looked at.

Command: ``python -m benchmarks.tune_siamese start`` or ``... alpha``; prints what LOG.md tells, and writes nothing.
``python -m benchmarks.tune_siamese readings`` writes ``results/tune-siamese.json``.

``start``: 4,000 Reddit questions (a title) with an answer each; whether vectors of questions fall together, and how
well 300 other questions find their answer among 50. ``alpha``: 5,000 questions of the Slicer forum with their best
answers, none of them a query of the dev half of its links (those from replies), whose candidates ``t-scqa`` orders.
``readings``: 12,000 questions of those that the table of Das et al. learns from, four epochs, dev MAP of all its sets
after each: a batch's loss as mean or sum, trigrams by frequency or shuffled (another order with each seed), first
values of He or even, pooling by 8 or by 100 in the first block.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from askalike.evaluation.forum.links import related_task
from askalike.evaluation.forum.tasks import VectorScorer, candidate_task, forum_rerank_task
from askalike.forum import Forum
from askalike.models.siamese.model import SiameseModel
from askalike.papers.das2016.data import read_data
from askalike.training.corpus import TrainingData
from askalike.training.encoder import TrainingRun
from askalike.training.recipe import SiameseRecipe
from askalike.training.siamese import Epoch, fit_siamese, paired
from askalike.types import Answer, Question
from benchmarks.quality_sets import WORDS_ALONE, forum_folder
from benchmarks.record import RESULTS, need_data, write
from benchmarks.systems import tune_weight

Pairs = Sequence[tuple[Question, Answer]]

LEARNED, ASKED, AMONG, EPOCHS, SEEDS = 4_000, 300, 50, 6, (0, 1)
SHOWN = (0, 1, 2, EPOCHS)
TRIALS: dict[str, dict[str, Any]] = {
    "even, 0.01": {"initial": "even"},
    "even, 0.001": {"initial": "even", "learning_rate": 0.001},
    "he, 0.01": {},
    "he, 0.01, margin 0.5": {"margin": 0.5},
    "he, 0.003": {"learning_rate": 0.003},
    "he, 0.01, DSQA": {"is_shared": False},
}
FORUM_PAIRS, ALPHA_SEEDS = 5_000, (0, 1)


def recipe_of(changed: dict[str, Any], **loop: Any) -> SiameseRecipe:
    """Return the shipped recipe with some choices changed."""
    plain, own = SiameseRecipe(), dict(changed)
    if "learning_rate" in own:
        loop["learning_rate"] = own.pop("learning_rate")
    pairs = replace(plain.pairs, margin=own.pop("margin", plain.pairs.margin), held_out=400)
    return replace(plain, pairs=pairs, loop=replace(plain.loop, **loop), **own)


def reddit() -> list[tuple[Question, Answer]]:
    """Return questions with the first of their answers that says something, in an order drawn once."""
    found: dict[tuple[str, str], tuple[Question, Answer]] = {}
    with gzip.open(need_data("reddit/question-answers.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for one in map(json.loads, lines):
            if len(one["answer"]) > 20:
                pair = Question(one["id"], one["question"]), Answer(f"a{one['id']}", one["id"], one["answer"])
                found.setdefault((one["forum"], one["question"]), pair)
    pairs = list(found.values())
    return [pairs[row] for row in np.random.default_rng(0).permutation(len(pairs))]


def looked_at(model: SiameseModel, pairs: Pairs) -> tuple[float, float]:
    """Return the mean cosine of two questions, and the MRR of each one's answer among ``AMONG``."""
    asked, answered = model.encode([one for one, _ in pairs]), model.encode_answers([one for _, one in pairs])
    scores, random, ranks = asked @ answered.T, np.random.default_rng(1), []
    for row in range(len(pairs)):
        others = random.choice(np.delete(np.arange(len(pairs)), row), AMONG - 1, replace=False)
        ranks.append(1 + int((scores[row, others] >= scores[row, row]).sum()))
    alike = (asked @ asked.T)[np.triu_indices(len(pairs), 1)]
    return float(alike.mean()), float((1 / np.array(ranks)).mean())


def start() -> None:
    """Print for each trial and seed what its questions' vectors are like after some epochs."""
    pairs = reddit()
    learned, kept = pairs[:LEARNED], pairs[LEARNED : LEARNED + ASKED]
    for label, changed in TRIALS.items():
        for seed in SEEDS:

            def told(epoch: Epoch, name: str = f"{label}, seed {seed}") -> None:
                if epoch.number in SHOWN:
                    alike, mrr = looked_at(epoch.model(), kept)
                    loss = epoch.measures["held-out loss"]
                    print(
                        f"{name}, epoch {epoch.number}: loss {loss:.4f}, cosine {alike:.3f}, MRR {mrr:.4f}", flush=True
                    )

            with tempfile.TemporaryDirectory() as folder:
                recipe = recipe_of(changed, epochs=EPOCHS, patience=0)
                fit_siamese(recipe, paired(learned), TrainingRun(Path(folder), seed), told)


def alpha() -> None:
    """Print for each seed the dev MRR of each α."""
    rows = need_data("slicer-discourse/related_links.tsv").read_text(encoding="utf-8").splitlines()
    links = [(source, target) for source, target, where in (row.split("\t") for row in rows) if where == "reply"]
    with Forum.open(forum_folder("slicer"), settings=WORDS_ALONE) as forum:
        task = forum_rerank_task("slicer", forum, related_task(forum, links, "dev"))
        answered = [
            (question, found[0])
            for question in forum.questions()
            if question.id not in task.queries and (found := forum.answers(question.id))
        ]
    pairs = [answered[row] for row in np.random.default_rng(0).permutation(len(answered))[:FORUM_PAIRS]]
    print(f"{len(task.queries)} queries, {len(pairs)} pairs of {len(answered)}", flush=True)
    for seed in ALPHA_SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            model = fit_siamese(recipe_of({}, patience=5), paired(pairs), TrainingRun(Path(folder), seed), _shown)
        best, seen = tune_weight(task, VectorScorer(model))
        values = ", ".join(f"{one} {value:.4f}" for one, value in seen.items())
        print(f"seed {seed}: best {best}; {values}", flush=True)


READING_PAIRS, READING_EPOCHS, READING_SEEDS = 12_000, 4, (0, 1, 2)
READINGS: dict[str, dict[str, Any]] = {
    "mean, shuffled": {"order": "shuffled"},
    "mean": {},
    "sum": {"reduction": "sum"},
    "mean, even": {"initial": "even"},
    "mean, pooled by 8": {"poolings": (2, 2, 2)},
    "mean, shuffled, pooled by 8": {"order": "shuffled", "poolings": (2, 2, 2)},
    "mean, pooled by 100 at once": {"poolings": (100, 1, 1)},
}


def reading_recipe(changed: dict[str, Any]) -> SiameseRecipe:
    """Return the shipped recipe with another reading, and so many epochs."""
    plain, own = SiameseRecipe(), dict(changed)
    pairs = replace(plain.pairs, reduction=own.pop("reduction", "mean"))
    return replace(plain, pairs=pairs, loop=replace(plain.loop, epochs=READING_EPOCHS, patience=0), **own)


def readings() -> None:
    """Measure each reading with each seed and write what dev says after every epoch; each training as it ends.

    Those that the results hold already are not trained again.
    """
    data = read_data(need_data("semeval-task3-b").parent, READING_PAIRS)
    dev = {one.dev.name: candidate_task(one.dev) for one in data.sets}
    learned = TrainingData(data.pairs.questions, answers=data.pairs.best(), dev=dev)
    path = RESULTS / "tune-siamese.json"
    held = json.loads(path.read_bytes()) if path.exists() else {}
    is_same = held.get("questions") == len(data.pairs.questions) and held.get("dev") == list(dev)
    found: dict[str, dict[str, list[dict[str, float]]]] = held["found"] if is_same else {}
    for (label, changed), seed in product(READINGS.items(), READING_SEEDS):
        if str(seed) in found.get(label, {}):
            continue
        course: list[dict[str, float]] = []
        with tempfile.TemporaryDirectory() as folder:
            fit_siamese(reading_recipe(changed), learned, TrainingRun(Path(folder), seed), partial(_add, course))
        found.setdefault(label, {})[str(seed)] = course
        print(label, seed, course[0], course[-1], flush=True)
        body = {"questions": len(data.pairs.questions), "dev": list(dev), "found": found}
        write("tune-siamese", "python -m benchmarks.tune_siamese readings", body)


def _add(course: list[dict[str, float]], epoch: Epoch) -> None:
    course.append({name: round(value, 6) for name, value in epoch.measures.items() if name != "seconds"})


def _shown(epoch: Epoch) -> None:
    print(epoch.number, {name: round(value, 4) for name, value in epoch.measures.items()}, flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"start": start, "alpha": alpha, "readings": readings}[sys.argv[1]]()
