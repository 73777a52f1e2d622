"""Adam's update of word vectors over a long training, with moments that are cleared and with moments that are not.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.moments``, on a machine that does nothing else.
60,000 vectors of 200 dimensions, and gradients for the words of 48 Reddit questions a step, zero for all others: what
an autoencoder of 96,000 texts has in its first epoch. Both kinds go in turn, step by step, from the same gradients.
Writes ``results/moments.json``.
"""

from __future__ import annotations

import gzip
import json
import re
import statistics
import time
from collections import Counter
from itertools import islice
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from askalike.training.loop import CLEARED_EVERY, clear_moments, optimiser
from askalike.training.recipe import LoopSettings
from benchmarks.record import need_data, write

COMMAND = "OMP_NUM_THREADS=1 python -m benchmarks.moments"
VOCABULARY, SIZE, TEXTS, STEPS, EACH = 60_000, 200, 48, 2_000, 100
KINDS: Final = ("kept", "cleared")


def batches() -> list[NDArray[np.int64]]:
    """Return the numbers of the words of each batch, among the most frequent ones."""
    with gzip.open(need_data("reddit/questions.jsonl.gz"), "rt", encoding="utf-8") as lines:
        posts = map(json.loads, islice(lines, TEXTS * STEPS))
        texts = [set(re.findall(r"[a-z]+", f"{post['title']} {post['body']}".lower())) for post in posts]
    counted = Counter(word for text in texts for word in text)
    numbers = {word: number for number, (word, _) in enumerate(counted.most_common(VOCABULARY))}
    groups = (set().union(*texts[at : at + TEXTS]) for at in range(0, len(texts), TEXTS))
    return [np.array([numbers[word] for word in sorted(group) if word in numbers]) for group in groups]


def measured() -> dict[str, list[float]]:
    """Return the mean milliseconds of an update in every hundred steps, by kind; a clearing counts too."""
    vectors = {kind: nn.Parameter(torch.zeros(VOCABULARY, SIZE)) for kind in KINDS}
    updaters = {kind: optimiser(LoopSettings(), [vectors[kind]]) for kind in KINDS}
    gradient = torch.zeros(VOCABULARY, SIZE)
    seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for step, words in enumerate(batches()):
        rows = torch.from_numpy(words)
        gradient.zero_()
        gradient[rows] = 1e-4 * torch.randn(len(rows), SIZE, generator=torch.Generator().manual_seed(step))
        for kind in KINDS:
            vectors[kind].grad = gradient
            began = time.perf_counter()
            updaters[kind].step()
            if kind == "cleared" and (step + 1) % CLEARED_EVERY == 0:
                clear_moments(updaters[kind])
            seconds[kind].append(time.perf_counter() - began)
    return {
        kind: [round(1000 * statistics.mean(found[at : at + EACH]), 2) for at in range(0, STEPS, EACH)]
        for kind, found in seconds.items()
    }


def main() -> None:
    """Measure and write the result."""
    torch.set_num_threads(1)
    sizes = {"vocabulary": VOCABULARY, "size": SIZE, "texts": TEXTS, "steps": STEPS, "each": EACH}
    write("moments", COMMAND, {"torch": torch.__version__, "sizes": sizes, "update_ms": measured()})


if __name__ == "__main__":
    main()
