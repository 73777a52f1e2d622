"""What people's judgements do to probabilities, by how the pairs were drawn; what a widget shows by which minimum.

Command: ``python -m benchmarks.judgements``. Sets: graded pairs of eleven forums, and Quora's labelled pairs. Logits
of each come from weights that were fitted without it.

- From the top of the queue: the likeliest n pairs are judged, and probabilities of all other pairs updated. Calibration
  error of these before and after, ten equal groups; the interval is paired, over queries. A perfect hit is a copy of a
  question with title and body.
- By share of the sample: n pairs are judged, a share of them drawn from strata; calibration error of the others, and
  the mean distance over the strata that have ten or more of them, which the rare likely ones decide.
- Off-topic titles: how many show anything by a minimum, and how many questions with a graded match still show it.

Writes ``results/judgements.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from recipes.scorer.fit import fitted, without
from recipes.scorer.pairs import ARCHIVES, JUDGED, QUORA, Pairs, all_pairs
from scipy.optimize import minimize_scalar

from askalike.forum.queue import BORDERS, EVERY, stratum_of
from askalike.search.calibration import Update, posterior
from askalike.search.features import Floats
from askalike.search.scorer import USUAL, VECTORS, VERSIONS, Scorer, probability
from benchmarks.record import option_parser, write

COMMAND: Final = "python -m benchmarks.judgements"
COUNTS: Final = (0, 1, 5, 20, 100)
SHARES: Final = (0.0, 0.1, 1 / EVERY, 1 / 3, 0.5)
SAMPLED: Final = (5, 20, 100, 300)
ROUNDS: Final = 500
SEEDS: Final = 20
GROUPS: Final = 10
MINIMA: Final = (0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2)


@dataclass(frozen=True, slots=True)
class Labelled:
    """Pairs of one set with what is so of them.

    Args:
        logits: before any judgement.  # (N,)
        is_same: # (N,)
        queries: of each pair.  # (N,)
        perfect: the logit of a copy.
    """

    logits: Floats
    is_same: NDArray[np.bool_]
    queries: NDArray[np.int64]
    perfect: float


def labelled(pairs: Sequence[Pairs], scorer: Scorer, perfect: float, version: str) -> Labelled:
    """Return the graded pairs of some queries."""
    return Labelled(
        np.concatenate([scorer.logits(query.by_version(version)) for query in pairs]),
        np.concatenate([query.grades >= 1.75 for query in pairs]),
        np.concatenate([np.full(len(query.grades), number) for number, query in enumerate(pairs)]),
        perfect,
    )


def calibration_error(likely: Floats, is_so: NDArray[np.bool_]) -> float:
    """Return the mean distance of probability and share over ten equal groups of like probability, in points."""
    order = np.argsort(likely, kind="stable")
    return 100 * float(np.mean([abs(likely[at].mean() - is_so[at].mean()) for at in np.array_split(order, GROUPS)]))


def _error_of(update: Update, data: Labelled, rest: NDArray[np.int64]) -> float:
    return calibration_error(probability(update.moved(data.logits[rest])), data.is_same[rest])


def from_the_top(data: Labelled) -> dict[str, Any]:
    """Return the error of all other pairs after judgements of the likeliest, and what a perfect hit loses."""
    order = np.argsort(-data.logits, kind="stable")
    found: dict[str, Any] = {}
    for count in [one for one in COUNTS if one <= len(order) // 2]:
        judged, rest = order[:count], order[count:]
        update = posterior(data.logits[judged].tolist(), data.is_same[judged].tolist())
        none_same = posterior(data.logits[judged].tolist(), [False] * count)
        before, after = (_error_of(one, data, rest) for one in (Update(), update))
        chance = np.random.default_rng(0)
        by_query = [rest[data.queries[rest] == query] for query in np.unique(data.queries[rest])]
        gained = []
        for _ in range(ROUNDS if any(update.shifts) else 0):
            drawn = np.concatenate([by_query[at] for at in chance.integers(0, len(by_query), len(by_query))])
            gained.append(_error_of(update, data, drawn) - _error_of(Update(), data, drawn))
        low, high = np.quantile(gained, [0.025, 0.975]) if gained else (0.0, 0.0)
        top = np.array([data.perfect])
        lost = [float(probability(top)[0] - probability(one.moved(top))[0]) for one in (update, none_same)]
        found[str(count)] = {
            "pairs": len(rest),
            "error before": round(before, 2),
            "error after": round(after, 2),
            "difference": [round(float(one), 2) for one in (after - before, low, high)],
            "is worse": bool(low > 1e-9),
            "points that a perfect hit loses": [round(100 * one, 2) for one in lost],
        }
    return found


def by_strata(update: Update, data: Labelled, rest: NDArray[np.int64]) -> float:
    """Return the mean distance of probability and share over the strata, in points."""
    likely = probability(update.moved(data.logits[rest]))
    strata = np.array([stratum_of(one) for one in probability(data.logits[rest])])
    groups = [at for at in (np.flatnonzero(strata == one) for one in range(len(BORDERS) + 1)) if len(at) >= 10]
    return 100 * float(np.mean([abs(likely[at].mean() - data.is_same[rest][at].mean()) for at in groups]))


def drawn(data: Labelled, count: int, share: float, chance: np.random.Generator) -> list[int]:
    """Return the places of pairs as a queue shows them: the likeliest first, a share from the strata in turn."""
    order = np.argsort(-data.logits, kind="stable").tolist()
    strata: list[list[int]] = [[] for _ in range(len(BORDERS) + 1)]
    for place in chance.permutation(len(order)).tolist():
        strata[stratum_of(float(probability(data.logits[place : place + 1])[0]))].append(place)
    found: dict[int, None] = {}
    debt, turn = 0.0, 0
    while len(found) < count:
        debt += share
        source = order
        if debt >= 1 and any(strata):
            debt -= 1
            while not strata[turn % len(strata)]:
                turn += 1
            source = strata[turn % len(strata)]
            turn += 1
        while source and source[0] in found:
            source.pop(0)
        if source:
            found[source.pop(0)] = None
    return list(found)


def by_share(data: Labelled, shares: Sequence[float] = SHARES) -> dict[str, Any]:
    """Return the errors of the other pairs by the share of the sample; means over seeds."""
    found: dict[str, Any] = {}
    for count in [one for one in SAMPLED if one <= len(data.logits) // 2]:
        for share in shares:
            chance = np.random.default_rng(0)
            values, low, before = [], [], []
            for _ in range(SEEDS if share else 1):
                judged = drawn(data, count, share, chance)
                rest = np.setdiff1d(np.arange(len(data.logits)), judged)
                update = posterior(data.logits[judged].tolist(), data.is_same[judged].tolist())
                values.append((_error_of(update, data, rest), by_strata(update, data, rest)))
                before.append(_error_of(Update(), data, rest))
                low.append(len({stratum_of(float(one)) for one in probability(data.logits[judged])}))
            mean = np.mean(values, axis=0)
            found[f"{count}, {share:.2f} drawn"] = {
                "error": round(float(mean[0]), 2),
                "error without them": round(float(np.mean(before)), 2),
                "error by strata": round(float(mean[1]), 2),
                "strata seen": round(float(np.mean(low)), 1),
            }
    return found


def shifts(sets: Mapping[str, Labelled]) -> dict[str, Any]:
    """Return by how much each forum's logits are off, and the deviation between forums without that of chance."""
    offs, errors = [], []
    for data in sets.values():
        best = _own_offset(data)
        likely = probability(data.logits + best)
        offs.append(best)
        errors.append(1 / float((likely * (1 - likely)).sum()))
    weights = 1 / np.array(errors)
    mean = float(weights @ np.array(offs) / weights.sum())
    spread = float(weights @ (np.array(offs) - mean) ** 2) - (len(offs) - 1)
    between = max(0.0, spread / float(weights.sum() - (weights**2).sum() / weights.sum()))
    return {"by forum": dict(zip(sets, np.round(offs, 2).tolist(), strict=True)), "between": round(between**0.5, 2)}


