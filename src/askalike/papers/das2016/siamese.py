"""The rows of siamese networks: trained once for each seed, and weighed against BM25 on dev.

::

    out/scqa-seed0/log.csv           loss by epoch, and MRR and MAP of the smaller dev sets
    out/scqa-seed0/model/            the network of the epoch with the lowest loss on pairs that were held out
    out/scqa-seed0/model-dev/        that of the epoch, from the first on, with the highest mean MAP of those dev sets
    out/scqa-seed0/model-untrained/  the network before the first epoch
    out/scqa-sum-seed0/              the same of the loss that is summed over a batch

    T-SCQA = α · SCQA + (1 - α) · BM25 / max BM25 of the query's candidates

Source: Das et al. 2016 (ACL), sections 4 to 6. Reading: the paper does not say how the two scores are brought to one
scale; the share of the best candidate's BM25 is that of the forum's own rankers.

**Control.** The cosine of what they read, the counts of letter trigrams, without a network.

::

    v(t)      = tf(t) · idf(t)                      idf(t) = ln((1 + N) / (1 + df(t))) + 1, or 1
    cos(q, d) = Σ_t v_q(t) v_d(t) / (|v_q| |v_d|)
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from askalike.evaluation.forum.tasks import (
    VectorScorer,
    best_weight,
    candidate_task,
    cosine_run,
    hybrid_run,
    judge,
    rerank,
)
from askalike.models.siamese.model import SiameseModel, SiameseReader
from askalike.papers.das2016.data import DasData
from askalike.papers.das2016.rows import Kept
from askalike.papers.harness import Answered, need_torch
from askalike.progress import Progress, SilentProgress
from askalike.text.settings import TextSettings
from askalike.training.corpus import TrainingData
from askalike.training.recipe import SiameseRecipe
from askalike.types import Question


class TrigramCosine:
    """A ``PairScorer``: the cosine of two questions' trigrams, title and body joined as the networks read them.

    Args:
        collection: questions that document frequencies are counted in; None for counts without idf.

    Example:
        ``aa`` is #aa, aa#; ``ab`` is #ab, ab#; so ``aa ab`` and ``aa`` share two of four: 2 / (√4 · √2).

        >>> one, other = Question("q", "aa ab"), Question("d", "aa")
        >>> TrigramCosine().scores(one, [other]).round(4).tolist()
        [0.7071]
        >>> TrigramCosine([other]).scores(one, [other]).round(4).tolist()  # idf 1 and ln 2 + 1: √2 / √(2 + 2 · 1.6931²)
        [0.5085]
    """

    def __init__(self, collection: Iterable[Question] | None = None) -> None:
        self._reader: Final = SiameseReader(TextSettings(), "joined")
        self._known: dict[Question, Mapping[str, float]] = {}
        counted: Counter[str] = Counter()
        documents = 0
        for question in collection or ():
            counted.update(set(self._reader.question(question)))
            documents += 1
        self._counted = None if collection is None else counted
        self._documents = documents

    def scores(self, query: Question, candidates: Sequence[Question]) -> NDArray[np.float64]:
        """Return one cosine for each candidate, in [0, 1].  # (N,)"""
        own = self._vector(query)
        found = (self._vector(candidate) for candidate in candidates)
        return np.array([sum(value * one.get(name, 0.0) for name, value in own.items()) for one in found])

    def _vector(self, question: Question) -> Mapping[str, float]:
        if question not in self._known:
            counts = Counter(self._reader.question(question))
            values = {name: times * self._idf(name) for name, times in counts.items()}
            norm = math.sqrt(sum(value * value for value in values.values())) or 1.0
            self._known[question] = {name: value / norm for name, value in values.items()}
        return self._known[question]

    def _idf(self, trigram: str) -> float:
        if self._counted is None:
            return 1.0
        return math.log((1 + self._documents) / (1 + self._counted[trigram])) + 1


def trigram_answers(data: DasData, *, has_idf: bool) -> Answered:
    """Return the runs of all tasks.

    Args:
        has_idf: weigh trigrams by the document frequencies of each set's collection.
    """
    found = Answered()
    for one in data.sets:
        scorer = TrigramCosine(one.dev.statistics if has_idf else None)
        found.runs |= {task.name: rerank(task.given, scorer, task.queries, task.documents) for task in one.tasks()}
    return found


