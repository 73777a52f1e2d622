"""The scorer on queries that were drawn by chance and read after it had been learned: its order and its probabilities.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.drawn_queries``, after ``python -m benchmarks.encoders --build``.

404 queries of eight forums with 5,178 candidates, graded by the guide of the judged pools (``benchmarks.reading``; the
data of ``judged-drawn.jsonl``). No weight, feature or threshold was chosen by them, and all figures of a forum are by
weights that were fitted without the forum. Order: graded nDCG@5 of the judged candidates alone, every query by its
title and with its body; of travel, Slicer and DevOps also as searches of the whole forums list them. Probabilities:
calibration error (ten equal groups) of the queries as they were asked, alone and together with those of the judged
pools, beside what chance would bring were every probability right. Control: the same weights learned with these queries
too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
from recipes.scorer import fit
from recipes.scorer.pairs import (
    ARCHIVES,
    DRAWN,
    POOLED,
    Pairs,
    Site,
    drawn,
    judged_pairs,
    known_pairs,
    rows,
)
from sklearn.metrics import cohen_kappa_score

from askalike.evaluation.significance import bootstrap_difference
from askalike.forum import Forum, ForumSettings
from askalike.search.features import Floats
from askalike.search.scorer import SENTENCES, VERSIONS, WORD_VECTORS, Scorer, probability
from askalike.types import Filters, Query
from benchmarks import encoders, scorer
from benchmarks.reading import WHOLE
from benchmarks.record import option_parser, write

COMMAND: Final = "OMP_NUM_THREADS=1 python -m benchmarks.drawn_queries"
ORDERS: Final = ("words", "general", "MiniLM's cosine", "MiniLM")
COMPARED: Final = (("general", "words"), ("MiniLM", "MiniLM's cosine"))
ENCODERS: Final = ("general", "minilm")
LEAST: Final = {"grade 2 or 3": 1.75, "grade 3": 2.75}
DRAWINGS: Final = 1_000
SURE: Final = 0.95
COPIES: Final = 100

Fits = Mapping[str, Mapping[str, Scorer]]
"""Version → forum → weights that were fitted without it."""


def fits(pairs: Sequence[Pairs]) -> Fits:
    """Return weights of each version, by the forum that they were learned without."""
    return {
        version: {forum: fit.fitted(fit.training_rows(pairs, version, [forum])) for forum in ARCHIVES}
        for version in VERSIONS
    }


def logits(one: Pairs, version: str, weights: Fits) -> Floats:
    """Return the scores of a query's candidates."""
    return weights[version][one.forum].logits(getattr(one, fit.FIELDS[version]))


# -- order -------------------------------------------------------------------------------------------------------------


