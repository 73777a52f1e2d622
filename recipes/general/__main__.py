"""Train the general encoder: ``python -m recipes.general --data DIR --work DIR --out DIR``.

A training that was stopped goes on when the same command is given again.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from askalike.cli.display import BarProgress
from askalike.training.corpus import TrainingData
from askalike.training.encoder import TrainingRun, train_encoder
from askalike.training.recipe import network_recipe
from recipes.general.sources import dev_tasks, general_data

RECIPE = Path(__file__).with_name("recipe.toml")


def sample(data: TrainingData, size: int, seed: int) -> TrainingData:
    """Return so many of the questions, drawn at random, and all marked ones, with what is known of them."""
    drawn = np.random.default_rng(seed).permutation(len(data.questions))[:size].tolist()
    kept = {data.questions[row].id for row in drawn}.union(*data.pairs)
    questions = [question for question in data.questions if question.id in kept]
    return replace(
        data,
        questions=questions,
        pairs=[pair for pair in data.pairs if kept.issuperset(pair)],
        answers=[answer for answer in data.answers if answer.question_id in kept],
    )


def main() -> None:
    """Read the command line, train, save."""
    parser = argparse.ArgumentParser(prog="python -m recipes.general", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--work", type=Path, required=True, help="folder for checkpoints and the log")
    parser.add_argument("--out", type=Path, required=True, help="folder of the model")
    parser.add_argument("--recipe", type=Path, default=RECIPE)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sample", type=int, default=0, help="learn from so many questions only")
    chosen = parser.parse_args()
    recipe = network_recipe(chosen.recipe)
    torch.set_num_threads(chosen.threads)
    chosen.work.mkdir(parents=True, exist_ok=True)
    data = general_data(chosen.data)
    if chosen.sample:
        data = sample(data, chosen.sample, chosen.seed)
    data = replace(data, dev=dev_tasks(chosen.data, chosen.work))
    with BarProgress() as progress:
        run = TrainingRun(chosen.work, chosen.seed, chosen.device, progress=progress)
        model = train_encoder(recipe, data, run)
    model.save(chosen.out)
    Console().print(f"wrote {chosen.out}: {dict(model.origin.dev_scores)}")


main()
