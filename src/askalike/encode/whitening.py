"""Takes from the states of words what all of them share, and evens out the directions in which they differ.

::

    μ, Σ      mean and covariance of the states h of many words, Σ = V diag(λ) Vᵀ
    h'        (h - μ) V diag(max(λ, ε λ_max))^(-1/2)                    mean 0, covariance I, with ε = 10⁻⁴

States of an encoder lie close together in a narrow cone, so that the cosine of any two words says little; h' does not.

Enters: states. Leaves: ``Whitening``. May import: nothing of askalike.
Source: Mu and Viswanath 2018 (ICLR), All-but-the-Top, for mean and leading directions; Su et al. 2021
(arXiv:2103.15316), for this map, of vectors of sentences there and of words here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Whitening"]

Floats = NDArray[np.float32]
LEAST_SHARE: Final = 1e-4
"""ε: a direction with less of the largest variance counts as having so much; few states leave some with none."""
TINY: Final = 1e-30


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

    def applied(self, states: Floats) -> Floats:
        """Return h' of each state.  # (T, D)"""
        return np.asarray((states - self.mean) @ self.matrix, dtype=np.float32)
