"""States of words changed on their way to RAMN: whitened, or all alike, which leaves the words alone.

Whitening takes from the states what all of them share, and evens out the directions in which they differ::

    μ, Σ      mean and covariance of the states h of many words, Σ = V diag(λ) Vᵀ
    h'        (h - μ) V diag(max(λ, ε λ_max))^(-1/2)                    mean 0, covariance I, with ε = 10⁻⁴

States of an encoder lie close together in a narrow cone, so that the cosine of any two words says little; h' do not.

Source: Mu and Viswanath 2018 (ICLR), All-but-the-Top, for mean and leading directions; Su et al. 2021
(arXiv:2103.15316), for this map, of vectors of sentences there and of words here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.models.ramn.comparison import WordStates
from askalike.search.ramn import StateSource
from askalike.types import Query, Question

Floats = NDArray[np.float32]
WHITENED: Final = 2000
"""Texts whose states are looked at: some 100,000 words for a few hundred dimensions."""
LEAST_SHARE: Final = 1e-4
"""ε: a direction with less of the largest variance counts as having so much; few states leave some with none."""
TINY: Final = 1e-30


class ChangedStates:
    """A source of the same words with other states.

    Args:
        source: words, states and frequencies.
        change: states of one text (T, D) → its states instead (T, D').
    """

    def __init__(self, source: StateSource, change: Callable[[Floats], Floats]) -> None:
        self._source, self._change = source, change
        self.frequencies = source.frequencies

    def of_query(self, query: Query) -> WordStates:
        """Return the words of a query with their changed states."""
        return self._changed(self._source.of_query(query))

    def of_questions(self, questions: Sequence[tuple[int, Question]]) -> list[WordStates]:
        """Return the words of questions with their changed states."""
        return [self._changed(one) for one in self._source.of_questions(questions)]

    def _changed(self, found: WordStates) -> WordStates:
        return _Text(found.words, self._change(found.states))


@dataclass(frozen=True, slots=True)
class _Text:
    words: tuple[str, ...]
    states: Floats


def all_alike(states: Floats) -> Floats:
    """Return the state 1 for each word: every word is matched by every other as well as by itself.  # (T, 1)"""
    return np.ones((len(states), 1), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Whitening:
    """A map of states.

    Args:
        mean: μ.  # (D,) float32
        matrix: V diag(…)^(-1/2).  # (D, D) float32
    """

    mean: Floats
    matrix: Floats

    @classmethod
    def of(cls, states: Floats) -> Whitening:
        """Return the map of these states, which brings them to mean 0 and covariance I.

        Args:
            states: ≥ 1 of them.  # (N, D)

        Example:
            States of variance 4 and 1 around (1, 0):

            >>> found = Whitening.of(np.array([[3.0, 1.0], [-1.0, 1.0], [3.0, -1.0], [-1.0, -1.0]], np.float32))
            >>> np.abs(found.applied(np.array([[3.0, 1.0], [1.0, 0.0]], np.float32))).round(3).tolist()
            [[1.0, 1.0], [0.0, 0.0]]
        """
        mean = np.asarray(states.mean(axis=0, dtype=np.float64), dtype=np.float32)
        centred = states - mean
        variances, directions = np.linalg.eigh((centred.T @ centred).astype(np.float64) / len(states))
        least = max(float(variances[-1]) * LEAST_SHARE, TINY)
        matrix = directions / np.sqrt(np.maximum(variances, least))
        return cls(mean, matrix.astype(np.float32))

    @classmethod
    def of_texts(cls, source: StateSource, texts: Sequence[Question]) -> Whitening:
        """Return the map of the states of many words.

        Args:
            texts: those that were learned from; of many, ``WHITENED`` evenly spread ones are read. One has words.
        """
        step = max(1, len(texts) // WHITENED)
        read = source.of_questions(list(enumerate(texts[::step][:WHITENED])))
        return cls.of(np.concatenate([one.states for one in read if one.words]))

    def applied(self, states: Floats) -> Floats:
        """Return h' of each state.  # (T, D)"""
        return np.asarray((states - self.mean) @ self.matrix, dtype=np.float32)
