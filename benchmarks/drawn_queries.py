"""The scorer on queries that were drawn by chance and read after it had been learned: its order and its probabilities.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.drawn_queries``, after ``python -m benchmarks.encoders --build``.

404 queries of eight forums with 5,178 candidates, graded by the guide of the judged pools (``benchmarks.reading``). No
weight, feature or threshold was chosen by them, and all figures of a forum are by weights that were fitted without the
forum. Order: graded nDCG@5 of the judged candidates alone, every query by its title and with its body; of travel,
Slicer and DevOps also as searches of the whole forums list them. Probabilities: calibration error (ten equal groups) of
the queries as they were asked, together with those of the judged pools, beside what chance would bring were every
probability right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

import numpy as np
from recipes.scorer.fit import FIELDS, fitted, training_rows
from recipes.scorer.pairs import ARCHIVES, DRAWN, POOLED, Pairs, Site, drawn, judged_pairs, known_pairs, rows
from sklearn.metrics import cohen_kappa_score

from askalike.evaluation.significance import bootstrap_difference
from askalike.forum import Forum, ForumSettings
from askalike.search.features import Floats
from askalike.search.scorer import SENTENCES, VERSIONS, Scorer, probability
from askalike.types import Filters, Query
from benchmarks import encoders, scorer
from benchmarks.reading import WHOLE
from benchmarks.record import option_parser, write

COMMAND: Final = "OMP_NUM_THREADS=1 python -m benchmarks.drawn_queries"
ORDERS: Final = ("words", "general", "MiniLM's cosine", "MiniLM")
RANKERS: Final = (("general", "words"), ("general", None), ("minilm", "meaning"), ("minilm", None))
"""Encoder and ranker of each of ``ORDERS`` in whole forums."""
COMPARED: Final = (("general", "words"), ("MiniLM", "MiniLM's cosine"))
LEAST: Final = {"grade 2 or 3": 1.75, "grade 3": 2.75}
DRAWS: Final = 1_000
CONFIDENCE: Final = 0.95
COPIES: Final = 100

Fits = Mapping[str, Mapping[str, Scorer]]
"""Version → forum → weights that were fitted without it."""
Gains = dict[str, list[tuple[float, ...]]]
"""Forum → what each query has by each of ``ORDERS``."""


def fits(pairs: Sequence[Pairs]) -> Fits:
    """Return weights of each version, by the forum that they were learned without."""
    return {
        version: {forum: fitted(training_rows(pairs, version, [forum])) for forum in ARCHIVES} for version in VERSIONS
    }


def logits(query: Pairs, version: str, weights: Fits) -> Floats:
    """Return the scores of a query's candidates."""
    return weights[version][query.forum].logits(getattr(query, FIELDS[version]))


# -- order -------------------------------------------------------------------------------------------------------------


def candidates_ordered(queries: Sequence[Pairs], weights: Fits) -> Gains:
    """Return nDCG@5 of the judged candidates alone."""
    gains: Gains = {}
    for query in queries:
        assert query.minilm is not None
        by_general = weights[SENTENCES][query.forum].logits(query.general)
        by_minilm = logits(query, SENTENCES, weights)
        of_query = [scorer.ndcg(scores, query) for scores in (query.bm25, by_general, query.minilm, by_minilm)]
        if of_query[0] is not None:
            gains.setdefault(query.forum, []).append(tuple(100 * (gain or 0.0) for gain in of_query))
    return gains


def whole_forums_searched(weights: Fits) -> Gains:
    """Return nDCG@5 of the judged ones among what searches of whole forums list."""
    gains: Gains = {}
    for name in WHOLE:
        without = {version: weights[version][name] for version in VERSIONS}
        with scorer.using(without), ExitStack() as stack:
            forums = {
                encoder: stack.enter_context(Forum.open(encoders.build(name, encoder), settings=ForumSettings()))
                for encoder in encoders.ENCODERS
            }
            for _, forum, identifier, _, grades in drawn():
                if forum != name or not any(grades.values()):
                    continue
                question, own = forums["general"].question(identifier), Filters(exclude_ids=frozenset({identifier}))
                for body in {"", question.body} if question.body.strip() else {""}:
                    of_query = []
                    for encoder, ranker in RANKERS:
                        query = Query(question.title, body, question.markup, encoders.LISTED, own, ranker)
                        ids = [candidate for candidate, _ in forums[encoder].ranking(query)]
                        of_query.append(100 * encoders.ndcg(ids, grades))
                    gains.setdefault(name, []).append(tuple(of_query))
    return gains


