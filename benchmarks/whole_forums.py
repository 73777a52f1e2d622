"""Whole forums searched with MiniLM, by the scorer's probability and by MiniLM's cosine alone, side by side.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.whole_forums``, after ``python -m benchmarks.encoders --build``.

Three views of nDCG@5 (2^grade - 1): the pools' queries as they were asked, by the pools' grades alone, which leave out
what stands in no pool; the same with every hit of the first five judged (``judged-first-five.jsonl``); and every judged
query of the forum by its title and with its body, judged candidates alone. Intervals are paired, over queries. The
probability is that of the package's weights, which were learned on these forums among others.

Then, by weights for encoders of sentences that were learned without the forum: calibration error on the pools, and with
the first five beside them; whether weights that learn from the first five too order better; and, by words shared and
cosine, how often judged pairs are said to be the same, and are.

Travel's duplicate links, dev and test, in either direction: nDCG@10 of the search, and of cosines with all questions.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from askalike.evaluation.forum.links import duplicate_task
from askalike.evaluation.significance import bootstrap_difference
from askalike.forum import Forum, ForumSettings
from askalike.search.features import FEATURES, Floats
from askalike.search.scorer import SENTENCES, Scorer, probability
from askalike.types import Filters, Query, Question
from benchmarks import encoders, scorer
from benchmarks.record import write
from benchmarks.scorer_sets import (
    ARCHIVES,
    CACHE,
    FIRST_FIVE,
    POOLED,
    Pairs,
    Sentences,
    Site,
    first_five,
    graded,
    judged_pairs,
    known_pairs,
    rows,
)

COMMAND: Final = "OMP_NUM_THREADS=1 python -m benchmarks.whole_forums"
RANKERS: Final = {"probability": None, "cosine": "vector"}
VIEWS: Final = ("pools", "pools, first five judged", "all queries, both forms")
ENOUGH: Final = 1.75
LINKED: Final = 10
COPIES: Final = 20
SHARED: Final = (0.0, 0.15, 0.3, 0.5, 0.8)
COSINES: Final = (0.35, 0.5, 0.6, 0.7, 0.95)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a query brought by each of ``RANKERS``: nDCG@5, and how many of its first five nobody had judged."""

    forum: str
    view: str
    gains: tuple[float, ...]
    unjudged: tuple[int, ...]


def searched() -> list[Outcome]:
    """Ask the whole forums."""
    more, found = first_five(), []
    for name in POOLED:
        with Forum.open(encoders.build(name, "minilm"), settings=ForumSettings()) as forum:
            for kind, of, query, asked, grades in graded():
                complete = grades | more.get((of, query), {}) if kind == "pool" else grades
                if of != name or query not in forum.numbers([query, *complete]):  # of Reddit a part is here
                    continue
                one, own = forum.question(query), Filters(exclude_ids=frozenset({query}))
                for body in {"", one.body} if one.body.strip() else {""}:
                    lists = [
                        [it for it, _ in forum.ranking(Query(one.title, body, one.markup, encoders.LISTED, own, by))]
                        for by in RANKERS.values()
                    ]
                    is_pool = kind == "pool" and (asked == "title") == (not body)
                    counted_in = ((grades, is_pool), (complete, is_pool), (complete, True))
                    for view, (counted, is_in) in zip(VIEWS, counted_in, strict=True):
                        if is_in and any(counted.values()):
                            gains = tuple(100 * encoders.ndcg(listed, counted) for listed in lists)
                            unjudged = tuple(sum(it not in counted for it in listed[:5]) for listed in lists)
                            found.append(Outcome(name, view, gains, unjudged))
    return found


def compared(some: Sequence[Outcome]) -> dict[str, Any]:
    """Return means, and probability less cosine."""
    values = list(zip(*(one.gains for one in some), strict=True))
    return {
        "queries": len(some),
        "ndcg@5": {by: round(float(np.mean(part)), 1) for by, part in zip(RANKERS, values, strict=True)},
        "difference": _bounds(values, 1),
        "unjudged of five": {
            by: round(float(np.mean([one.unjudged[at] for one in some])), 2) for at, by in enumerate(RANKERS)
        },
    }


def by_links() -> dict[str, Any]:
    """Return nDCG@10 of travel's duplicate links, by titles and with bodies."""
    found: dict[str, list[list[float]]] = {}
    with Forum.open(encoders.build("travel", "minilm"), settings=ForumSettings()) as forum:
        names = [one.id for one in forum.questions()]
        numbers = forum.numbers(names)
        texts = forum.answering_vectors()
        assert texts is not None
        held, matrix = texts.index.vectors(list(numbers.values()))
        ids = {number: name for name, number in numbers.items()}
        tasks = [duplicate_task(forum, split) for split in ("dev", "test")]
        for form in ("title", "title and body"):
            for task in tasks:
                for query in task.queries.values():
                    body = "" if form == "title" else query.body
                    near = matrix @ texts.texts.encode_queries([Question("", query.title, body, query.markup)])[0]
                    best = [ids[int(held[at])] for at in np.argsort(-near, kind="stable")[: 2 * LINKED]]
                    own = Filters(exclude_ids=frozenset({query.id}))
                    listed = [it for it, _ in forum.ranking(Query(query.title, body, query.markup, LINKED, own))]
                    relevant = {name for name, grade in task.qrels[query.id].items() if grade}
                    lists = (listed, [it for it in best if it != query.id])
                    found.setdefault(form, []).append([_gain(one, relevant) for one in lists])
    return {
        form: {
            "queries": len(values),
            "ndcg@10": dict(zip(RANKERS, np.mean(values, axis=0).round(4).tolist(), strict=True)),
            "difference": _bounds(list(zip(*values, strict=True)), 4),
        }
        for form, values in found.items()
    }


