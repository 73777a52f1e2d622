"""How long a model takes from nothing: pre-training on 200,000 questions, then fine-tuning on a forum of 19,047.

Command: ``OMP_WAIT_POLICY=PASSIVE python -m benchmarks.training_time [--questions 200000]``. Pre-trains the default
encoder on Reddit questions: word2vec, one epoch of the encoder-decoder of Lei et al. 2016, one epoch of title against
body; then trains it on the 3D Slicer forum as ``askalike train`` does (title, body, answers; 8 epochs) and encodes the
forum. Each phase is timed, and within the stages what a step is made of. Writes ``results/training-time.json``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import torch
from recipes.general.sources import records
from torch import nn

from askalike.cli.display import BarProgress
from askalike.forum import Forum, ForumSettings
from askalike.models.encoders.networks.encoder import EncoderNetwork
from askalike.training import loop
from askalike.training import words as word_making
from askalike.training.corpus import TrainingData, WordSource
from askalike.training.encoder import TrainingRun, train_encoder
from askalike.training.objectives import TextNetwork
from askalike.training.recipe import (
    ContrastiveOptions,
    DecodingOptions,
    LoopSettings,
    Recipe,
    StageSettings,
    load_recipe,
)
from askalike.training.session import forum_training, going_on
from askalike.types import Question
from benchmarks.record import need_data, write

COMMAND = "OMP_WAIT_POLICY=PASSIVE python -m benchmarks.training_time"
THREADS = 2
MOST = 200_000

Seconds = defaultdict[str, float]


@contextmanager
def timed(seconds: Seconds, parts: dict[str, tuple[Any, str]]) -> Iterator[None]:
    """Add up the time that functions take while the block runs; what they call is counted with them.

    Args:
        parts: name → where a function is, and its name there.
    """
    before = {name: getattr(place, function) for name, (place, function) in parts.items()}
    for name, (place, function) in parts.items():
        setattr(place, function, _timed(seconds, name, before[name]))
    try:
        yield
    finally:
        for name, (place, function) in parts.items():
            setattr(place, function, before[name])


def _timed(seconds: Seconds, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def wrapper(*args: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return function(*args, **named)
        finally:
            seconds[name] += time.perf_counter() - began

    return wrapper


def parts_of_training() -> dict[str, tuple[Any, str]]:
    """Return what is timed: the phases of a training, then what its steps are made of."""
    return {
        "reading texts into words": (WordSource, "__init__"),
        "word vectors": (word_making, "train_word2vec"),
        "steps": (loop._StageRun, "_step"),  # the loop has no other place to look in from
        "steps: backward": (torch.Tensor, "backward"),
        "steps: update": (torch.optim.Adam, "step"),
        "steps: encoder and decoder, forward": (EncoderNetwork, "go_on"),
        "steps: encoder, forward": (EncoderNetwork, "pooled"),
        "steps: word vectors, forward": (TextNetwork, "words"),
        "steps: output layer, forward": (nn.AdaptiveLogSoftmaxWithLoss, "forward"),
        "dev and held-out measures": (loop._StageRun, "_judge"),
        "checkpoints": (loop._StageRun, "_save"),
    }


def recipe_by_default() -> Recipe:
    """Return the recipe that a forum trains by where none is named."""
    found = load_recipe("default")
    assert isinstance(found, Recipe)
    return found


def pretraining(size: int) -> tuple[Recipe, TrainingData]:
    """Return the recipe of pre-training and the questions."""
    questions = [
        record
        for record in records(need_data("reddit/questions.jsonl.gz"))
        if isinstance(record, Question) and record.body
    ][:size]
    default = recipe_by_default()
    once = LoopSettings(epochs=1, patience=0)
    stages = (
        StageSettings("decoding", DecodingOptions(contexts=("title", "body"), batch_size=128), once, dropout=0.1),
        StageSettings("contrastive", ContrastiveOptions(views={"title-body": 1.0}), once, dropout=0.1),
    )
    return replace(default, stages=stages), TrainingData(questions)


class Phases(dict[str, dict[str, float]]):
    """Phase → its seconds, as a whole and in parts; told of as they end."""

    def ended(self, name: str, began: float, seconds: Seconds | None = None) -> None:
        """Keep a phase: the whole since ``began``, and the parts that took longer than a tenth of a second."""
        parts = {part: round(one, 1) for part, one in (seconds or {}).items() if one >= 0.1}
        self[name] = {"whole": round(time.perf_counter() - began, 1), **parts}
        print(name, self[name], flush=True)


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=MOST)
    parser.add_argument("--archive", type=Path, default=None, help="of the forum, instead of 3D Slicer")
    given = parser.parse_args()
    torch.set_num_threads(THREADS)
    phases = Phases()
    with tempfile.TemporaryDirectory() as work:
        began = time.perf_counter()
        recipe, data = pretraining(given.questions)
        phases.ended("reading the archive of pre-training", began)
        model = None
        for number, stage in enumerate(recipe.stages):
            seconds: Seconds = defaultdict(float)
            began = time.perf_counter()
            with BarProgress() as progress, timed(seconds, parts_of_training()):
                run = TrainingRun(Path(work) / f"pre-{number}", start=model, progress=progress)
                model = train_encoder(replace(recipe, stages=(stage,)), data, run)
            phases.ended(f"pre-training: {stage.objective}, one epoch", began, seconds)
        assert model is not None
        model.save(Path(work) / "pretrained")
        began = time.perf_counter()
        with Forum.create(Path(work) / "forum", settings=ForumSettings(has_vectors=False)) as forum:
            forum.load(given.archive or need_data("slicer-discourse/topics.jsonl.gz"))
            training = forum_training(forum)
            phases.ended("reading and indexing the forum", began)
            seconds, began = defaultdict(float), time.perf_counter()
            with BarProgress() as progress, timed(seconds, parts_of_training()):
                run = TrainingRun(Path(work) / "fine", start=model, progress=progress)
                model = train_encoder(going_on(recipe_by_default(), model), training.data, run)
            phases.ended("fine-tuning", began, seconds)
            model.save(Path(work) / "tuned")
            forum.use_model(Path(work) / "tuned")
        began = time.perf_counter()
        with Forum.open(Path(work) / "forum") as forum:
            forum.encode()
            topics = forum.info().counts.questions
        phases.ended("encoding the forum", began)
    if given.archive or given.questions < MOST:
        print("not written: this was a trial with less data")
        return
    write(
        "training-time",
        COMMAND,
        {
            "threads": THREADS,
            "questions": len(data.questions),
            "topics": topics,
            "answers": len(training.data.answers),
            "parameters": recipe.encoder.parameter_count(),
            "minutes": round(sum(phase["whole"] for phase in phases.values()) / 60, 1),
            "seconds": phases,
        },
    )


if __name__ == "__main__":
    main()
