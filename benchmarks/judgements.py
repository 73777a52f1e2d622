"""What people's judgements do to probabilities, by how the pairs were drawn; what a widget shows by which minimum.

Command: ``python -m benchmarks.judgements``. Sets: the graded pools of four forums, the graded pairs of six more,
travel's duplicate links (candidates that nobody linked count as different, as moderators of the queue do not know of
links), Quora's labelled pairs and SemEval's test questions. Logits of the ten forums come from weights that were fitted
without them, those of Quora from all; SemEval is the kind of Qatar's forum, whose weights it gets.

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
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from recipes.folders import WORK, need_data
from recipes.scorer.fit import FIELDS, fitted, training_rows
from recipes.scorer.pairs import ARCHIVES, OTHER_FORM, SETTINGS, Pairs, Site, all_pairs
from scipy.optimize import minimize_scalar

from askalike.forum import Forum
from askalike.forum.queue import BORDERS, EVERY, stratum_of
from askalike.readers.research.judged import read_judged
from askalike.search.calibration import Update, posterior
from askalike.search.features import Floats
from askalike.search.scorer import SENTENCES, USUAL, WORDS, Scorer, probability
from askalike.types import Query, Question
from benchmarks.labelled_pairs import read_labelled_pairs
from benchmarks.record import option_parser, write
from benchmarks.scorer import calibration_error

COMMAND: Final = "python -m benchmarks.judgements"
COUNTS: Final = (0, 1, 5, 20, 100)
SHARES: Final = (0.0, 0.1, 1 / EVERY, 1 / 3, 0.5)
SAMPLED: Final = (5, 20, 100, 300)
ROUNDS: Final = 500
SEEDS: Final = 20
MINIMA: Final = (0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2)
TRAVEL_QUERIES: Final = 250
QUORA_PAIRS: Final = 1500


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


def labelled(found: Sequence[Pairs], scorer: Scorer, perfect: float, version: str = SENTENCES) -> Labelled:
    """Return the graded pairs of some queries."""
    known = [~np.isnan(one.grades) for one in found]
    features = [getattr(one, FIELDS[version]) for one in found]
    return Labelled(
        np.concatenate([scorer.logits(one[at]) for one, at in zip(features, known, strict=True)]),
        np.concatenate([one.grades[at] >= 1.75 for one, at in zip(found, known, strict=True)]),
        np.concatenate([np.full(int(at.sum()), number) for number, at in enumerate(known)]),
        perfect,
    )


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


def shown(
    pairs: Sequence[Pairs], judged: Sequence[Pairs], scorers: Mapping[str, Scorer], version: str
) -> dict[str, Any]:
    """Return by minimum how many off-topic titles show something, and how many questions show what is there."""

    def best(one: Pairs, at: NDArray[np.bool_] | None = None) -> float | None:
        features = getattr(one, FIELDS[version])
        if features is None or (at is not None and not at.any()):
            return None
        likely = probability(scorers[one.forum].logits(features))
        return float((likely if at is None else likely[at]).max())

    groups: dict[str, list[float | None]] = {
        "off-topic": [best(one) for one in pairs if one.kind in ("elsewhere", "nonsense")],
        "a title of the forum, edited": [best(one) for one in pairs if one.kind == "edited"],
        "a title of the forum": [best(one) for one in pairs if one.kind == "copy of title"],
        "one of grade 3": [best(one, one.grades >= 2.75) for one in judged],
        "one of grade 2 or 3": [best(one, one.grades >= 1.75) for one in judged],
    }
    known = {name: np.array([value for value in values if value is not None]) for name, values in groups.items()}
    return {
        "default": USUAL[version],
        "queries": {name: len(values) for name, values in known.items()},
        "percent shown": {
            f"{minimum:g}": {name: round(100 * float((values >= minimum).mean()), 1) for name, values in known.items()}
            for minimum in MINIMA
        },
    }


def travel_links(site: Site) -> list[Pairs]:
    """Return the ten best candidates of questions that are linked as duplicates; what is not linked has grade 0."""
    of: dict[str, dict[str, float]] = {}
    for link in site.forum.links():
        if link.kind == "duplicate":
            of.setdefault(link.source_id, {})[link.target_id] = 3.0
    found = []
    for identifier in random.Random(0).sample(sorted(of), min(TRAVEL_QUERIES, len(of))):
        one = site.forum.question(identifier)
        query = Query(one.title, one.body, markup=one.markup)
        made = site.pairs("links", query, identifier, of[identifier], 10, with_minilm=False)
        if made is not None:
            made.grades[np.isnan(made.grades)] = 0.0
            found.append(made)
    return found


class LabelledSite(Site):
    """A forum that is made of a labelled set's texts."""

    def __init__(self, name: str, questions: Callable[[], list[Question]]) -> None:
        folder, mark = WORK / f"judgements-{name}.forum", WORK / f"judgements-{name}.complete"
        if not mark.exists():
            with Forum.create(folder, settings=SETTINGS) as made:
                made.add(questions())
                made.encode()
            mark.touch()
        self.name, self.forum = name, Forum.open(folder, settings=SETTINGS)
        self.searcher = self.forum.indexes.searcher()
        self.standing = 0.0  # as forums are: words and their vectors take nothing of it


