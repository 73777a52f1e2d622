"""A training step of the attention autoencoder beside one of the GRU autoencoder, in turn, in the same run.

Command: ``OMP_WAIT_POLICY=PASSIVE python -m benchmarks.autoencoders``, on a machine that does nothing else.
The sizes are those of Zhang and Wu 2018: batches of 48 texts, 200 dimensions, two layers on each side; texts have 40 to
128 words of a vocabulary of 30,000, drawn as Zipf's law has them. A step is forward, backward, clipping and Adam's
update of everything, word vectors included, through the public objective. ``alike`` are the batches that training has,
of texts of like length; ``random`` are batches of texts as they come. Two parts of a step are timed by themselves: the
output layer with its gradients, beside torch's own loss of the same layer, and clipping with Adam's update; the rest
is the encoder, the decoder and the word vectors. Writes ``results/autoencoders.json``.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askalike.models.encoders.networks.encoder import build
from askalike.models.encoders.settings import EncoderConfig, Kind
from askalike.training.corpus import Corpus, Texts
from askalike.training.decoders import Reconstruction, adaptive_loss
from askalike.training.objectives import TextNetwork
from askalike.training.recipe import ReconstructionOptions
from benchmarks.record import write
from benchmarks.recurrence import in_turn

COMMAND = "OMP_WAIT_POLICY=PASSIVE python -m benchmarks.autoencoders"
SIZE, LAYERS, BATCH, VOCABULARY = 200, 2, 48, 30_000
WORDS, TEXTS = (40, 128), 2_400
KINDS: Final[tuple[Kind, ...]] = ("attention", "gru")
PRECISIONS: Final = {"float32": "highest", "bfloat16": "medium"}
THREADS, ROUNDS = (1, 2), 20

Batches = Iterator[NDArray[np.int64]]


def corpus() -> Corpus:
    """Return texts of words drawn by Zipf's law, the titles of questions without a body."""
    random = np.random.default_rng(0)
    lengths = np.zeros(2 * TEXTS, np.int64)
    lengths[0::2] = random.integers(WORDS[0], WORDS[1] + 1, TEXTS)
    shares = 1 / np.arange(1, VOCABULARY)
    ids = 1 + random.choice(VOCABULARY - 1, int(lengths.sum()), p=shares / shares.sum())
    texts = Texts(ids.astype(np.int32), np.concatenate([[0], np.cumsum(lengths)]))
    none = np.zeros((0, 2), np.int64)
    return Corpus(texts, TEXTS, none, none, np.zeros((TEXTS, 0), np.int64), np.zeros(TEXTS, np.int64), {})


def autoencoder(kind: Kind, texts: Corpus) -> Reconstruction:
    """Return an untrained autoencoder."""
    encoder = build(EncoderConfig(kind, SIZE, SIZE, pooling="mean", layers=LAYERS))
    embedding = torch.randn(VOCABULARY, SIZE, generator=torch.Generator().manual_seed(1)) / SIZE**0.5
    network = TextNetwork(encoder, embedding, is_embedding_trained=True)
    return Reconstruction(network, texts, ReconstructionOptions(batch_size=BATCH, held_out=0))


def batch_sets(objective: Reconstruction) -> dict[str, list[NDArray[np.int64]]]:
    """Return the batches of an epoch as training has them, and as many of texts as they come."""
    alike = list(objective.batches(0, 0))
    random = np.random.default_rng(0).permutation(np.concatenate(alike))
    return {"alike": alike, "random": np.split(random, len(alike))}


def step(objective: Reconstruction, adam: torch.optim.Optimizer, left: Batches) -> None:
    """Do one step of training on the next batch."""
    adam.zero_grad(set_to_none=True)
    objective(next(left)).backward()
    update(objective, adam)


def update(objective: Reconstruction, adam: torch.optim.Optimizer) -> None:
    """Clip the gradient and let Adam go a step."""
    torch.nn.utils.clip_grad_norm_(objective.parameters(), 5.0)
    adam.step()


def written(objective: Reconstruction, loss: Callable[[Tensor, Tensor], Tensor], left: Batches) -> None:
    """Run the output layer, forward and backward, on as many words as are to be written of the next batch."""
    texts = objective.corpus.texts
    targets = torch.from_numpy(np.concatenate([np.append(texts[row] + 1, 0) for row in next(left)])).long()
    states = torch.randn(len(targets), SIZE, generator=torch.Generator().manual_seed(0)).requires_grad_()
    objective.output.zero_grad(set_to_none=True)
    loss(states, targets).backward()  # type: ignore[no-untyped-call]


def measured(objectives: dict[Kind, Reconstruction]) -> dict[str, Any]:
    """Return the seconds of everything with torch's present number of threads and arithmetic."""
    first = objectives["attention"]
    sets, lengths = batch_sets(first), first.corpus.texts.lengths()
    works: dict[str, Callable[[], None]] = {}
    for kind, one in objectives.items():
        adam = torch.optim.Adam(one.parameters(), lr=4e-4, fused=True)
        for name, batches in sets.items():
            works[f"{kind}, {name}"] = partial(step, one, adam, cycle(batches))
        works[f"{kind}, update"] = partial(update, one, adam)
    layer = first.output
    works["output"] = partial(written, first, partial(adaptive_loss, layer), cycle(sets["alike"]))
    works["torch's output"] = partial(written, first, lambda *given: layer(*given).loss, cycle(sets["alike"]))
    found = {name: statistics.mean(seconds) for name, seconds in in_turn(works, ROUNDS).items()}
    words = {
        name: statistics.mean(int(lengths[batch].sum()) for batch in batches[2 : ROUNDS + 2])
        for name, batches in sets.items()
    }
    return {
        "output_layer_ms": round(1000 * found["output"], 1),
        "output_layer_by_torch_ms": round(1000 * found["torch's output"], 1),
        **{
            kind: {
                "step_ms": round(1000 * found[f"{kind}, alike"], 1),
                "words_per_s": {name: round(words[name] / found[f"{kind}, {name}"]) for name in sets},
                "share_of_output_layer": round(found["output"] / found[f"{kind}, alike"], 3),
                "share_of_update": round(found[f"{kind}, update"] / found[f"{kind}, alike"], 3),
            }
            for kind in objectives
        },
    }


def measurements() -> list[dict[str, Any]]:
    """Return what every number of threads and every arithmetic give."""
    texts, found = corpus(), []
    for threads in THREADS:
        torch.set_num_threads(threads)
        for arithmetic, precision in PRECISIONS.items():
            torch.set_float32_matmul_precision(precision)
            objectives = {kind: autoencoder(kind, texts) for kind in KINDS}
            found.append({"threads": threads, "arithmetic": arithmetic, **measured(objectives)})
    return found


def main() -> None:
    """Measure and write the result."""
    sizes = {"texts": BATCH, "words": WORDS, "size": SIZE, "layers": LAYERS, "vocabulary": VOCABULARY}
    ones = {kind: autoencoder(kind, corpus()) for kind in KINDS}
    parameters = {kind: sum(value.numel() for value in one.parameters()) for kind, one in ones.items()}
    body = {"torch": torch.__version__, "sizes": sizes, "rounds": ROUNDS, "parameters": parameters}
    write("autoencoders", COMMAND, {**body, "measurements": measurements()})


if __name__ == "__main__":
    main()
