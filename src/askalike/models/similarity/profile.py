"""A text as the distinct n-grams that occur in it, each with a weight: what overlap and cosines are computed from.

Enters: numbers that stand for words or characters. Leaves: ``Profile``, and what two of them share.
May import: nothing of askalike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Profile", "character_symbols", "ngram_profile", "product_sums", "shared_counts"]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Distinct n-grams of one text and their weights.

    Args:
        codes: one number for each n-gram, ascending and distinct.  # (U,) uint64
        weights: how often it occurs, or what else it counts.  # (U,) float64
    """

    codes: NDArray[np.uint64]
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.codes)


def character_symbols(text: str) -> NDArray[np.uint64]:
    """Return the code points of a text.  # (T,)

    >>> character_symbols("ab").tolist()
    [97, 98]
    """
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)


def ngram_profile(symbols: NDArray[np.uint64], size: int) -> Profile:
    """Return the distinct n-grams of one size with how often each occurs.

    An n-gram's code is ``(…(s_1 · P + s_2) · P + …) + s_n`` modulo 2^64, P odd. Of single symbols it is exact; two
    longer n-grams share a code by a chance of about 2^-64.

    Args:
        symbols: numbers of words or characters in order.  # (T,)
        size: n ≥ 1; a text of fewer symbols has no n-gram.

    >>> sorted(ngram_profile(character_symbols("abab"), 2).weights.tolist())  # ba once, ab twice
    [1.0, 2.0]
    """
    count = len(symbols) - size + 1
    if count < 1:
        return Profile(np.empty(0, np.uint64), np.empty(0))
    codes = symbols[:count]
    for place in range(1, size):
        codes = codes * _MULTIPLIER + symbols[place : place + count]
    distinct, times = np.unique(codes, return_counts=True)
    return Profile(distinct, times.astype(np.float64))


def shared_counts(query: Profile, candidates: Sequence[Profile]) -> NDArray[np.float64]:
    """Return how many distinct n-grams the query shares with each candidate.  # (N,)"""
    owners, _, _ = _meet(query, candidates)
    return np.bincount(owners, minlength=len(candidates)).astype(np.float64)


def product_sums(query: Profile, candidates: Sequence[Profile]) -> NDArray[np.float64]:
    """Return ``Σ_g w_q(g) · w_c(g)`` over the n-grams that the query shares with each candidate.  # (N,)"""
    owners, places, hits = _meet(query, candidates)
    if not len(owners):
        return np.zeros(len(candidates))
    weights = np.concatenate([candidate.weights for candidate in candidates])[hits]
    products = query.weights[places] * weights
    return np.bincount(owners, weights=products, minlength=len(candidates)).astype(np.float64)


def _meet(query: Profile, candidates: Sequence[Profile]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return for every shared n-gram: the candidate's number, its place in the query, its place in all candidates."""
    nothing = np.empty(0, np.intp)
    if not len(query) or not candidates:
        return nothing, nothing, nothing
    codes = np.concatenate([candidate.codes for candidate in candidates])
    places = np.searchsorted(query.codes, codes)
    places[places == len(query)] = 0
    hits = np.flatnonzero(query.codes[places] == codes)
    owners = np.repeat(np.arange(len(candidates)), [len(candidate) for candidate in candidates])
    return owners[hits], places[hits], hits
