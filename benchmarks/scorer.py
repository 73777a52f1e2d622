"""The scorer judged on forums that it has not seen: its order, its probabilities, what each group of features brings.

Command: ``python -m benchmarks.scorer --encoder MiniLM=FOLDER --encoder mpnet=FOLDER``. Every figure of a forum comes
from weights that were fitted without it (``recipes.scorer``); a hand-written pair is judged by weights without its
subject. nDCG@5 is graded (2^grade - 1) over the judged candidates alone; differences, intervals and p are paired over
queries; the calibration error is the mean distance of probability and share over ten bins of equal width, weighted by
their pairs. Controls: words alone, the encoder's cosine, the sum of both as z-scores, each group of features left out.
Other encoders are folders of sentence-transformers; they read 128 pieces, as the bundled one does, and stand alone and
below a scorer that is fitted to them. Writes ``results/scorer.json``, with the weights that other measurements need.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from recipes.encoder.evaluate import read_transformer
from recipes.scorer.fit import fitted, to_json, without
from recipes.scorer.pairs import FORUMS, HANDWRITTEN, JUDGED, QUORA, Pairs, all_pairs, graded_ndcg

from askalike.evaluation.significance import bootstrap_mean
from askalike.models.encoder_settings import EncoderSettings, general_settings
from askalike.models.general import READ_CHARACTERS
from askalike.models.text_questions import TextQuestions, loaded
from askalike.search.differences import DIFFERENCES
from askalike.search.engine import Floats
from askalike.search.features import ANSWERS, COSINE, FEATURES, WORD_FEATURES
from askalike.search.scorer import BY_VECTORS, BY_WORDS, FORMAT, VERSIONS, Scorer, probability, read_scorers
from askalike.types import Question
from benchmarks.record import RESULTS, compare, hundredths, option_parser, processor_s, reddit_questions, write

COMMAND: Final = "python -m benchmarks.scorer"
BINS: Final = 10
FOLDS: Final = 6
TIMED: Final = 128
GROUPS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "one cosine": ((COSINE,), ()),
    "+ shared words": ((COSINE, *WORD_FEATURES), ()),
    "+ differences": ((COSINE, *WORD_FEATURES), DIFFERENCES),
    "without shared words": ((COSINE, ANSWERS), DIFFERENCES),
    **{
        f"without {name}": ((COSINE, *WORD_FEATURES, ANSWERS), tuple(other for other in DIFFERENCES if other != name))
        for name in DIFFERENCES
    },
}
"""Name → what is alike and what differs, as it is weighed."""

Score = Callable[[Pairs], Floats]


def calibration_error(likely: Floats, share: Floats) -> float:
    """Return the mean distance of probability and share over bins of equal width, weighted by their pairs."""
    bins = np.minimum((likely * BINS).astype(int), BINS - 1)
    distances = [(bins == place).mean() * abs((likely - share)[bins == place].mean()) for place in np.unique(bins)]
    return float(sum(distances))


def area(scores: Floats, is_same: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve: how often a pair that is the same is above one that is not.

    >>> area(np.array([0.2, 0.8, 0.8]), np.array([False, True, False]))
    0.75
    """
    same, other = scores[is_same][:, None], scores[~is_same]
    return float((same > other).mean() + 0.5 * (same == other).mean())


def out_of_forum(pairs: Sequence[Pairs], fit: Callable[[Sequence[Pairs]], Scorer]) -> dict[str, Scorer]:
    """Return the scorer of each forum, and of each subject of hand-written pairs, that was fitted without it."""
    scorers = {forum: fit(without(pairs, [forum])) for forum in (*FORUMS, QUORA)}
    subjects = sorted({query.subject for query in pairs if query.forum == HANDWRITTEN})
    for fold in range(FOLDS):
        own = subjects[fold::FOLDS]
        scorers |= dict.fromkeys(own, fit(without(pairs, [], own)))
    return scorers


def left_out(forum: str) -> dict[str, Scorer]:
    """Return the weights that were learned without a forum when the scorer was measured last, by version."""
    weights = json.loads((RESULTS / "scorer.json").read_text(encoding="utf-8"))["weights without"]
    versions = {version: by_forum[forum] for version, by_forum in weights.items()}
    return read_scorers(json.dumps({"format": FORMAT, "versions": versions}).encode())


