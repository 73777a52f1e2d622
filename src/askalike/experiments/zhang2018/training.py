"""Trains the autoencoders: one for each kind, amount of text and seed, kept with its log and its reconstructions.

::

    out/attention-50000-seed0/log.csv        loss and held-out perplexity by epoch
    out/attention-50000-seed0/examples.json  held-out texts, and what the decoder made of them
    out/attention-50000-seed0/model/         the encoder with its word vectors and their frequencies

Enters: a recipe, texts, which to train. Leaves: models. May import: encode, train, errors, its own folder and its
neighbours in experiments. Source: Zhang and Wu 2018 (AAAI), experimental setup and analysis on attention autoencoders.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, get_args

from askalike.errors import MissingExtraError
from askalike.experiments.side_by_side import each_told
from askalike.experiments.tasks import candidate_task
from askalike.experiments.work_folder import remove_checkpoints
from askalike.experiments.zhang2018.data import ZhangData
from askalike.models.encoders.model import Model
from askalike.progress import Progress, SilentProgress
from askalike.training.corpus import TrainingData
from askalike.training.recipe import Recipe

__all__ = ["KINDS", "Autoencoder", "AutoencoderTrainer", "Kind", "kind_recipe", "train_all"]

Kind = Literal["attention", "gru"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Autoencoder:
    """Which autoencoder.

    Args:
        amount: texts that it learns from, the first ones; 0 for all.
    """

    kind: Kind
    amount: int
    seed: int

    def folder(self, out: Path) -> Path:
        """Return where it is kept."""
        return out / f"{self.kind}-{self.amount or 'all'}-seed{self.seed}"


def kind_recipe(recipe: Recipe, kind: Kind) -> Recipe:
    """Return the recipe with an encoder of this kind, of the same sizes and layers, its states pooled by their mean."""
    return replace(recipe, encoder=replace(recipe.encoder, kind=kind, pooling="mean"))


@dataclass(frozen=True, slots=True)
class AutoencoderTrainer:
    """Trains one autoencoder, or finds the one that is finished.

    Args:
        recipe: of the attention autoencoder.
        data: texts to learn from, and dev, which is only measured.
        out: folder of all.
        device: cpu or cuda.
        threads: of torch; 0 leaves its choice.
    """

    recipe: Recipe
    data: ZhangData
    out: Path
    device: str = "cpu"
    threads: int = 0
    progress: Progress = field(default_factory=SilentProgress)

    def is_finished(self, one: Autoencoder) -> bool:
        """Return whether it was trained."""
        return (one.folder(self.out) / "model").is_dir()

    def model(self, one: Autoencoder) -> Model:
        """Return a finished autoencoder's encoder.

        Raises:
            ModelError: it is not there, or cannot be read.
        """
        return Model.load(one.folder(self.out) / "model")

    def train(self, one: Autoencoder) -> None:
        """Train it, going on where a stopped training was.

        Raises:
            MissingExtraError: torch or gensim is not installed.
            SettingError: there are fewer texts, or the recipe does not fit.
        """
        if importlib.util.find_spec("torch") is None:
            raise MissingExtraError("training an autoencoder needs torch", "train")
        import torch

        from askalike.training.encoder import TrainingRun, train_encoder

        if self.threads:
            torch.set_num_threads(self.threads)
        folder = one.folder(self.out)
        dev = {self.data.dev.name: candidate_task(self.data.dev)}
        learned = TrainingData(self.data.first(one.amount), dev=dev)
        run = TrainingRun(folder, one.seed, self.device, progress=self.progress)
        train_encoder(kind_recipe(self.recipe, one.kind), learned, run).save(folder / "model")
        remove_checkpoints(folder)

    def described(self) -> dict[str, object]:
        """Return what decides the autoencoders besides kind, amount and seed, as JSON can hold it."""
        digest, dev = TrainingData(self.data.texts).digest(), self.data.dev.digest()
        return {"recipe": json.loads(self.recipe.to_json()), "kinds": self.data.kinds, "texts": digest, "dev": dev}


def train_all(trainer: AutoencoderTrainer, ones: Sequence[Autoencoder], jobs: int) -> None:
    """Train what is not finished, some beside each other; the trainer's progress is told of each.

    Raises:
        MissingExtraError, SettingError: as ``AutoencoderTrainer.train``.
    """
    left = [one for one in ones if not trainer.is_finished(one)]
    told = trainer.progress.notice
    if left:
        told(f"{len(left)} trainings")
    quiet = replace(trainer, progress=SilentProgress(), threads=int(jobs > 1) or trainer.threads)
    worker = quiet if jobs > 1 else trainer
    each_told(_train, worker, left, lambda one, how: told(f"{one.folder(trainer.out).name}: {how}"), jobs)


def _train(trainer: AutoencoderTrainer, one: Autoencoder) -> None:
    trainer.train(one)
