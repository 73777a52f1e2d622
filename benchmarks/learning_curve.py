"""How many labelled pairs an RCNN needs, and what pre-training is worth: a learning curve on travel's duplicate links.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.learning_curve --out FOLDER [--seeds N] [--only NAME]``

An RCNN is fine-tuned by max-margin with 50, 100, 250 and all labelled pairs, after no pre-training, after writing
titles from titles, and after writing them from titles and bodies. Everything else is the recipe ``lei2016``: last
state, word vectors of the set's own texts, the epoch with the best dev MRR. The bundled encoder learns from the same
pairs by the same loss, at a smaller learning rate and for three epochs at most; ``bundled`` is the encoder before.

A seed draws word vectors, network and pairs; of one seed the smaller parts lie in the larger ones. An epoch goes over
250 pairs at least: fewer are repeated, each time with new negatives, so that a small part does not also mean few steps.

What is finished is kept in FOLDER: an interrupted run goes on where it was. Writes ``results/learning-curve.json``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from recipes.folders import need_data

from askalike.evaluation.forum.tasks import (
    RERANK_MEASURES,
    Encoder,
    VectorScorer,
    bm25_run,
    candidate_task,
    rerank,
)
from askalike.models.encoder_settings import bundled_settings
from askalike.models.text_questions import TextQuestions, loaded
from askalike.papers.harness import Answers, Row, Runner, compare_rows, need_torch, run_all
from askalike.papers.lei2016.rows import ROWS
from askalike.papers.lei2016.sets import LeiSet, find_sets
from askalike.papers.lei2016.table import EncoderTrainer
from askalike.training.corpus import TrainingData
from askalike.training.recipe import (
    Adaptation,
    Context,
    DecodingOptions,
    LoopSettings,
    MaxMarginOptions,
    Recipe,
    StageSettings,
    network_recipe,
)
from benchmarks.record import option_parser, write

CONTEXTS: Final[dict[str, tuple[Context, ...]]] = {"none": (), "title": ("title",), "title+body": ("title", "body")}
"""Name of a pre-training → what titles are written from."""
PARTS: Final = (50, 100, 250, 495)
LEAST: Final = 250
"""Pairs that an epoch goes over at least."""
BASELINE: Final = "bm25"
BUNDLED: Final = "bundled"
TUNING: Final = Adaptation(
    (
        StageSettings(
            "max-margin",
            MaxMarginOptions(batch_size=32, negatives=20, margin=0.2),
            LoopSettings(epochs=3, learning_rate=2e-5, clip=1.0, patience=2),
            dropout=0.0,
            first_epoch=1,
        ),
    ),
    "bfloat16",
)
"""How the bundled encoder learns: the recipe's loss and negatives."""


@dataclass(frozen=True, slots=True)
class CurveRow(Row):
    """A row of the curve; its system is the pre-training, ``bundled`` or ``bm25``."""

    pairs: int = 0


def curve_rows() -> list[CurveRow]:
    """Return BM25 and the bundled encoder as it is, then every beginning with every number of pairs."""
    curves = [
        CurveRow(f"{name}-{pairs}", name, is_drawn=True, pairs=pairs)
        for name in (*CONTEXTS, BUNDLED)
        for pairs in PARTS
    ]
    return [CurveRow(BASELINE, BASELINE), CurveRow(BUNDLED, BUNDLED), *curves]


