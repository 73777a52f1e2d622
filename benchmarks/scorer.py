"""The scorer: learned on many forums, judged on forums that it has not seen.

Command: ``python -m benchmarks.scorer [--learn]``. Every figure of a forum comes from weights that were fitted without
it. ``--learn`` writes the weights of all forums into the package. Control in the same table: words alone, the sum of
cosine and BM25 that was the default before, the best fixed weight (chosen on the other forums), a plain logistic over
the same features, and the likelihood shown before. nDCG@5 is graded (2^grade - 1) over the judged candidates alone;
calibration error is the mean distance of ten equal groups, a forum at a time; intervals are paired, over queries.
Writes ``results/scorer.json``. MiniLM needs ``askalike[minilm]``; without it what was measured of it before is kept,
with the commit that it was measured at, and so are the weights for encoders of sentences.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from askalike.evaluation.significance import bootstrap_difference, randomisation_test
from askalike.search.calibration import UNMOVED, posterior
from askalike.search.features import FEATURES, Floats
from askalike.search.scorer import (
    FORMAT,
    FREE,
    SENTENCES,
    VERSIONS,
    WORD_VECTORS,
    WORDS,
    Scorer,
    probability,
    read_scorers,
)
from askalike.search.thresholds import BETWEEN_FORUMS
from askalike.types import Filters, Query
from benchmarks.record import REPOSITORY, RESULTS, WEIGHTS, weights_digest, write
from benchmarks.scorer_sets import ARCHIVES, MARGIN, OTHER_FORM, POOLED, Pairs, Site, all_pairs, rows

COMMAND: Final = "python -m benchmarks.scorer"
FIELDS: Final = {WORDS: "by_words", WORD_VECTORS: "general", SENTENCES: "sentences"}
PENALTY: Final = 10.0
AMONG_CANDIDATES: Final = 3.0
"""How much the order of a query's candidates counts beside the likelihood of grades."""
OF_COPIES: Final = 0.05
OF_ELSEWHERE: Final = {WORDS: 0.1, WORD_VECTORS: 0.01, SENTENCES: 0.1}
"""Titles of other forums are many and easy: they count as little as keeps them below 15 %, where judged pairs gain by
it (``titles of other forums`` in the results)."""
ELSEWHERE: Final = (0.01, 0.1)
OF_QATAR: Final = 0.3
"""Its sets repeat each question many times."""
OF_OTHER_FORM: Final = 0.5
"""A query by its title and with its body: the same judgements twice."""
NOISE: Final = 0.02
"""Weights that another processor finds on the same pairs differ by less."""
INFORMATIVE: Final = "copy of title, informative"
"""Its words are together one and a half times as rare as a word that no question has."""
ORDERED: Final = ("pool", "other", "drawn", OTHER_FORM)
GROUPS: Final = 10
JUDGEMENTS: Final = (0, 1, 5, 20, 100)
NOTHING: Final = 0.15
BEFORE: Final = (-2.16, 3.80)
"""Intercept and slope of the likelihood by the cosine alone that was shown before."""
USED: Final = {
    WORDS: FEATURES[: FEATURES.index("texts by words' vectors")],
    WORD_VECTORS: tuple(name for name in FEATURES if name != MARGIN),
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
another says something beyond chance to sentences alone (``benchmarks.margins``)."""


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
    elsewhere: float | None = None,
    used: Sequence[str] | None = None,
) -> Rows:
    """Return what is fitted for a version, without some forums.

    Args:
        elsewhere: how much titles of other forums and nonsense count; None as ``OF_ELSEWHERE`` says.
        used: features; None as ``USED`` says.
    """
    found: list[tuple[Floats | NDArray[np.int64], ...]] = []
    far = OF_ELSEWHERE[version] if elsewhere is None else elsewhere
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
        shown = features[known] * np.isin(FEATURES, USED[version] if used is None else used)
        found.append((shown, one.grades[known], *numbers, np.full(size, weight), np.full(size, ordered)))
    return Rows(*(np.concatenate(part) for part in zip(*found, strict=True)))


def fitted(data: Rows, *, is_monotone: bool = True, among: float = AMONG_CANDIDATES) -> Scorer:
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
    wanted = among * ordered * np.divide(gains, totals, out=np.zeros(len(gains)), where=totals > 0)
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

    bounds = [(None if name in FREE or not is_monotone else 0.0, None) for name in FEATURES]
    bounds += [(None, None)] * (3 + places)
    start = np.concatenate([np.zeros(count), [-1.0, -2.5, -4.0], np.zeros(places)])
    done = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 800})
    weights_found = np.where(used, done.x[:count] / scale, 0.0)
    return Scorer(weights_found, float(done.x[count + 1]), float(min(done.x[count + 1 : count + 3])))


def ndcg(scores: Floats, one: Pairs) -> float | None:
    """Return graded nDCG@5 of the judged candidates in the order of scores, equal ones by id; None without any."""
    known = [place for place in range(len(one.ids)) if not np.isnan(one.grades[place])]
    gains = [2 ** float(one.grades[place]) - 1 for place in sorted(known, key=lambda at: (-scores[at], one.ids[at]))]
    return None if not any(gains) else float(_ndcg(gains))


def _ndcg(gains: Sequence[float]) -> float:
    discounts = 1 / np.log2(np.arange(2, 7))
    best = sorted(gains, reverse=True)[:5]
    return float(np.dot(gains[:5], discounts[: len(gains[:5])]) / np.dot(best, discounts[: len(best)]))


def calibration_error(likely: Floats, is_so: NDArray[np.bool_]) -> float:
    """Return the mean distance of probability and share over ten equal groups of like probability, in points."""
    order = np.argsort(likely, kind="stable")
    return 100 * float(np.mean([abs(likely[at].mean() - is_so[at].mean()) for at in np.array_split(order, GROUPS)]))


Score = Callable[[Pairs], Floats]


def calibration(pools: Sequence[Pairs], values: Score, grade: float) -> dict[str, Any]:
    """Return how far probabilities of a grade are off, a forum at a time, and their Brier score."""
    errors, briers = [], []
    for forum in POOLED:
        said, was = [], []
        for one in pools:
            if one.forum == forum:
                known = ~np.isnan(one.grades)
                said.append(values(one)[known])
                was.append(one.grades[known] >= grade)
        likely, is_so = np.concatenate(said), np.concatenate(was)
        errors.append(calibration_error(likely, is_so))
        briers.append((likely - is_so) ** 2)
    return {
        "calibration error": round(float(np.mean(errors)), 1),
        "by forum": dict(zip(POOLED, np.round(errors, 1).tolist(), strict=True)),
        "brier": round(float(np.concatenate(briers).mean()), 4),
    }


class Table:
    """The pools, a system at a time.

    Args:
        pools: judged queries of the forums with pools.
    """

    def __init__(self, pools: Sequence[Pairs]) -> None:
        self.pools = list(pools)
        self.outcomes: dict[str, list[float | None]] = {}
        self.rows: dict[str, dict[str, Any]] = {}

    def add(self, name: str, score: Score, likely: Score | None = None, same: Score | None = None) -> None:
        """Judge a system by its order and, where it has them, by its probabilities of grade ≥ 2 and of grade 3."""
        outcomes = [ndcg(score(one), one) for one in self.pools]
        self.outcomes[name] = outcomes
        row: dict[str, Any] = {"ndcg@5": _percent([one for one in outcomes if one is not None])}
        row["by forum"] = {
            forum: _percent(
                [v for v, one in zip(outcomes, self.pools, strict=True) if v is not None and one.forum == forum]
            )
            for forum in POOLED
        }
        for label, values, grade in (("related", likely, 1.75), ("same", same, 2.75)):
            if values is not None:
                row[label] = calibration(self.pools, values, grade)
        self.rows[name] = row

    def compare(self, name: str, with_: str) -> None:
        """Add to a row how much better it is than another, paired over queries."""
        pairs = [
            (one, other)
            for one, other in zip(self.outcomes[name], self.outcomes[with_], strict=True)
            if one is not None and other is not None
        ]
        first, second = zip(*pairs, strict=True)
        found = bootstrap_difference(first, second)
        test = randomisation_test(first, second)
        self.rows[name].setdefault("against", {})[with_] = {
            "difference": round(100 * found.mean, 1),
            "low": round(100 * found.low, 1),
            "high": round(100 * found.high, 1),
            "p": round(test.p_value, 4),
        }


def _percent(values: Sequence[float] | NDArray[Any]) -> float:
    return round(100 * float(np.mean(values)), 1)


def refitted(pools: Sequence[Pairs], forum: str) -> tuple[float, float]:
    """Return intercept and slope of the cosine alone, fitted to this forum's own labels."""
    own = [one for one in pools if one.forum == forum]
    cosines = np.concatenate([one.cosine[~np.isnan(one.grades)] for one in own])
    labels = np.concatenate([one.grades[~np.isnan(one.grades)] >= 1.75 for one in own]).astype(float)

    def loss(values: Floats) -> float:
        logits = values[0] + values[1] * cosines
        return float((np.logaddexp(0, logits) - labels * logits).sum())

    intercept, slope = minimize(loss, np.zeros(2)).x.tolist()
    return intercept, slope


def best_weight(pools: Sequence[Pairs], without: str) -> float:
    """Return the weight of the cosine by which the sum with BM25's share orders the other forums best."""
    others = [one for one in pools if one.forum != without]

    def mean(weight: float) -> float:
        found = [ndcg(weight * one.cosine + (1 - weight) * one.share, one) for one in others]
        return float(np.mean([value for value in found if value is not None]))

    return max((round(0.05 * step, 2) for step in range(21)), key=mean)


def simulate(logits: Floats, is_same: NDArray[np.bool_], perfect: float) -> dict[str, Any]:
    """Return calibration error on all other pairs, and a perfect hit, after judgements from the top of the queue."""
    order = np.argsort(-logits, kind="stable")
    found: dict[str, Any] = {}
    for count in JUDGEMENTS:
        judged, rest = order[:count], order[count:]
        update = posterior(logits[judged].tolist(), is_same[judged].tolist()) if count else UNMOVED
        unlike = posterior(logits[judged].tolist(), [False] * count) if count else UNMOVED
        found[str(count)] = {
            "calibration error": round(calibration_error(probability(update.moved(logits[rest])), is_same[rest]), 2),
            "before": round(calibration_error(probability(logits[rest]), is_same[rest]), 2),
            "perfect hit": round(float(probability(update.moved(np.array([perfect])))[0]), 3),
            "perfect hit, all judged different": round(float(probability(unlike.moved(np.array([perfect])))[0]), 3),
        }
    return found


def reciprocal_ranks(site: Site, scorer: Scorer) -> dict[str, list[float]]:
    """Return by ranker the reciprocal rank of the first duplicate among ten, for each duplicate link of a forum."""
    forum = site.forum
    links = [(link.source_id, link.target_id) for link in forum.links() if link.kind == "duplicate"]
    by_query: dict[str, set[str]] = {}
    for source, target in links:
        by_query.setdefault(source, set()).add(target)
        by_query.setdefault(target, set()).add(source)
    found: dict[str, list[float]] = {"hybrid": [], "probability": []}
    for identifier in sorted(by_query):
        one = forum.question(identifier)
        own = Filters(exclude_ids=frozenset([identifier]))
        for name, values in found.items():
            with using(dict.fromkeys(VERSIONS, scorer)):
                ranked = forum.ranking(Query(one.title, one.body, one.markup, 10, own, name))
            places = [place for place, (other, _) in enumerate(ranked, 1) if other in by_query[identifier]]
            values.append(1 / places[0] if places else 0.0)
    return found


def using(scorers: Mapping[str, Scorer]) -> Any:
    """Return a context in which searches take these weights, by version."""
    from unittest import mock

    from askalike.search import scorer as module

    return mock.patch.object(module, "scorers", return_value=scorers)


def left_out(forum: str) -> dict[str, Scorer]:
    """Return the weights that were learned without a forum when the scorer was measured last, by version."""
    held = json.loads((RESULTS / "scorer.json").read_text(encoding="utf-8"))["weights without"]
    versions = {version: by[forum] for version, by in held.items()}
    return read_scorers(json.dumps({"format": FORMAT, "versions": versions}).encode())


def added_time(site: Site, scorer: Scorer, count: int = 150) -> dict[str, float]:
    """Return the processor time of searches by the sum and by the probability, in turns, by titles and by questions."""
    times: dict[str, list[float]] = {
        f"{kind}, {name}": [] for kind in ("title", "question") for name in ("hybrid", "probability")
    }
    with using(dict.fromkeys(VERSIONS, scorer)):
        for one in site.sample[:count]:
            for label, values in times.items():
                kind, name = label.split(", ")
                begun = time.process_time()
                body = one.body if kind == "question" else ""
                site.forum.ranking(Query(one.title, body, one.markup, 10, ranker=name))
                values.append(1000 * (time.process_time() - begun))
    found = {f"{label}, p50 ms": round(float(np.median(values)), 2) for label, values in times.items()}
    for kind in ("title", "question"):
        added = np.array(times[f"{kind}, probability"]) - np.array(times[f"{kind}, hybrid"])
        found[f"{kind}, added, p50 ms"] = round(float(np.median(added)), 2)
    return found


def known_answers(scorers: Mapping[str, Scorer], pairs: Sequence[Pairs], version: str) -> dict[str, Any]:
    """Return how probable copies and the best of what was asked elsewhere are, each by weights without its forum."""
    best: dict[str, list[float]] = {}
    for one in pairs:
        features = getattr(one, FIELDS[version])
        if features is not None:
            likely = float(probability(scorers[one.forum].logits(features)).max())
            best.setdefault(one.kind, []).append(likely)
            if one.kind == "copy of title" and features[0, FEATURES.index("same title")] == 1:
                best.setdefault(INFORMATIVE, []).append(likely)
    far = np.array(best["elsewhere"] + best["nonsense"])
    found: dict[str, Any] = {
        "elsewhere and nonsense": {
            "queries": len(far),
            f"none above {NOTHING:.0%}": round(100 * float(np.mean(far <= NOTHING)), 1),
            "95th percentile": round(float(np.quantile(far, 0.95)), 3),
        }
    }
    for kind in ("copy", "copy of title", INFORMATIVE, "edited"):
        values = np.array(best[kind])
        found[kind] = {
            "queries": len(values),
            "97% or more": round(100 * float(np.mean(values >= 0.97)), 1),
            "median": round(float(np.median(values)), 3),
            "5th percentile": round(float(np.quantile(values, 0.05)), 3),
        }
    return found


def by_elsewhere(
    judged: Sequence[Pairs],
    known: Sequence[Pairs],
    unseen: Sequence[Pairs],
    version: str,
    chosen: Mapping[str, Scorer],
) -> dict[str, Any]:
    """Return what titles of other forums do to judged pairs by how much they count, each by weights without its forum.

    The likelihood of a query as it was asked is Σ ln P(y) over its judged candidates, y being a grade of 2 or more;
    differences are of the first of ``ELSEWHERE`` less the second, paired, low, mean and high.

    Args:
        chosen: the weights by what ``OF_ELSEWHERE`` says.
    """
    pools = [one for one in judged if one.kind == "pool"]
    found: dict[str, Any] = {"counted": OF_ELSEWHERE[version]}
    likelihoods, gains = [], []
    asked = [one for one in judged if one.kind != OTHER_FORM]
    for counted in ELSEWHERE:
        by = chosen
        if counted != OF_ELSEWHERE[version]:
            by = {forum: fitted(training_rows([*judged, *known], version, [forum], counted)) for forum in ARCHIVES}
        logits, likely, _ = _scores(by, version)
        likelihoods.append([log_likelihood(logits(one), one.grades) for one in asked])
        gains.append([ndcg(logits(one), one) for one in asked])
        found[f"{counted:g}"] = {
            "calibration error": calibration(pools, likely, 1.75)["by forum"],
            "elsewhere and nonsense": known_answers(by, unseen, version)["elsewhere and nonsense"],
        }
    gain = bootstrap_difference(*likelihoods)
    order = bootstrap_difference(*([100 * one for one in part if one is not None] for part in gains))
    return found | {
        "likelihood of a query": [round(one, 4) for one in (gain.low, gain.mean, gain.high)],
        "ndcg@5": [round(one, 2) for one in (order.low, order.mean, order.high)],
    }


def log_likelihood(logits: Floats, grades: Floats) -> float:
    """Return Σ ln P(y) over the judged candidates, y being a grade of 2 or more."""
    known = ~np.isnan(grades)
    return float(((grades[known] >= 1.75) * logits[known] - np.logaddexp(0, logits[known])).sum())


def by_form(judged: Sequence[Pairs], scorers: Mapping[str, Scorer], version: str) -> dict[str, Any]:
    """Return how probable judged pairs are said to be and are, by titles and with bodies, in every forum."""
    found: dict[str, Any] = {}
    for form in ("title", "title and body"):
        for forum in ARCHIVES:
            some = [one for one in judged if one.forum == forum and one.is_title == (form == "title")]
            grades = rows(some, "grades")
            logits = np.concatenate([scorers[forum].logits(getattr(one, FIELDS[version])) for one in some])
            likely, is_so = probability(logits), grades >= 1.75
            found.setdefault(form, {})[forum] = {
                "pairs": len(grades),
                "said": _percent(likely),
                "was": _percent(is_so),
                "calibration error": round(calibration_error(likely, is_so), 1),
                "brier": round(float(np.mean((likely - is_so) ** 2)), 4),
            }
    return found


def measure(judged: list[Pairs], known: list[Pairs], unseen: list[Pairs], sites: Mapping[str, Site]) -> dict[str, Any]:
    """Return everything that the file holds."""
    pools = [one for one in judged if one.kind == "pool"]
    versions = [WORDS, WORD_VECTORS] + ([SENTENCES] if pools[0].sentences is not None else [])
    by: dict[str, dict[str, Scorer]] = {}
    for version in versions:
        by[version] = {forum: fitted(training_rows([*judged, *known], version, [forum])) for forum in ARCHIVES}
    table = Table(pools)
    cosines = {forum: best_weight(pools, forum) for forum in POOLED}
    own = {forum: refitted(pools, forum) for forum in POOLED}
    plain = {
        forum: fitted(training_rows([*judged, *known], WORD_VECTORS, [forum]), is_monotone=False, among=0.0)
        for forum in POOLED
    }
    intercept, slope = BEFORE
    table.add("words alone", lambda one: one.bm25)
    table.add(
        "the sum, default before",
        lambda one: 0.4 * one.cosine + 0.6 * one.share,
        lambda one: probability(intercept + slope * one.cosine),
    )
    table.add(
        "the sum, best weight", lambda one: cosines[one.forum] * one.cosine + (1 - cosines[one.forum]) * one.share
    )
    table.add(
        "cosine, fitted to own labels",
        lambda one: one.cosine,
        lambda one: probability(own[one.forum][0] + own[one.forum][1] * one.cosine),
    )
    table.add("plain logistic", *_scores(plain, WORD_VECTORS))
    for version in versions:
        table.add(f"scorer, {version}", *_scores(by[version], version))
    if SENTENCES in versions:
        used = [name for name in USED[SENTENCES] if name != MARGIN]
        control = {forum: fitted(training_rows([*judged, *known], SENTENCES, [forum], used=used)) for forum in POOLED}
        table.add(f"scorer, {SENTENCES}, without the forum's margin", *_scores(control, SENTENCES))
        table.add("MiniLM's cosine", lambda one: _present(one.minilm))
        table.compare(f"scorer, {SENTENCES}", "MiniLM's cosine")
        table.compare(f"scorer, {SENTENCES}", f"scorer, {SENTENCES}, without the forum's margin")
    for version in versions:
        table.compare(f"scorer, {version}", "the sum, default before")
    table.compare(f"scorer, {WORD_VECTORS}", "plain logistic")
    table.compare(f"scorer, {WORD_VECTORS}", "the sum, best weight")
    travel = reciprocal_ranks(sites["travel"], by[WORD_VECTORS]["travel"])
    gain = bootstrap_difference(travel["probability"], travel["hybrid"])
    chance = randomisation_test(travel["probability"], travel["hybrid"])
    return {
        "judged": {
            "pools": {"queries": len(pools), "pairs": int(sum((~np.isnan(one.grades)).sum() for one in pools))},
            "others": {
                "queries": sum(one.kind == "other" for one in judged),
                "pairs": int(sum((~np.isnan(one.grades)).sum() for one in judged if one.kind == "other")),
                "grades": _counts([one for one in judged if one.kind == "other"]),
            },
        },
        "pools": table.rows,
        "by form": {version: by_form(judged, by[version], version) for version in versions},
        "weights of the cosine": cosines,
        "weights without": {version: {forum: _written(one) for forum, one in of.items()} for version, of in by.items()},
        "known answers": {version: known_answers(by[version], unseen, version) for version in versions},
        "judgements from the top of the queue": {
            forum: _simulated(pools, by[WORD_VECTORS], unseen, forum) for forum in POOLED
        },
        "travel, open duplicate links": {
            "queries": len(travel["hybrid"]),
            "mrr@10": {name: round(float(np.mean(values)), 4) for name, values in travel.items()},
            "difference": [round(gain.mean, 4), round(gain.low, 4), round(gain.high, 4)],
            "p": round(chance.p_value, 4),
        },
        "titles of other forums": {
            version: by_elsewhere(judged, known, unseen, version, by[version]) for version in versions
        },
        "time": {name: added_time(sites[name], by[WORD_VECTORS][name]) for name in ("travel", "devops", "reddit")},
        "outcomes": {
            name: [None if one is None else round(one, 4) for one in found] for name, found in table.outcomes.items()
        },
        "queries": [one.forum for one in pools],
    }


def _simulated(
    pools: Sequence[Pairs], scorers: Mapping[str, Scorer], unseen: Sequence[Pairs], forum: str
) -> dict[str, Any]:
    own = [one for one in pools if one.forum == forum]
    logits = np.concatenate([scorers[forum].logits(one.general[~np.isnan(one.grades)]) for one in own])
    is_same = np.concatenate([one.grades[~np.isnan(one.grades)] >= 1.75 for one in own])
    copies = [scorers[forum].logits(one.general).max() for one in unseen if one.kind == "copy" and one.forum == forum]
    return simulate(logits, is_same, float(np.median(copies)))


def _present(values: Floats | None) -> Floats:
    assert values is not None, "every judged pair was compared by MiniLM"
    return values


def _scores(scorers: Mapping[str, Scorer], version: str) -> tuple[Score, Score, Score]:
    def logits(one: Pairs) -> Floats:
        return scorers[one.forum].logits(getattr(one, FIELDS[version]))

    def same(one: Pairs) -> Floats:
        scorer = scorers[one.forum]
        return probability(logits(one) + scorer.same - scorer.related)

    return logits, lambda one: probability(logits(one)), same


def _counts(pairs: Sequence[Pairs]) -> dict[str, int]:
    grades = np.round(rows(pairs, "grades"))
    return {str(grade): int((grades == grade).sum()) for grade in range(4)}


def with_sentences(found: dict[str, Any], held: Mapping[str, Any]) -> dict[str, Any]:
    """Return results with what an earlier run measured by MiniLM, where this one had none."""
    kept = {"commit": held["commit"]}
    for part in ("pools", "by form", "known answers", "titles of other forums", "weights without"):
        for name, row in held.get(part, {}).items():
            if name not in found[part]:
                found[part][name] = kept | row
    found["outcomes"] = {**held["outcomes"], **found["outcomes"]}
    return found


def learned(judged: Sequence[Pairs], known: Sequence[Pairs]) -> str:
    """Return the file of the weights of all forums; a version stays as it is where MiniLM was not asked, or where no
    number differs by more than processors do.
    """
    versions = json.loads(WEIGHTS.read_text(encoding="utf-8"))["versions"]
    for version in VERSIONS:
        if getattr(judged[0], FIELDS[version]) is not None:
            found = _written(fitted(training_rows([*judged, *known], version, [])))
            if furthest(found, versions[version]) > NOISE:
                versions[version] = found
    return json.dumps({"format": FORMAT, "learned by": COMMAND, "versions": versions}, indent=1) + "\n"


def furthest(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Return by how much the numbers of two versions differ at most."""
    both = [{"related": it["related"], "same": it["same"], **it["weights"]} for it in (one, other)]
    return max(abs(float(both[0].get(name, 0.0)) - float(both[1].get(name, 0.0))) for name in both[0] | both[1])


def _written(one: Scorer) -> dict[str, Any]:
    weights_of = {name: round(float(weight), 4) for name, weight in zip(FEATURES, one.weights, strict=True) if weight}
    return {"weights": weights_of, "related": round(one.related, 4), "same": round(one.same, 4)}


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learn", action="store_true", help="write the weights of all forums into the package")
    given = parser.parse_args()
    sites, judged, known, unseen = all_pairs()
    found = measure(judged, known, unseen, sites)
    for name, row in found["pools"].items():
        print(f"{name:30} {row['ndcg@5']:5} {row.get('related', {})} {row.get('against', {})}")
    shown = ("titles of other forums", "known answers", "travel, open duplicate links", "time")
    print(json.dumps({key: found[key] for key in shown}, indent=1))
    body = with_sentences(found, json.loads((RESULTS / "scorer.json").read_text(encoding="utf-8")))
    if given.learn:  # last: it changes a file of the commit that the results name
        text = learned(judged, known)
        write("scorer", COMMAND, body | {"weights": weights_digest(text)})
        WEIGHTS.write_text(text, encoding="utf-8")
        print(f"wrote {WEIGHTS.relative_to(REPOSITORY)}")
    else:
        write("scorer", COMMAND, body)


if __name__ == "__main__":
    main()
