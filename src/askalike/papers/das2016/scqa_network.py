"""The network of SCQA and DSQA in torch, and its training: questions near their answers and away from others'.

::

    x_1 = word-hashed text (V,);   x_{i+1} = relu(maxpool_{p_i}(b_i + W_i ∗ x_i));   v = W x_4 + b

A text has some hundred trigrams of tens of thousands. Where a window of a convolution sees no place that differs from
the background (zero for the trigrams, one vector g_i for what leaves block i), it gives the background of the next
block::

    g_0 = 0,   g_i = relu(b_i + Σ_k W_i[:, :, k] g_{i-1})

So only windows that see something else are worked on, each as one row of a product of matrices: fifty times as fast as
the dense network on the processor, and the same numbers.

::

    loss(q, a) = 1 - cos(q, a)            y = 1,  a the best answer to q
                 max(0, cos(q, a) - m)    y = -1, a the answer to another random question
    L          = the mean of the loss over the samples of a batch, or its sum

Source: Das et al. 2016 (ACL), section 3 and figure 2; section 4, with equation 2; section 3.1: "relevant answers which
are marked as best-answer or most voted answers".
Reading: the paper says nothing of what parameters begin as. Here weights are drawn from N(0, 2/n), n the numbers that
an output is made of (He et al. 2015, ICCV), and biases are zero. Drawn evenly from ±1/√n, weights and biases, as Torch
had it for these layers, what the network makes of nothing is most of every vector: those of any two texts have a cosine
of 0.98, and the learning rate of table 1 drives it to 1, from where next to nothing leads away.
Reading: equation 2 is a sum over the batch, and Torch, which has this loss by the same formula, took the mean. With
batches of 100 and the learning rate of table 1 the steps of the sum are a hundred times those of the mean, and what is
learned is another thing: both are rows. By the sum a last batch of fewer samples makes a smaller step.
Reading: a question is compared with a question. Where sides share nothing (DSQA) both go through the question's side:
the answer's has never seen a question. The paper does not say.
Differs: the other question is one of the same batch, each as likely as any, so that its answer is encoded already. The
order of the pairs is drawn anew for each epoch, and the other is random all the same.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, cast

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional

from askalike.errors import DamagedModelError, SettingError
from askalike.evaluation import CandidateTask
from askalike.models.folder import Contents, Manifest, naming, read_folder, write_folder
from askalike.models.vocabulary import Vocabulary
from askalike.papers.das2016.scqa import (
    HELD_OUT_LOSS,
    SIDES,
    BlockShape,
    Reduction,
    ScqaSettings,
    TrigramReader,
    count_trigrams,
)
from askalike.settings import read_settings
from askalike.training.corpus import TrainingData, dev_measures
from askalike.training.encoder import TrainingRun, device_named
from askalike.training.loop import StageContext, run_stage
from askalike.training.objectives import Trainable, in_batches, random_stream
from askalike.types import Question

Vectors = NDArray[np.float32]
Rows = NDArray[np.int64]
_BATCH: Final = 100


def run_block(
    values: Tensor, keys: Rows, background: Tensor, parameters: tuple[Tensor, Tensor], shape: BlockShape
) -> tuple[Tensor, Rows, Tensor]:
    """Return what leaves a block: windows that differ from their background, where they stand, and that background.

    Args:
        values: places that differ from the background.  # (M, C_in)
        keys: where they stand, texts laid end to end, rising.  # (M,)
        background: every other place.  # (C_in,)
        parameters: W (C_out, C_in, K) and b (C_out,).
    """
    kernel, bias = parameters
    text, place = np.divmod(keys, shape.length)
    window = (place // shape.pooling)[:, None] - np.arange(-(-shape.reach // shape.pooling))
    offset = place[:, None] - window * shape.pooling
    is_seen = (window >= 0) & (window < shape.windows) & (offset < shape.reach)
    active, numbers = np.unique((text[:, None] * shape.windows + window)[is_seen], return_inverse=True)
    target, source = (
        torch.from_numpy(places).to(bias.device)
        for places in (numbers * shape.reach + offset[is_seen], np.nonzero(is_seen)[0])
    )
    seen = background.repeat(len(active) * shape.reach, 1).index_copy(0, target, values.index_select(0, source))
    # a window's convolution at all of its places as one product  # (R·C_in, p·C_out)
    columns = [
        functional.pad(kernel.permute(2, 1, 0), (0, 0, 0, 0, place, shape.pooling - 1 - place))
        for place in range(shape.pooling)
    ]
    table = torch.stack(columns, dim=2).reshape(shape.reach * shape.inputs, shape.pooling * shape.outputs)
    convolved = torch.addmm(bias.repeat(shape.pooling), seen.view(len(active), len(table)), table)
    largest = convolved.view(len(active), shape.pooling, shape.outputs).max(dim=1).values
    return largest.relu(), active, (bias + kernel.sum(dim=2) @ background).relu()


_SHARED: Final = "shared"


class SiameseNetwork(nn.Module):
    """One side, or two that share nothing; untrained, the same seed gives the same parameters, and each side its own.

    Args:
        size: trigrams that are known, V ≥ 1.
    """

    def __init__(self, settings: ScqaSettings, size: int, seed: int = 0) -> None:
        super().__init__()
        self.settings, self._shapes = settings, settings.blocks(size)
        self.sides = nn.ModuleDict({side: nn.ParameterDict() for side in ((_SHARED,) if settings.is_shared else SIDES)})
        generator = torch.Generator().manual_seed(seed)
        for name, shape in settings.shapes(size).items():
            side, _, own = name.rpartition(".")
            values = torch.zeros(shape)
            if len(shape) > 1:
                values = torch.randn(shape, generator=generator) * (2 / float(np.prod(shape[1:]))) ** 0.5
            cast("nn.ParameterDict", self.sides[side or _SHARED])[own] = nn.Parameter(values)

    def encode(self, texts: csr_array, side: str = SIDES[0]) -> Tensor:
        """Return the vector of each text, zero for one without known trigrams.  # (B, D)

        Args:
            texts: how often each trigram occurs.  # (B, V)
            side: ``question`` or ``answer``; the same where sides share their parameters.
        """
        own = cast("nn.ParameterDict", self.sides[_SHARED if self.settings.is_shared else side])
        dense, count = own["dense"], texts.shape[0]
        sizes = np.diff(texts.indptr)
        keys = np.repeat(np.arange(count), sizes) * texts.shape[1] + texts.indices
        values, background = torch.from_numpy(texts.data).to(dense)[:, None], dense.new_zeros(1)
        for number, shape in enumerate(self._shapes, start=1):
            parameters = own[f"kernel_{number}"], own[f"bias_{number}"]
            values, keys, background = run_block(values, keys, background, parameters, shape)
        everywhere = background.expand(count * self._shapes[-1].windows, -1)
        whole = everywhere.index_copy(0, torch.from_numpy(keys).to(dense.device), values).view(-1, dense.shape[1])
        has_trigrams = torch.from_numpy(sizes > 0).to(dense.device)
        vectors: Tensor = functional.linear(whole, dense, own["dense_bias"]) * has_trigrams[:, None]
        return vectors

    @torch.no_grad()
    def encode_all(self, texts: csr_array, side: str = SIDES[0]) -> Vectors:
        """Return the vectors of all texts at length 1, zero for those without known trigrams.  # (N, D)"""
        batches = [texts[begin : begin + _BATCH] for begin in range(0, texts.shape[0], _BATCH)]
        none = np.zeros((0, self.settings.output_size), np.float32)
        vectors = [functional.normalize(self.encode(batch, side)).cpu().numpy() for batch in batches]
        return np.concatenate([none, *vectors])

    def arrays(self) -> dict[str, Vectors]:
        """Return a copy of the parameters by their names in ``ScqaSettings.shapes``."""
        return {
            ("" if side == _SHARED else f"{side}.") + name: value.detach().to("cpu", torch.float32, copy=True).numpy()
            for side, parameters in self.sides.items()
            for name, value in parameters.named_parameters()
        }