def quora() -> list[Pairs]:
    """Return Quora's pairs, each the only candidate of its first question."""
    rows = list(read_labelled_pairs(need_data("quora-pairs/dev.tsv.gz")))
    chosen = random.Random(0).sample(rows, QUORA_PAIRS)
    texts = {text: f"q{number}" for number, text in enumerate(dict.fromkeys(t for one in chosen for t in _texts(one)))}
    site = LabelledSite("quora", lambda: [Question(name, text) for text, name in texts.items()])
    made = []
    for one in chosen:
        first, second = _texts(one)
        if first != second:
            grade = 3.0 * bool(one.is_duplicate)
            made.append(
                site.pairs("labelled", Query(first), texts[first], {texts[second]: grade}, 0, with_minilm=False)
            )
    return [one for one in made if one is not None]


def _texts(pair: Any) -> tuple[str, str]:
    return pair.first, pair.second


def semeval() -> list[Pairs]:
    """Return the test questions of 2016 and 2017 with their ten candidates."""
    sets = [read_judged(need_data("semeval-task3-b"), "semeval", split) for split in ("test2016", "test2017")]
    held = {one.id: one for part in sets for one in (*part.queries.values(), *part.documents.values())}
    site = LabelledSite("semeval", lambda: list(held.values()))
    found = []
    for part in sets:
        for name, query in part.queries.items():
            grades = {one: 2.0 * min(1, grade) for one, grade in part.qrels[name].items()}
            asked = Query(query.title, query.body, markup=query.markup)
            found.append(site.pairs("labelled", asked, name, grades, 0, with_minilm=False))
    return [one for one in found if one is not None]


def _sets(
    judged: Sequence[Pairs],
    copies: Sequence[Pairs],
    others: Mapping[str, Sequence[Pairs]],
    scorers: Mapping[str, Scorer],
    version: str,
) -> dict[str, Labelled]:
    """Return what is known of each set by a version's features; without sets that it has none of."""

    def perfect(forum: str) -> float:
        known = [getattr(one, FIELDS[version]) for one in copies if one.forum == forum]
        return float(np.median([scorers[forum].logits(one).max() for one in known if one is not None]))

    found = {
        forum: labelled([one for one in judged if one.forum == forum], scorers[forum], perfect(forum), version)
        for forum in ARCHIVES
    }
    for name, pairs in others.items():
        if getattr(pairs[0], FIELDS[version]) is not None:
            forum = {"travel links": "travel", "semeval tests": "qatar"}.get(name, "")
            found[name] = labelled(pairs, scorers[forum], perfect(forum or "yahoo"), version)
    return found


def main() -> None:
    """Run it."""
    option_parser(__doc__).parse_args()
    sites, judged, known, unseen = all_pairs()
    write("judgements", COMMAND, measure(judged, known, unseen, {"travel links": travel_links(sites["travel"])}))


def measure(
    judged: list[Pairs], known: list[Pairs], unseen: list[Pairs], others: dict[str, list[Pairs]]
) -> dict[str, Any]:
    """Return everything that the file holds."""
    versions = [WORDS, SENTENCES]
    by = {
        version: {forum: fitted(training_rows([*judged, *known], version, [forum])) for forum in ("", *ARCHIVES)}
        for version in versions
    }
    judged = [one for one in judged if one.kind != OTHER_FORM]
    copies = [one for one in unseen if one.kind == "copy"]
    others = {**others, "quora pairs": quora(), "semeval tests": semeval()}
    every = {version: _sets(judged, copies, others, by[version], version) for version in versions}
    sets = every[SENTENCES]
    forums = {forum: sets[forum] for forum in ARCHIVES}
    top = {version: {name: from_the_top(data) for name, data in found.items()} for version, found in every.items()}
    rows = [row for found in top.values() for one in found.values() for row in one.values()]
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
        "how far forums are off": shifts(forums),
        "shown": {version: shown(unseen, judged, by[version], version) for version in versions},
    }
    print(json.dumps({name: body[name] for name in ("worst", "how far forums are off", "shown")}, indent=1))
    for version, found in top.items():
        for name, one in found.items():
            print(version, name, {count: row["difference"] for count, row in one.items()})
    for name, shares in body["by share of the sample"].items():
        print(name, shares)
    return body


if __name__ == "__main__":
    main()
