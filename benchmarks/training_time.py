"""How long a model takes from nothing: pre-training on 200,000 questions, then fine-tuning on a forum of 19,047.

Command: ``OMP_WAIT_POLICY=PASSIVE python -m benchmarks.training_time [--questions 200000]``. Pre-trains a recurrent
encoder on Reddit questions: word2vec, one epoch of the encoder-decoder of Lei et al. 2016, one epoch of title against
body; then trains it on the 3D Slicer forum (title, body, answers) and encodes the forum.
Writes ``results/training-time.json``.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

import torch
from recipes.folders import need_data

from askalike.cli.messages import BarProgress
from askalike.forum import Forum, ForumSettings
from askalike.models.encoders.settings import EncoderConfig
from askalike.training.corpus import TrainingData
from askalike.training.encoder import TrainingRun, train_encoder
from askalike.training.recipe import (
    ContrastiveOptions,
    DecodingOptions,
    LoopSettings,
    Recipe,
    StageSettings,
    WordSettings,
)
from askalike.training.session import forum_training
from benchmarks.record import option_parser, reddit_questions, write

COMMAND: Final = "OMP_WAIT_POLICY=PASSIVE python -m benchmarks.training_time"
THREADS: Final = 2
QUESTIONS: Final = 200_000


class Phases(dict[str, dict[str, float]]):
    """Phase → its seconds, each since the phase before has ended."""

    def __init__(self) -> None:
        super().__init__()
        self._began = time.perf_counter()

    def end(self, name: str) -> None:
        """Keep the time since the last phase has ended."""
        now = time.perf_counter()
        self[name] = {"whole": round(now - self._began, 1)}
        self._began = now
        print(name, self[name], flush=True)


def forum_recipe() -> Recipe:
    """Return the recipe of the forum's training."""
    options = ContrastiveOptions(views={"title-body": 1.0, "answers": 1.0, "marked": 1.0}, batch_size=128)
    loop = LoopSettings(epochs=8, patience=3, learning_rate=1e-3, schedule="linear")
    stage = StageSettings("contrastive", options, loop, dropout=0.1)
    encoder = EncoderConfig("rcnn", 200, 300, order=2, pooling="normalised-mean")
    words = WordSettings(size=200, max_size=80_000, is_trained=True)
    return Recipe(encoder, (stage,), words, arithmetic="bfloat16")


def main() -> None:
    """Measure and write the result."""
    parser = option_parser(__doc__)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    once = LoopSettings(epochs=1, patience=0)
    stages = (
        StageSettings("decoding", DecodingOptions(contexts=("title", "body"), batch_size=128), once, dropout=0.1),
        StageSettings("contrastive", ContrastiveOptions(views={"title-body": 1.0}), once, dropout=0.1),
    )
    phases, recipe, model = Phases(), replace(forum_recipe(), stages=stages), None
    with tempfile.TemporaryDirectory() as work:
        with_body = (question for question in reddit_questions() if question.body)
        data = TrainingData(list(islice(with_body, options.questions)))
        phases.end("reading the archive of pre-training")
        for number, stage in enumerate(stages):
            with BarProgress() as progress:
                run = TrainingRun(Path(work) / f"pre-{number}", start=model, progress=progress)
                model = train_encoder(replace(recipe, stages=(stage,)), data, run)
            phases.end(f"pre-training: {stage.objective}, one epoch")
        assert model is not None
        with Forum.create(Path(work) / "forum", settings=ForumSettings(has_vectors=False)) as forum:
            forum.load(need_data("slicer-discourse/topics.jsonl.gz"))
            training = forum_training(forum)
            phases.end("reading and indexing the forum")
            with BarProgress() as progress:
                run = TrainingRun(Path(work) / "fine", start=model, progress=progress)
                model = train_encoder(forum_recipe(), training.data, run)
            model.save(Path(work) / "tuned")
            forum.models.use_model(Path(work) / "tuned")
            phases.end("fine-tuning")
        with Forum.open(Path(work) / "forum") as forum:
            forum.encode()
            topics = len(forum)
        phases.end("encoding the forum")
    body = {
        "threads": THREADS,
        "questions": len(data.questions),
        "topics": topics,
        "answers": len(training.data.answers),
        "parameters": recipe.encoder.parameter_count(),
        "minutes": round(sum(phase["whole"] for phase in phases.values()) / 60, 1),
        "seconds": phases,
    }
    if options.questions == QUESTIONS:
        write("training-time", COMMAND, body)


if __name__ == "__main__":
    main()
