"""The scorer judged on forums that it has not seen: its order, and its probabilities.

Command: ``python -m benchmarks.scorer``. Every figure of a forum comes from weights that were fitted without it
(``recipes.scorer``). Controls in the same table: words alone, and each encoder's cosine. nDCG@5 is graded (2^grade - 1)
over the judged candidates alone; calibration error is the mean distance of ten equal groups, a forum at a time;
intervals are paired, over queries. Writes ``results/scorer.json``, with the weights that other measurements need.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from recipes.scorer.fit import FIELDS, fitted, to_json, training_rows
from recipes.scorer.pairs import ARCHIVES, POOLED, Pairs, all_pairs

from askalike.evaluation.significance import bootstrap_difference, randomisation_test
from askalike.search.features import FEATURES, Floats
from askalike.search.scorer import FORMAT, SENTENCES, VERSIONS, Scorer, probability, read_scorers
from benchmarks.record import RESULTS, option_parser, write

COMMAND: Final = "python -m benchmarks.scorer"
INFORMATIVE: Final = "copy of title, informative"
"""Its words are together one and a half times as rare as a word that no question has."""
GROUPS: Final = 10
NOTHING: Final = 0.15


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


def measure(judged: list[Pairs], known: list[Pairs], unseen: list[Pairs]) -> dict[str, Any]:
    """Return everything that the file holds."""
    pools = [one for one in judged if one.kind == "pool"]
    others = [one for one in judged if one.kind == "other"]
    by = {
        version: {forum: fitted(training_rows([*judged, *known], version, [forum])) for forum in ARCHIVES}
        for version in VERSIONS
    }
    table = Table(pools)
    table.add("words alone", lambda one: one.bm25)
    table.add("the encoder's cosine", lambda one: one.cosine)
    for version in VERSIONS:
        table.add(f"scorer, {version}", *_scores(by[version], version))
        table.compare(f"scorer, {version}", "words alone")
    table.add("MiniLM's cosine", lambda one: _present(one.minilm))
    table.compare(f"scorer, {SENTENCES}", "MiniLM's cosine")
    return {
        "judged": {name: _size(part) for name, part in (("pools", pools), ("others", others))},
        "pools": table.rows,
        "known answers": {version: known_answers(by[version], unseen, version) for version in VERSIONS},
        "weights without": {version: {forum: to_json(one) for forum, one in of.items()} for version, of in by.items()},
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


def main() -> None:
    """Measure and write the result."""
    option_parser(__doc__).parse_args()
    _, judged, known, unseen = all_pairs()
    body = measure(judged, known, unseen)
    for name, row in body["pools"].items():
        print(f"{name:30} {row['ndcg@5']:5} {row.get('related', {})} {row.get('against', {})}")
    print(json.dumps(body["known answers"], indent=1))
    write("scorer", COMMAND, body)


if __name__ == "__main__":
    main()
