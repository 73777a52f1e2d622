"""Trains the autoencoders: one for each kind, number of texts and seed, kept with its log and its reconstructions.

::

    out/attention-50000-seed0/log.csv        loss and held-out perplexity by epoch
    out/attention-50000-seed0/examples.json  held-out texts, and what the decoder made of them
    out/attention-50000-seed0/model/         the encoder with its word vectors and their frequencies
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

from askalike.evaluation.forum.tasks import candidate_task
from askalike.models.encoders.model import Model
from askalike.papers.harness import need_torch
from askalike.papers.zhang2018.data import ZhangData
from askalike.papers.zhang2018.rows import Kind
from askalike.progress import Progress, SilentProgress
from askalike.training.corpus import TrainingData
from askalike.training.recipe import Recipe
from askalike.training.work_folder import remove_checkpoints


@dataclass(frozen=True, slots=True)
class Autoencoder:
    """Which autoencoder.

    Args:
        size: texts that it learns from, the first ones; 0 for all.
    """

    kind: Kind
    size: int
    seed: int

    def folder(self, out: Path) -> Path:
        """Return where it is kept."""
        return out / f"{self.kind}-{self.size or 'all'}-seed{self.seed}"


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
        need_torch(self.threads)
        from askalike.training.encoder import TrainingRun, train_encoder

        folder = one.folder(self.out)
        dev = {self.data.dev.name: candidate_task(self.data.dev)}
        learned = TrainingData(self.data.first(one.size), dev=dev)
        run = TrainingRun(folder, one.seed, self.device, progress=self.progress)
        train_encoder(kind_recipe(self.recipe, one.kind), learned, run).save(folder / "model")
        remove_checkpoints(folder)

    def described(self) -> dict[str, object]:
        """Return what decides the autoencoders besides kind, size and seed, as JSON can hold it."""
        digest, dev = TrainingData(self.data.texts).digest(), self.data.dev.digest()
        return {"recipe": json.loads(self.recipe.to_json()), "kinds": self.data.kinds, "texts": digest, "dev": dev}
