"""Edit distances as similarities: Levenshtein, Jaro, Jaro-Winkler, Monge-Elkan.

Enters: strings, or lists of words, of one query and N candidates. Leaves: similarities in [0, 1]; 0 where one is
empty. May import: ``similarity.distance``.

Source: Levenshtein 1966; Jaro 1989; Winkler 1990; Monge and Elkan 1996, "The field matching problem", section 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from askalike.models.similarity.distance import compare, normalized

__all__ = ["jaro", "jaro_winkler", "levenshtein", "monge_elkan"]


def levenshtein(query: str, candidates: Sequence[str]) -> NDArray[np.float64]:
    """Return ``1 - d(a, b) / max(|a|, |b|)``, d the fewest insertions, deletions and replacements.  # (N,)

    >>> levenshtein("kitten", ["sitting"]).round(4).tolist()  # 1 - 3/7
    [0.5714]

    Raises:
        MissingExtraError: rapidfuzz is not installed.
    """
    return normalized("Levenshtein", query, candidates)


def jaro(query: str, candidates: Sequence[str]) -> NDArray[np.float64]:
    """Return ``(m/|a| + m/|b| + (m - t)/m) / 3``, m characters common within a window, t transpositions.  # (N,)

    >>> jaro("martha", ["marhta"]).round(4).tolist()  # m = 6, t = 1: (1 + 1 + 5/6) / 3
    [0.9444]

    Raises:
        MissingExtraError: rapidfuzz is not installed.
    """
    return normalized("Jaro", query, candidates)


def jaro_winkler(query: str, candidates: Sequence[str]) -> NDArray[np.float64]:
    """Return ``J + 0.1 · l · (1 - J)`` where Jaro's J > 0.7, else J; l characters of common prefix, at most 4.  # (N,)

    >>> jaro_winkler("martha", ["marhta"]).round(4).tolist()  # 0.9444 + 0.3 · 0.0556
    [0.9611]

    Raises:
        MissingExtraError: rapidfuzz is not installed.
    """
    return normalized("JaroWinkler", query, candidates)


def monge_elkan(query: Sequence[str], candidates: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Return ``(ME(A, B) + ME(B, A)) / 2``, ``ME(A, B) = 1/|A| Σ_{a ∈ A} max_{b ∈ B} JaroWinkler(a, b)``.  # (N,)

    Differs: the mean of both directions, so that the order of the two texts does not matter. The time is that of
    ``|A| · |B|`` comparisons of words: for titles.

    >>> monge_elkan(["ab"], [["ab", "xy"]]).tolist()  # (1 + (1 + 0)/2) / 2
    [0.75]

    Raises:
        MissingExtraError: rapidfuzz is not installed.
    """
    found = np.zeros(len(candidates))
    lengths = [len(candidate) for candidate in candidates]
    if not query or not sum(lengths):
        return found
    everything = [word for candidate in candidates for word in candidate]
    alike = compare("JaroWinkler", query, everything)  # (|A|, Σ|B|)
    end = 0
    for place, length in enumerate(lengths):
        start, end = end, end + length
        if length:
            own = alike[:, start:end]
            found[place] = (own.max(axis=1).mean() + own.max(axis=0).mean()) / 2
    return found
