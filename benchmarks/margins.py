"""Whether how far a forum's questions stand out from one another tells how many of its likely pairs are duplicates.

Command: ``python -m benchmarks.margins``. Forums differ in their rate of duplicates beyond what a pair shows; this asks
whether the margin of a forum (``search.margin``), which needs no label, tells a part of it: one feature more, the same
for all pairs of a forum, beside the offsets that forums have while the scorer is learned. For each version of the
scorer, a forum other than travel is judged by weights that were learned without it and without travel: log likelihood
of a query as it was asked, with the feature less without, its interval over queries and over forums (these drawn
first). Calibration error of the pools by weights without their forum alone is what ``benchmarks.scorer`` tells of.
Writes ``results/margins.json``; what is used follows from it (``benchmarks.scorer.USED``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from askalike.evaluation.significance import bootstrap_difference
from askalike.search.features import FEATURES
from askalike.search.margin import SAMPLE
from askalike.search.scorer import VERSIONS, probability
from benchmarks.record import write
from benchmarks.scorer import FIELDS, USED, calibration_error, fitted, log_likelihood, training_rows
from benchmarks.scorer_sets import ARCHIVES, MARGIN, OTHER_FORM, POOLED, Pairs, all_pairs

COMMAND: Final = "python -m benchmarks.margins"
ROUNDS: Final = 2000
LEFT: Final = "travel"


def over_forums(gains: Mapping[str, Sequence[float]]) -> list[float]:
    """Return the 95 % interval of the mean over queries, forums drawn first and then queries of each."""
    drawn, lists, means = np.random.default_rng(0), list(gains.values()), []
    for _ in range(ROUNDS):
        chosen = [lists[at] for at in drawn.integers(len(lists), size=len(lists))]
        means.append(np.concatenate([drawn.choice(one, len(one)) for one in chosen]).mean())
    return [round(float(one), 4) for one in np.quantile(means, [0.025, 0.975])]


def measured(pairs: Sequence[Pairs], judged: Sequence[Pairs], version: str) -> dict[str, Any]:
    """Return what the feature brings to a version."""
    without = tuple(name for name in USED[version] if name != MARGIN)
    forms = {"without": without, "with": (*without, MARGIN)}
    gains: dict[str, list[float]] = {}
    for forum in ARCHIVES:
        if forum == LEFT:
            continue
        by = {name: fitted(training_rows(pairs, version, [forum, LEFT], used=used)) for name, used in forms.items()}
        for one in judged:
            if one.forum == forum and one.kind != OTHER_FORM:
                features = getattr(one, FIELDS[version])
                before, after = (log_likelihood(by[name].logits(features), one.grades) for name in forms)
                gains.setdefault(forum, []).append(after - before)
    every = np.concatenate(list(gains.values())).tolist()
    gain = bootstrap_difference(every, [0.0] * len(every))
    errors: dict[str, dict[str, float]] = {}
    for forum in POOLED:
        own = [one for one in judged if one.forum == forum and one.kind == "pool"]
        kept = [~np.isnan(one.grades) for one in own]
        is_so = np.concatenate([one.grades[known] >= 1.75 for one, known in zip(own, kept, strict=True)])
        for name, used in forms.items():
            scorer = fitted(training_rows(pairs, version, [forum], used=used))
            rows = [scorer.logits(getattr(one, FIELDS[version])[known]) for one, known in zip(own, kept, strict=True)]
            error = calibration_error(probability(np.concatenate(rows)), is_so)
            errors.setdefault(forum, {})[name] = round(error, 2)
    return {
        "queries": len(every),
        "likelihood of a query": round(gain.mean, 4),
        "over queries": [round(gain.low, 4), round(gain.high, 4)],
        "over forums": over_forums(gains),
        "by forum": {name: round(float(np.mean(of)), 3) for name, of in gains.items()},
        "calibration error": errors,
        "used": MARGIN in USED[version],
    }


def main() -> None:
    """Run it."""
    _, judged, known, _ = all_pairs()
    place = FEATURES.index(MARGIN)
    standings = {one.forum: round(float(one.general[0, place]), 3) for one in judged}
    found = {version: measured([*judged, *known], judged, version) for version in VERSIONS}
    for version, row in found.items():
        print(version, row)
    write("margins", COMMAND, {"questions asked": SAMPLE, "margins of forums": standings, "versions": found})


if __name__ == "__main__":
    main()