def using(scorers: Mapping[str, Scorer]) -> Any:
    """Return a context in which searches take these weights, by version."""
    from unittest import mock

    from askalike.search import scorer as module

    return mock.patch.object(module, "scorers", return_value=scorers)


class Table:
    """Systems side by side.

    Args:
        pairs: of all kinds.
    """

    def __init__(self, pairs: Sequence[Pairs]) -> None:
        self.pairs = pairs
        self.judged = [query for query in pairs if query.kind in JUDGED]
        self.outcomes: dict[str, list[float | None]] = {}
        self.rows: dict[str, dict[str, Any]] = {}

    def add(self, name: str, score: Score, *, is_probability: bool = True) -> None:
        """Judge a system by its order, and by its logits where it has a probability."""
        outcomes = [graded_ndcg(score(query), query.grades) if query.grades.any() else None for query in self.judged]
        self.outcomes[name] = outcomes
        row: dict[str, Any] = {"ndcg@5": {}}
        for kind in JUDGED:
            values = [
                value
                for value, query in zip(outcomes, self.judged, strict=True)
                if query.kind == kind and value is not None
            ]
            row["ndcg@5"][kind] = hundredths(bootstrap_mean(values))
        quora = [query for query in self.pairs if query.kind == QUORA]
        row["quora"] = round(area(_logits(quora, score), _grades(quora) > 0), 3)
        row[HANDWRITTEN] = self._handwritten(score)
        if is_probability:
            for kind in JUDGED:
                own = [query for query in self.judged if query.kind == kind]
                likely, share = probability(_logits(own, score)), np.clip(_grades(own) - 1, 0, 1)
                row.setdefault("calibration error", {})[kind] = round(calibration_error(likely, share), 3)
        self.rows[name] = row
        print(name, row, flush=True)

    def _handwritten(self, score: Score) -> dict[str, float]:
        pairs = [query for query in self.pairs if query.kind == HANDWRITTEN]
        logits, is_same = _logits(pairs, score), _grades(pairs) > 0
        kinds = np.array([query.detail for query in pairs])
        is_close = (kinds == "close") | ~is_same
        return {
            "all pairs": round(area(logits, is_same), 3),
            "close paraphrases against near-copies": round(area(logits[is_close], is_same[is_close]), 3),
            "median of near-copies": round(float(np.median(probability(logits[~is_same]))), 3),
        }

    def compare(self, name: str, other: str) -> None:
        """Add to a row how much better it is than another, paired over queries of all judged sets and of the pools."""
        for kinds in (JUDGED, JUDGED[:1]):
            pairs = [
                (first, second)
                for first, second, query in zip(self.outcomes[name], self.outcomes[other], self.judged, strict=True)
                if first is not None and second is not None and query.kind in kinds
            ]
            first, second = zip(*pairs, strict=True)
            self.rows[name].setdefault("against", {}).setdefault(other, {})[" ".join(kinds)] = compare(first, second)


def _logits(pairs: Sequence[Pairs], score: Score) -> Floats:
    return np.concatenate([score(query) for query in pairs])


def _grades(pairs: Sequence[Pairs]) -> Floats:
    return np.concatenate([query.grades for query in pairs])


def _by(scorers: Mapping[str, Scorer], version: str) -> Score:
    def logits(query: Pairs) -> Floats:
        scorer = scorers[query.subject if query.forum == HANDWRITTEN else query.forum]
        return scorer.logits(query.by_version(version))

    return logits


def _sum_of_both(query: Pairs) -> Floats:
    """Return the sum of BM25 and cosine, each less its mean among the candidates by its deviation."""
    parts = [query.bm25, query.features[:, 0]]
    return np.asarray(sum((part - part.mean()) / (part.std() or 1.0) for part in parts))


def known_answers(pairs: Sequence[Pairs], score: Score) -> dict[str, Any]:
    """Return how probable copies are, and the best candidates of titles from other forums."""
    rows: dict[str, Any] = {}
    for kind in ("copy", "copy of title", "elsewhere", "nonsense"):
        best = np.array([float(probability(score(query)).max()) for query in pairs if query.kind == kind])
        points = {f"{share}%": round(float(np.quantile(best, share / 100)), 3) for share in (5, 50, 90, 95)}
        rows[kind] = {"queries": len(best), "percentiles": points}
    return rows


