"""The bundled encoder, adapted to a forum's texts: pieces of all texts, contrastive or max-margin stages, 8 bits again.

Checkpoints, log and resuming are those of ``training.loop``. Without duplicates to compare by, two encoders are
compared by ``own_bodies``: how well a title finds its own body among the bodies of questions that were left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.evaluation import Report, evaluate
from askalike.models.adapted import AdaptedEncoder, bundled_folder, bundled_numbers
from askalike.models.general import READ_CHARACTERS, VOCABULARY_FILE, read_manifest
from askalike.models.wordpiece import WordPiece
from askalike.text.markup import plain_text
from askalike.training.corpus import DevSet, Texts, TrainingData, corpus_of, dev_measures, reported
from askalike.training.encoder import TrainingRun, arithmetic, run_stages
from askalike.training.objectives import Contrastive, MaxMargin, Trainable
from askalike.training.pieces import PieceNetwork
from askalike.training.recipe import Adaptation, ContrastiveOptions, MaxMarginOptions, StageSettings
from askalike.types import Question

MOST_LEFT_OUT: Final = 1_000
"""Questions that are left out to compare by; a fifth of all at most."""
_RANKED: Final = 100
"""Bodies further down count as not found."""


def adapt_encoder(recipe: Adaptation, data: TrainingData, run: TrainingRun) -> AdaptedEncoder:
    """Return the encoder that the recipe makes of a forum's texts.

    Raises:
        SettingError: data and recipe do not fit each other, or the device is not there.
        ModelError: the loss is no number, or the package contains no encoder.
        DamagedModelError: a checkpoint cannot be read.
    """
    folder = bundled_folder()
    words = WordPiece((folder / VOCABULARY_FILE).read_text(encoding="utf-8").splitlines())
    most = read_manifest(folder).max_pieces
    first, last = words.encode("", most)
    numbers = bundled_numbers()
    network = PieceNetwork(numbers, (first, last), most)
    run.progress.start("reading", len(data.questions), "questions")

    def pieces(text: str) -> list[int]:
        return words.encode(text, most)[1:-1]

    stops_early = any(stage.loop.patience for stage in recipe.stages)
    dev = {
        name: DevSet(task, texts_of(TrainingData(task.questions), pieces, lambda _: None))
        for name, task in (data.dev.items() if stops_early else ())
    }
    corpus = corpus_of(data, texts_of(data, pieces, run.progress.advance), dev)
    dev_digest = data.dev_digest() if stops_early else ""
    beginning = hashlib.sha256(f"{recipe.to_json()}{data.digest()}{dev_digest}{run.seed}".encode())
    for name, values in sorted(numbers.items()):
        beginning.update(name.encode() + values.tobytes())

    def objective_of(stage: StageSettings) -> Trainable:
        if isinstance(stage.options, MaxMarginOptions):
            return MaxMargin(network, corpus, stage.options)
        assert isinstance(stage.options, ContrastiveOptions)
        return Contrastive(network, corpus, stage.options)

    def measures() -> dict[str, float]:
        tasks = {name: dev_set.task for name, dev_set in dev.items()}
        return dev_measures(tasks, lambda name: network.all_questions(dev[name].texts))

    with arithmetic(recipe.arithmetic):
        pairs, identity = len(corpus.usable_pairs()), beginning.hexdigest()
        run_stages(recipe.stages, pairs, objective_of, measures, lambda number: f"{number} {identity}", run)
    return AdaptedEncoder.build(network.weights(), training_data=data.digest())


def texts_of(data: TrainingData, pieces: Callable[[str], list[int]], report: Callable[[int], None]) -> Texts:
    """Return titles and bodies of the questions in turn, then the answers, as pieces."""
    read = [np.array(pieces(text), np.int32) for text in _plain_texts(data, report)]
    return Texts(np.concatenate(read), np.concatenate([[0], np.cumsum([len(text) for text in read])]))


def _plain_texts(data: TrainingData, report: Callable[[int], None]) -> Iterator[str]:
    for question in reported(data.questions, report):
        yield question.title
        yield body_of(question)
    for answer in data.answers:
        yield plain_text(answer.body, answer.markup)[:READ_CHARACTERS]


def body_of(question: Question) -> str:
    """Return a question's body as plain text, as much of it as is read."""
    return plain_text(question.body[: 4 * READ_CHARACTERS], question.markup)[:READ_CHARACTERS]


def left_out(questions: Sequence[Question]) -> list[Question]:
    """Return the questions to compare by: those with title and body whose id has the smallest digests.

    New questions move few others in or out.
    """
    whole = [question for question in questions if question.title.strip() and question.body.strip()]
    whole.sort(key=lambda question: hashlib.blake2b(question.id.encode(), digest_size=8).digest())
    return whole[: min(MOST_LEFT_OUT, len(whole) // 5)]


def own_bodies(questions: Sequence[Question], embed: Callable[[Sequence[str]], NDArray[np.float32]]) -> Report:
    """Return the reciprocal rank of each question's own body among all of their bodies, by its title.

    Args:
        embed: texts → vectors of length 1.  # (N, D)
    """
    titles = embed([question.title for question in questions])
    bodies = embed([body_of(question) for question in questions])
    cosines = titles @ bodies.T  # (N, N)
    ids = [question.id for question in questions]
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :_RANKED]
    run = {
        name: [(ids[place], float(row[place])) for place in places]
        for name, row, places in zip(ids, cosines, best.tolist(), strict=True)
    }
    return evaluate({name: {name: 1} for name in ids}, run, "trec", ["mrr"])