def _own_offset(data: Labelled) -> float:
    def loss(move: float) -> float:
        moved = data.logits + move
        return float((np.logaddexp(0, moved) - data.is_same * moved).sum())

    return float(minimize_scalar(loss, bounds=(-5, 5), method="bounded").x)


def shown(pairs: Sequence[Pairs], scorers: Mapping[str, Scorer], version: str) -> dict[str, Any]:
    """Return by minimum how many off-topic titles show something, and how many questions show what is there."""

    def best(kinds: Sequence[str], least: float = -1.0) -> Floats:
        return np.array(
            [
                float(probability(scorers[query.forum].logits(query.by_version(version)))[query.grades >= least].max())
                for query in pairs
                if query.kind in kinds and (query.grades >= least).any()
            ]
        )

    known = {
        "off-topic": best(("elsewhere", "nonsense")),
        "a title of the forum": best(("copy of title",)),
        "one of grade 3": best(JUDGED, 2.75),
        "one of grade 2 or 3": best(JUDGED, 1.75),
    }
    return {
        "default": USUAL[version],
        "queries": {name: len(values) for name, values in known.items()},
        "percent shown": {
            f"{minimum:g}": {name: round(100 * float((values >= minimum).mean()), 1) for name, values in known.items()}
            for minimum in MINIMA
        },
    }