_MOST_QUERIES: Final = 200
"""Larger dev sets are not scored after every epoch, but for the smallest."""

_FOLDERS: Final[dict[Kept, str]] = {"loss": "model", "dev": "model-dev", "untrained": "model-untrained"}


@dataclass(frozen=True, slots=True)
class SiameseTrainer:
    """Trains one network with one seed, or finds the one that is finished.

    Args:
        data: pairs to learn from, and dev sets, which are only measured.
        done: (network, seed) that this process has trained, or found to be trained.
    """

    recipe: SiameseRecipe
    data: DasData
    out: Path
    device: str = "cpu"
    threads: int = 0
    progress: Progress = field(default_factory=SilentProgress)
    done: set[tuple[str, int]] = field(default_factory=set, compare=False)

    def folder(self, learner: str, seed: int) -> Path:
        """Return where a network and its log are kept."""
        return self.out / f"{learner}-seed{seed}"

    def recipe_of(self, learner: str) -> SiameseRecipe:
        """Return the recipe of a network: the kinds differ in what their sides share and how losses are reduced."""
        kind, _, reduction = learner.partition("-")
        pairs = replace(self.recipe.pairs, reduction="sum") if reduction == "sum" else self.recipe.pairs
        return replace(self.recipe, is_shared=kind == "scqa", pairs=pairs)

    def described(self, learner: str) -> str:
        """Return what decides a network besides data and seed, as text."""
        return json.dumps(asdict(self.recipe_of(learner)), sort_keys=True)

    def model(self, learner: str, seed: int, kept: Kept = "loss") -> SiameseModel:
        """Return the network of an epoch, trained where it is not there; a training that was stopped goes on."""
        need_torch(self.threads)
        from askalike.training.encoder import TrainingRun
        from askalike.training.loop import read_log
        from askalike.training.siamese import Epoch, fit_siamese

        pairs, folder = self.data.pairs, self.folder(learner, seed)
        smallest = min(len(one.dev.queries) for one in self.data.sets)
        most = max(_MOST_QUERIES, smallest)
        dev = {one.dev.name: candidate_task(one.dev) for one in self.data.sets if len(one.dev.queries) <= most}
        learned = TrainingData(pairs.questions, answers=pairs.best(), dev=dev)
        run = TrainingRun(folder, seed, self.device, progress=self.progress)
        log = folder / "log.csv"

        def keep(epoch: Epoch) -> None:
            if not epoch.number:
                epoch.model().save(folder / _FOLDERS["untrained"])
            elif is_highest([entry.value for entry in read_log(log) if entry.measure == "map"][1:]):
                epoch.model().save(folder / _FOLDERS["dev"])

        if (learner, seed) not in self.done:
            fit_siamese(self.recipe_of(learner), learned, run, keep).save(folder / _FOLDERS["loss"])
            self.done.add((learner, seed))
        return SiameseModel.load(folder / _FOLDERS[kept])


def is_highest(values: Sequence[float]) -> bool:
    """Return whether the last value is above all before it.

    >>> is_highest([0.5]), is_highest([0.5, 0.6]), is_highest([0.5, 0.5])
    (True, True, False)
    """
    return all(value < values[-1] for value in values[:-1])


def siamese_answers(model: SiameseModel, data: DasData, *, has_words: bool) -> Answered:
    """Return the runs of all tasks; with words, those of the α that each set's dev split chose.

    Args:
        has_words: mix BM25 in: T-SCQA and T-DSQA.
    """
    found, scorer = Answered(), VectorScorer(model)
    for one in data.sets:
        near = {task.name: cosine_run(task, scorer) for task in one.tasks()}
        if not has_words:
            found.runs |= near
            continue

        def value(alpha: float, one: Any = one, near: Any = near) -> float:
            return judge(one.dev, hybrid_run(one.dev, near[one.dev.name], alpha)).means["map"]

        alpha, seen = best_weight(value)
        found.settings[one.name] = {"alpha": alpha}
        found.tried[one.name] = [{"alpha": weight, "dev_map": round(gained, 6)} for weight, gained in seen.items()]
        found.runs |= {task.name: hybrid_run(task, near[task.name], alpha) for task in one.tasks()}
    return found
