"""The folder that a training works in: its checkpoints, what they belong to, and the finished model until it is taken.

``plan.json`` says what the folder was last used for: a recipe, data, a seed. Every other file
knows by itself what it was made of, and is not used for anything else. A finished model is known by what it was made
of, so that it can be taken later without training again: questions that came after it do not matter to that, whatever
else has changed does. ::

    lock              held while a training runs
    plan.json         what the training was asked to do
    log.csv           one measured value a line
    words.safetensors first word vectors
    N-*.safetensors   one checkpoint a stage; siamese.safetensors that of a siamese network
    finished.json     what the finished model was made of
    model/            the finished model, until it is taken
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import filelock

from askalike.errors import BusyForumError
from askalike.files import Owned, holding, remove_owned, replace_whole
from askalike.index.model_source import fingerprint
from askalike.models.folder import OWNED, refuse_foreign
from askalike.training.corpus import TrainingData

Beginning = Literal["anew", "goes on", "changed", "finished"]
"""``anew``: nothing is there. ``goes on``: checkpoints of this plan are. ``changed``: they were of another plan.
``finished``: the model is there, and nothing is to be trained."""

MODEL: Final = "model"
_PLAN: Final = "plan.json"
_FINISHED: Final = "finished.json"
_GOING: Final = ".model.going"
_CHECKPOINT: Final = r"(words|siamese|\d+-.+)\.safetensors"
_LITTER: Final = r".+\.\d+\.tmp"
_MODELS_LITTER: Final = rf"\.{MODEL}\..+"


@contextmanager
def work_folder(path: Path, plan: Mapping[str, str | int], *, is_fresh: bool = False) -> Iterator[Beginning]:
    """Hold the folder for one training with this plan; it is made where it is missing.

    Args:
        is_fresh: take away what an earlier training left.

    Raises:
        BusyForumError: another training runs in it.
    """
    path.mkdir(parents=True, exist_ok=True)
    busy = BusyForumError(f"another training runs in {path}", "wait until it has ended, or stop it")
    with holding(filelock.FileLock(path / "lock"), 0, busy):
        begun = _beginning(path / _PLAN, plan, is_fresh)
        _clear_half_written(path)
        if is_fresh:
            clear_work(path)
            (path / "log.csv").unlink(missing_ok=True)
        replace_whole(path / _PLAN, json.dumps(plan, indent=1).encode())
        yield begun


def keep_finished(folder: Path, plan: Mapping[str, str | int], data: TrainingData) -> None:
    """Write down what the model in the work folder was made of.

    Args:
        plan: what decides the model beside its data.
    """
    stored = _made_of(folder, plan, data, len(data.questions))
    replace_whole(folder / _FINISHED, json.dumps(stored, indent=1).encode())


def is_finished(folder: Path, plan: Mapping[str, str | int], data: TrainingData) -> bool:
    """Return whether the model that this asks for is in the work folder, and only new questions have come since."""
    try:
        stored = json.loads((folder / _FINISHED).read_bytes())
        count = int(stored["questions"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return False
    return (folder / MODEL).is_dir() and bool(stored == _made_of(folder, plan, data, count))


def clear_work(path: Path) -> None:
    """Take away the finished model and what only a training that goes on would need; the log stays."""
    (path / _PLAN).unlink(missing_ok=True)  # first: without it the next training begins anew
    (path / _FINISHED).unlink(missing_ok=True)  # without it nothing is taken for finished
    remove_owned(path / _GOING, OWNED)
    if (path / MODEL).is_dir():
        refuse_foreign(path / MODEL)
        (path / MODEL).rename(path / _GOING)  # so that no part of a model is ever found at its place
        remove_owned(path / _GOING, OWNED)
    remove_checkpoints(path)


def remove_checkpoints(path: Path) -> None:
    """Take away what only a training that goes on would need, and no other file of this kind."""
    for file in path.glob("*.safetensors"):
        if re.fullmatch(_CHECKPOINT, file.name):
            file.unlink()


def _clear_half_written(path: Path) -> None:
    """Take away what was half written when a training was killed; nobody else writes here."""
    for file in path.iterdir():
        if re.fullmatch(_LITTER, file.name) and not file.is_dir():
            file.unlink()
        elif re.fullmatch(_MODELS_LITTER, file.name):
            remove_owned(file, Owned(OWNED.files, ((re.escape(MODEL), OWNED),)))


def _beginning(file: Path, plan: Mapping[str, str | int], is_fresh: bool) -> Beginning:
    if is_fresh or not file.exists():
        return "anew"
    try:
        return "goes on" if json.loads(file.read_bytes()) == dict(plan) else "changed"
    except ValueError:
        return "changed"


def _made_of(folder: Path, plan: Mapping[str, str | int], data: TrainingData, count: int) -> dict[str, object]:
    """Return what the finished model was made of: the first ``count`` questions, oldest first, and all links."""
    learned = TrainingData(data.questions[:count], data.pairs).digest()
    return {"model": fingerprint(folder / MODEL), "asked": dict(plan), "questions": count, "learned": learned}
