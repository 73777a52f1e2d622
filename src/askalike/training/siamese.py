"""Training a siamese model: questions near their answers and away from others', the loss of SCQA.

::

    loss(q, a) = 1 - cos(q, a)            y = 1,  a the best answer to q
                 max(0, cos(q, a) - m)    y = -1, a the answer to another random question
    L          = Σ loss over the samples of a batch, or their mean

The state of the training and a log are written to a work folder on the way; a training that was stopped goes on from
there, one that had ended is only read again.

Source: Das et al. 2016 (ACL), section 4, with equation 2; section 3.1: "relevant answers which are marked as
best-answer or most voted answers".
Reading: of a question's answers one is learned from: the accepted one, otherwise the one with most votes, 0 where
nobody voted; of equals the first.
Reading: equation 2 is a sum over the batch, and Torch, which has this loss by the same formula, took the mean. With
batches of 100 and the learning rate of table 1 the steps of the sum are a hundred times those of the mean, and what is
learned is another thing (``reduction`` in the recipe; docs/papers/readings.md). By the sum a last batch of fewer
samples makes a smaller step.
Differs: the other question is one of the same batch, each as likely as any, so that its answer is encoded already. The
order of the pairs is drawn anew for each epoch, and the other is random all the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from msgspec import structs
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from askalike.errors import SettingError
from askalike.evaluation import CandidateTask
from askalike.models.siamese.config import SIDES, SiameseSettings
from askalike.models.siamese.model import SiameseModel, SiameseReader, TrigramTexts
from askalike.models.siamese.network import SiameseNetwork, build, to_arrays
from askalike.models.vocabulary import Vocabulary
from askalike.training.corpus import TrainingData, WordList, dev_measures, reported
from askalike.training.encoder import TrainingRun, device_named
from askalike.training.loop import StageContext, run_stage
from askalike.training.objectives import Trainable, in_batches, random_stream
from askalike.training.recipe import HELD_OUT_LOSS, PairOptions, Reduction, SiameseRecipe
from askalike.types import Answer, Question


@dataclass(frozen=True, slots=True)
class PairCorpus:
    """Training data as sparse vectors; row i of both is pair i.

    Args:
        vocabulary: the trigrams of the pairs that are learned from.
        questions: of each pair.  # M texts
        answers: of each pair.  # M texts
        learned: pairs that are learned from, rising.
        held_out: pairs that are not, rising.
        dev: name → the questions of that dev set.
    """

    vocabulary: Vocabulary
    questions: TrigramTexts
    answers: TrigramTexts
    learned: NDArray[np.int64]
    held_out: NDArray[np.int64]
    dev: Mapping[str, TrigramTexts]


def best_answers(answers: Iterable[Answer]) -> dict[str, Answer]:
    """Return question id → the answer to learn from.

    >>> given = [Answer("a", "1", "x"), Answer("b", "1", "y", score=3), Answer("c", "2", "z"), Answer("d", "2", "w")]
    >>> [answer.id for answer in best_answers(given).values()]
    ['b', 'c']
    """
    found: dict[str, Answer] = {}
    for answer in answers:
        held = found.get(answer.question_id)
        if held is None or answer.standing > held.standing:
            found[answer.question_id] = answer
    return found


def paired(pairs: Iterable[tuple[Question, Answer]], dev: Mapping[str, CandidateTask] | None = None) -> TrainingData:
    """Return pairs of a question and an answer as training data.

    Args:
        pairs: a question's id with that question alone; of several pairs of a question, the best answer is learned
            from.
        dev: name → judged candidates, to measure after each epoch.

    >>> first, second = (Question("q", "Why?"), Answer("a", "", "So.")), (Question("r", "?"), Answer("b", "", "Thus."))
    >>> data = paired([first, second])
    >>> [question.id for question in data.questions], [answer.question_id for answer in data.answers]
    (['q', 'r'], ['q', 'r'])
    """
    questions: dict[str, Question] = {}
    answers = []
    for question, answer in pairs:
        questions.setdefault(question.id, question)
        answers.append(
            answer if answer.question_id == question.id else structs.replace(answer, question_id=question.id)
        )
    return TrainingData(list(questions.values()), answers=answers, dev=dev or {})


def read_pairs(data: TrainingData, recipe: SiameseRecipe, seed: int, on_progress: Callable[[int], None]) -> PairCorpus:
    """Return the pairs of questions and best answers that have trigrams on both sides.

    Args:
        data: its answers and dev sets are looked at, its duplicate links are not.
        seed: of which pairs are kept out, and of the trigrams' order where they are shuffled.
        on_progress: called with how many pairs were read since the last call.

    Raises:
        SettingError: fewer than two pairs to learn from, or an answer to a question that is not there.
    """
    reader = SiameseReader(recipe.text, recipe.reads)
    pairs = _paired(data)
    read = WordList(_trigrams(pairs, reader, on_progress))
    sizes = read.texts.lengths()
    usable = np.flatnonzero((sizes[0::2] > 0) & (sizes[1::2] > 0))
    order = np.random.default_rng(seed).permutation(len(usable))
    kept_out = min(recipe.pairs.held_out, len(usable) // 10)
    held_out, learned = np.sort(usable[order[:kept_out]]), np.sort(usable[order[kept_out:]])
    if len(learned) < 2:
        raise SettingError(
            f"{len(learned)} questions with an answer and words on both sides, but expected at least two",
            "give answers: a siamese model learns from nothing else",
        )
    vocabulary = _vocabulary(read, learned, recipe, seed)
    whole = read.over(vocabulary)
    both = TrigramTexts.counted(whole.ids, whole.starts, len(vocabulary))
    dev = {name: TrigramTexts.of(map(reader.question, task.questions), vocabulary) for name, task in data.dev.items()}
    rows = 2 * np.arange(len(pairs))
    return PairCorpus(vocabulary, both.some(rows), both.some(rows + 1), learned, held_out, dev)


def _vocabulary(read: WordList, learned: NDArray[np.int64], recipe: SiameseRecipe, seed: int) -> Vocabulary:
    """Return the trigrams of the pairs that are learned from, in the recipe's order."""
    lengths = read.texts.lengths()
    is_learned = np.zeros(len(lengths), np.bool_)
    is_learned[2 * learned] = is_learned[2 * learned + 1] = True
    ids = read.texts.ids[np.repeat(is_learned, lengths)]
    counts = np.bincount(ids, minlength=len(read.words)).tolist()
    counted = dict(zip(read.words, counts, strict=True))
    found = Vocabulary.from_counts(counted, min_count=recipe.min_count, max_size=recipe.max_size)
    if recipe.order == "frequency":
        return found
    return Vocabulary([found.words[place] for place in np.random.default_rng(seed).permutation(len(found.words))])


