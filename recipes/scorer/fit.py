"""The scorer's weights: fitted to judged pairs of eleven forums, and to pairs whose answer is known.

Weights that are fitted without a forum judge that forum (``benchmarks.scorer``); those of all lie in the package.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from askalike.search.features import FEATURES, Floats
from askalike.search.scorer import FORMAT, FREE, SENTENCES, VERSIONS, WORDS, Scorer, probability
from askalike.search.thresholds import BETWEEN_FORUMS
from recipes.folders import REPOSITORY
from recipes.scorer.pairs import ARCHIVES, MARGIN, OTHER_FORM, Pairs

COMMAND: Final = "python -m recipes.scorer"
WEIGHTS: Final = REPOSITORY / "src" / "askalike" / "data" / "scorer.json"
FIELDS: Final = {WORDS: "by_words", SENTENCES: "sentences"}
PENALTY: Final = 10.0
AMONG_CANDIDATES: Final = 3.0
"""How much the order of a query's candidates counts beside the likelihood of grades."""
OF_COPIES: Final = 0.05
OF_ELSEWHERE: Final = {WORDS: 0.1, SENTENCES: 0.1}
"""Titles of other forums are many and easy: they count as little as keeps them below 15 %, where judged pairs gain by
it (LOG.md)."""
OF_QATAR: Final = 0.3
"""Its sets repeat each question many times."""
OF_OTHER_FORM: Final = 0.5
"""A query by its title and with its body: the same judgements twice."""
NOISE: Final = 0.02
"""Weights that another processor finds on the same pairs differ by less."""
ORDERED: Final = ("pool", "other", "drawn", OTHER_FORM)
USED: Final = {
    WORDS: FEATURES[: FEATURES.index("cosine")],
    SENTENCES: (
        "text in text",
        "candidate's title in text",
        "same title",
        "same text",
        "cosine",
        "size of the forum",
        MARGIN,
    ),
}
"""An encoder of sentences needs no more of words: with the cosine of texts, hits of two forums were in a worse order
than by the encoder alone. How large a forum is brings nothing to words alone; how far its questions stand out from one
another says something beyond chance to sentences alone (LOG.md)."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Pairs to fit: features (N, F), and of each (N,) grade, query, forum, weight, and weight in its query's order."""

    features: Floats
    grades: Floats
    queries: NDArray[np.int64]
    forums: NDArray[np.int64]
    weights: Floats
    ordered: Floats


def training_rows(
    pairs: Sequence[Pairs],
    version: str,
    without: Collection[str],
) -> Rows:
    """Return what is fitted for a version, without some forums."""
    found: list[tuple[Floats | NDArray[np.int64], ...]] = []
    far = OF_ELSEWHERE[version]
    of_kind = {
        "copy": OF_COPIES,
        "copy of title": OF_COPIES,
        "elsewhere": far,
        "nonsense": far,
        OTHER_FORM: OF_OTHER_FORM,
    }
    forums = list(ARCHIVES)
    for number, one in enumerate(pairs):
        features = getattr(one, FIELDS[version])
        if one.forum in without or one.kind == "edited" or features is None:
            continue
        known = ~np.isnan(one.grades)
        weight = of_kind.get(one.kind, 1.0)
        ordered = weight if one.kind in ORDERED and one.forum != "qatar" else 0.0
        if one.forum == "qatar":
            weight *= OF_QATAR
        size = int(known.sum())
        numbers = [np.full(size, value) for value in (number, forums.index(one.forum))]
        shown = features[known] * np.isin(FEATURES, USED[version])
        found.append((shown, one.grades[known], *numbers, np.full(size, weight), np.full(size, ordered)))
    return Rows(*(np.concatenate(part) for part in zip(*found, strict=True)))


