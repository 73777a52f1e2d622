"""What a row came to with one seed, kept in a file, so that an interrupted run goes on where it was.

Enters: rows, sets, seeds, a folder. Leaves: ``Outcome`` values. May import: durable, errors, its own folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from askalike.durable import replace_whole
from askalike.experiments.lei2016.answers import answers
from askalike.experiments.lei2016.rows import Row
from askalike.experiments.lei2016.sets import LeiSet
from askalike.experiments.tasks import judge
from askalike.experiments.vector_scorer import Encoder

__all__ = ["Outcome", "Trainer", "finished", "run_once"]

Trainer = Callable[[Row, int, LeiSet, Path], Encoder]
"""(row, seed, set, a folder for checkpoints that belongs to this training) → an encoder, such as ``encode.Model``."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row with one seed.

    Args:
        row: its id.
        seed: of the training; 0 for baselines, which draw nothing.
        fingerprint: of row and data; what was kept of others is not taken.
        values: task → measure → query → value in [0, 1].
    """

    row: str
    seed: int
    fingerprint: str
    values: Mapping[str, Mapping[str, Mapping[str, float]]]


def finished(row: Row, seed: int, data: LeiSet, folder: Path) -> Outcome | None:
    """Return what was kept of a row and seed, or None where there is nothing or it is of another row or data."""
    try:
        kept = Outcome(**json.loads(_file(row, seed, data, folder).read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return kept if kept.fingerprint == _fingerprint(row, data) else None


def run_once(row: Row, seed: int, data: LeiSet, folder: Path, train: Trainer | None) -> Outcome:
    """Run a row with one seed, score dev and tests, and keep the outcome.

    Raises:
        MissingExtraError: what the row needs is not installed.
    """
    place = folder / data.name / f"{row.id}-seed{seed}"

    def trained() -> Encoder:
        assert train is not None, "rows with an encoder are run only where there is a trainer"
        return train(row, seed, data, place)

    runs = answers(row, data, trained)
    reports = {task.name: judge(task, runs[task.name]) for task in (data.dev, *data.tests)}
    values = {name: {measure: dict(found) for measure, found in one.per_query.items()} for name, one in reports.items()}
    outcome = Outcome(row.id, seed, _fingerprint(row, data), values)
    file = _file(row, seed, data, folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_whole(file, json.dumps(asdict(outcome), indent=1).encode())
    return outcome


def _file(row: Row, seed: int, data: LeiSet, folder: Path) -> Path:
    return folder / data.name / f"{row.id}-seed{seed}.json"


def _fingerprint(row: Row, data: LeiSet) -> str:
    """Return a hash of what decides an outcome: the row's settings, and all texts, marks and judgements."""
    settings = {name: value for name, value in asdict(row).items() if name not in ("about", "reported")}
    settings["encoder"] = row.encoder.to_json() if row.encoder else None
    found = json.dumps([settings, data.digest], sort_keys=True)
    return hashlib.sha256(found.encode()).hexdigest()