@dataclass(frozen=True, eq=False)
class SiameseModel:
    """A siamese network with its trigrams; it re-ranks a search's hits, as any object with ``score`` does.

    Args:
        vocabulary: the known trigrams, most frequent first.
    """

    network: SiameseNetwork
    vocabulary: Vocabulary
    training_data: str = ""

    @classmethod
    def load(cls, path: Path) -> SiameseModel:
        """Return the model in a folder; nothing of it is run, and every file is checked.

        Raises:
            ModelError: there is none, it is damaged, or another model's.
        """
        manifest, contents = read_folder(path)
        with naming(path):
            settings = read_settings(ScqaSettings, contents.config, "settings of a siamese model")
            vocabulary = Vocabulary.from_bytes(contents.vocabulary)
            network = SiameseNetwork(settings, len(vocabulary.words))
        shapes = {name: array.shape for name, array in contents.arrays.items()}
        if shapes != settings.shapes(len(vocabulary.words)):
            raise DamagedModelError(f"{path}: weights.safetensors does not fit config.json", "train it again")
        for name, array in contents.arrays.items():
            side, _, own = name.rpartition(".")
            parameters = cast("nn.ParameterDict", network.sides[side or _SHARED])
            parameters[own] = nn.Parameter(torch.from_numpy(np.array(array, np.float32)))
        return cls(network, vocabulary, manifest.training_data)

    def save(self, path: Path) -> None:
        """Write the model's folder, whole or not at all; the same model gives the same bytes."""
        contents = Contents(asdict(self.network.settings), self.vocabulary.to_bytes(), self.network.arrays())
        write_folder(path, contents, Manifest.of_origin(self.training_data))

    def encode(self, questions: Sequence[Question]) -> Vectors:
        """Return one vector of length 1 for each question, zero for one without known trigrams.  # (N, D)"""
        reader = TrigramReader()
        return self.network.encode_all(count_trigrams(map(reader.question, questions), self.vocabulary))

    def score(self, query: Question, questions: Sequence[Question]) -> NDArray[np.float64]:
        """Return the cosine of the query with each question.  # (N,)"""
        vectors = self.encode([query, *questions])
        return np.asarray(vectors[1:] @ vectors[0], np.float64)