def read_encoder(name: str, folder: Path) -> TextQuestions:
    """Return an encoder of sentence-transformers' folder that reads as much as the bundled one."""
    encoder = read_transformer(folder)
    width = encoder.dimensions
    settings = EncoderSettings("python", name=name, dimensions=width, width=width, max_characters=READ_CHARACTERS)
    return TextQuestions(encoder, settings)


def costs(encoder: TextQuestions) -> dict[str, float]:
    """Return the processor time of a title alone, as a query, and of a whole question among others."""
    questions = list(reddit_questions(TIMED))
    titles = [Question("", question.title) for question in questions]
    encoder.encode(questions[:8])
    alone = processor_s(lambda: [encoder.encode([title]) for title in titles])
    together = processor_s(lambda: encoder.encode(questions))
    return {"a query, ms": round(1e3 * alone / TIMED, 1), "a question, ms": round(1e3 * together / TIMED, 1)}


def add_encoder(table: Table, name: str, encoder: TextQuestions, whole: str) -> None:
    """Judge another encoder, alone and below a scorer that is fitted to it, and compare ``whole`` with both."""
    other = Table(all_pairs(encoder))
    rows = f"cosine of {name}", f"scorer over {name}"
    other.add(rows[0], lambda query: query.features[:, 0], is_probability=False)
    scorers = out_of_forum(other.pairs, lambda part: fitted(part, BY_VECTORS))
    other.add(rows[1], _by(scorers, BY_VECTORS))
    table.rows |= other.rows
    table.outcomes |= other.outcomes
    for row in rows:
        table.rows[row]["costs"] = costs(encoder)
        table.compare(whole, row)
    table.compare(rows[1], rows[0])


def measure(pairs: Sequence[Pairs], encoders: Mapping[str, Path]) -> dict[str, Any]:
    """Return everything that the file holds."""
    table = Table(pairs)
    table.add("words alone", lambda query: query.bm25, is_probability=False)
    table.add("cosine", lambda query: query.features[:, 0], is_probability=False)
    table.add("sum of words and cosine", _sum_of_both, is_probability=False)
    for name, (alike, differing) in GROUPS.items():
        scorers = out_of_forum(pairs, lambda part: fitted(part, BY_VECTORS, alike, differing))  # noqa: B023
        table.add(name, _by(scorers, BY_VECTORS))
    by = {version: out_of_forum(pairs, lambda part: fitted(part, version)) for version in VERSIONS}  # noqa: B023
    for version in VERSIONS:
        table.add(f"scorer, {version}", _by(by[version], version))
    whole = f"scorer, {BY_VECTORS}"
    controls = (name for name in GROUPS if name.startswith("without"))
    for other in ("cosine", "sum of words and cosine", "+ differences", *controls):
        table.compare(whole, other)
    for name, other in (
        ("+ shared words", "one cosine"),
        ("+ differences", "+ shared words"),
        (f"scorer, {BY_WORDS}", "words alone"),
    ):
        table.compare(name, other)
    for name, folder in encoders.items():
        add_encoder(table, name, read_encoder(name, folder), whole)
    bundled = general_settings()
    table.rows[whole]["costs"] = costs(TextQuestions(loaded(bundled), bundled))
    return {
        "queries": {kind: sum(query.kind == kind for query in pairs) for kind in JUDGED},
        "systems": table.rows,
        "known answers": {version: known_answers(pairs, _by(by[version], version)) for version in VERSIONS},
        "weights without": {
            version: {forum: to_json(scorers[forum]) for forum in FORUMS} for version, scorers in by.items()
        },
        "features": list(FEATURES),
    }


def main() -> None:
    """Measure and write the result."""
    parser = option_parser(__doc__)
    parser.add_argument("--encoder", action="append", default=[], metavar="NAME=FOLDER", help="judged too")
    encoders = {name: Path(folder) for name, _, folder in (part.partition("=") for part in parser.parse_args().encoder)}
    command = " ".join([COMMAND, *(f"--encoder {name}=FOLDER" for name in encoders)])
    write("scorer", command, measure(all_pairs(), encoders))


if __name__ == "__main__":
    main()
