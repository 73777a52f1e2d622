"""From training data and a recipe to a model: words, then one stage after the other.

Everything is written to a work folder on the way; a training that was stopped goes on from there, one that had ended
is only read again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from msgspec import Meta
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.encoders.model import Model
from askalike.models.encoders.networks.encoder import EncoderNetwork, build, from_arrays, to_arrays
from askalike.models.vocabulary import QuestionReader, Vocabulary
from askalike.progress import Progress, SilentProgress
from askalike.settings import check_fields
from askalike.training.corpus import Corpus, TrainingData, WordSource, dev_measures
from askalike.training.decoders import Decoding, Reconstruction
from askalike.training.loop import StageContext, run_stage
from askalike.training.objectives import Contrastive, MaxMargin, TextNetwork, Trainable
from askalike.training.recipe import (
    Arithmetic,
    DecodingOptions,
    MaxMarginOptions,
    Recipe,
    ReconstructionOptions,
    StageSettings,
)
from askalike.training.words import InitialWords, make_words


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """Where and as what a training runs.

    Args:
        folder: for checkpoints, word vectors and the log; belongs to this training alone.
        seed: of everything that is drawn, 0 to 2³² - 1.
        device: ``cpu`` or ``cuda``, with a number if need be.
        start: a model to go on from: its words, word vectors and encoder are where training begins.
        checkpoint_s: seconds between checkpoints within an epoch, ≥ 0.
    """

    folder: Path
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    device: str = "cpu"
    start: Model | None = None
    progress: Progress = field(default_factory=SilentProgress)
    checkpoint_s: Annotated[float, Meta(ge=0, le=1e9)] = 120.0

    def __post_init__(self) -> None:
        check_fields(self)


def train_encoder(recipe: Recipe, data: TrainingData, run: TrainingRun) -> Model:
    """Return the model that the recipe makes of the data.

    The same recipe, data and seed give the same model on the same machine, stopped on the way or not.

    Raises:
        SettingError: data and recipe do not fit each other, or the device is not there.
        InputError: the file of word vectors cannot be read.
        ModelError: the loss of a stage is no number.
        DamagedModelError: a file that was kept of the stopped training cannot be read.
        MissingExtraError: gensim is wanted and not installed.
    """
    device_named(run.device)  # raises where it is not there, before anything is read
    with arithmetic(recipe.arithmetic):
        words, corpus, network = _begin(recipe, data, run)
        beginning = _beginning(data, words, network, run.seed)
        run_stages(
            recipe.stages,
            len(corpus.usable_pairs()),
            lambda stage: _objective(stage, network, corpus, run.seed),
            _judge(network, corpus),
            lambda number: _identity(recipe, number, beginning),
            run,
        )
        return _model(recipe, words.vocabulary, network, data, corpus)


def untrained_encoder(recipe: Recipe, data: TrainingData, run: TrainingRun) -> Model:
    """Return the model that a training of the same recipe, data and seed begins with: a control for what it learns.

    Its word vectors are the recipe's, trained where the recipe trains them; its encoder is drawn.
    """
    with arithmetic(recipe.arithmetic):
        words, corpus, network = _begin(recipe, data, run)
        return _model(recipe, words.vocabulary, network, data, corpus)


def _begin(recipe: Recipe, data: TrainingData, run: TrainingRun) -> tuple[InitialWords, Corpus, TextNetwork]:
    """Return words with their vectors, the texts in these words, and the network before its first step."""
    run.folder.mkdir(parents=True, exist_ok=True)
    run.progress.start("reading", len(data.questions), "questions")
    source = WordSource(data, QuestionReader(recipe.reads, recipe.word_limit, recipe.stems), run.progress.advance)
    words = make_words(recipe.words, source, run.start, run.folder, (run.seed, run.progress))
    corpus = source.corpus(words.vocabulary, is_dropping=recipe.words.unknown == "dropped")
    network = TextNetwork(
        _encoder(recipe, run),
        torch.from_numpy(words.embedding.copy()),
        is_embedding_trained=recipe.words.is_trained,
        is_unknown_zero=recipe.words.unknown != "vector",
    )
    return words, corpus, network


def run_stages(
    stages: Sequence[StageSettings],
    pairs: int,
    objective_of: Callable[[StageSettings], Trainable],
    dev: Callable[[], Mapping[str, float]],
    identity_of: Callable[[int], str],
    run: TrainingRun,
) -> None:
    """Train one stage after the other; those that need labelled pairs are left out where there are too few.

    Args:
        pairs: labelled pairs that can be used.
        dev: measures of what is trained.
        identity_of: the number of a stage → what its checkpoint is recognised by.
    """
    device = device_named(run.device)
    names = [f"{number}-{stage.objective}" for number, stage in enumerate(stages, start=1)]
    has_trained = False
    for number, (stage, name) in enumerate(zip(stages, names, strict=True), start=1):
        least = 1 if stage.objective == "max-margin" else 2  # of one pair alone the others learn nothing
        if stage.needs == "pairs" and pairs < least:
            run.progress.notice(f"stage {name} is skipped: it needs {least} labelled pairs, and the data has {pairs}")
            continue
        context = StageContext(
            run.folder,
            stage=name,
            identity=identity_of(number),
            earlier=tuple(names[: number - 1]),
            seed=run.seed + number,
            device=device,
            progress=run.progress,
            checkpoint_s=run.checkpoint_s,
            first_epoch=stage.first_epoch,
        )
        run_stage(objective_of(stage), stage.loop, dev, context)
        has_trained = True
    if not has_trained:
        raise SettingError(
            f"every stage of the recipe needs labelled pairs, and the data has {pairs}",
            "label duplicates, or take a recipe that learns without labels",
        )


def _beginning(data: TrainingData, words: InitialWords, network: TextNetwork, seed: int) -> str:
    """Return a name of everything but the recipe that a training depends on."""
    digest = hashlib.sha256(f"{data.digest()}{data.dev_digest()}{words.digest()}{seed}".encode())
    for name, array in to_arrays(network.encoder).items():
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()


def _identity(recipe: Recipe, number: int, beginning: str) -> str:
    """Return what a stage's checkpoint is recognised by; stages after it and how the model is kept do not matter."""
    chosen: list[object] = [recipe.encoder.to_json(), asdict(recipe.words)]
    chosen += [recipe.reads, recipe.word_limit, recipe.arithmetic, recipe.stems, recipe.gate_bias, recipe.spread]
    stages = [asdict(stage) for stage in recipe.stages[:number]]
    return hashlib.sha256(json.dumps([chosen, stages, beginning], sort_keys=True).encode()).hexdigest()


