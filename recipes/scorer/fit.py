"""The fit of the scorer's weights, in two steps: of what is alike in two questions, then of what differs.

The first step learns from judged pairs. The second leaves those weights as they are and learns from near-copies too: in
one fit the many near-copies, in which nearly all words are shared, would take away the weight of shared words, which
orders the candidates of every search.

Weights that are fitted without a forum judge that forum (``benchmarks.scorer``); those of all lie in the package.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from askalike.search.differences import DIFFERENCES
from askalike.search.engine import Floats
from askalike.search.features import COSINE, FEATURES
from askalike.search.scorer import BY_VECTORS, BY_WORDS, FORMAT, VERSIONS, Scorer, probability
from askalike.search.thresholds import BETWEEN_FORUMS
from recipes.folders import REPOSITORY
from recipes.scorer.pairs import FORUMS, HANDWRITTEN, JUDGED, OTHER_FORM, QUORA, Pairs, column

COMMAND: Final = "python -m recipes.scorer"
WEIGHTS: Final = REPOSITORY / "src" / "askalike" / "data" / "scorer.json"
ALIKE: Final = {
    BY_VECTORS: tuple(name for name in FEATURES if name not in DIFFERENCES),
    BY_WORDS: tuple(name for name in FEATURES if name not in (*DIFFERENCES, COSINE)),
}
"""Features of each version that say how alike two questions are."""
FREE_OFFSET: Final = 5.0
"""Standard deviation of the offset of hand-written pairs and Quora, of which half are the same, unlike in a forum."""
PENALTY: Final = 10.0
PENALTY_OF_DIFFERENCES: Final = 3.0
LEAST_SPREAD: Final = 0.15
"""Least deviation by which a feature is scaled, so that the weight of a rare one is penalised too."""
AMONG_CANDIDATES: Final = 3.0
"""How much the order of a query's candidates counts beside the likelihood of grades."""
WEIGHT_OF_KIND: Final = {
    "pool": 1.0,
    "other": 1.0,
    "drawn": 1.0,
    OTHER_FORM: 0.5,
    "copy": 0.05,
    "copy of title": 0.05,
    "elsewhere": 0.1,
    "nonsense": 0.1,
}
WEIGHT_OF_DIFFERENCES: Final = {"near-copy": 0.1, HANDWRITTEN: 4.0, QUORA: 0.1}
"""Of the pairs that teach what differs, beside those above."""
OF_QATAR: Final = 0.3
"""Its sets repeat each question many times."""
COUNTED: Final = (0.5, 1.0, 0.5)
"""λ of the three thresholds."""
STEPS: Final = 60


@dataclass(frozen=True, slots=True)
class Rows:
    """Pairs to fit: features (P, F), and of each (P,) grade, query, forum, weight, and weight in its query's order."""

    features: Floats
    grades: Floats
    queries: NDArray[np.int64]
    forums: NDArray[np.int64]
    weights: Floats
    ordered: Floats

    @classmethod
    def of(cls, pairs: Sequence[Pairs], version: str, weight_of_kind: dict[str, float]) -> Rows:
        """Return the pairs of the kinds that have a weight."""
        names = [*FORUMS, HANDWRITTEN, QUORA]
        chosen = [query for query in pairs if query.kind in weight_of_kind]
        features = [query.by_version(version) for query in chosen]
        weights = [weight_of_kind[query.kind] * (OF_QATAR if query.forum == "qatar" else 1.0) for query in chosen]
        is_ordered = [query.kind in (*JUDGED, OTHER_FORM) and query.forum != "qatar" for query in chosen]
        counted = column(chosen, weights).astype(float)
        return cls(
            np.concatenate(features),
            np.concatenate([query.grades for query in chosen]),
            column(chosen, range(len(chosen))).astype(np.int64),
            column(chosen, [names.index(query.forum) for query in chosen]).astype(np.int64),
            counted,
            counted * column(chosen, is_ordered).astype(bool),
        )


def fitted(
    pairs: Sequence[Pairs], version: str, alike: Sequence[str] | None = None, differing: Sequence[str] = DIFFERENCES
) -> Scorer:
    """Return the scorer of a version.

    Args:
        alike, differing: the features that are taken; None for all of the version.
    """
    rows = Rows.of(pairs, version, WEIGHT_OF_KIND)
    places = [FEATURES.index(name) for name in alike or ALIKE[version]]
    weights, thresholds = _minimum(rows, places, 1, PENALTY, np.zeros(len(FEATURES)))
    if differing:
        rows = Rows.of(pairs, version, WEIGHT_OF_KIND | WEIGHT_OF_DIFFERENCES)
        places = [FEATURES.index(name) for name in differing]
        weights, thresholds = _minimum(rows, places, -1, PENALTY_OF_DIFFERENCES, weights)
    return Scorer(weights, float(thresholds[1]), float(min(thresholds[1:])))


