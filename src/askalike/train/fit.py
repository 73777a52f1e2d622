"""From training data and a recipe to a model: words, then one stage after the other.

Everything is written to a work folder on the way; a training that was stopped goes on from there, one that had ended
is only read again.

Enters: ``TrainingData``, a ``Recipe``. Leaves: ``encode.Model``. May import: encode, errors, torch, its neighbours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from askalike.encode.model import Model
from askalike.encode.networks import build, to_arrays
from askalike.encode.reader import Reader
from askalike.encode.vocabulary import UNKNOWN
from askalike.errors import SettingError
from askalike.train.corpus import Corpus, TrainingData, WordSource
from askalike.train.loop import Place, run_stage
from askalike.train.network import TextNetwork
from askalike.train.objectives.contrastive import Contrastive
from askalike.train.objectives.decoding import Decoding
from askalike.train.objectives.max_margin import MaxMargin
from askalike.train.objectives.objective import Objective
from askalike.train.progress import Progress, SilentProgress
from askalike.train.recipe import Recipe, StageSettings
from askalike.train.words import Words, make_words
from askalike.train.world import joined

__all__ = ["Run", "fit"]


@dataclass(frozen=True, slots=True)
class Run:
    """Where and as what a training runs.

    Args:
        folder: for checkpoints, word vectors and the log; belongs to this training alone.
        seed: of everything that is drawn.
        device: ``cpu`` or ``cuda``, with a number if need be.
        start: a model to go on from: its words, word vectors and encoder are where training begins.
        progress: is told what goes on.
    """

    folder: Path
    seed: int = 0
    device: str = "cpu"
    start: Model | None = None
    progress: Progress = field(default_factory=SilentProgress)


def fit(recipe: Recipe, data: TrainingData, run: Run) -> Model:
    """Return the model that the recipe makes of the data.

    The same recipe, data and seed give the same model on the same machine, stopped on the way or not.

    Raises:
        SettingError: data and recipe do not fit each other, or the device is not there.
        ModelError: the loss of a stage is no number.
        MissingExtraError: gensim is wanted and not installed.
    """
    device = _device(run.device)
    identity = hashlib.sha256(f"{recipe.to_json()}\0{data.digest()}\0{run.seed}".encode()).hexdigest()
    run.folder.mkdir(parents=True, exist_ok=True)
    run.progress.start("reading", len(data.questions), "questions")
    source = WordSource(data, Reader(recipe.reads, recipe.word_limit), run.progress.advance)
    words = make_words(recipe.words, source, run.start, run.folder, (run.seed, run.progress))
    corpus = source.corpus(words.vocabulary)
    network = _network(recipe, words, run)
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium" if recipe.arithmetic == "bfloat16" else "highest")
    try:
        with joined(device) as world:
            for number, stage in enumerate(recipe.stages, start=1):
                if stage.needs == "pairs" and not len(corpus.pairs):
                    run.progress.notice(f"stage {number} ({stage.objective}) is left out: there are no marked pairs")
                    continue
                network.dropout = stage.dropout
                name = f"{number}-{stage.objective}"
                place = Place(run.folder, name, identity, run.seed + number, device, world, run.progress)
                run_stage(_objective(stage, network, corpus, run.seed), stage.loop, _judge(network, corpus), place)
    finally:
        torch.set_float32_matmul_precision(precision)
    return _model(recipe, words, network, data, _judge(network, corpus)())


def _network(recipe: Recipe, words: Words, run: Run) -> TextNetwork:
    encoder = build(recipe.encoder, run.seed)
    if run.start is not None:
        with torch.no_grad():
            for name, value in encoder.named_parameters():
                value.copy_(torch.from_numpy(np.array(_of_start(run.start, recipe)[_plain(name)])))
    return TextNetwork(
        encoder,
        torch.from_numpy(words.embedding.copy()),
        is_embedding_trained=recipe.words.is_trained,
        is_unknown_zero=recipe.words.unknown == "zero",
    )


def _plain(name: str) -> str:
    return name.removeprefix("network.").removeprefix("core.").removesuffix("_l0")


def _of_start(start: Model, recipe: Recipe) -> Mapping[str, NDArray[np.float32]]:
    if start.settings.encoder.shapes() != recipe.encoder.shapes():
        raise SettingError(
            f"the model to go on from has the encoder {start.settings.encoder.to_json()}, the recipe "
            f"{recipe.encoder.to_json()}",
            "write the same encoder into the recipe",
        )
    return start.parameters()


def _objective(stage: StageSettings, network: TextNetwork, corpus: Corpus, seed: int) -> Objective:
    options = dict(stage.options)
    if stage.objective == "decoding":
        return Decoding(network, corpus, seed=seed, **options)
    if stage.objective == "max-margin":
        return MaxMargin(network, corpus, **options)
    return Contrastive(network, corpus, **options)


def _judge(network: TextNetwork, corpus: Corpus) -> Callable[[], dict[str, float]]:
    """Return the function that measures the network on the dev sets: MRR and MAP of each, and their means."""

    def judge() -> dict[str, float]:
        found: dict[str, float] = {}
        for name, dev in corpus.dev.items():
            vectors = network.all_questions(dev.texts)
            found[f"{name} mrr"], found[f"{name} map"] = dev.task.mrr(vectors), dev.task.map(vectors)
        for measure in ("mrr", "map"):
            values = [value for key, value in found.items() if key.endswith(f" {measure}")]
            if values:
                found[measure] = sum(values) / len(values)
        return found

    return judge


def _model(
    recipe: Recipe, words: Words, network: TextNetwork, data: TrainingData, scores: Mapping[str, float]
) -> Model:
    embedding = network.embedding.detach().cpu().numpy()
    if recipe.words.unknown == "zero":
        embedding[UNKNOWN] = 0
    return Model.build(
        recipe.model_settings(),
        words.vocabulary,
        embedding,
        to_arrays(network.encoder),
        training_data=data.digest(),
        dev_scores=scores,
    )


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise SettingError(f"device {name!r} is not known", "expected cpu, cuda or cuda:N") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise SettingError(f"device {name!r}, but torch finds no such device here", "use --device cpu")
    return device
