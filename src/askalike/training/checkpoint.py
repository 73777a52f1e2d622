"""How far a stage of training has come, in one file that is replaced whole: a killed training goes on from it exactly.

Enters: tensors and counters. Leaves: the same. May import: durable, errors, torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from askalike.durable import replace_whole
from askalike.errors import DamagedModelError

__all__ = ["Checkpoint", "damaged"]

_STATE = "state"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything that the rest of a stage depends on; batches and dropout are drawn from (seed, epoch, step).

    Args:
        identity: of everything that the stage is made of; another training does not go on from this file.
        epoch: epochs that are done.
        step: steps of the epoch after them that are done.
        loss: their losses added up.
        words: their words, for the log.
        best: the measure of the best epoch so far, higher is better; None before the first.
        best_epoch: that epoch.
        is_done: the stage has ended; the optimiser's moments are gone.
        tensors: name → parameter ("model."), parameter of the best epoch ("best."), moments of Adam
            or of SGD ("adam.").
    """

    identity: str
    epoch: int = 0
    step: int = 0
    loss: float = 0.0
    best: float | None = None
    best_epoch: int = 0
    is_done: bool = False
    tensors: Mapping[str, Tensor] = field(default_factory=dict)

    def part(self, name: str) -> dict[str, Tensor]:
        """Return the tensors of one part, without its name."""
        start = f"{name}."
        return {key.removeprefix(start): value for key, value in self.tensors.items() if key.startswith(start)}

    def save(self, path: Path) -> None:
        """Put the checkpoint at ``path`` in the place of an older one."""
        state = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "tensors"}
        whole = {name: tensor.detach().cpu().contiguous() for name, tensor in self.tensors.items()}
        replace_whole(path, safetensors.torch.save(whole, {_STATE: json.dumps(state)}))

    @classmethod
    def load(cls, path: Path, identity: str) -> Checkpoint | None:
        """Return the checkpoint, or None where there is none of the training with this identity.

        Raises:
            DamagedModelError: the file cannot be read.
        """
        if not path.exists():
            return None
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                state: dict[str, Any] = json.loads(file.metadata()[_STATE])
                if state["identity"] != identity:
                    return None
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no mapping
            return cls(**state, tensors=tensors)
        except (safetensors.SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            raise damaged(path, str(error)) from error


def damaged(path: Path, what: str) -> DamagedModelError:
    """Return the error for a checkpoint that cannot be used."""
    return DamagedModelError(f"checkpoint {path} cannot be read: {what}", "delete it to begin the stage anew")
