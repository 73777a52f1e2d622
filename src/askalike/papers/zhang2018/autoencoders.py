"""The states that RAMN compares: those of trained autoencoders, and of what the autoencoders are controlled by.

::

    words        every state is 1: each word is matched by every other as well as by itself
    word2vec     the plain word vectors that the encoder begins with
    untrained    the states of an encoder whose weights were drawn, over the same word vectors
    gru          a recurrent autoencoder
    attention    the paper's autoencoder

    out/attention-50000-seed0/log.csv  loss and held-out perplexity by epoch
    out/attention-50000-seed0/model/   the encoder with its word vectors and their frequencies
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from askalike.evaluation.forum.tasks import candidate_task
from askalike.models.encoders.model import Model, WordStates
from askalike.models.encoders.settings import Kind
from askalike.models.vocabulary import QuestionReader
from askalike.papers.harness import need_torch
from askalike.papers.zhang2018.data import ZhangData
from askalike.papers.zhang2018.ramn import ModelStates, StateSource
from askalike.papers.zhang2018.rows import States
from askalike.progress import Progress, SilentProgress
from askalike.training.corpus import TrainingData
from askalike.training.recipe import Recipe
from askalike.training.work_folder import remove_checkpoints
from askalike.types import Question


class PlainWords:
    """Words whose states are all 1, with their frequencies in texts: RAMN without a match by meaning."""

    def __init__(self, texts: Iterable[Question], reader: QuestionReader) -> None:
        self._reader = reader
        self._counts = Counter(word for text in texts for word in reader.title(text))

    def states(self, questions: Sequence[Question]) -> list[WordStates]:
        """Return the words of questions, each with the state 1."""
        texts = [tuple(self._reader.title(question)) for question in questions]
        return [WordStates(text, np.zeros(len(text), np.int64), np.ones((len(text), 1), np.float32)) for text in texts]

    def frequencies(self, words: Sequence[str]) -> NDArray[np.integer]:
        """Return how often each word occurs in the texts.  # (T,)"""
        return np.array([self._counts[word] for word in words], np.int64)


class WordVectors:
    """The vectors of a model's words in place of its states."""

    def __init__(self, model: Model) -> None:
        self._states, self._vectors = model.states, model.embedding()
        self.frequencies = ModelStates(model).frequencies

    def states(self, questions: Sequence[Question]) -> list[WordStates]:
        """Return the words of questions with their vectors, whatever is around them."""
        return [replace(text, states=self._vectors[text.ids]) for text in self._states(questions)]


@dataclass(frozen=True, slots=True)
class StateTrainer:
    """Trains the sources of states, or finds those that are finished; a training that was stopped goes on.

    Args:
        recipe: of the encoder that learns; the paper's is the attention autoencoder.
        data: texts to learn from, and dev, which is only measured.
        size: texts that are learned from, the first ones; 0 for all.
    """

    recipe: Recipe
    data: ZhangData
    out: Path
    size: int = 0
    device: str = "cpu"
    threads: int = 0
    progress: Progress = field(default_factory=SilentProgress)

    def source(self, states: States, seed: int) -> StateSource:
        """Return a source of states."""
        if states == "words":
            reader = QuestionReader(self.recipe.reads, self.recipe.word_limit, self.recipe.stems)
            return PlainWords(self.data.first(self.size), reader)
        if states == "word2vec":
            return WordVectors(self._model("untrained", seed))
        return ModelStates(self._model(states, seed))

    def described(self) -> dict[str, object]:
        """Return what decides the states besides kind, size and seed, as JSON can hold it."""
        digest, dev = TrainingData(self.data.texts).digest(), self.data.dev.digest()
        return {"recipe": json.loads(self.recipe.to_json()), "kinds": self.data.kinds, "texts": digest, "dev": dev}

    def _model(self, states: States, seed: int) -> Model:
        need_torch(self.threads)
        from askalike.training.encoder import TrainingRun, train_encoder, untrained_encoder

        folder = self.out / f"{states}-{self.size or 'all'}-seed{seed}"
        if not (folder / "model").is_dir():
            kind: Kind = "gru" if states == "gru" else self.recipe.encoder.kind
            recipe = replace(self.recipe, encoder=replace(self.recipe.encoder, kind=kind, pooling="mean"))
            dev = {self.data.dev.name: candidate_task(self.data.dev)}
            learned = TrainingData(self.data.first(self.size), dev=dev)
            run = TrainingRun(folder, seed, self.device, progress=self.progress)
            make = untrained_encoder if states == "untrained" else train_encoder
            make(recipe, learned, run).save(folder / "model")
            remove_checkpoints(folder)
        return Model.load(folder / "model")
