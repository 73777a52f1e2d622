"""How long the language models take: learning translations from pairs, and scoring a query's candidates.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.language_speed``. Texts are drawn, words as often as Zipf's law has
them; queries have distinct words, so that each of them is work. A query is scored beside 1,000 candidates, of 50 terms
as titles with a short body have, or of 150. Topics of candidates are known before, as a forum keeps them. Times of
queries are of the thread's own processor time, which other work on the machine makes longer by less than it does the
clock's. Writes ``results/language-speed.json``.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from askalike.models.language.kinds import KINDS, Learned, Options
from askalike.models.language.likelihood import Collection, Parallel, TermLists
from askalike.models.language.phrases import PhraseLearning
from askalike.models.language.topics import Topics
from askalike.models.language.translation import ModelOne
from benchmarks.record import write

COMMAND = "OMP_NUM_THREADS=1 python -m benchmarks.language_speed"
SIZE, PAIRS, TOPICS, CANDIDATES = 60_000, 40_000, 50, 1_000
QUERY_TERMS: Final = (10, 50)
CANDIDATE_TERMS: Final = (50, 150)
ROUNDS, STEPS = 30, 3
TARGET_MS = 10
"""What a query beside 1,000 candidates should stay below."""


def drawn(chance: np.random.Generator, terms: int) -> NDArray[np.int64]:
    """Return a text of so many terms."""
    return np.minimum(chance.zipf(1.15, terms), SIZE - 1)


def asked(chance: np.random.Generator, terms: int) -> NDArray[np.int64]:
    """Return a query of so many distinct terms."""
    found = np.unique(drawn(chance, 20 * terms))
    return chance.permutation(found)[:terms]


def alignment() -> tuple[dict[str, Any], Parallel, Learned]:
    """Return what an iteration of IBM's model 1 took, the pairs, and the translations that were learned."""
    chance = np.random.default_rng(0)
    once = Parallel.of(
        (drawn(chance, int(chance.integers(5, 20))), drawn(chance, int(chance.integers(10, 61)))) for _ in range(PAIRS)
    )
    pairs = once.both_ways()
    began = time.perf_counter()
    model = ModelOne(pairs, SIZE, has_null=True)
    numbered = time.perf_counter() - began
    seconds = []
    for _ in range(STEPS):
        began = time.perf_counter()
        model.step()
        seconds.append(time.perf_counter() - began)
    learned = model.translations(1e-3)
    found = {
        "pairs": len(pairs),
        "numbering_s": round(numbered, 2),
        "iteration_s": round(float(np.median(seconds)), 2),
        "pairs_per_s": round(len(pairs) / float(np.median(seconds))),
        "pairs_of_terms": len(model.values),
        "probabilities_kept": len(learned),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    return found, once, Learned(learned)


def learned_of(pairs: Parallel, translations: Learned) -> Learned:
    """Return translations, phrases of the same pairs, and topics that are drawn."""
    chance = np.random.default_rng(1)
    phrases = PhraseLearning().learned(pairs, translations.translations, SIZE)
    held = chance.gamma(0.1, size=(SIZE, TOPICS))
    words = (held / held.sum(axis=0)).astype(np.float32)
    return Learned(translations.translations, phrases, Topics(words, words, 0.1))


def query_times(options: Options, learned: Learned, terms: int, length: int) -> dict[str, float]:
    """Return the times of queries beside candidates, in milliseconds."""
    chance = np.random.default_rng(2)
    collection = Collection(np.maximum(chance.zipf(1.15, SIZE), 1).astype(np.int64))
    scorer = options.model(collection, learned)
    seconds = []
    for query, candidates in _rounds(chance, terms, length):
        mixtures = chance.dirichlet(np.full(TOPICS, 0.1), len(candidates)) if options.topic_learning else None
        began = time.thread_time()
        scorer.mean_ratios(query, candidates, None, mixtures)
        seconds.append(time.thread_time() - began)
    return {"median_ms": round(1000 * float(np.median(seconds)), 1), "best_ms": round(1000 * min(seconds), 1)}


def _rounds(chance: np.random.Generator, terms: int, length: int) -> Iterator[tuple[NDArray[np.int64], TermLists]]:
    for _ in range(ROUNDS):
        yield asked(chance, terms), TermLists.of([drawn(chance, length) for _ in range(CANDIDATES)])


def main() -> None:
    """Measure and write the result."""
    training, pairs, translations = alignment()
    print(training, flush=True)
    learned = learned_of(pairs, translations)
    scoring: dict[str, Any] = {}
    for kind, made in KINDS.items():
        for terms in QUERY_TERMS:
            for length in CANDIDATE_TERMS:
                found = query_times(made(), learned, terms, length)
                scoring.setdefault(kind, {})[f"{terms} terms, candidates of {length}"] = found
                print(kind, terms, length, found, flush=True)
    sizes = {"vocabulary": SIZE, "candidates": CANDIDATES, "topics": TOPICS, "rounds": ROUNDS, "target_ms": TARGET_MS}
    write("language-speed", COMMAND, {"training": training, "scoring": scoring, "sizes": sizes})


if __name__ == "__main__":
    main()
