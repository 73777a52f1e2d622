"""The model that a training has finished, kept until it is taken or another training begins anew.

It is told by what it was made of, so that it can be taken later without training again: questions that came after it
do not matter to that, whatever else has changed does. ::

    finished.json  what the model was made of
    model/         the model

Enters: a training's work folder, what it was asked to do and its data. Leaves: the same folder.
May import: durable, forum's names of models, train's data, its own folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from askalike.durable import replace_whole
from askalike.forum.model_source import fingerprint
from askalike.models.encoders.folder import OWNED, refuse_foreign
from askalike.removal import remove_owned
from askalike.training.corpus import TrainingData

__all__ = ["MODEL", "clear_finished", "is_finished", "keep_finished"]

MODEL: Final = "model"
_FINISHED: Final = "finished.json"
_GOING: Final = ".model.going"


def keep_finished(folder: Path, asked: Mapping[str, str | int], data: TrainingData) -> None:
    """Write down what the model in the work folder was made of.

    Args:
        asked: what decides the model beside its data; ``start`` is the fingerprint of the model that it goes on from.
    """
    stored = {
        "model": fingerprint(folder / MODEL),
        "asked": dict(asked),
        "questions": len(data.questions),
        "learned": _learned(data, len(data.questions)),
    }
    replace_whole(folder / _FINISHED, json.dumps(stored, indent=1).encode())


def is_finished(folder: Path, asked: Mapping[str, str | int], data: TrainingData) -> bool:
    """Return whether the work folder holds the model that this asks for, and nothing but new questions has come since.

    A training that goes on from the finished model itself asks for it too: that is the forum's own once it was taken.

    Raises:
        ModelError: the model's manifest cannot be read.
    """
    try:
        stored = json.loads((folder / _FINISHED).read_bytes())
        model, before, count = stored["model"], stored["asked"], int(stored["questions"])
        learned, start = stored["learned"], stored["asked"]["start"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return False
    if not (folder / MODEL).is_dir() or fingerprint(folder / MODEL) != model:
        return False
    wanted = {**asked, "start": start} if asked["start"] == model else dict(asked)
    return bool(wanted == before and _learned(data, count) == learned)


def clear_finished(folder: Path) -> None:
    """Take the finished model away.

    Raises:
        ModelExistsError: its folder is a link, or holds something else too.
    """
    (folder / _FINISHED).unlink(missing_ok=True)  # first: without it nothing is taken for finished
    remove_owned(folder / _GOING, OWNED)
    if (folder / MODEL).is_dir():
        refuse_foreign(folder / MODEL)
        (folder / MODEL).rename(folder / _GOING)  # so that no part of a model is ever found at its place
        remove_owned(folder / _GOING, OWNED)


def _learned(data: TrainingData, count: int) -> str:
    """Return the digest of the first questions, in the order of their coming, and of the marks that are learned."""
    return TrainingData(data.questions[:count], data.pairs).digest()
