"""Whether how far a question's best match stands out tells how many of a forum's likely pairs are duplicates.

Command: ``python -m benchmarks.margins``. Forums differ in their rate of duplicates beyond what a pair shows; this asks
whether a figure of the forum, which needs no label, tells a part of it. Of ``SAMPLE`` questions q of a forum, each
asked by its title and with its body among all others::

    b_i      = BM25 of q in the i-th best other question / BM25 of q in itself
    margin   = mean over q of b_1 - (b_2 + … + b_10) / 9, the mean of both forms

Its logarithm, centred and scaled by the forums that were learned from and cut to ±2, is one more feature, the same for
all pairs of a forum, beside the offsets that forums have while the scorer is learned. Every forum is judged by weights
without it and without travel, travel and the other pools by weights without them: log likelihood of a query as it was
asked, with and without the feature, its interval over queries and over forums; calibration error of the pools.
Writes nothing: the package's scorer has no such feature.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.evaluation.significance import bootstrap_difference
from askalike.search.features import FEATURES
from askalike.search.scorer import VERSIONS, Scorer, probability
from askalike.types import Query
from benchmarks.scorer import FIELDS, calibration_error, fitted, log_likelihood, training_rows
from benchmarks.scorer_sets import OTHER_FORM, POOLED, Pairs, Site, all_pairs

SAMPLE: Final = 150
LARGEST: Final = 2.0
ROUNDS: Final = 2000
LEFT: Final = "travel"


def margin(scores: Sequence[float], own: float) -> float:
    """Return how far the best stands out from the next nine, as a share of a text's score with itself.

    >>> margin([6.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 1.0], 10.0)
    0.3
    """
    best = sorted(scores, reverse=True)[:10]
    return round((best[0] - sum(best[1:]) / len(best[1:])) / own, 9)


def margin_of(site: Site) -> float:
    """Return the forum's margin."""
    found: dict[str, list[float]] = {"title": [], "title and body": []}
    for one in site.sample[:SAMPLE]:
        for form, body in (("title", ""), ("title and body", one.body)):
            if form == "title" and not one.body.strip():
                continue
            made = site.pairs(form, Query(one.title, body, markup=one.markup), "", {one.id: 3.0}, 50, with_minilm=False)
            if made is None:
                continue
            is_own = np.array([other == one.id for other in made.ids])
            own = float(made.bm25[is_own].sum())
            if own > 0 and (~is_own).sum() > 10:
                found[form].append(margin(made.bm25[~is_own].tolist(), own))
    return float(np.mean([np.mean(values) for values in found.values()]))


def column(margins: Mapping[str, float], learned: Collection[str]) -> dict[str, float]:
    """Return the feature of each forum."""
    logs = {forum: float(np.log(value)) for forum, value in margins.items()}
    some = np.array([logs[forum] for forum in learned])
    return {forum: float(np.clip((it - some.mean()) / some.std(), -LARGEST, LARGEST)) for forum, it in logs.items()}


def with_margin(
    pairs: Sequence[Pairs], version: str, without: Collection[str], margins: Mapping[str, float] | None
) -> tuple[Scorer, dict[str, float]]:
    """Return weights that were learned without these forums, and what the feature adds to each forum's logits."""
    forums = list(margins or ())
    kept = [one for one in pairs if one.forum not in without]
    data = training_rows(kept, version, "")
    of = column(margins, {one.forum for one in kept}) if margins else {}
    if margins:
        by_number = {number: of[one.forum] for number, one in enumerate(kept)}
        extra = np.array([by_number[number] for number in data.queries.tolist()])
        data = replace(data, features=np.column_stack([data.features, extra]))
    found = fitted(data)
    plain = replace(found, weights=found.weights[: len(FEATURES)])
    weight = float(found.weights[-1]) if margins else 0.0
    return plain, {forum: weight * of[forum] for forum in forums}


def over_forums(gains: Mapping[str, Sequence[float]]) -> NDArray[np.float64]:
    """Return the 95 % interval of the mean over queries, forums drawn first and then queries of each."""
    drawn, lists, means = np.random.default_rng(0), list(gains.values()), []
    for _ in range(ROUNDS):
        chosen = [lists[at] for at in drawn.integers(len(lists), size=len(lists))]
        means.append(np.concatenate([drawn.choice(one, len(one)) for one in chosen]).mean())
    return np.asarray(np.quantile(means, [0.025, 0.975]))


def main() -> None:
    """Run it."""
    sites, judged, known, _ = all_pairs()
    margins = {name: margin_of(site) for name, site in sites.items()}
    print("margins", {name: round(value, 3) for name, value in margins.items()})
    measure([*judged, *known], judged, margins)


def measure(pairs: Sequence[Pairs], judged: Sequence[Pairs], margins: Mapping[str, float]) -> None:
    """Print what the feature brings."""
    for version in VERSIONS:
        gains: dict[str, list[float]] = {}
        for forum in margins:
            if forum == LEFT:
                continue
            plain, _ = with_margin(pairs, version, {forum, LEFT}, None)
            moved, added = with_margin(pairs, version, {forum, LEFT}, margins)
            for one in judged:
                if one.forum == forum and one.kind != OTHER_FORM:
                    features = getattr(one, FIELDS[version])
                    after = log_likelihood(moved.logits(features) + added[forum], one.grades)
                    before = log_likelihood(plain.logits(features), one.grades)
                    gains.setdefault(forum, []).append(after - before)
        every = np.concatenate(list(gains.values())).tolist()
        gain = bootstrap_difference(every, [0.0] * len(every))
        low, high = over_forums(gains)
        print(f"{version}: {gain.mean:+.4f}, over queries {gain.low:+.4f} to {gain.high:+.4f},", end=" ")
        print(
            f"over forums {low:+.4f} to {high:+.4f}", {name: round(float(np.mean(of)), 3) for name, of in gains.items()}
        )
        for forum in POOLED:
            own = [one for one in judged if one.forum == forum and one.kind == "pool"]
            errors = []
            for told in (None, margins):
                scorer, added = with_margin(pairs, version, {forum}, told)
                kept = [~np.isnan(one.grades) for one in own]
                is_so = np.concatenate([one.grades[known] >= 1.75 for one, known in zip(own, kept, strict=True)])
                logits = np.concatenate(
                    [scorer.logits(getattr(one, FIELDS[version])[known]) for one, known in zip(own, kept, strict=True)]
                )
                errors.append(round(calibration_error(probability(logits + added.get(forum, 0.0)), is_so), 2))
            print(f"  {forum}: off by {errors[0]} without, {errors[1]} with, logits moved by {added[forum]:+.2f}")


if __name__ == "__main__":
    main()
