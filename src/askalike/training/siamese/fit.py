"""From training data and a recipe to a siamese model.

The state of the training and a log are written to a work folder on the way; a training that was stopped goes on from
there, one that had ended is only read again.

Enters: ``TrainingData`` (``corpus.paired`` makes it of pairs), a ``SiameseRecipe``. Leaves: ``SiameseModel``.
May import: siamese, train's loop, errors, torch, its own folder. Source: Das et al. 2016 (ACL), section 4.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.siamese.model import SiameseModel
from askalike.siamese.network import SiameseNetwork, build, to_arrays
from askalike.siamese.settings import SiameseSettings
from askalike.training.corpus import TrainingData
from askalike.training.encoder import TrainingRun, device_named
from askalike.training.loop import StageContext, run_stage
from askalike.training.siamese.corpus import PairCorpus, read_pairs
from askalike.training.siamese.objective import QuestionAnswer
from askalike.training.siamese.recipe import SiameseRecipe

__all__ = ["STAGE", "Epoch", "fit_siamese"]

STAGE = "siamese"
"""The name of the one stage, in the log and of its checkpoint."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """Where a training is.

    Args:
        number: epochs that are done, 0 before the first.
        measures: as the log has them: ``loss`` from epoch 1 on, ``held-out loss``, ``mrr`` and ``map`` of dev sets.
        model: makes the model as it is now; to be called before the next epoch begins.
    """

    number: int
    measures: Mapping[str, float]
    model: Callable[[], SiameseModel]


def fit_siamese(
    recipe: SiameseRecipe, data: TrainingData, run: TrainingRun, on_epoch: Callable[[Epoch], None] = lambda _: None
) -> SiameseModel:
    """Return the model that the recipe makes of questions and their best answers.

    The same recipe, data and seed give the same model on the same machine, stopped on the way or not.

    Args:
        on_epoch: is told of each epoch. A training that goes on tells of those that are new, and of the last again
            where it was stopped before its checkpoint was written.

    Raises:
        SettingError: data and recipe do not fit each other, the device is not there, or a model to go on from is given.
        ModelError: the loss is no number.
        DamagedModelError: a file that was kept of the stopped training cannot be read.
    """
    if run.start is not None:
        raise SettingError("a siamese model begins anew, but a model to go on from is given", "leave it out")
    device = device_named(run.device)
    run.folder.mkdir(parents=True, exist_ok=True)
    run.progress.start("reading", len({answer.question_id for answer in data.answers}), "answered questions")
    corpus = read_pairs(data, recipe, run.seed, run.progress.advance)
    config = recipe.network(len(corpus.vocabulary.words))
    network = build(config, run.seed, recipe.initial)
    settings = SiameseSettings(config, recipe.text, recipe.reads)
    judge = _judge(network, corpus, data)

    def model(scores: Mapping[str, float]) -> SiameseModel:
        return SiameseModel.build(
            settings, corpus.vocabulary, to_arrays(network), training_data=data.digest(), dev_scores=scores
        )

    place = StageContext(
        run.folder,
        stage=STAGE,
        identity=_identity(recipe, data, run.seed),
        seed=run.seed,
        device=device,
        progress=run.progress,
        checkpoint_s=run.checkpoint_s,
        on_epoch=lambda number, measures: on_epoch(Epoch(number, measures, lambda: model({}))),
    )
    run_stage(QuestionAnswer(network, corpus, recipe.pairs), recipe.loop, judge, place)
    return model(judge())


def _identity(recipe: SiameseRecipe, data: TrainingData, seed: int) -> str:
    """Return a name of everything that the training depends on."""
    parts = [asdict(recipe), data.digest(), data.dev_digest(), seed]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _judge(network: SiameseNetwork, corpus: PairCorpus, data: TrainingData) -> Callable[[], dict[str, float]]:
    """Return the function that measures questions beside questions on the dev sets: MRR, MAP, and their means."""

    def judge() -> dict[str, float]:
        found: dict[str, float] = {}
        for name, task in data.dev.items():
            vectors: NDArray[np.float32] = network.encode_all(corpus.dev[name])
            found[f"{name} mrr"], found[f"{name} map"] = task.mrr(vectors), task.map(vectors)
        for measure in ("mrr", "map"):
            values = [value for key, value in found.items() if key.endswith(f" {measure}")]
            if values:
                found[measure] = sum(values) / len(values)
        return found

    return judge
