"""What a forum's own judgements change in the probability of a pair.

People judge the pairs that a queue shows them, and a queue shows the likeliest: what they say of those is no word on
the rest. The logit of a pair is moved by a function that is linear between knots, each knot by the judgements near it::

    logit'(z) = z + Σ_k δ_k · hat_k(z)              hat_k is 1 at knot k, 0 at its neighbours, linear between

    maximise  Σ_i w_i ln P(y_i | z_i + δ(z_i)) - Σ_k δ_k² / (2 σ²) - Σ_k (δ_k - δ_{k+1})² / (2 τ²)

The last knot is where texts are the same but for markup, and is held: others that were judged different say nothing of
a perfect hit. Where knots would overtake each other, order among pairs would change; δ is cut so that logit' rises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

KNOTS: Final = np.array([-5.0, -3.0, -1.5, 0.0, 1.5, 3.5])
"""Logits; the last one, a probability of .97, is not moved, nor is what lies above it."""

SPREAD: Final = 0.25
"""σ: how far a knot is moved before the judgements at it are many."""

BETWEEN: Final = 0.25
"""τ: how far neighbours differ."""

LEAST_RISE: Final = 0.1
"""logit' rises by at least this share of what z does."""

STEPS: Final = 50
ENOUGH: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Update:
    """A change of logits.

    Args:
        shifts: δ of each knot.
        judgements: how many it follows.
    """

    shifts: tuple[float, ...] = (0.0,) * len(KNOTS)
    judgements: int = 0

    def moved(self, logits: Floats) -> Floats:
        """Return logit' of each.

        >>> Update((0.0, 0.0, 0.0, -1.0, 0.0, 0.0), 3).moved(np.array([0.0, 0.75, 4.0])).tolist()
        [-1.0, 0.25, 4.0]
        """
        return np.asarray(logits + np.interp(logits, KNOTS, self.shifts)) if self.judgements else logits


UNMOVED: Final = Update()


def moved_probabilities(update: Update, probabilities: Sequence[float]) -> list[float]:
    """Return probabilities after an update of their logits.

    >>> moved_probabilities(Update((0.0, 0.0, 0.0, -1.0, 0.0, 0.0), 3), [0.5, 1.0])
    [0.2689414213699951, 1.0]
    """
    if not update.judgements:
        return list(probabilities)
    given = np.asarray(probabilities, dtype=np.float64)
    inside = np.clip(given, 1e-12, 1 - 1e-12)
    logits = update.moved(np.log(inside) - np.log1p(-inside))
    return list(map(float, np.where(given >= 1 - 1e-12, given, 1 / (1 + np.exp(-logits)))))


def hats(logits: Floats) -> Floats:
    """Return hat_k of each logit.  # (N, K)"""
    return np.stack([np.interp(logits, KNOTS, row) for row in np.eye(len(KNOTS))], axis=1)


def posterior(logits: Sequence[float], is_same: Sequence[bool], weights: Sequence[float] | None = None) -> Update:
    """Return the most probable update after some judgements, by Newton's method; the sum is concave.

    Args:
        logits: of the judged pairs, before any update.
        weights: how much each counts; 1 where it was judged by a person who was shown it.

    A judgement that a pair at 0 is different moves that knot, and what is near it less:

    >>> posterior([0.0], [False]).moved(np.array([-3.0, 0.0, 3.5])).round(2).tolist()
    [-3.0, -0.01, 3.5]
    """
    if not len(logits):
        return UNMOVED
    inputs = hats(np.asarray(logits, dtype=np.float64))[:, :-1]  # (N, K - 1): the last knot is held
    start = np.asarray(logits, dtype=np.float64)
    labels = np.asarray(is_same, dtype=np.float64)
    counted = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    count = inputs.shape[1]
    steps = np.diff(np.eye(count + 1), axis=0)[:, :-1]  # δ_{k+1} - δ_k, the last δ being 0
    precision = np.eye(count) / SPREAD**2 + steps.T @ steps / BETWEEN**2
    found = np.zeros(count)
    for _ in range(STEPS):
        likely = 1.0 / (1.0 + np.exp(-(start + inputs @ found)))
        gradient = inputs.T @ (counted * (labels - likely)) - precision @ found
        curvature = (inputs * (counted * likely * (1 - likely))[:, None]).T @ inputs + precision
        step = np.linalg.solve(curvature, gradient)
        found += step * min(1.0, 1.0 / max(1e-9, float(np.abs(step).max())))
        if np.abs(step).max() < ENOUGH:
            break
    return Update(_rising((*found.tolist(), 0.0)), len(labels))


def _rising(shifts: tuple[float, ...]) -> tuple[float, ...]:
    """Return shifts by which a greater logit stays the greater, the upper knots being kept."""
    places = list(KNOTS + np.array(shifts))
    for knot in range(len(places) - 2, -1, -1):
        places[knot] = min(places[knot], places[knot + 1] - LEAST_RISE * float(KNOTS[knot + 1] - KNOTS[knot]))
    return tuple(float(place - knot) for place, knot in zip(places, KNOTS, strict=True))
