"""How long the language models take: learning translations from pairs, and scoring a query's candidates.

``python -m benchmarks.language_speed`` prints; texts are drawn, words as often as Zipf's law has them.
"""

from __future__ import annotations

import resource
import time

import numpy as np
from numpy.typing import NDArray

from askalike.language import (
    Collection,
    Parallel,
    QueryLikelihood,
    QueryModel,
    TermLists,
    TranslationModel,
    TransLM,
    log_likelihoods,
)
from askalike.language.ibm1 import ModelOne

SIZE = 60_000
PAIRS = 40_000


def main() -> None:
    """Print pairs a second of one iteration, and the time of a query."""
    chance = np.random.default_rng(0)
    pairs = Parallel.of(
        (drawn(chance, int(chance.integers(5, 20))), drawn(chance, int(chance.integers(10, 61)))) for _ in range(PAIRS)
    ).both_ways()
    began = time.perf_counter()
    model = ModelOne(pairs, SIZE, has_null=True)
    print(f"{len(pairs):,} pairs numbered in {time.perf_counter() - began:.1f} s, {len(model.values):,} pairs of terms")
    for _ in range(3):
        began = time.perf_counter()
        likelihood = model.step() / len(pairs.targets.ids)
        seconds = time.perf_counter() - began
        print(f"an iteration {seconds:.2f} s, {len(pairs) / seconds:,.0f} pairs/s, log likelihood {likelihood:.4f}")
    learned = model.translations(1e-3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(learned):,} probabilities kept; {peak:,.0f} MiB at most")
    collection = Collection.count(pairs.sources, SIZE)
    models = (QueryLikelihood(collection), TranslationModel(collection, learned), TransLM(collection, learned))
    for terms in (10, 50):
        for one in models:
            print(f"{type(one).__name__}, {terms} terms beside 1,000 of 50: {query_ms(one, chance, terms):.1f} ms")


def query_ms(model: QueryModel, chance: np.random.Generator, terms: int) -> float:
    """Return the median time of a query with 1,000 candidates of 50 terms."""
    found: list[float] = []
    for _ in range(20):
        query, candidates = drawn(chance, terms), TermLists.of([drawn(chance, 50) for _ in range(1000)])
        began = time.perf_counter()
        log_likelihoods(model, query, candidates)
        found.append(1000 * (time.perf_counter() - began))
    return float(np.median(found))


def drawn(chance: np.random.Generator, terms: int) -> NDArray[np.int64]:
    """Return a text of so many terms."""
    return np.minimum(chance.zipf(1.15, terms), SIZE - 1)


if __name__ == "__main__":
    main()