def _minimum(data: Rows, places: list[int], sign: int, penalty: float, fixed: Floats) -> tuple[Floats, Floats]:
    """Return weights and thresholds of least penalised loss: ordinal logistic, and softmax in each query's order. ::

    - Σ_i Σ_{k=1..3} λ_k ln P(y_ik) - ρ Σ_q Σ_i t_qi ln softmax_q(z)_i + |w|² penalty / 2 + Σ_f r_f² / (2 σ_f²)

    t ∝ 2^grade - 1; P(y_ik) = σ(b_k + z_i + r_f), with r_f an offset of the forum, which a new forum has not. It is
    found by Newton's method within the bounds that ``sign`` sets.

    Args:
        places: of the features that are weighed anew; ``fixed`` has the weights of the others.

    Source: Bertsekas, "Projected Newton Methods for Optimization Problems with Simple Constraints", 1982.
    """
    order = np.argsort(data.queries, kind="stable")
    spread = np.maximum(data.features[:, places].std(axis=0), LEAST_SPREAD)
    inputs = data.features[order][:, places] / spread
    base = data.features[order] @ fixed
    grades, queries, forums = data.grades[order], data.queries[order], data.forums[order]
    weights, ordered = data.weights[order], data.ordered[order]
    targets = [np.clip(grades - (grade - 1), 0, 1) for grade in (1, 2, 3)]
    starts = np.flatnonzero(np.r_[True, queries[1:] != queries[:-1]])
    sizes = np.diff(np.r_[starts, len(queries)])
    gains = 2.0**grades - 1
    totals = np.repeat(np.add.reduceat(gains, starts), sizes)
    wanted = AMONG_CANDIDATES * ordered * np.divide(gains, totals, out=np.zeros(len(gains)), where=totals > 0)
    pulled = np.repeat(np.add.reduceat(wanted, starts), sizes)
    count, sets = inputs.shape[1], len(FORUMS) + 2
    precision = np.full(sets, BETWEEN_FORUMS**-2.0)
    precision[-2:] = FREE_OFFSET**-2.0  # of hand-written pairs and Quora
    none = np.full(3 + sets, -np.inf)
    low = np.r_[np.full(count, 0.0 if sign > 0 else -np.inf), none]
    high = np.r_[np.full(count, np.inf if sign > 0 else 0.0), -none]

    def shares(z: Floats) -> tuple[Floats, Floats]:
        peaks = np.repeat(np.maximum.reduceat(z, starts), sizes)
        powers = np.exp(z - peaks)
        sums = np.repeat(np.add.reduceat(powers, starts), sizes)
        return powers / sums, z - peaks - np.log(sums)

    def loss(values: Floats) -> tuple[float, Floats, Floats]:
        z, offsets = base + inputs @ values[:count], values[count + 3 :]
        value = penalty / 2 * float(values[:count] @ values[:count]) + float(precision @ offsets**2) / 2
        slope, curve = np.zeros(len(z)), np.zeros(len(z))
        gradient = np.zeros(3)
        hessian = np.zeros((len(values), len(values)))
        for place, (target, counted) in enumerate(zip(targets, COUNTED, strict=True)):
            logits = z + offsets[forums] + values[count + place]
            value += counted * float((weights * (np.logaddexp(0, logits) - target * logits)).sum())
            likely = probability(logits)
            residue, bend = counted * weights * (likely - target), counted * weights * likely * (1 - likely)
            slope, curve = slope + residue, curve + bend
            gradient[place] = residue.sum()
            row = count + place
            hessian[:count, row], hessian[row, row] = inputs.T @ bend, bend.sum() / 2
            hessian[row, count + 3 :] = np.bincount(forums, bend, sets)
        for forum in np.unique(forums).tolist():
            of_forum = forums == forum
            hessian[:count, count + 3 + forum] = inputs[of_forum].T @ curve[of_forum]
        of_forums = np.bincount(forums, slope, sets) + offsets * precision
        chosen, logs = shares(z)
        value -= float((wanted * logs).sum())
        slope = slope + pulled * chosen - wanted
        means = np.add.reduceat(inputs * chosen[:, None], starts)
        own = inputs.T @ (inputs * (curve + pulled * chosen)[:, None]) - means.T @ (means * pulled[starts][:, None])
        hessian[:count, :count] = (own + penalty * np.eye(count)) / 2
        sums = np.bincount(forums, curve, sets) + precision
        hessian[count + 3 :, count + 3 :] = np.diag(sums) / 2
        whole = np.concatenate([inputs.T @ slope + penalty * values[:count], gradient, of_forums])
        return value, whole, hessian + hessian.T

    values = np.concatenate([np.zeros(count), [-1.0, -2.5, -4.0], np.zeros(sets)])
    value, gradient, hessian = loss(values)
    for _ in range(STEPS):
        is_free = ~(((values <= low) & (gradient > 0)) | ((values >= high) & (gradient < 0)))
        step = np.zeros(len(values))
        step[is_free] = -np.linalg.solve(hessian[np.ix_(is_free, is_free)], gradient[is_free])
        length = 1.0
        while True:
            moved = np.clip(values + length * step, low, high)
            new_value, new_gradient, new_hessian = loss(moved)
            if new_value <= value + 1e-4 * float(gradient @ (moved - values)) or length < 1e-6:
                break
            length /= 2
        is_done = abs(value - new_value) < 1e-9 * abs(value)
        values, value, gradient, hessian = moved, new_value, new_gradient, new_hessian
        if is_done:
            break
    weights_of_all = fixed.copy()
    weights_of_all[places] = values[:count] / spread
    return weights_of_all, values[count : count + 3]


def package_weights(pairs: Sequence[Pairs]) -> str:
    """Return the file of the weights of all forums."""
    versions = {version: to_json(fitted(pairs, version)) for version in VERSIONS}
    return json.dumps({"format": FORMAT, "learned by": COMMAND, "versions": versions}, indent=1) + "\n"


def without(pairs: Sequence[Pairs], forums: Collection[str], subjects: Collection[str] = ()) -> list[Pairs]:
    """Return the pairs that are of none of these forums, nor of these subjects of hand-written pairs."""
    return [query for query in pairs if query.forum not in forums and query.subject not in subjects]


def to_json(scorer: Scorer) -> dict[str, Any]:
    """Return weights as they are written into files."""
    weights_of = {
        name: round(float(weight), 4) for name, weight in zip(FEATURES, scorer.weights, strict=True) if weight
    }
    return {"weights": weights_of, "related": round(scorer.related, 4), "same": round(scorer.same, 4)}
