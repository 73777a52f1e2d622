"""A text as the mean of its words' vectors, and the cosine of two such means.

Enters: words and word vectors. Leaves: one vector a text; cosines. May import: nothing of askalike.

Source: Mitchell and Lapata 2010, "Composition in distributional models of semantics", section 3, for the additive
model; Arora, Liang and Ma 2017 show that weighting by rarity helps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["WordVectors", "known_vectors", "mean_vector", "vector_cosine"]


class WordVectors(Protocol):
    """word → vector; a dict is one, and so are gensim's."""

    def __contains__(self, word: object, /) -> bool: ...

    def __getitem__(self, word: str, /) -> NDArray[np.float32]:
        """Return the word's vector.  # (D,)"""


def known_vectors(words: Sequence[str], vectors: WordVectors) -> tuple[list[str], NDArray[np.float32]]:
    """Return the words that have a vector, in order and with repetitions, and their vectors.  # (K,), (K, D)

    >>> known, rows = known_vectors(["b", "zebra"], {"b": np.array([0, 1], np.float32)})
    >>> known, rows.tolist()
    (['b'], [[0.0, 1.0]])
    """
    known = [word for word in words if word in vectors]
    return known, np.array([vectors[word] for word in known], dtype=np.float32)


def mean_vector(rows: NDArray[np.float32], weights: Sequence[float] | None = None) -> NDArray[np.float32]:
    """Return ``Σ_w α(w) x_w / Σ_w α(w)``, α = 1 or the given weights ≥ 0.  # (K, D) → (D,)

    Of no words, or where all weigh nothing, it has no numbers at all: (0,).

    >>> mean_vector(np.array([[1, 0], [0, 1], [0, 1]], np.float32), [2.0, 3.0, 3.0]).tolist()
    [0.25, 0.75]
    """
    shares = np.ones(len(rows), np.float32) if weights is None else np.array(weights, dtype=np.float32)
    if not shares.any():
        return np.empty(0, np.float32)
    return np.asarray(shares @ rows / shares.sum(), dtype=np.float32)


def vector_cosine(query: NDArray[np.float32], candidates: Sequence[NDArray[np.float32]]) -> NDArray[np.float64]:
    """Return the cosines in [-1, 1] of one vector with N others, 0 where one is all zeros or has no numbers.  # (N,)

    >>> one, two = np.array([1, 0], np.float32), np.array([1, 1], np.float32)
    >>> vector_cosine(one, [two, np.empty(0, np.float32)]).round(4).tolist()
    [0.7071, 0.0]
    """
    found = np.zeros(len(candidates))
    places = [place for place, candidate in enumerate(candidates) if len(candidate)]
    if not len(query) or not places:
        return found
    matrix = np.stack([candidates[place] for place in places]).astype(np.float64)  # (N', D)
    norms = np.linalg.norm(matrix, axis=1) * np.linalg.norm(query.astype(np.float64))
    dots = matrix @ query.astype(np.float64)
    found[places] = np.clip(np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0), -1.0, 1.0)
    return found