def ordered(pairs: Sequence[Pairs], weights: Fits) -> dict[str, list[tuple[float, ...]]]:
    """Return forum → what each query has by each of ``ORDERS``."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for one in pairs:
        assert one.minilm is not None
        scores = (one.bm25, logits(one, WORD_VECTORS, weights), one.minilm, logits(one, SENTENCES, weights))
        gains = [scorer.ndcg(by, one) for by in scores]
        if gains[0] is not None:
            found.setdefault(one.forum, []).append(tuple(100 * (gain or 0.0) for gain in gains))
    return found


def searched(weights: Fits) -> tuple[dict[str, list[tuple[float, ...]]], dict[str, Any]]:
    """Ask whole forums. Return forum → what a query has by each of ``ORDERS``, and how far the probabilities of the
    queries as they were asked are off."""
    found: dict[str, list[tuple[float, ...]]] = {}
    off: dict[str, Any] = {}
    for name in WHOLE:
        own = {version: weights[version][name] for version in VERSIONS}
        said: dict[str, list[tuple[float, float]]] = {}
        with scorer.using(own), ExitStack() as opened:
            general, minilm = (opened.enter_context(_opened(encoders.build(name, one))) for one in ENCODERS)
            asked = [(general, "words"), (general, None), (minilm, "meaning"), (minilm, None)]
            for _, forum, query, as_asked, grades in drawn():
                if forum != name:
                    continue
                one, filters = general.question(query), Filters(exclude_ids=frozenset({query}))
                for body in {"", one.body} if one.body.strip() else {""}:
                    gains = []
                    for by, (place, ranker) in zip(ORDERS, asked, strict=True):
                        listed = place.ranking(Query(one.title, body, one.markup, encoders.LISTED, filters, ranker))
                        if any(grades.values()):
                            gains.append(100 * encoders.ndcg([it for it, _ in listed], grades))
                        if ranker is None and (as_asked == "title") == (not body):
                            scores = dict(listed)
                            said.setdefault(by, []).extend(
                                (scores.get(it, 0.0), it_has) for it, it_has in grades.items()
                            )
                    if gains:
                        found.setdefault(name, []).append(tuple(gains))
        for by, pairs in said.items():
            likely, grades_of = (np.array(part) for part in zip(*pairs, strict=True))
            error = scorer.calibration_error(likely, grades_of >= LEAST["grade 2 or 3"])
            off.setdefault(by, {})[name] = round(error, 1)
    return found, off


def _opened(folder: Path) -> Forum:
    return Forum.open(folder, settings=ForumSettings())


def compared(outcomes: Mapping[str, Sequence[tuple[float, ...]]]) -> dict[str, Any]:
    """Return means and paired differences, a forum at a time and of all queries."""
    whole = {**outcomes, "all": [one for part in outcomes.values() for one in part]}
    found: dict[str, Any] = {}
    for name, part in whole.items():
        by = dict(zip(ORDERS, zip(*part, strict=True), strict=True))
        found[name] = {
            "queries": len(part),
            "ndcg@5": {order: round(float(np.mean(values)), 1) for order, values in by.items()},
            "differences": {f"{one} - {other}": _bounds(by[one], by[other], 1) for one, other in COMPARED},
        }
    return found


def _bounds(first: Sequence[float], second: Sequence[float], digits: int) -> list[float]:
    """Return first less second: low, mean and high."""
    less = bootstrap_difference(first, second)
    return [round(one, digits) for one in (less.low, less.mean, less.high)]


# -- probabilities -----------------------------------------------------------------------------------------------------


def calibrated(pairs: Sequence[Pairs], weights: Fits, kinds: Sequence[str]) -> dict[str, Any]:
    """Return version → forum → how far probabilities are off, and what chance brings."""
    found: dict[str, Any] = {}
    for version in VERSIONS:
        for forum in POOLED:
            some = [one for one in pairs if one.forum == forum and one.kind in kinds]
            grades = rows(some, "grades")
            known, fit = ~np.isnan(grades), weights[version][forum]
            scores = np.concatenate([logits(one, version, weights) for one in some])[known]
            of_forum = found.setdefault(version, {}).setdefault(forum, {"pairs": int(known.sum())})
            for name, least in LEAST.items():
                said = probability(scores if name != "grade 3" else scores + fit.same - fit.related)
                is_so = grades[known] >= least
                chance = np.random.default_rng(0)
                errors = [scorer.calibration_error(said, chance.random(len(said)) < said) for _ in range(DRAWINGS)]
                of_forum[name] = {
                    "off by": round(scorer.calibration_error(said, is_so), 1),
                    "by chance": [round(float(one), 1) for one in (np.mean(errors), np.quantile(errors, SURE))],
                    "said": round(100 * float(said.mean()), 1),
                    "was": round(100 * float(is_so.mean()), 1),
                }
    return found


def learned(pairs: Sequence[Pairs], new: Fits, before: Fits) -> dict[str, Any]:
    """Return what weights that learn from these queries too gain: ln P of a query, and nDCG@5."""
    found: dict[str, Any] = {}
    for version in VERSIONS:
        likelihoods: list[tuple[float, float]] = []
        gains: list[tuple[float, float]] = []
        for one in pairs:
            first, second = (logits(one, version, weights) for weights in (new, before))
            likelihoods.append((scorer.log_likelihood(first, one.grades), scorer.log_likelihood(second, one.grades)))
            if (gain := scorer.ndcg(first, one)) is not None:
                gains.append((100 * gain, 100 * (scorer.ndcg(second, one) or 0.0)))
        found[version] = {
            "ln P a query": _bounds([one for one, _ in likelihoods], [other for _, other in likelihoods], 3),
            "ndcg@5": _bounds([one for one, _ in gains], [other for _, other in gains], 2),
        }
    return found


def readings() -> dict[str, Any]:
    """Return what was read, and how far readers agree."""
    lines = [json.loads(line) for line in DRAWN.read_text(encoding="utf-8").splitlines()]
    candidates = [candidate["grades"] for one in lines for candidate in one["candidates"]]
    twice = [grades for grades in candidates if len(grades) > 1]
    return {
        "queries": len(lines),
        "pairs": len(candidates),
        "readers": len({reader for one in lines for reader in one["readers"]}),
        "grades": {str(grade): sum(round(float(np.mean(one))) == grade for one in candidates) for grade in range(4)},
        "read twice": agreement([one[0] for one in twice], [one[1] for one in twice]),
    }


def agreement(first: Sequence[int], again: Sequence[int]) -> dict[str, float]:
    """Return how far two readings of the same pairs agree.

    Source: Cohen, "Weighted kappa", Psychological Bulletin 70, 1968.
    """
    one, two = np.array(first), np.array(again)
    shares = {
        "pairs": len(one),
        "equal": float((one == two).mean()),
        "within one": float((abs(one - two) <= 1).mean()),
        "kappa, quadratic": float(cohen_kappa_score(one, two, weights="quadratic")),
        "kappa, 2 or more": float(cohen_kappa_score(one >= 2, two >= 2)),
    }
    return {name: round(value, 3) for name, value in shares.items()}


def main() -> None:
    """Measure and write results/drawn-queries.json."""
    option_parser(__doc__).parse_args()
    sites = {name: Site(name) for name in ARCHIVES}
    before, new, known = judged_pairs(sites), judged_pairs(sites, judged=drawn()), known_pairs(sites, COPIES, 1, 20)
    weights, again = fits([*before, *known]), fits([*before, *new, *known])
    every = [*before, *new]
    gains, off = searched(weights)
    body = {
        "readings": readings(),
        "candidates": compared(ordered(new, weights)),
        "whole forums": compared(gains),
        "whole forums, off by": off,
        "calibration": {
            "drawn": calibrated(every, weights, ["drawn"]),
            "drawn and pools": calibrated(every, weights, ["drawn", "pool"]),
        },
        "learned with them": {"drawn": learned(new, again, weights), "all": learned(every, again, weights)},
    }
    print(json.dumps(body, indent=1))
    write("drawn-queries", COMMAND, body)


if __name__ == "__main__":
    main()