@dataclass
class CurveSystems:
    """Answers the rows."""

    data: LeiSet
    out: Path
    recipe: Recipe

    def answer(self, row: CurveRow, seed: int) -> Answers:
        """Return the runs of all tasks."""
        tasks = self.data.tasks()
        if row.id == BASELINE:
            return Answers({task.name: bm25_run(task) for task in tasks})
        scorer = VectorScorer(self._encoder(row, seed))
        return Answers({task.name: rerank(task.given, scorer, task.queries, task.documents) for task in tasks})

    def _encoder(self, row: CurveRow, seed: int) -> Encoder:
        need_torch(threads=1)
        from askalike.training.adaptation import adapt_encoder
        from askalike.training.encoder import TrainingRun

        if row.id == BUNDLED:
            settings = bundled_settings()
            assert settings is not None
            return TextQuestions(loaded(settings), settings)
        learned = replace(self.data, pairs=part_of(self.data.pairs, row.pairs, seed))
        folder = self.out / self.data.name / f"{row.id}-seed{seed}"
        if row.system != BUNDLED:
            contexts = CONTEXTS[row.system]
            paper = replace(ROWS["rcnn-last-pretrained"], is_pretrained=bool(contexts))
            trainer = EncoderTrainer(with_contexts(self.recipe, contexts), {self.data.name: self.data}, threads=1)
            return trainer(paper, seed, learned, folder)
        data = TrainingData(learned.questions, learned.pairs, dev={learned.dev.name: candidate_task(learned.dev)})
        return adapt_encoder(TUNING, data, TrainingRun(folder, seed))

    def decides(self, row: CurveRow, seed: int) -> Any:
        """Return everything that decides an outcome."""
        recipe = TUNING if row.system == BUNDLED else self.recipe
        return [row.id, seed, json.loads(recipe.to_json()), self.data.digest]

    def quiet(self) -> CurveSystems:
        """Return the same: it reports nothing."""
        return self


def part_of(pairs: tuple[tuple[str, str], ...], count: int, seed: int) -> tuple[tuple[str, str], ...]:
    """Return so many pairs, drawn by the seed, repeated until an epoch has enough of them.

    >>> len(part_of(tuple((str(number), "0") for number in range(300)), 100, 0))
    250
    """
    order = np.random.default_rng(seed).permutation(len(pairs))[:count].tolist()
    drawn = [pairs[place] for place in order]
    return tuple(drawn[place % len(drawn)] for place in range(max(len(drawn), LEAST)))


def with_contexts(recipe: Recipe, contexts: tuple[Context, ...]) -> Recipe:
    """Return the recipe whose pre-training writes titles from these; as it is where there are none."""
    if not contexts:
        return recipe
    stages = tuple(
        replace(stage, options=replace(stage.options, contexts=contexts))
        if isinstance(stage.options, DecodingOptions)
        else stage
        for stage in recipe.stages
    )
    return replace(recipe, stages=stages)


def main() -> None:
    """Write ``results/learning-curve.json``."""
    parser = option_parser(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of finished trainings")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=(*CONTEXTS, BUNDLED), help="train these alone, and write nothing")
    options = parser.parse_args()
    data = find_sets(need_data("travel-stackexchange").parent)["travel"]()
    systems = CurveSystems(data, options.out, network_recipe("lei2016"))
    rows, seeds = [row for row in curve_rows() if not options.only or row.system in options.only], range(options.seeds)
    runner = Runner(systems, data.tasks(), options.out / "rows", RERANK_MEASURES, BASELINE)
    run_all({"": runner}, rows, seeds, lambda text: print(text, flush=True))
    if options.only:
        return
    results = {result.row.id: result for result in runner.results(rows, seeds)}
    tasks = [task.name for task in data.tasks()]
    compared = [(f"{name}-{pairs}", f"none-{pairs}") for name in CONTEXTS if name != "none" for pairs in PARTS]
    compared += [(f"{name}-{PARTS[-1]}", f"{name}-{PARTS[0]}") for name in (*CONTEXTS, BUNDLED)]
    compared += [(f"{BUNDLED}-{pairs}", BUNDLED) for pairs in PARTS]
    write(
        "learning-curve",
        f"OMP_NUM_THREADS=1 python -m benchmarks.learning_curve --out FOLDER --seeds {options.seeds}",
        {
            "questions": len(data.questions),
            "training_pairs": len(data.pairs),
            "tasks": {task.name: len(task.queries) for task in data.tasks()},
            "rows": [{**result.to_json(), "pairs": result.row.pairs} for result in results.values()],
            "compared": [
                compare_rows(results[first], results[second], task).to_json()
                for first, second in compared
                for task in tasks
            ],
        },
    )


if __name__ == "__main__":
    main()
