"""How well the likelihood that two questions ask the same can be believed, before and after verdicts.

Command: ``python -m benchmarks.likelihood``. The cosines of the general model beside what people judged: the halves of
Quora's pairs, the candidates of SemEval (relevant or not), and the five best that the search finds for travel's
duplicates (marked or not; marks miss much that asks the same). Fitted are Quora's dev half and SemEval's training part;
each is also judged by a fit of the other alone. The strength of the prior is chosen there and on travel's dev split.
Test splits are looked at with what is in ``search/calibration.py``. Verdicts are drawn from a set, and judged on the
rest of it. Writes ``results/likelihood.json``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from askalike.data import default_model
from askalike.evaluation.forum.tasks import RerankTask
from askalike.forum import Forum
from askalike.models.encoders.model import Model
from askalike.papers.lei2016.sets import labelled
from askalike.search import calibration
from askalike.search.calibration import DEFAULT_PRIOR, Calibration, posterior
from askalike.types import Filters, Question
from benchmarks.quality_sets import SEMEVAL_PARTS, forum_folder, quora_tasks, semeval_task, travel_tasks
from benchmarks.record import write
from benchmarks.systems import PairTask, RetrievalTask

COMMAND = "python -m benchmarks.likelihood"
VERDICTS: Final = (0, 10, 20, 50, 100, 200)
SPREADS: Final = (0.5, 1.0, 2.0)
DRAWS: Final = 50
BINS: Final = 10

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Judged:
    """Cosines (N,), and whether people said that the two ask the same (N,)."""

    cosines: Floats
    is_same: NDArray[np.bool_]

    def part(self, rows: NDArray[np.int64]) -> Judged:
        """Return some of the pairs."""
        return Judged(self.cosines[rows], self.is_same[rows])


def judged(model: Model, pairs: Sequence[tuple[Question, Question, bool]]) -> Judged:
    """Return pairs with the cosines of their vectors."""
    texts = list(dict.fromkeys(one for first, second, _ in pairs for one in (first, second)))
    vectors = dict(zip(texts, model.encode(texts), strict=True))
    cosines = [float(vectors[first] @ vectors[second]) for first, second, _ in pairs]
    return Judged(np.array(cosines), np.array([same for _, _, same in pairs]))


def of_pairs(task: PairTask) -> list[tuple[Question, Question, bool]]:
    """Return labelled pairs."""
    return [(first, second, bool(label)) for (first, second), label in zip(task.pairs, task.labels, strict=True)]


def of_candidates(task: RerankTask) -> list[tuple[Question, Question, bool]]:
    """Return each query with each of its candidates."""
    return [
        (one.query, candidate, bool(label))
        for one in labelled(task)
        for candidate, label in zip(one.candidates, one.labels, strict=True)
    ]


def of_search(task: RetrievalTask) -> Iterator[tuple[Question, Question, bool]]:
    """Yield each query with the five best that the search finds."""
    with Forum.open(forum_folder("travel")) as forum:
        if forum.vectors.waiting:
            forum.encode()
        for identifier, one in task.queries.items():
            own = Filters(exclude_ids=frozenset([identifier]))
            for hit in forum.similar(one.title, one.body, 5, markup=one.markup, filters=own):
                yield one, hit.question, task.qrels[identifier].get(hit.question.id, 0) > 0


def fitted(*sets: Judged) -> Calibration:
    """Return the calibration of greatest likelihood, each set with the same weight."""
    inputs = np.concatenate([one.cosines for one in sets])[:, None]
    weights = np.concatenate([np.full(len(one.cosines), 1000 / len(one.cosines)) for one in sets])
    model = LogisticRegression(C=1e6).fit(inputs, np.concatenate([one.is_same for one in sets]), weights)
    return Calibration(float(model.intercept_[0]), float(model.coef_[0, 0]))


def off_by(likely: Floats, is_same: NDArray[np.bool_]) -> list[tuple[float, float]]:
    """Return (mean likelihood, share that is the same) of ten groups of like likelihood, least likely first."""
    order = np.argsort(likely, kind="stable")
    return [(float(likely[rows].mean()), float(is_same[rows].mean())) for rows in np.array_split(order, BINS)]


def scored(found: Calibration, on: Judged) -> dict[str, Any]:
    """Return how good likelihoods are: by their order, by log loss, and by how far groups are off."""
    likely = np.array([found.likelihood(cosine) for cosine in on.cosines])
    groups = off_by(likely, on.is_same)
    return {
        "pairs": len(likely),
        "same": round(float(on.is_same.mean()), 3),
        "auc": round(float(roc_auc_score(on.is_same, likely)), 3),
        "log_loss": round(float(log_loss(on.is_same, likely)), 3),
        "log_loss_of_the_share": round(float(log_loss(on.is_same, np.full(len(likely), on.is_same.mean()))), 3),
        "off_by": round(float(np.mean([abs(said - was) for said, was in groups])), 3),
        "groups": [[round(said, 3), round(was, 3)] for said, was in groups],
    }


def after_verdicts(prior: Calibration, on: Judged) -> dict[str, dict[str, float]]:
    """Return log loss and distance of groups after so many verdicts, means over draws."""
    chance = np.random.default_rng(0)
    found: dict[str, dict[str, float]] = {}
    for count in VERDICTS:
        scores = []
        for _ in range(DRAWS if count else 1):
            rows = chance.permutation(len(on.cosines))
            seen, rest = on.part(rows[:count]), on.part(rows[count:])
            after = posterior(prior, seen.cosines.tolist(), seen.is_same.tolist()) if count else prior
            scores.append(scored(after, rest))
        found[str(count)] = {
            name: round(float(np.mean([one[name] for one in scores])), 3) for name in ("log_loss", "off_by")
        }
    return found


def measure() -> dict[str, Any]:
    """Return everything that the file holds."""
    path = default_model()
    assert path is not None, "the package carries a model"
    model = Model.load(path)
    travel = {part: travel_tasks(part)[f"travel {part}, retrieval"] for part in ("dev", "test")}
    sets = {
        "quora dev": judged(model, of_pairs(quora_tasks("dev")["quora dev half"])),
        "semeval train": judged(model, of_candidates(semeval_task("train"))),
        "travel dev": judged(model, list(of_search(travel["dev"]))),
    }
    quora, semeval = sets["quora dev"], sets["semeval train"]
    pooled = fitted(quora, semeval)
    elsewhere = {"quora dev": fitted(semeval), "semeval train": fitted(quora), "travel dev": pooled}
    spreads = {}
    for spread in SPREADS:
        with mock.patch.object(calibration, "SPREAD_OF_PRIOR", spread):
            spreads[str(spread)] = {name: after_verdicts(elsewhere[name], one) for name, one in sets.items()}
    tests = {"quora test": judged(model, of_pairs(quora_tasks("test")["quora test half"]))}
    for split in SEMEVAL_PARTS["test"]:
        tests[f"semeval {split}"] = judged(model, of_candidates(semeval_task(split)))
    tests["travel test"] = judged(model, list(of_search(travel["test"])))
    return {
        "fitted": {"intercept": round(pooled.intercept, 2), "slope": round(pooled.slope, 2)},
        "used": {"intercept": DEFAULT_PRIOR.intercept, "slope": DEFAULT_PRIOR.slope},
        "dev": {
            "by other sets": {name: scored(elsewhere[name], one) for name, one in sets.items()},
            "after verdicts, by the prior's spread": spreads,
        },
        "test": {name: scored(DEFAULT_PRIOR, one) for name, one in tests.items()},
        "test, after verdicts": {name: after_verdicts(DEFAULT_PRIOR, one) for name, one in tests.items()},
    }


def main() -> None:
    """Run it."""
    found = measure()
    _print(found["test"])
    print(write("likelihood", COMMAND, found))


def _print(scores: Mapping[str, Mapping[str, Any]]) -> None:
    for name, one in scores.items():
        print(name, {key: value for key, value in one.items() if key != "groups"})


if __name__ == "__main__":
    main()
