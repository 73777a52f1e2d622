"""The scorer: learned on many forums, judged on forums that it has not seen.

Command: ``python -m benchmarks.scorer [--learn]``. Every figure of a forum comes from weights that were fitted without
it. ``--learn`` writes the weights of all forums into the package. Controls in the same table: words alone, and each
encoder's cosine. nDCG@5 is graded (2^grade - 1) over the judged candidates alone;
calibration error is the mean distance of ten equal groups, a forum at a time; intervals are paired, over queries.
Writes ``results/scorer.json``. MiniLM needs ``askalike[minilm]``; without it what was measured of it before is kept,
with the commit that it was measured at, and so are the weights for encoders of sentences.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from askalike.evaluation.significance import bootstrap_difference, randomisation_test
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
from benchmarks.record import REPOSITORY, RESULTS, WEIGHTS, option_parser, weights_digest, write
from benchmarks.scorer_sets import ARCHIVES, MARGIN, OTHER_FORM, POOLED, Pairs, all_pairs, rows

COMMAND: Final = "python -m benchmarks.scorer"
FIELDS: Final = {WORDS: "by_words", WORD_VECTORS: "general", SENTENCES: "sentences"}
PENALTY: Final = 10.0
AMONG_CANDIDATES: Final = 3.0
"""How much the order of a query's candidates counts beside the likelihood of grades."""
OF_COPIES: Final = 0.05
OF_ELSEWHERE: Final = {WORDS: 0.1, WORD_VECTORS: 0.01, SENTENCES: 0.1}
"""Titles of other forums are many and easy: they count as little as keeps them below 15 %, where judged pairs gain by
it (``titles of other forums`` in the results)."""
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
NOTHING: Final = 0.15
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


def measure(judged: list[Pairs], known: list[Pairs], unseen: list[Pairs]) -> dict[str, Any]:
    """Return everything that the file holds."""
    pools = [one for one in judged if one.kind == "pool"]
    others = [one for one in judged if one.kind == "other"]
    versions = [WORDS, WORD_VECTORS] + ([SENTENCES] if pools[0].sentences is not None else [])
    by = {
        version: {forum: fitted(training_rows([*judged, *known], version, [forum])) for forum in ARCHIVES}
        for version in versions
    }
    table = Table(pools)
    table.add("words alone", lambda one: one.bm25)
    table.add("the encoder's cosine", lambda one: one.cosine)
    for version in versions:
        table.add(f"scorer, {version}", *_scores(by[version], version))
        table.compare(f"scorer, {version}", "words alone")
    if SENTENCES in versions:
        table.add("MiniLM's cosine", lambda one: _present(one.minilm))
        table.compare(f"scorer, {SENTENCES}", "MiniLM's cosine")
    return {
        "judged": {name: _size(part) for name, part in (("pools", pools), ("others", others))},
        "pools": table.rows,
        "by form": {version: by_form(judged, by[version], version) for version in versions},
        "known answers": {version: known_answers(by[version], unseen, version) for version in versions},
        "weights without": {version: {forum: _written(one) for forum, one in of.items()} for version, of in by.items()},
    }


def _size(pairs: Sequence[Pairs]) -> dict[str, int]:
    return {"queries": len(pairs), "pairs": int(sum((~np.isnan(one.grades)).sum() for one in pairs))}


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


def with_sentences(found: dict[str, Any], held: Mapping[str, Any]) -> dict[str, Any]:
    """Return results with what an earlier run measured by MiniLM, where this one had none."""
    kept = {"commit": held["commit"]}
    for part in ("pools", "by form", "known answers", "weights without"):
        for name, row in held.get(part, {}).items():
            if name not in found[part]:
                found[part][name] = kept | row
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
    parser = option_parser(__doc__)
    parser.add_argument("--learn", action="store_true", help="write the weights of all forums into the package")
    given = parser.parse_args()
    _, judged, known, unseen = all_pairs()
    found = measure(judged, known, unseen)
    for name, row in found["pools"].items():
        print(f"{name:30} {row['ndcg@5']:5} {row.get('related', {})} {row.get('against', {})}")
    print(json.dumps(found["known answers"], indent=1))
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
