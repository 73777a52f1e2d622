"""The siamese network of Das et al. 2016: sparse against dense, its NumPy runtime, and its training.

Command: ``OMP_WAIT_POLICY=PASSIVE python -m benchmarks.siamese``, on a machine that does nothing else.
The sizes are the paper's: 48,536 trigrams, batches of 100 samples, vectors of 128. Texts have 30 distinct trigrams, as
titles have, or 120, as titles with a body have, drawn as Zipf's law has them. ``sparse`` is the package's network,
``dense`` the same layers of torch over whole vectors; forward and backward of 100 texts are timed in turn, on one
thread, for each of the three readings of the pooling width. ``runtime`` are questions of words, read, hashed and
encoded by the model without torch; ``beside`` are the questions of the bundled forum, encoded by it, by the general
encoder and by all-MiniLM-L6-v2. ``training`` are steps of the objective with SGD. Writes ``results/siamese.json``.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor, nn
from torch.nn import functional

from askalike.data import bundled_forum, default_model
from askalike.evaluation.forum.tasks import Encoder
from askalike.forum import Forum, ForumSettings
from askalike.models.encoders.model import Model
from askalike.models.siamese.config import SiameseConfig, SiameseSettings
from askalike.models.siamese.model import Plan, SiameseModel, TrigramTexts
from askalike.models.siamese.network import SiameseNetwork, build, to_arrays
from askalike.models.vocabulary import Vocabulary
from askalike.training.recipe import PairOptions
from askalike.training.siamese import PairCorpus, QuestionAnswer
from askalike.types import Question
from benchmarks.minilm import MiniLM
from benchmarks.record import write
from benchmarks.recurrence import in_turn

COMMAND = "OMP_WAIT_POLICY=PASSIVE python -m benchmarks.siamese"
TRIGRAMS, BATCH, TEXTS = 48_536, 100, 1_000
SIZES: Final = {"title": 30, "title and body": 120}
POOLINGS: Final = ((5, 5, 4), (100, 1, 1), (485, 1, 1))
ROUNDS = 10
WORDS_ALONE: Final = ForumSettings(has_vectors=False)
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
KNOWN: Final = [a + b + c for a in LETTERS for b in LETTERS for c in LETTERS]


def hashed(texts: int, size: int, seed: int = 0) -> TrigramTexts:
    """Return texts of about ``size`` distinct trigrams each, the frequent ones as often as Zipf's law has them."""
    random = np.random.default_rng(seed)
    shares = 1 / np.arange(1, TRIGRAMS + 1)
    ids = 1 + random.choice(TRIGRAMS, texts * 2 * size, p=shares / shares.sum()).astype(np.int32)
    rows = [np.unique(part)[random.permutation(len(np.unique(part)))[:size]] for part in np.split(ids, texts)]
    return TrigramTexts.counted(np.concatenate(rows), np.cumsum([0, *map(len, rows)]), TRIGRAMS + 1)


class Dense(nn.Module):
    """The same layers over whole vectors."""

    def __init__(self, network: SiameseNetwork) -> None:
        super().__init__()
        self.config = network.config
        self.values = network.sides["shared"]

    def encode(self, texts: TrigramTexts, rows: NDArray[np.int64]) -> Tensor:
        """Return (B, 128)."""
        whole = torch.zeros(len(rows) * TRIGRAMS)
        whole[torch.from_numpy(texts.keys(rows, TRIGRAMS))] = torch.from_numpy(texts.counts[texts.entries(rows)])
        found, values = whole.view(len(rows), 1, TRIGRAMS), dict(self.values.named_parameters())
        for number, pooling in enumerate(self.config.poolings, start=1):
            found = functional.conv1d(found, values[f"kernel_{number}"], values[f"bias_{number}"])
            found = functional.max_pool1d(found, pooling).relu()
        flat = found.transpose(1, 2).flatten(1)
        return functional.linear(flat, values["dense"], values["dense_bias"])


def forward(network: SiameseNetwork | Dense, texts: TrigramTexts) -> None:
    """Encode a batch without gradient."""
    with torch.no_grad():
        network.encode(texts, np.arange(BATCH))


def both_ways(network: SiameseNetwork | Dense, texts: TrigramTexts) -> None:
    """Encode a batch, and find the gradient of every parameter."""
    network.zero_grad(set_to_none=True)
    network.encode(texts, np.arange(BATCH)).square().mean().backward()  # type: ignore[no-untyped-call]


def compared(works: dict[str, Callable[[], None]], rounds: int) -> dict[str, Any]:
    """Return what is reported of the sparse and the dense network in turn."""
    seconds = in_turn(works, rounds)
    ratios = sorted(dense / sparse for sparse, dense in zip(seconds["sparse"], seconds["dense"], strict=True))
    return {
        **{f"{name}_ms": round(1000 * statistics.median(found), 1) for name, found in seconds.items()},
        "dense_by_sparse": {"lowest": round(ratios[0], 1), "median": round(statistics.median(ratios), 1)},
        "rounds": len(ratios),
    }


