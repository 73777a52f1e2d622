"""What a row came to with one seed, kept in a file, so that an interrupted run goes on where it was.

Enters: rows, seeds, data, a folder. Leaves: ``Outcome`` values. May import: durable, errors, its own folder and its
neighbours in experiments.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from askalike.durable import replace_whole
from askalike.experiments.das2016.answer import Answered
from askalike.experiments.das2016.grids import grid
from askalike.experiments.das2016.language_rows import language_answers
from askalike.experiments.das2016.learning import Learner
from askalike.experiments.das2016.reported import MEASURES
from askalike.experiments.das2016.rows import Row
from askalike.experiments.das2016.sets import DasData
from askalike.experiments.das2016.siamese_rows import SiameseTrainer, siamese_answers
from askalike.experiments.tasks import judge

__all__ = ["FIRST", "Outcome", "Runner"]

FIRST: Final = 2
"""How many of the best candidates are kept of each query of dev, for examples."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row with one seed.

    Args:
        row: its id.
        seed: of the training; 0 for rows in which nothing is drawn.
        fingerprint: of row, data and what dev may choose; what was kept of others is not taken.
        values: task → measure → query → value in [0, 1].
        settings: set → what dev chose.
        tried: set → every choice with its "dev_map".
        first: dev task → query → its best candidates' ids.
    """

    row: str
    seed: int
    fingerprint: str
    values: Mapping[str, Mapping[str, Mapping[str, float]]]
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tried: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    first: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)


@dataclass
class Runner:
    """Runs rows, or finds what they came to.

    Args:
        data: what is learned from and scored on.
        out: folder of all.
        learner: of language models.
        trainer: of siamese networks.
    """

    data: DasData
    out: Path
    learner: Learner
    trainer: SiameseTrainer

    def finished(self, row: Row, seed: int) -> Outcome | None:
        """Return what was kept of a row and seed, or None where there is nothing or it is of something else."""
        try:
            kept = Outcome(**json.loads(self._file(row, seed).read_bytes()))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return kept if kept.fingerprint == self._fingerprint(row, seed) else None

    def run(self, row: Row, seed: int) -> Outcome:
        """Run a row with one seed, score dev and tests, and keep the outcome.

        Raises:
            MissingExtraError: what the row needs is not installed.
        """
        answered = self._answered(row, seed)
        values, first = {}, {}
        for one in self.data.sets:
            for task in one.tasks():
                report = judge(task, answered.runs[task.name])
                values[task.name] = {measure: dict(report.per_query[measure]) for measure in MEASURES}
            first[one.dev.name] = {
                query: [found for found, _ in sorted(entries, key=lambda entry: -entry[1])[:FIRST]]
                for query, entries in answered.runs[one.dev.name].items()
            }
        fingerprint = self._fingerprint(row, seed)
        outcome = Outcome(row.id, seed, fingerprint, values, answered.settings, answered.tried, first)
        file = self._file(row, seed)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_whole(file, json.dumps(asdict(outcome), indent=1).encode())
        return outcome

    def _answered(self, row: Row, seed: int) -> Answered:
        if row.system == "language":
            return language_answers(row.learner, seed, self.learner)
        if row.system == "siamese":
            model = self.trainer.model(row.learner, seed)
            return siamese_answers(model, self.data, has_words=row.has_words)
        return Answered({task.name: task.lexical for one in self.data.sets for task in one.tasks()})

    def _file(self, row: Row, seed: int) -> Path:
        return self.out / "rows" / f"{row.id}-seed{seed}.json"

    @cached_property
    def _judged(self) -> list[str]:
        """The digests of what is scored."""
        return [task.digest() for one in self.data.sets for task in one.tasks()]

    def _fingerprint(self, row: Row, seed: int) -> str:
        """Return a hash of what decides an outcome."""
        learned: list[Any] = []
        if row.system == "language":
            learned = [self.learner.digest, [repr(options) for options in grid(row.learner, seed)]]
        elif row.system == "siamese":
            learned = [self.data.pairs.digest(), self.trainer.described(row.learner)]
        content = json.dumps([row.id, seed, learned, self._judged], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()
