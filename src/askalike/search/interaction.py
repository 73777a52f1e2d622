"""Late interaction: two questions compared word by word, by the encoder's states, both ways.

::

    u_w       log²(rank of w in the encoder's vocabulary), the most frequent word having the first
    m(q,p)    ½ · (Σ_i u_i max_j cos(h_qi, h_pj) / Σ_i u_i + Σ_j u_j max_i cos(h_qi, h_pj) / Σ_j u_j)
    meaning   (cos(q, p) + 2 · m(q, p)) / 3
    score     w · meaning + (1 - w) · bm25(q, p) / max_p' bm25(q, p')

Source: Khattab and Zaharia 2020 (SIGIR), ColBERT: the sum over a query's words of the best match in a document.
Differs: the encoder is the forum's own, which was not trained to match word by word; means instead of sums, and both
ways, since questions are as long as each other (one way, long ones win); words count by how rare they are, as in a
cosine of TF-IDF vectors, the rank in a vocabulary standing for the frequency, as Zipf's law has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from askalike.models.ramn import similarities

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class WeighedStates:
    """A text word by word: a ``WordStates`` whose words have weights.

    Args:
        words: that were read.
        states: one row for each word.  # (T, D) float32
        weights: u, > 0.  # (T,) float64
    """

    words: tuple[str, ...]
    states: Floats
    weights: NDArray[np.float64]


def rarities(ids: NDArray[np.integer], size: int) -> NDArray[np.float64]:
    """Return u of words by their places in a vocabulary of ``size`` words; those outside count as the rarest.

    Args:
        ids: 1 for the most frequent word, 0 for one outside.  # (T,)

    Example:
        >>> rarities(np.array([1, 100, 0]), 100).round(2).tolist()
        [0.48, 21.21, 21.21]
    """
    places = np.where(ids > 0, ids, size)
    return np.asarray(np.log(np.maximum(places, 2)) ** 2)


def interactions(query: WeighedStates, candidates: Sequence[WeighedStates]) -> NDArray[np.float64]:
    """Return m(q, p) of each candidate, in [-1, 1]; 0 where either has no words.  # (N,)

    Example:
        Two words beside one that is as the first: (1 + 0) / 2 from the query, 1 from the candidate.

        >>> query = WeighedStates(("a", "b"), np.eye(2, dtype=np.float32), np.ones(2))
        >>> other = WeighedStates(("a",), np.eye(2, dtype=np.float32)[:1], np.ones(1))
        >>> interactions(query, [other]).tolist()
        [0.75]
    """
    found = np.zeros(len(candidates))
    held = [place for place, one in enumerate(candidates) if len(one.words)]
    if not (query.words and held):
        return found
    lengths = np.array([len(candidates[place].words) for place in held])
    starts = np.cumsum(lengths) - lengths
    near = similarities(query.states, np.concatenate([candidates[place].states for place in held]), "cosine")  # (T, M)
    weights = np.concatenate([candidates[place].weights for place in held])
    forth = query.weights @ np.maximum.reduceat(near, starts, axis=1) / query.weights.sum()
    back = np.add.reduceat(weights * near.max(axis=0), starts) / np.add.reduceat(weights, starts)
    found[held] = (forth + back) / 2
    return found


_Numbers = TypeVar("_Numbers", float, NDArray[np.float64])


def meaning(cosine: _Numbers, interaction: _Numbers) -> _Numbers:
    """Return what takes the cosine's place in the weighted sum, of one candidate or of each.

    >>> round(meaning(0.9, 0.6), 6)
    0.7
    """
    return (cosine + 2 * interaction) / 3