def sparse_and_dense(rounds: int) -> dict[str, Any]:
    """Return the comparison for each reading and size of text."""
    found: dict[str, Any] = {}
    for poolings in POOLINGS:
        config = SiameseConfig(TRIGRAMS, poolings=poolings)
        network = build(config, initial="even")
        systems: Mapping[str, SiameseNetwork | Dense] = {"sparse": network, "dense": Dense(network)}
        for label, size in SIZES.items():
            texts = hashed(BATCH, size)
            vectors = [one.encode(texts, np.arange(BATCH)) for one in systems.values()]
            torch.testing.assert_close(*vectors, rtol=1e-4, atol=1e-5)
            plan = Plan.of(texts.keys(np.arange(BATCH), TRIGRAMS), BATCH, config.blocks())
            found[f"{'-'.join(map(str, poolings))}, {label}"] = {
                "share_of_windows": [round(share, 3) for share in plan.share],
                "forward": compared({name: partial(forward, one, texts) for name, one in systems.items()}, rounds),
                "both": compared({name: partial(both_ways, one, texts) for name, one in systems.items()}, rounds),
            }
    return found


def untrained() -> SiameseModel:
    """Return a model of the paper's sizes; what it has learned makes it no faster."""
    vocabulary = Vocabulary([*KNOWN[: TRIGRAMS - 1296], *(f"#{a}{b}" for a in LETTERS for b in LETTERS)])
    config = SiameseConfig(len(vocabulary.words))
    return SiameseModel.build(SiameseSettings(config), vocabulary, to_arrays(build(config, initial="even")))


def runtime(rounds: int) -> dict[str, Any]:
    """Return questions a second of the model without torch, from their words to their vectors."""
    model, random = untrained(), np.random.default_rng(0)
    words = ["".join(random.choice(list(LETTERS[:26]), 6)) for _ in range(5_000)]
    found = {}
    for label, size in SIZES.items():
        questions = [Question(str(n), " ".join(random.choice(words, size // 6))) for n in range(TEXTS)]
        seconds = in_turn({"runtime": partial(model.encode, questions)}, rounds)["runtime"]
        found[label] = round(TEXTS / statistics.median(seconds))
    return found


def beside(rounds: int) -> dict[str, Any]:
    """Return questions a second of the siamese model, the general encoder and MiniLM on the same real questions."""
    with (
        tempfile.TemporaryDirectory() as work,
        Forum.create(Path(work) / "homenet.forum", settings=WORDS_ALONE) as forum,
    ):
        forum.load(bundled_forum())
        questions = list(forum.questions())
    encoders: dict[str, Encoder] = {"SCQA": untrained()}
    if path := default_model():
        encoders["the general encoder (RCNN)"] = Model.load(path)
    encoders["all-MiniLM-L6-v2"] = MiniLM(threads=1, cache=None)
    seconds = in_turn({name: partial(_encode, one, questions) for name, one in encoders.items()}, rounds)
    rates = {name: round(len(questions) / statistics.median(found)) for name, found in seconds.items()}
    return {"questions": len(questions), "per_s": rates}


def _encode(encoder: Encoder, questions: Sequence[Question]) -> None:
    encoder.encode(questions)


def training(rounds: int) -> dict[str, Any]:
    """Return samples a second of training, a sample being a question with an answer; half of them are positive."""
    found = {}
    for is_shared in (True, False):
        network = build(SiameseConfig(TRIGRAMS, is_shared=is_shared), initial="even")
        some = {label: hashed(BATCH // 2, size, seed=size) for label, size in SIZES.items()}
        pairs = np.arange(BATCH // 2)
        vocabulary = Vocabulary(())
        texts = some["title and body"]
        corpus = PairCorpus(vocabulary, some["title"], texts, pairs, pairs[:0], {})
        objective = QuestionAnswer(network, corpus, PairOptions(BATCH))
        descent = torch.optim.SGD(network.parameters(), lr=1e-4, momentum=0.05)
        batch = objective.batches(0, 0)[0]

        def step(objective: QuestionAnswer = objective, descent: Any = descent, batch: Any = batch) -> None:
            descent.zero_grad(set_to_none=True)
            objective(batch).backward()
            descent.step()

        seconds = in_turn({"step": step}, rounds)["step"]
        found["SCQA" if is_shared else "DSQA"] = round(BATCH / statistics.median(seconds))
    return found


def measured(rounds: int = ROUNDS) -> dict[str, Any]:
    """Return everything, on one thread."""
    torch.set_num_threads(1)
    with threadpool_limits(1):
        return {
            "torch": torch.__version__,
            "threads": 1,
            "sizes": {"trigrams": TRIGRAMS, "batch": BATCH, "distinct_trigrams": SIZES},
            "sparse_and_dense": sparse_and_dense(rounds),
            "questions_per_s": runtime(rounds),
            "beside": beside(max(1, rounds // 3)),
            "training_samples_per_s": training(rounds),
        }


def main() -> None:
    """Measure and write the result."""
    write("siamese", COMMAND, measured())


if __name__ == "__main__":
    main()