@dataclass(frozen=True, slots=True)
class PairCorpus:
    """Training data as counts of trigrams; row i of both is pair i.

    Args:
        vocabulary: the trigrams of the pairs that are learned from.
        questions, answers: of each pair.  # (M, V)
        learned: pairs that are learned from, rising.
        held_out: pairs that are not, rising.
    """

    vocabulary: Vocabulary
    questions: csr_array
    answers: csr_array
    learned: Rows
    held_out: Rows


def read_pairs(data: TrainingData, held_out: int, seed: int) -> PairCorpus:
    """Return the pairs of questions and answers that have trigrams on both sides.

    Args:
        data: its questions, each with one answer in ``answers``, in the same order.
        held_out: pairs that are never learned from, a tenth of all at most.
        seed: of which pairs are kept out.

    Raises:
        SettingError: fewer than two pairs to learn from.
    """
    reader = TrigramReader()
    question_grams = [reader.question(question) for question in data.questions]
    answer_grams = [reader.answer(answer) for answer in data.answers]
    sides = zip(question_grams, answer_grams, strict=True)
    usable = np.array([row for row, pair in enumerate(sides) if all(pair)], np.int64)
    order = np.random.default_rng(seed).permutation(len(usable))
    kept_out = min(held_out, len(usable) // 10)
    left_out, learned = np.sort(usable[order[:kept_out]]), np.sort(usable[order[kept_out:]])
    if len(learned) < 2:
        raise SettingError(
            f"{len(learned)} questions with an answer and words on both sides, but expected at least two",
            "give answers: a siamese model learns from nothing else",
        )
    counts: Counter[str] = Counter()
    for row in learned.tolist():
        counts.update(question_grams[row])
        counts.update(answer_grams[row])
    vocabulary = Vocabulary.from_counts(counts, min_count=1, max_size=None)
    questions, answers = (count_trigrams(part, vocabulary) for part in (question_grams, answer_grams))
    return PairCorpus(vocabulary, questions, answers, learned, left_out)


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

    def __init__(self, network: SiameseNetwork, corpus: PairCorpus) -> None:
        super().__init__()
        self.network = network
        self._corpus: Final = corpus
        self._settings: Final = network.settings

    def batches(self, epoch: int, seed: int) -> Sequence[Rows]:
        """Return arrays (P, 2): a pair, and the pair whose answer is the negative; a last part of one is left out."""
        random = random_stream(seed, epoch)
        parts = in_batches(random.permutation(self._corpus.learned), self._settings.batch_size // 2)
        return [
            np.stack([part, np.roll(part, random.integers(1, len(part)))], axis=1) for part in parts if len(part) > 1
        ]

    def forward(self, batch: Rows) -> Tensor:
        """Return the loss of the 2 P samples of P pairs with their others, (P, 2), reduced as the settings say."""
        return pair_loss(*self._cosines(batch), self._settings.margin, self._settings.reduction)

    def _cosines(self, batch: Rows) -> tuple[Tensor, Tensor]:
        """Return cos(q, a) of P pairs, and of their questions with the others' answers.  # 2 (P,)"""
        distinct, places = np.unique(batch, return_inverse=True)
        corpus, network = self._corpus, self.network
        questions = functional.normalize(network.encode(corpus.questions[batch[:, 0]], SIDES[0]))  # (P, D)
        answers = functional.normalize(network.encode(corpus.answers[distinct], SIDES[1]))
        own, other = torch.from_numpy(places.reshape(batch.shape)).to(answers.device).T
        cosines, others = ((questions * answers.index_select(0, rows)).sum(dim=1) for rows in (own, other))
        return cosines, others

    @torch.no_grad()
    def held_out(self) -> dict[str, float]:
        """Return the mean loss of the samples of the pairs that are kept out, the others always the same."""
        pairs = self._corpus.held_out
        if len(pairs) < 2:
            return {}
        batches = in_batches(np.stack([pairs, np.roll(pairs, 1)], axis=1), self._settings.batch_size // 2)
        losses = (float(pair_loss(*self._cosines(batch), self._settings.margin)) for batch in batches)
        return {HELD_OUT_LOSS: sum(losses) / (2 * len(pairs))}


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


STAGE: Final = "siamese"
"""The name of the one stage, in the log and of its checkpoint."""


def fit_siamese(
    settings: ScqaSettings, data: TrainingData, run: TrainingRun, on_epoch: Callable[[Epoch], None] = lambda _: None
) -> SiameseModel:
    """Return the model that is made of questions and their best answers.

    The same settings, data and seed give the same model on the same machine, stopped on the way or not; a training
    that was stopped goes on from where its work folder has it.

    Args:
        data: its questions, each with one answer in ``answers``, in the same order; dev sets are only measured.
        on_epoch: called after each epoch. A training that goes on calls it for those that are new, and for the last
            again where it was stopped before its checkpoint was written.

    Raises:
        SettingError: data and settings do not fit each other, or the device is not there.
        ModelError: the loss is no number.
        DamagedModelError: a file that was kept of the stopped training cannot be read.
    """
    device = device_named(run.device)
    run.folder.mkdir(parents=True, exist_ok=True)
    run.progress.start("reading answered questions", 0, "")
    corpus = read_pairs(data, settings.held_out, run.seed)
    network = SiameseNetwork(settings, len(corpus.vocabulary.words), run.seed)
    reader = TrigramReader()
    dev = {name: _dev_texts(task, reader, corpus.vocabulary) for name, task in data.dev.items()}
    parts = [json.loads(settings.to_json()), data.digest(), data.dev_digest(), run.seed]

    def model() -> SiameseModel:
        return SiameseModel(network, corpus.vocabulary, data.digest())

    place = StageContext(
        run.folder,
        stage=STAGE,
        identity=hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest(),
        seed=run.seed,
        device=device,
        progress=run.progress,
        checkpoint_s=run.checkpoint_s,
        on_epoch=lambda number, measures: on_epoch(Epoch(number, measures, model)),
    )
    judge = lambda: dev_measures(data.dev, lambda name: network.encode_all(dev[name]))  # noqa: E731
    run_stage(QuestionAnswer(network, corpus), settings.loop, judge, place)
    return model()


def _dev_texts(task: CandidateTask, reader: TrigramReader, vocabulary: Vocabulary) -> csr_array:
    return count_trigrams(map(reader.question, task.questions), vocabulary)
