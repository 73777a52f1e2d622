"""A small fixed sample of a corpus on which the skip-gram loss is measured while vectors are trained.

gensim adds its loss up in one float32, which stops growing on a corpus of millions of words; a fixed sample is exact,
costs nothing, and is comparable from epoch to epoch.

Enters: a corpus, then word and context vectors. Leaves: the mean loss. May import: sentence_corpus, errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.vocabulary import UNKNOWN
from askalike.training.word_vectors.sentence_corpus import SentenceCorpus

__all__ = ["Probe", "draw_probe", "negative_sampling_loss"]


_LOOK = 20
"""Places of a large corpus that are looked at for each pair wanted."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Pairs of words that stand side by side, and words drawn at random.

    Args:
        words: (P,) ids.
        contexts: (P,) ids of their right neighbours.
        negatives: (P, K) ids, drawn by count to the power of 3/4.
    """

    words: NDArray[np.int32]
    contexts: NDArray[np.int32]
    negatives: NDArray[np.int32]


def draw_probe(corpus: SentenceCorpus, negatives: int, seed: int, size: int = 2000) -> Probe:
    """Return a sample of a corpus: neighbours that are both in the vocabulary; empty where there are none."""
    random = np.random.default_rng(seed)
    places = np.arange(max(len(corpus) - 1, 0))
    if places.size > _LOOK * size:
        places = np.unique(random.integers(places.size, size=_LOOK * size))
    is_inside = ~np.isin(places + 1, corpus.ends)
    places = places[is_inside & (corpus.ids[places] != UNKNOWN) & (corpus.ids[places + 1] != UNKNOWN)]
    places = random.permutation(places)[:size]
    weights = corpus.counts().astype(np.float64) ** 0.75
    weights[UNKNOWN] = 0.0
    drawn = (
        random.choice(len(weights), (places.size, negatives), p=weights / weights.sum())
        if places.size
        else np.zeros((0, negatives), np.int32)
    )
    return Probe(corpus.ids[places], corpus.ids[places + 1], drawn.astype(np.int32))


def negative_sampling_loss(probe: Probe, vectors: NDArray[np.float32], outputs: NDArray[np.float32]) -> float:
    """Return the mean of −log σ(u_c·v) − Σ_k log σ(−u_k·v), in nats, ≥ 0.

    Before training, all outputs being zero, it is (1 + K) log 2.

    Source: Mikolov et al. 2013, "Distributed Representations of Words and Phrases", equation 4.

    Args:
        probe: P pairs with K negatives each.
        vectors: (V, D) v of each id.
        outputs: (V, D) u of each id.

    >>> probe = Probe(np.array([1]), np.array([2]), np.array([[1, 2]]))
    >>> vectors, outputs = np.array([[0, 0], [1, 0], [0, 1]]), np.array([[0, 0], [-1, 0], [2, 3]])
    >>> round(negative_sampling_loss(probe, vectors, outputs), 4)  # log(1 + e^-2) + log(1 + e^-1) + log(1 + e^2)
    2.5671
    """
    states = vectors[probe.words].astype(np.float64)  # (P, D)
    right = np.einsum("pd,pd->p", states, outputs[probe.contexts])  # (P,)
    wrong = np.einsum("pd,pkd->pk", states, outputs[probe.negatives])  # (P, K)
    return float((np.logaddexp(0, -right) + np.logaddexp(0, wrong).sum(axis=1)).mean())