def _gain(listed: Sequence[str], relevant: Collection[str]) -> float:
    gains = [1 / np.log2(place + 2) for place in range(LINKED)]
    best = sum(gains[: len(relevant)])
    return float(sum(gain for it, gain in zip(listed, gains, strict=False) if it in relevant) / best)


def _bounds(values: Sequence[Sequence[float]], digits: int) -> list[float]:
    """Return first less second: low, mean and high."""
    less = bootstrap_difference(*values)
    return [round(one, digits) for one in (less.low, less.mean, less.high)]


def without(pairs: Sequence[Pairs]) -> dict[str, Scorer]:
    """Return weights by the forum that they were learned without."""
    return {forum: scorer.fitted(scorer.training_rows(pairs, SENTENCES, [forum])) for forum in ARCHIVES}


def logits(one: Pairs, fits: Mapping[str, Scorer]) -> Floats:
    """Return the scores of a query's candidates by weights without its forum."""
    assert one.sentences is not None
    return fits[one.forum].logits(one.sentences)


def calibration(pools: Sequence[Pairs], fits: Mapping[str, Scorer]) -> dict[str, dict[str, float]]:
    """Return the calibration error of each forum, in points, for grades of 2 or more and for 3."""
    found: dict[str, dict[str, float]] = {"grade 2 or 3": {}, "grade 3": {}}
    for forum in POOLED:
        some = [one for one in pools if one.forum == forum]
        grades, scores = rows(some, "grades"), np.concatenate([logits(one, fits) for one in some])
        known, less = ~np.isnan(grades), fits[forum].related - fits[forum].same
        for by_forum, least, shift in zip(found.values(), (ENOUGH, ENOUGH + 1), (0.0, less), strict=True):
            error = scorer.calibration_error(probability(scores[known] - shift), grades[known] >= least)
            by_forum[forum] = round(error, 1)
    return found


def paraphrases(judged: Sequence[Pairs], fits: Mapping[str, Scorer]) -> list[dict[str, Any]]:
    """Return how often pairs are said to be the same, and are, by the query's words that both have and by cosine."""
    features, grades = rows(judged, "sentences"), rows(judged, "grades")
    said = np.concatenate([probability(logits(one, fits)) for one in judged])
    shared, near = features[:, FEATURES.index("text in text")], features[:, FEATURES.index("cosine")]
    found = []
    for least, most in pairwise(SHARED):
        for low, high in pairwise(COSINES):
            at = (shared >= least) & (shared < most) & (near >= low) & (near < high) & ~np.isnan(grades)
            so = {"said": said[at].mean(), "was": (grades[at] >= ENOUGH).mean()}
            cell = {"words": [least, most], "cosine": [low, high], "pairs": int(at.sum())}
            found.append(cell | {name: round(100 * float(share), 1) for name, share in so.items()})
    return found


def ordered_better(judged: Sequence[Pairs], new: Mapping[str, Scorer], before: Mapping[str, Scorer]) -> list[float]:
    """Return how much more nDCG@5 has by new weights, with its interval."""
    pairs = [[scorer.ndcg(logits(one, fits), one) for fits in (new, before)] for one in judged]
    values = [[100 * (gain or 0.0) for gain in pair] for pair in pairs if pair[0] is not None]
    return _bounds(list(zip(*values, strict=True)), 2)


def _readings() -> list[list[int]]:
    """Return the grades of each reading of the first five."""
    lines = map(json.loads, FIRST_FIVE.read_text(encoding="utf-8").splitlines())
    return [candidate["grades"] for one in lines for candidate in one["candidates"]]


def main() -> None:
    """Measure and write results/whole-forums.json."""
    outcomes = searched()
    views = {
        view: {
            name: compared([one for one in outcomes if one.view == view and name in (one.forum, "all")])
            for name in (*POOLED, "all")
        }
        for view in VIEWS
    }
    for view, by in views.items():
        print(view, {name: (row["ndcg@5"], row["difference"]) for name, row in by.items()}, flush=True)
    links = by_links()
    print(links, flush=True)
    minilm = Sentences(1, CACHE)
    sites = {name: Site(name, minilm) for name in ARCHIVES}
    plain, complete = judged_pairs(sites), judged_pairs(sites, first_five())
    known = known_pairs(sites, COPIES, 1, COPIES)
    fits, again = (without([*part, *known]) for part in (plain, complete))
    pools, five = ([one for one in part if one.kind == "pool"] for part in (plain, complete))
    readings = _readings()
    twice = [row for row in readings if len(row) > 1]
    body = {
        "views": views,
        "travel's duplicate links": links,
        "first five": {
            "pairs": len(readings),
            "grade 2 or 3": sum(float(np.mean(row)) >= ENOUGH for row in readings),
            "read twice": len(twice),
            "same grade": sum(len(set(row)) == 1 for row in twice),
        },
        "calibration error": {"pools": calibration(pools, fits), "with the first five": calibration(five, fits)},
        "learned with the first five": ordered_better(complete, again, fits),
        "by words and cosine": paraphrases(complete, fits),
    }
    print({name: part for name, part in body.items() if name != "views"}, flush=True)
    write("whole-forums", COMMAND, body)


if __name__ == "__main__":
    main()
