"""The rows of siamese networks: trained once for each seed, and weighed against BM25 on dev.

::

    out/scqa-seed0/log.csv    loss by epoch, and MRR and MAP of the smaller dev sets
    out/scqa-seed0/model/     the network of the epoch with the lowest loss on pairs that were held out

    T-SCQA = α · SCQA + (1 - α) · BM25 / max BM25 of the query's candidates

Source: Das et al. 2016 (ACL), sections 4 to 6. Reading: the paper does not say how the two scores are brought to one
scale; the share of the best candidate's BM25 is that of the forum's own rankers.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from askalike.evaluation.forum.scorers import VectorScorer
from askalike.evaluation.forum.systems import best_weight, cosine_run, hybrid_run
from askalike.evaluation.forum.tasks import candidate_task, judge
from askalike.models.siamese.model import SiameseModel
from askalike.papers.das2016.data import DasData
from askalike.papers.harness import Answered, need_torch
from askalike.progress import Progress, SilentProgress
from askalike.training.corpus import TrainingData
from askalike.training.siamese.recipe import SiameseRecipe

_MOST_QUERIES: Final = 200
"""Larger dev sets are not scored after every epoch."""


@dataclass(frozen=True, slots=True)
class SiameseTrainer:
    """Trains one network with one seed, or finds the one that is finished.

    Args:
        recipe: of SCQA.
        data: pairs to learn from, and dev sets, which are only measured.
        out: folder of all.
        device: cpu or cuda.
        threads: of torch; 0 leaves its choice.
    """

    recipe: SiameseRecipe
    data: DasData
    out: Path
    device: str = "cpu"
    threads: int = 0
    progress: Progress = field(default_factory=SilentProgress)

    def folder(self, learner: str, seed: int) -> Path:
        """Return where a network and its log are kept."""
        return self.out / f"{learner}-seed{seed}"

    def recipe_of(self, learner: str) -> SiameseRecipe:
        """Return the recipe of a network: the two kinds differ in what their sides share alone."""
        return replace(self.recipe, is_shared=learner == "scqa")

    def described(self, learner: str) -> str:
        """Return what decides a network besides data and seed, as text."""
        return json.dumps(asdict(self.recipe_of(learner)), sort_keys=True)

    def model(self, learner: str, seed: int) -> SiameseModel:
        """Return the network, trained where it is not there; a training that was stopped goes on.

        Raises:
            MissingExtraError: torch is not installed.
        """
        need_torch(self.threads)
        from askalike.training.encoder import TrainingRun
        from askalike.training.siamese.fit import fit_siamese

        pairs, folder = self.data.pairs, self.folder(learner, seed)
        dev = {one.dev.name: candidate_task(one.dev) for one in self.data.sets if len(one.dev.queries) <= _MOST_QUERIES}
        learned = TrainingData(pairs.questions, answers=pairs.best(), dev=dev)
        run = TrainingRun(folder, seed, self.device, progress=self.progress)
        model = fit_siamese(self.recipe_of(learner), learned, run)
        model.save(folder / "model")
        return model


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
