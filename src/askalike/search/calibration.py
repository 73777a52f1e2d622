"""How likely two questions ask the same, by the cosine of their vectors, as people who compared pairs judged. ::

    P(same | q, p) = σ(b + a · cos(q, p))                          σ(x) = 1 / (1 + exp(-x))

Before a forum has verdicts of its own, b and a are those of pairs that were judged elsewhere. What counts as the same,
and how alike the questions of a forum are anyway, differs between forums by more than that tells; so a forum's verdicts
move both, by their most probable values under a normal prior around where they began::

    maximise  Σ_i ln P(y_i | c_i) - ((b - b_0)² + (a - a_0)²) / (2 σ_0²)              y_i in {0, 1}, c_i the cosine

Source: Platt, "Probabilistic outputs for support vector machines", 1999, with a prior in place of softened targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Final

import numpy as np
from numpy.typing import NDArray

SPREAD_OF_PRIOR: Final = 1.0
"""σ_0: of 0.5, 1 and 2 the one by which few verdicts help most (results/likelihood.json)."""

STEPS: Final = 50
ENOUGH: Final = 1e-10
GAINED: Final = 1e-4
"""Share of what a step promises by the gradient that it must gain."""

MEANS: Final = (-0.1, 0.35)
SPREADS: Final = (0.09, 0.18)
"""Mean and standard deviation of the cosines of a forum's questions, two at random, where the model learned to tell
questions apart as the general one did: from 0.01 to 0.23 and 0.13 to 0.14 by that and by what was trained from it, 0.83
to 0.87 and 0.04 to 0.08 by a network that was not trained."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """From a cosine to a likelihood.

    Args:
        intercept: b.
        slope: a, > 0 where a greater cosine is likelier the same.
        verdicts: how many of the forum's own it follows.
    """

    intercept: float
    slope: float
    verdicts: int = 0

    def likelihood(self, cosine: float) -> float:
        """Return P(same), in (0, 1).

        >>> round(Calibration(-2.0, 4.0).likelihood(0.75), 4)  # σ(1)
        0.7311
        """
        return 1.0 / (1.0 + exp(-(self.intercept + self.slope * cosine)))


DEFAULT_PRIOR: Final = Calibration(-2.16, 3.80)
"""The general model's cosines beside 4,981 pairs of Quora and 2,669 of Qatar Living that people judged, each set with
half the weight (``python -m benchmarks.likelihood``)."""


def posterior(prior: Calibration, cosines: Sequence[float], is_same: Sequence[bool]) -> Calibration:
    """Return a calibration after N verdicts, by Newton's method; the sum is concave, so there is one maximum.

    A step is halved until it gains a share of what it promises (Armijo's rule): where verdicts contradict what began,
    whole steps go back and forth over the maximum.

    One verdict "same" at c = 0 moves the intercept of σ(0) to where b = 1 - σ(b), and leaves the slope:

    >>> found = posterior(Calibration(0.0, 1.0), [0.0], [True])
    >>> round(found.intercept, 4), found.slope, found.verdicts
    (0.4011, 1.0, 1)
    """
    inputs = np.column_stack([np.ones(len(cosines)), np.asarray(cosines, dtype=np.float64)])  # (N, 2)
    labels = np.asarray(is_same, dtype=np.float64)  # (N,)
    start = np.array([prior.intercept, prior.slope])
    found, precision = start.copy(), np.eye(2) / SPREAD_OF_PRIOR**2

    def value(of: NDArray[np.float64]) -> float:
        """Return what is maximised, but for a constant."""
        sums, away = inputs @ of, of - start
        return float(labels @ sums - np.logaddexp(0, sums).sum() - away @ precision @ away / 2)

    for _ in range(STEPS):
        likely = 1.0 / (1.0 + np.exp(-(inputs @ found)))  # (N,)
        gradient = inputs.T @ (labels - likely) - precision @ (found - start)
        step = np.linalg.solve((inputs * (likely * (1 - likely))[:, None]).T @ inputs + precision, gradient)
        if np.abs(step).max() < ENOUGH:
            break
        before, promised = value(found), float(gradient @ step)
        rounding = 1e-12 * (1 + abs(before))
        while value(found + step) < before + GAINED * promised - rounding:
            step, promised = step / 2, promised / 2
        found += step
    return Calibration(float(found[0]), float(found[1]), len(labels))


def fits(vectors: NDArray[np.float32]) -> bool:
    """Return whether a model's cosines can be read as the general model's, by some vectors of questions at random.

    Args:
        vectors: (N, D) of length 1; of fewer than 20 nothing can be told, and the answer is yes.
    """
    if len(vectors) < 20:
        return True
    cosines = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
    mean, spread = float(cosines.mean()), float(cosines.std())
    return MEANS[0] <= mean <= MEANS[1] and SPREADS[0] <= spread <= SPREADS[1]