def main() -> None:
    """Run it."""
    option_parser(__doc__).parse_args()
    write("judgements", COMMAND, measure(all_pairs()))


def _sets(pairs: Sequence[Pairs], scorers: Mapping[str, Scorer], version: str) -> dict[str, Labelled]:
    """Return what is known of each set by a version's features."""
    copies = [query for query in pairs if query.kind == "copy"]
    sets = {}
    for name in (*ARCHIVES, QUORA):
        own = [query for query in pairs if query.forum == name and query.kind in (*JUDGED, QUORA)]
        perfect = [
            scorers[name].logits(query.by_version(version)).max() for query in copies if query.forum in (name, "yahoo")
        ]
        sets[name] = labelled(own, scorers[name], float(np.median(perfect)), version)
    return sets


def measure(pairs: Sequence[Pairs]) -> dict[str, Any]:
    """Return everything that the file holds."""
    by = {
        version: {forum: fitted(without(pairs, [forum]), version) for forum in (*ARCHIVES, QUORA)}
        for version in VERSIONS
    }
    every = {version: _sets(pairs, by[version], version) for version in VERSIONS}
    sets = every[VECTORS]
    top = {version: {name: from_the_top(data) for name, data in found.items()} for version, found in every.items()}
    rows = [row for found in top.values() for counts in found.values() for row in counts.values()]
    large = {name: data for name, data in sets.items() if len(data.logits) >= 2 * SAMPLED[2]}
    body: dict[str, Any] = {
        "sets": {
            name: {
                "pairs": len(data.logits),
                "the same": int(data.is_same.sum()),
                "queries": len(np.unique(data.queries)),
            }
            for name, data in sets.items()
        },
        "from the top of the queue": top,
        "worst": {
            "sets and counts that are worse beyond chance": sum(row["is worse"] for row in rows),
            "points that a perfect hit loses": max(max(row["points that a perfect hit loses"]) for row in rows),
        },
        "by share of the sample": {name: by_share(data) for name, data in large.items()},
        "how far forums are off": shifts({forum: sets[forum] for forum in ARCHIVES}),
        "shown": {version: shown(pairs, by[version], version) for version in VERSIONS},
    }
    print(json.dumps({name: body[name] for name in ("worst", "how far forums are off", "shown")}, indent=1))
    return body


if __name__ == "__main__":
    main()
