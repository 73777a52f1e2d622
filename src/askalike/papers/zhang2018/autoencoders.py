"""The autoencoders: trained one for each kind, number of texts and seed, kept with its log and its reconstructions.

::

    out/attention-50000-seed0/log.csv        loss and held-out perplexity by epoch
    out/attention-50000-seed0/examples.json  held-out texts, and what the decoder made of them
    out/attention-50000-seed0/model/         the encoder with its word vectors and their frequencies

Their states may be changed on their way to RAMN: made all alike, which leaves the words alone, or whitened. Whitening
takes from the states what all of them share, and evens out the directions in which they differ::

    μ, Σ      mean and covariance of the states h of many words, Σ = V diag(λ) Vᵀ
    h'        (h - μ) V diag(max(λ, ε λ_max))^(-1/2)                    mean 0, covariance I, with ε = 10⁻⁴

States of an encoder lie close together in a narrow cone, so that the cosine of any two words says little; h' do not.

Source: Mu and Viswanath 2018 (ICLR), All-but-the-Top, for mean and leading directions; Su et al. 2021
(arXiv:2103.15316), for this map, of vectors of sentences there and of words here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.evaluation.forum.tasks import candidate_task
from askalike.models.encoders.model import Model, WordStates
from askalike.papers.harness import need_torch
from askalike.papers.zhang2018.data import ZhangData
from askalike.papers.zhang2018.ramn import StateSource
from askalike.papers.zhang2018.rows import Kind
from askalike.progress import Progress, SilentProgress
from askalike.training.corpus import TrainingData
from askalike.training.recipe import Recipe
from askalike.training.work_folder import remove_checkpoints
from askalike.types import Question


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
        """Return a finished autoencoder's encoder."""
        return Model.load(one.folder(self.out) / "model")

    def train(self, one: Autoencoder) -> None:
        """Train it, going on where a stopped training was."""
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


Floats = NDArray[np.float32]
WHITENED: Final = 2000
"""Texts whose states are looked at: some 100,000 words for a few hundred dimensions."""
LEAST_SHARE: Final = 1e-4
"""ε: a direction with less of the largest variance counts as having so much; few states leave some with none."""
TINY: Final = 1e-30


class TransformedStates:
    """A source of the same words with other states.

    Args:
        source: words, states and frequencies.
        transform: states of one text (T, D) → its states instead (T, D').
    """

    def __init__(self, source: StateSource, transform: Callable[[Floats], Floats]) -> None:
        self._source, self._transform = source, transform
        self.frequencies = source.frequencies

    def states(self, questions: Sequence[Question]) -> list[WordStates]:
        """Return the words of questions with their transformed states."""
        return [replace(text, states=self._transform(text.states)) for text in self._source.states(questions)]


def all_alike(states: Floats) -> Floats:
    """Return the state 1 for each word: every word is matched by every other as well as by itself.  # (T, 1)"""
    return np.ones((len(states), 1), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Whitening:
    """A map of states.

    Args:
        mean: μ.  # (D,) float32
        matrix: V diag(…)^(-1/2).  # (D, D) float32
    """

    mean: Floats
    matrix: Floats

    @classmethod
    def of(cls, states: Floats) -> Whitening:
        """Return the map of these states, which brings them to mean 0 and covariance I.

        Args:
            states: ≥ 1 of them.  # (N, D)

        Example:
            States of variance 4 and 1 around (1, 0):

            >>> found = Whitening.of(np.array([[3.0, 1.0], [-1.0, 1.0], [3.0, -1.0], [-1.0, -1.0]], np.float32))
            >>> np.abs(found.applied(np.array([[3.0, 1.0], [1.0, 0.0]], np.float32))).round(3).tolist()
            [[1.0, 1.0], [0.0, 0.0]]
        """
        mean = np.asarray(states.mean(axis=0, dtype=np.float64), dtype=np.float32)
        centred = states - mean
        variances, directions = np.linalg.eigh((centred.T @ centred).astype(np.float64) / len(states))
        least = max(float(variances[-1]) * LEAST_SHARE, TINY)
        matrix = directions / np.sqrt(np.maximum(variances, least))
        return cls(mean, matrix.astype(np.float32))

    @classmethod
    def of_texts(cls, source: StateSource, texts: Sequence[Question]) -> Whitening:
        """Return the map of the states of many words.

        Args:
            texts: those that were learned from; of many, ``WHITENED`` evenly spread ones are read. One has words.
        """
        step = max(1, len(texts) // WHITENED)
        read = source.states(texts[::step][:WHITENED])
        return cls.of(np.concatenate([text.states for text in read if text.words]))

    def applied(self, states: Floats) -> Floats:
        """Return h' of each state.  # (T, D)"""
        return np.asarray((states - self.mean) @ self.matrix, dtype=np.float32)
