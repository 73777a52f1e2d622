"""The folder that a training keeps its checkpoints in, and what it is to be told apart by.

``plan.json`` says what the folder was last used for: a recipe, data, a seed, a model to go on from. Every other file
knows by itself what it was made of, and is not used for anything else. ::

    lock              held while a training runs
    plan.json         what the training was asked to do
    log.csv           one measured value a line
    words.safetensors first word vectors
    N-*.safetensors   one checkpoint a stage; siamese.safetensors that of a siamese network
    finished.json     see ``finished_model``
    model/            the finished model, until it is taken

Enters: a path and a plan. Leaves: the folder, locked. May import: durable, errors, its own folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import filelock

from askalike.durable import replace_whole
from askalike.errors import BusyForumError
from askalike.experiments.finished_model import MODEL, clear_finished
from askalike.models.encoders.folder import OWNED
from askalike.removal import Owned, remove_owned

__all__ = ["Beginning", "clear_work", "remove_checkpoints", "work_folder"]

Beginning = Literal["anew", "goes on", "changed", "finished"]
"""``anew``: nothing is there. ``goes on``: checkpoints of this plan are. ``changed``: they were of another plan.
``finished``: the model is there, and nothing is to be trained."""

_PLAN: Final = "plan.json"
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
    lock = filelock.FileLock(path / "lock", timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise BusyForumError(f"another training runs in {path}", "wait until it has ended, or stop it") from None
    try:
        found = _beginning(path / _PLAN, plan, is_fresh)
        _clear_litter(path)
        if is_fresh:
            clear_work(path)
            (path / "log.csv").unlink(missing_ok=True)
        replace_whole(path / _PLAN, json.dumps(plan, indent=1).encode())
        yield found
    finally:
        lock.release()


def clear_work(path: Path) -> None:
    """Take away the finished model and what only a training that goes on would need; the log stays."""
    (path / _PLAN).unlink(missing_ok=True)  # first: without it the next training begins anew
    clear_finished(path)
    remove_checkpoints(path)


def remove_checkpoints(path: Path) -> None:
    """Take away what only a training that goes on would need, and no other file of this kind."""
    for file in path.glob("*.safetensors"):
        if re.fullmatch(_CHECKPOINT, file.name):
            file.unlink()


def _clear_litter(path: Path) -> None:
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
