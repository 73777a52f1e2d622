"""What a forum's own judgements change in the probability of a pair.

People judge the pairs that a queue shows them, and a queue shows the likeliest: what they say of those is no word on
the rest. The logit of a pair is moved by a function that is linear between knots, each knot by the judgements near it
and by what the forum has in common::

    logit'(z) = z + Σ_k δ_k · hat_k(z)              hat_k is 1 at knot k, 0 at its neighbours, linear between
    δ_k = r + ε_k

    maximise  Σ_i w_i ln P(y_i | z_i + δ(z_i)) - r² / (2 ρ²) - Σ_k ε_k² / (2 σ²) - Σ_k (ε_k - ε_{k+1})² / (2 τ²)

r is integrated out: δ has the covariance of ε, and ρ² more everywhere. Of that δ a share is taken, so that what chance
brings moves nothing, and many judgements all::

    max(0, 1 - CHANCE / (2 (ln L(δ) - ln L(0))))

Source: James and Stein, "Estimation with Quadratic Loss", 1961, with the likelihood ratio as the squared length.

w is 1 where the pair came by its probability, the likeliest first or by chance: then what was said of it is right for
such pairs, however few were asked. It is 0 where somebody chose it by what it says (``WEIGHTS``).

The last knot is where texts are the same but for markup, and is held: others that were judged different say nothing of
a perfect hit. Where knots would overtake each other, order among pairs would change; δ is cut so that logit' rises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from askalike.search.engine import Floats
from askalike.search.thresholds import BETWEEN_FORUMS
from askalike.types import DrawnBy

KNOTS: Final = np.array([-5.0, -3.0, -1.5, 0.0, 1.5, 3.5])
"""Logits; the last one, a probability of .97, is not moved, nor is what lies above it."""

SPREAD: Final = 0.25
"""σ: how far a knot is moved before the judgements at it are many."""

BETWEEN: Final = 0.25
"""τ: how far neighbours differ."""

CHANCE: Final = 7.81
"""The 5 % point of χ² with three degrees of freedom: the least of 3.84, 5.99 and this with which no set was worse than
without judgements."""

LEAST_RISE: Final = 0.1
"""logit' rises by at least this share of what z does."""

WEIGHTS: Final[Mapping[DrawnBy, float]] = {"queue": 1.0, "sample": 1.0, "label": 1.0, "search": 0.0, "import": 0.0}
"""By how a pair was drawn: hits that somebody picked, and lists from elsewhere, hold what somebody noticed."""

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

    def before(self, logits: Floats) -> Floats:
        """Return the logits that are moved to these.

        >>> moved = Update((0.0, 0.0, 0.0, -1.0, 0.0, 0.0), 3)
        >>> moved.before(moved.moved(np.array([-7.0, 0.75, 4.0]))).tolist()
        [-7.0, 0.75, 4.0]
        """
        return np.asarray(logits - np.interp(logits, KNOTS + np.array(self.shifts), self.shifts))


UNMOVED: Final = Update()


def moved_probabilities(update: Update, probabilities: Sequence[float]) -> list[float]:
    """Return probabilities after an update of their logits.

    >>> moved_probabilities(Update((0.0, 0.0, 0.0, -1.0, 0.0, 0.0), 3), [0.5, 1.0])
    [0.2689414213699951, 1.0]
    """
    return _mapped(update.moved, probabilities) if update.judgements else list(probabilities)


def unmoved_probabilities(update: Update, probabilities: Sequence[float]) -> list[float]:
    """Return the probabilities that an update moves to these."""
    return _mapped(update.before, probabilities) if update.judgements else list(probabilities)


def _mapped(change: Callable[[Floats], Floats], probabilities: Sequence[float]) -> list[float]:
    array = np.asarray(probabilities, dtype=np.float64)
    inside = np.clip(array, 1e-12, 1 - 1e-12)
    logits = change(np.log(inside) - np.log1p(-inside))
    return list(map(float, np.where(array >= 1 - 1e-12, array, 1 / (1 + np.exp(-logits)))))