def _paired(data: TrainingData) -> list[tuple[Question, Answer]]:
    best = best_answers(data.answers)
    found = [(question, best.pop(question.id)) for question in data.questions if question.id in best]
    if best:
        raise SettingError(
            f"training data names question {next(iter(best))!r}, which is not among its questions",
            "give the questions of all answers, each once",
        )
    return found


def _trigrams(
    pairs: Sequence[tuple[Question, Answer]], reader: SiameseReader, on_progress: Callable[[int], None]
) -> Iterator[list[str]]:
    for question, answer in reported(pairs, on_progress):
        yield reader.question(question)
        yield reader.answer(answer)


def pair_loss(cosines: Tensor, others: Tensor, margin: float, reduction: Reduction = "sum") -> Tensor:
    """Return the sum of the loss over positive and negative samples, or its mean.

    Args:
        cosines: cos(q, a) of questions with their answers.  # (P,)
        others: cos(q, a) of questions with answers to other questions.  # (N,)
        margin: m.
        reduction: ``sum`` or ``mean``, over all P + N samples.

    >>> own, others = torch.tensor([0.75, 1.0]), torch.tensor([0.5, 0.125])  # 0.25 + 0.25 over four samples
    >>> [round(pair_loss(own, others, 0.25, reduction).item(), 4) for reduction in ("sum", "mean")]
    [0.5, 0.125]
    """
    total = (1 - cosines).sum() + (others - margin).clamp_min(0).sum()
    return total / (len(cosines) + len(others)) if reduction == "mean" else total


class QuestionAnswer(Trainable):
    """The loss over the pairs of a corpus; each epoch gives every question another random one's answer."""

    def __init__(self, network: SiameseNetwork, corpus: PairCorpus, options: PairOptions) -> None:
        super().__init__()
        self.network = network
        self._corpus: Final = corpus
        self._options: Final = options

    def batches(self, epoch: int, seed: int) -> Sequence[NDArray[np.int64]]:
        """Return arrays (P, 2): a pair, and the pair whose answer is the negative; a last part of one is left out."""
        random = random_stream(seed, epoch)
        parts = in_batches(random.permutation(self._corpus.learned), self._options.batch_size // 2)
        found = []
        for part in parts:
            if len(part) > 1:
                found.append(np.stack([part, np.roll(part, random.integers(1, len(part)))], axis=1))
        return found

    def forward(self, batch: NDArray[np.int64]) -> Tensor:
        """Return the loss of the 2 P samples of P pairs with their others, (P, 2), reduced as the options say."""
        cosines = self._cosines(batch)
        return pair_loss(*cosines, self._options.margin, self._options.reduction)

    def _cosines(self, batch: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Return cos(q, a) of P pairs, and of their questions with the others' answers.  # 2 (P,)"""
        distinct, places = np.unique(batch, return_inverse=True)
        corpus, network = self._corpus, self.network
        asked = functional.normalize(network.encode(corpus.questions, batch[:, 0], SIDES[0]))  # (P, D)
        answered = functional.normalize(network.encode(corpus.answers, distinct, SIDES[1]))
        own, other = torch.from_numpy(places.reshape(batch.shape)).to(answered.device).T
        cosines, others = ((asked * answered.index_select(0, some)).sum(dim=1) for some in (own, other))
        return cosines, others

    @torch.no_grad()
    def held_out(self) -> dict[str, float]:
        """Return the mean loss of the samples of the pairs that are kept out, the others always the same."""
        pairs = self._corpus.held_out
        if len(pairs) < 2:
            return {}
        batches = in_batches(np.stack([pairs, np.roll(pairs, 1)], axis=1), self._options.batch_size // 2)
        losses = (float(pair_loss(*self._cosines(batch), self._options.margin)) for batch in batches)
        return {HELD_OUT_LOSS: sum(losses) / (2 * len(pairs))}


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
        on_epoch: called after each epoch. A training that goes on calls it for those that are new, and for the last
            again where it was stopped before its checkpoint was written.

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
    parts = [json.loads(recipe.to_json()), data.digest(), data.dev_digest(), seed]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _judge(network: SiameseNetwork, corpus: PairCorpus, data: TrainingData) -> Callable[[], dict[str, float]]:
    """Return the function that measures questions beside questions on the dev sets: MRR, MAP, and their means."""
    return lambda: dev_measures(data.dev, lambda name: network.encode_all(corpus.dev[name]))
