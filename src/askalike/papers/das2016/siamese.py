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
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from askalike.evaluation.forum.scorers import VectorScorer
from askalike.evaluation.forum.systems import best_weight, cosine_run, hybrid_run
from askalike.evaluation.forum.tasks import candidate_task, judge
from askalike.models.siamese.model import SiameseModel
from askalike.papers.das2016.data import DasData
from askalike.papers.das2016.rows import Kept
from askalike.papers.harness import Answered, need_torch
from askalike.progress import Progress, SilentProgress
from askalike.training.corpus import TrainingData
from askalike.training.siamese.recipe import SiameseRecipe

_MOST_QUERIES: Final = 200
"""Larger dev sets are not scored after every epoch, but for the smallest."""

_FOLDERS: Final[dict[Kept, str]] = {"loss": "model", "dev": "model-dev", "untrained": "model-untrained"}


@dataclass(frozen=True, slots=True)
class SiameseTrainer:
    """Trains one network with one seed, or finds the one that is finished.

    Args:
        recipe: of SCQA.
        data: pairs to learn from, and dev sets, which are only measured.
        out: folder of all.
        device: cpu or cuda.
        threads: of torch; 0 leaves its choice.
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
        """Return the network of an epoch, trained where it is not there; a training that was stopped goes on.

        Raises:
            MissingExtraError: torch is not installed.
        """
        need_torch(self.threads)
        from askalike.training.encoder import TrainingRun
        from askalike.training.loop import read_log
        from askalike.training.siamese.fit import Epoch, fit_siamese

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
