"""Overlap of n-grams: Jaccard, containment, cosine; and how alike two texts are in length.

Enters: profiles of one query and N candidates. Leaves: similarities in [0, 1]. May import: ``similarity.profile``.

An empty text has nothing in common with any text, not even with another empty one: 0.

Source: Broder 1997, "On the resemblance and containment of documents", section 1, for Jaccard (resemblance) and
containment; Lyon, Malcolm and Dickerson 2001 for word trigrams; Barrón-Cedeño et al. 2010 for character n-grams.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from askalike.models.similarity.profile import Profile, product_sums, shared_counts

__all__ = ["containment", "cosine", "jaccard", "length_ratio"]


def jaccard(query: Profile, candidates: Sequence[Profile]) -> NDArray[np.float64]:
    """Return ``|A ∩ B| / |A ∪ B|`` over distinct n-grams.  # (N,)

    >>> from askalike.models.similarity.profile import character_symbols, ngram_profile
    >>> a, b = (ngram_profile(character_symbols(text), 1) for text in ("abc", "bcd"))
    >>> jaccard(a, [b]).tolist()
    [0.5]
    """
    shared = shared_counts(query, candidates)
    return _divided(shared, len(query) + _sizes(candidates) - shared)


def containment(query: Profile, candidates: Sequence[Profile]) -> NDArray[np.float64]:
    """Return ``|A ∩ B| / min(|A|, |B|)`` over distinct n-grams: 1 when one text holds all of the other.  # (N,)

    Differs: Broder divides by the first of the two; by the smaller one, it does not matter which one is asked about.

    >>> from askalike.models.similarity.profile import character_symbols, ngram_profile
    >>> a, b = (ngram_profile(character_symbols(text), 1) for text in ("ab", "abcd"))
    >>> containment(a, [b]).tolist()
    [1.0]
    """
    return _divided(shared_counts(query, candidates), np.minimum(len(query), _sizes(candidates)))


def cosine(query: Profile, candidates: Sequence[Profile]) -> NDArray[np.float64]:
    """Return ``Σ_g w_q(g) w_c(g) / (‖w_q‖ ‖w_c‖)``, weights ≥ 0.  # (N,)

    >>> from askalike.models.similarity.profile import character_symbols, ngram_profile
    >>> a, b = (ngram_profile(character_symbols(text), 1) for text in ("aab", "abb"))
    >>> cosine(a, [b]).round(6).tolist()  # (2 · 1 + 1 · 2) / (√5 √5)
    [0.8]
    """
    norms = np.array([np.linalg.norm(candidate.weights) for candidate in candidates], dtype=np.float64)
    found = _divided(product_sums(query, candidates), np.linalg.norm(query.weights) * norms)
    return np.minimum(found, 1.0)  # rounding may go over by one unit in the last place


def length_ratio(query: int, candidates: Sequence[int]) -> NDArray[np.float64]:
    """Return ``min(|A|, |B|) / max(|A|, |B|)`` of lengths in words, 0 when one is empty.  # (N,)

    >>> length_ratio(4, [8, 4, 0]).tolist()
    [0.5, 1.0, 0.0]
    """
    lengths = np.array(candidates, dtype=np.float64)
    return _divided(np.minimum(query, lengths), np.maximum(query, lengths))


def _sizes(candidates: Sequence[Profile]) -> NDArray[np.float64]:
    return np.array([len(candidate) for candidate in candidates], dtype=np.float64)


def _divided(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the quotients, 0 where there is nothing to divide by."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