def hats(logits: Floats) -> Floats:
    """Return hat_k of each logit.  # (N, K)"""
    return np.stack([np.interp(logits, KNOTS, row) for row in np.eye(len(KNOTS))], axis=1)


def posterior(
    logits: Sequence[float],
    is_same: Sequence[bool],
    weights: Sequence[float] | None = None,
    between_forums: float = BETWEEN_FORUMS,
) -> Update:
    """Return the update after some judgements: the most probable one, less what chance brings.

    Args:
        logits: of the judged pairs, before any update.
        weights: how much each counts; 1 where none is given.
        between_forums: ρ; with 0 each knot is moved by the judgements near it alone.

    That one pair at 0 is different says nothing yet; eight of forty the same move that knot, others by what the forum
    has in common, and the last not at all:

    >>> posterior([0.0], [False]).moved(np.array([-3.0, 0.0, 3.5])).round(2).tolist()
    [-3.0, 0.0, 3.5]
    >>> said = [True] * 8 + [False] * 32
    >>> posterior([0.0] * 40, said).moved(np.array([-3.0, 0.0, 3.5])).round(2).tolist()
    [-3.44, -0.47, 3.5]
    """
    if not len(logits):
        return UNMOVED
    shifts = most_probable(logits, is_same, weights, between_forums)
    start, labels = np.asarray(logits, dtype=np.float64), np.asarray(is_same, dtype=np.float64)
    counted = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    before, after = (
        float(counted @ (labels * scores - np.logaddexp(0, scores)))
        for scores in (start, start + np.interp(start, KNOTS, shifts))
    )
    gained = 2 * (after - before)
    kept = max(0.0, 1 - CHANCE / gained) if gained > 0 else 0.0
    return Update(tuple(kept * shift for shift in shifts), int(np.count_nonzero(counted)))


def most_probable(
    logits: Sequence[float],
    is_same: Sequence[bool],
    weights: Sequence[float] | None = None,
    between_forums: float = BETWEEN_FORUMS,
) -> tuple[float, ...]:
    """Return the most probable δ after some judgements, by Newton's method; the sum is concave."""
    inputs = hats(np.asarray(logits, dtype=np.float64))[:, :-1]  # (N, K - 1): the last knot is held
    start = np.asarray(logits, dtype=np.float64)
    labels = np.asarray(is_same, dtype=np.float64)
    counted = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    count = inputs.shape[1]
    steps = np.diff(np.eye(count + 1), axis=0)[:, :-1]  # δ_{k+1} - δ_k, the last δ being 0
    of_knots = np.linalg.inv(np.eye(count) / SPREAD**2 + steps.T @ steps / BETWEEN**2)
    precision = np.linalg.inv(of_knots + between_forums**2)
    shifts = np.zeros(count)
    for _ in range(STEPS):
        likely = 1.0 / (1.0 + np.exp(-(start + inputs @ shifts)))
        gradient = inputs.T @ (counted * (labels - likely)) - precision @ shifts
        curvature = (inputs * (counted * likely * (1 - likely))[:, None]).T @ inputs + precision
        step = np.linalg.solve(curvature, gradient)
        shifts += step * min(1.0, 1.0 / max(1e-9, float(np.abs(step).max())))
        if np.abs(step).max() < ENOUGH:
            break
    return _rising((*shifts.tolist(), 0.0))


def _rising(shifts: tuple[float, ...]) -> tuple[float, ...]:
    """Return shifts by which a greater logit stays the greater, the upper knots being kept."""
    places = list(KNOTS + np.array(shifts))
    for knot in range(len(places) - 2, -1, -1):
        places[knot] = min(places[knot], places[knot + 1] - LEAST_RISE * float(KNOTS[knot + 1] - KNOTS[knot]))
    return tuple(float(place - knot) for place, knot in zip(places, KNOTS, strict=True))