def _encoder(recipe: Recipe, run: TrainingRun) -> EncoderNetwork:
    if run.start is None:
        return build(recipe.encoder, run.seed, recipe.gate_bias, recipe.spread)
    of_start = run.start.settings.encoder
    if of_start.kind != recipe.encoder.kind or of_start.shapes() != recipe.encoder.shapes():
        raise SettingError(
            f"the model to go on from has the encoder {of_start.to_json()}, the recipe {recipe.encoder.to_json()}",
            "write the same encoder into the recipe",
        )
    if run.start.settings.stems != recipe.stems:
        raise SettingError(
            f"the model to go on from has stems {run.start.settings.stems!r}, the recipe {recipe.stems!r}",
            "write the same stems into the recipe",
        )
    return from_arrays(recipe.encoder, run.start.parameters())


@contextmanager
def arithmetic(kind: Arithmetic) -> Iterator[None]:
    """Set the arithmetic of matrix products, and set it back."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium" if kind == "bfloat16" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _objective(stage: StageSettings, network: TextNetwork, corpus: Corpus, seed: int) -> Trainable:
    options = stage.options
    network.dropout = stage.dropout
    if isinstance(options, DecodingOptions):
        return Decoding(network, corpus, options, seed=seed)
    if isinstance(options, MaxMarginOptions):
        return MaxMargin(network, corpus, options)
    if isinstance(options, ReconstructionOptions):
        return Reconstruction(network, corpus, options, seed=seed)
    return Contrastive(network, corpus, options)


def _judge(network: TextNetwork, corpus: Corpus) -> Callable[[], dict[str, float]]:
    """Return the function that measures the network on the dev sets: MRR and MAP of each, and their means."""
    tasks = {name: dev.task for name, dev in corpus.dev.items()}
    return lambda: dev_measures(tasks, lambda name: network.all_questions(corpus.dev[name].texts))


def _model(recipe: Recipe, vocabulary: Vocabulary, network: TextNetwork, data: TrainingData, corpus: Corpus) -> Model:
    embedding: NDArray[np.float32] = network.embedding.detach().cpu().numpy()
    return Model.build(
        recipe.model_settings(),
        vocabulary,
        embedding,
        to_arrays(network.encoder),
        counts=corpus.texts.counts(len(vocabulary)),
        training_data=data.digest(),
        dev_scores=_judge(network, corpus)(),
    )


def device_named(name: str) -> torch.device:
    """Return a device to train on.

    Raises:
        SettingError: it is not known, or not there.
    """
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise SettingError(f"device {name!r} is not known", "expected cpu, cuda or cuda:N") from error
    if device.type not in ("cpu", "cuda"):
        raise SettingError(f"device {name!r} is not supported", "expected cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise SettingError(f"device {name!r}, but torch finds no such device here", "use cpu")
    return device