def fitted(data: Rows) -> Scorer:
    """Return the scorer of least penalised loss: ordinal logistic, and softmax among a query's candidates. ::

    - Σ_i Σ_{k=1..3} λ_k ln P(y_ik) - ρ Σ_q Σ_i t_qi ln softmax_q(z)_i + |w|² PENALTY / 2 + |r|² / (2 BETWEEN_FORUMS²)

    t ∝ 2^grade - 1; P(y_ik) = σ(b_k + z_i + r_f), with r_f an offset of the forum, which a new forum has not.
    """
    used = data.features.std(axis=0) > 0
    scale = np.where(used, data.features.std(axis=0), 1.0)
    order = np.argsort(data.queries, kind="stable")
    inputs, grades, queries = data.features[order] / scale, data.grades[order], data.queries[order]
    weights, ordered, forums = data.weights[order], data.ordered[order], data.forums[order]
    targets = [np.clip(grades - (grade - 1), 0, 1) for grade in (1, 2, 3)]
    starts = np.flatnonzero(np.r_[True, queries[1:] != queries[:-1]])
    sizes = np.diff(np.r_[starts, len(queries)])
    gains = 2.0**grades - 1
    totals = np.repeat(np.add.reduceat(gains, starts), sizes)
    wanted = AMONG_CANDIDATES * ordered * np.divide(gains, totals, out=np.zeros(len(gains)), where=totals > 0)
    pulled = np.repeat(np.add.reduceat(wanted, starts), sizes)
    count, places = inputs.shape[1], len(ARCHIVES)

    def loss(values: Floats) -> tuple[float, Floats]:
        z, offsets = inputs @ values[:count], values[count + 3 :]
        value = PENALTY / 2 * float(values[:count] @ values[:count]) + float(offsets @ offsets) / (
            2 * BETWEEN_FORUMS**2
        )
        slope, gradient = np.zeros(len(z)), np.zeros(3)
        for place, (target, counted) in enumerate(zip(targets, (0.5, 1.0, 0.5), strict=True)):
            logits = z + offsets[forums] + values[count + place]
            value += counted * float((weights * (np.logaddexp(0, logits) - target * logits)).sum())
            residue = counted * weights * (probability(logits) - target)
            slope += residue
            gradient[place] = residue.sum()
        of_forums = np.bincount(forums, slope, places) + offsets / BETWEEN_FORUMS**2
        peaks = np.repeat(np.maximum.reduceat(z, starts), sizes)
        powers = np.exp(z - peaks)
        sums = np.repeat(np.add.reduceat(powers, starts), sizes)
        value -= float((wanted * (z - peaks - np.log(sums))).sum())
        slope += pulled * powers / sums - wanted
        return value, np.concatenate([inputs.T @ slope + PENALTY * values[:count], gradient, of_forums])

    bounds = [(None if name in FREE else 0.0, None) for name in FEATURES]
    bounds += [(None, None)] * (3 + places)
    start = np.concatenate([np.zeros(count), [-1.0, -2.5, -4.0], np.zeros(places)])
    done = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 800})
    weights_found = np.where(used, done.x[:count] / scale, 0.0)
    return Scorer(weights_found, float(done.x[count + 1]), float(min(done.x[count + 1 : count + 3])))


def package_weights(pairs: Sequence[Pairs]) -> str:
    """Return the file of the weights of all forums; a version stays where no number differs by more than ``NOISE``."""
    versions = json.loads(WEIGHTS.read_text(encoding="utf-8"))["versions"]
    for version in VERSIONS:
        new = to_json(fitted(training_rows(pairs, version, [])))
        if largest_difference(new, versions[version]) > NOISE:
            versions[version] = new
    return json.dumps({"format": FORMAT, "learned by": COMMAND, "versions": versions}, indent=1) + "\n"


def largest_difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Return the largest difference between the numbers of two versions."""
    both = [{"related": it["related"], "same": it["same"], **it["weights"]} for it in (one, other)]
    return max(abs(float(both[0].get(name, 0.0)) - float(both[1].get(name, 0.0))) for name in both[0] | both[1])


def to_json(scorer: Scorer) -> dict[str, Any]:
    """Return weights as they are written into files."""
    weights_of = {
        name: round(float(weight), 4) for name, weight in zip(FEATURES, scorer.weights, strict=True) if weight
    }
    return {"weights": weights_of, "related": round(scorer.related, 4), "same": round(scorer.same, 4)}