def compared(gains: Gains) -> dict[str, Any]:
    """Return means and paired differences, a forum at a time and of all queries."""
    every = {**gains, "all": [of_query for of_forum in gains.values() for of_query in of_forum]}
    table: dict[str, Any] = {}
    for name, of_forum in every.items():
        by_order = dict(zip(ORDERS, zip(*of_forum, strict=True), strict=True))
        differences = {}
        for first, second in COMPARED:
            interval = bootstrap_difference(by_order[first], by_order[second])
            bounds = (interval.low, interval.mean, interval.high)
            differences[f"{first} - {second}"] = [round(bound, 1) for bound in bounds]
        means = {order: round(float(np.mean(values)), 1) for order, values in by_order.items()}
        table[name] = {"queries": len(of_forum), "ndcg@5": means, "differences": differences}
    return table


# -- probabilities -----------------------------------------------------------------------------------------------------


def calibrated(queries: Sequence[Pairs], weights: Fits) -> dict[str, Any]:
    """Return version → forum → how far probabilities are off, and what chance brings."""
    table: dict[str, Any] = {version: {} for version in VERSIONS}
    for version in VERSIONS:
        for forum in POOLED:
            of_forum = [query for query in queries if query.forum == forum and query.kind in ("drawn", "pool")]
            grades = rows(of_forum, "grades")
            known, weights_of = ~np.isnan(grades), weights[version][forum]
            scores = np.concatenate([logits(query, version, weights) for query in of_forum])[known]
            row: dict[str, Any] = {"pairs": int(known.sum())}
            for name, least in LEAST.items():
                shift = weights_of.same - weights_of.related if name == "grade 3" else 0.0
                likely, is_so = probability(scores + shift), grades[known] >= least
                chance = np.random.default_rng(0)
                errors = [scorer.calibration_error(likely, chance.random(len(likely)) < likely) for _ in range(DRAWS)]
                row[name] = {
                    "off by": round(scorer.calibration_error(likely, is_so), 1),
                    "by chance": [round(float(np.mean(errors)), 1), round(float(np.quantile(errors, CONFIDENCE)), 1)],
                    "said": round(100 * float(likely.mean()), 1),
                    "was": round(100 * float(is_so.mean()), 1),
                }
            table[version][forum] = row
    return table


# -- readings ----------------------------------------------------------------------------------------------------------


def readings() -> dict[str, Any]:
    """Return what was read, and how far readers agree."""
    queries = [json.loads(line) for line in DRAWN.read_text(encoding="utf-8").splitlines()]
    candidates = [candidate["grades"] for query in queries for candidate in query["candidates"]]
    means = [round(float(np.mean(grades))) for grades in candidates]
    return {
        "queries": len(queries),
        "pairs": len(candidates),
        "readers": len({reader for query in queries for reader in query["readers"]}),
        "grades": {str(grade): means.count(grade) for grade in range(4)},
        "read twice": agreement([grades[:2] for grades in candidates if len(grades) > 1]),
    }


def agreement(grades: Sequence[Sequence[int]]) -> dict[str, float]:
    """Return how far two readings of the same pairs agree.

    Source: Cohen, "Weighted kappa", Psychological Bulletin 70, 1968.
    """
    first, second = np.array(grades).T
    shares = {
        "pairs": len(first),
        "equal": float((first == second).mean()),
        "within one": float((abs(first - second) <= 1).mean()),
        "kappa, quadratic": float(cohen_kappa_score(first, second, weights="quadratic")),
        "kappa, 2 or more": float(cohen_kappa_score(first >= 2, second >= 2)),
    }
    return {name: round(value, 3) for name, value in shares.items()}


def main() -> None:
    """Measure and write results/drawn-queries.json."""
    option_parser(__doc__).parse_args()
    sites = {name: Site(name) for name in ARCHIVES}
    before, new = judged_pairs(sites), judged_pairs(sites, drawn())
    weights = fits([*before, *known_pairs(sites, COPIES, 1, 20)])
    body = {
        "readings": readings(),
        "candidates": compared(candidates_ordered(new, weights)),
        "whole forums": compared(whole_forums_searched(weights)),
        "calibration": calibrated([*before, *new], weights),
    }
    print(json.dumps(body, indent=1))
    write("drawn-queries", COMMAND, body)


if __name__ == "__main__":
    main()
