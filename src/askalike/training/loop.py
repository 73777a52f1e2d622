"""The training loop: Adam or SGD, clipped gradients, dev measures after each epoch, early stopping, checkpoints, a log.

``log.csv`` has one value a line, so that any tool can plot it: ``stage, epoch, step, measure, value``. Epoch 0 is the
state before the first step. A training that goes on after a kill takes back what it had written after its checkpoint.

Determinism: batches come from (seed, epoch), dropout from (seed, epoch, step). A checkpoint is one file that
is replaced whole: a training that was killed takes the same steps as one that was never stopped.

Source: Adam: Kingma and Ba 2015 (ICLR).
"""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from pathlib import Path
from typing import Any, Final

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from askalike.errors import DamagedModelError, ModelError
from askalike.files import replace_whole
from askalike.progress import Progress, SilentProgress
from askalike.training.objectives import Trainable
from askalike.training.recipe import LOWER_IS_BETTER, LoopSettings, SgdSettings

COLUMNS = ("stage", "epoch", "step", "measure", "value")


@dataclass(frozen=True, slots=True)
class Entry:
    """One value."""

    stage: str
    epoch: int
    step: int
    measure: str
    value: float


class Log:
    """A file that values are added to; every line is written at once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, stage: str, epoch: int, earlier: Collection[str] = ()) -> None:
        """Keep what was written of the stages before this one, and of this one up to ``epoch``; take back the rest."""
        kept = [
            entry
            for entry in read_log(self.path)
            if entry.stage in earlier or (entry.stage == stage and entry.epoch <= epoch)
        ]
        replace_whole(self.path, (",".join(COLUMNS) + "\n" + _lines(kept)).encode())

    def add(self, stage: str, epoch: int, step: int, measures: Mapping[str, float]) -> None:
        """Write the values of one moment."""
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(_lines(Entry(stage, epoch, step, name, value) for name, value in measures.items()))


def read_log(path: Path) -> list[Entry]:
    """Return what a log holds, nothing where there is none; an unfinished last line is left out.

    Raises:
        DamagedModelError: a line that is no entry; names it.
    """
    if not path.exists():
        return []
    whole = path.read_text(encoding="utf-8", errors="replace").rpartition("\n")[0]
    examples = []
    for number, row in enumerate(csv.reader(io.StringIO(whole)), start=1):
        if number == 1 and tuple(row) == COLUMNS:
            continue
        try:
            stage, epoch, step, measure, value = row
            examples.append(Entry(stage, int(epoch), int(step), measure, float(value)))
        except ValueError as error:
            raise DamagedModelError(
                f"{path}, line {number}: {','.join(row)[:80]!r}, but expected {', '.join(COLUMNS)}",
                "take the line away, or delete the file",
            ) from error
    return examples


def _lines(entries: Iterable[Entry]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        (entry.stage, entry.epoch, entry.step, entry.measure, f"{entry.value:.6g}") for entry in entries
    )
    return text.getvalue()


CLEARED_EVERY: Final = 64
"""Steps between clearings. Moments shrink to 0.9^64 = 1e-3 meanwhile: from 1e-30 they cannot become denormal."""

_NOTHING: Final = 1e-30  # its square root is far below the ε = 1e-8 that Adam adds to it


def optimiser(settings: LoopSettings, learned: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Return what updates parameters by their gradients."""
    if isinstance(settings, SgdSettings):
        return torch.optim.SGD(learned, lr=settings.learning_rate, momentum=settings.momentum)
    return torch.optim.Adam(learned, lr=settings.learning_rate, fused=True)


@torch.no_grad()
def clear_moments(updater: torch.optim.Optimizer) -> None:
    """Set moments of at most 1e-30 to zero, which no update can tell from them.

    A parameter without a gradient for some time, such as the vector of a rare word, keeps moments that shrink by a
    factor at each step: m ← 0.9 m. After some 700 steps they are denormal numbers, below 1.2e-38, for which processors
    take ten times as long, and there they stay: nine tenths of four times the smallest number is, rounded, the same.
    """
    for state in updater.state.values():
        for moment in state.values():
            if isinstance(moment, Tensor) and moment.dim():
                torch.hardshrink(moment, _NOTHING, out=moment)


_STATE = "state"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything that the rest of a stage depends on; batches and dropout are drawn from (seed, epoch, step).

    Args:
        identity: of everything that the stage is made of; another training does not go on from this file.
        step: steps of the epoch after them that are done.
        best: the measure of the best epoch so far, higher is better; None before the first.
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
    return DamagedModelError(f"checkpoint {path} cannot be read: {what}", "delete it to start the stage again")


@dataclass(frozen=True, slots=True)
class StageContext:
    """Where and as what a stage runs.

    Args:
        identity: of everything that the stage is made of.
        earlier: names of the stages before it.
        checkpoint_s: seconds between checkpoints within an epoch, ≥ 0.
        first_epoch: the first one that may be the best, ≥ 0.
        clock: seconds from any moment on.
        on_epoch: called with each epoch and its measures, 0 before the first; again with the same one where a training
            was stopped between that and the checkpoint after it.
    """

    folder: Path
    stage: str
    identity: str
    earlier: tuple[str, ...] = ()
    seed: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    progress: Progress = field(default_factory=SilentProgress)
    checkpoint_s: float = 120.0
    first_epoch: int = 0
    clock: Callable[[], float] = time.monotonic
    on_epoch: Callable[[int, Mapping[str, float]], None] = lambda *_: None

    @property
    def checkpoint(self) -> Path:
        """Return the checkpoint's file."""
        return self.folder / f"{self.stage}.safetensors"


class _StageRun:
    """One stage while it runs."""

    def __init__(
        self,
        objective: Trainable,
        settings: LoopSettings,
        dev: Callable[[], Mapping[str, float]],
        context: StageContext,
    ) -> None:
        self.objective = objective.to(context.device)
        self.settings = settings
        self.dev = dev
        self.context = context
        self.log = Log(context.folder / "log.csv")
        self.learned = {name: value for name, value in objective.named_parameters() if value.requires_grad}
        self.optimiser = optimiser(settings, self.learned.values())
        self.best: dict[str, Tensor] = {}
        self.state = Checkpoint(context.identity)
        self.saved_at = context.clock()

    def run(self) -> None:
        checkpoint = self._stored_checkpoint()
        if checkpoint is not None:
            self._restore(checkpoint)
            if not checkpoint.is_done:
                place = f"epoch {checkpoint.epoch + 1}, batch {checkpoint.step + 1}"
                self.context.progress.notice(f"{self.context.stage} goes on from {place}")
        if not self.state.is_done:
            self.log.begin(self.context.stage, self.state.epoch if checkpoint else -1, self.context.earlier)
        if checkpoint is None:
            self._judge(0, {})
        while not self.state.is_done:
            self._epoch()
        if self.best:
            self._load(self.best)

    def _stored_checkpoint(self) -> Checkpoint | None:
        """Return what to go on from; a checkpoint of another training is set aside."""
        path, context = self.context.checkpoint, self.context
        checkpoint = Checkpoint.load(path, context.identity)
        if checkpoint is None and path.exists():
            aside = path.with_suffix(".other.safetensors")
            path.replace(aside)
            context.progress.notice(
                f"{path} belongs to another training (other data, settings or seed): {context.stage} starts from the "
                f"beginning, and the file is kept as {aside.name}"
            )
        return checkpoint

    def _epoch(self) -> None:
        context, state = self.context, self.state
        batches = self.objective.batches(state.epoch, context.seed)
        steps = len(batches)
        context.progress.start(f"{context.stage} epoch {state.epoch + 1}/{self.settings.epochs}", steps, "batches")
        context.progress.advance(state.step)
        begun, first = context.clock(), state.step
        self.objective.train()
        for step in range(state.step, steps):
            loss = self._step(batches[step], (state.epoch + step / steps) / self.settings.epochs, (state.epoch, step))
            self.state = replace(self.state, step=step + 1, loss=self.state.loss + loss)
            if (step + 1) % CLEARED_EVERY == 0 or step + 1 == steps:
                clear_moments(self.optimiser)
            context.progress.advance(1)
            if context.clock() - self.saved_at >= context.checkpoint_s:
                self._save()
        seconds = context.clock() - begun
        measures = {"loss": self.state.loss / steps, "seconds": seconds * steps / max(steps - first, 1)}
        self.state = replace(self.state, epoch=state.epoch + 1, step=0, loss=0.0)
        self._judge(steps, measures)

    def _step(self, batch: object, done: float, at: tuple[int, int]) -> float:
        context = self.context
        seed = hash((context.seed, *at, 0)) & 0x7FFFFFFFFFFFFFFF
        torch.default_generator.manual_seed(seed)
        if context.device.type == "cuda":
            torch.cuda.manual_seed(seed)
        for group in self.optimiser.param_groups:
            group["lr"] = self.settings.rate(done)
        self.optimiser.zero_grad(set_to_none=True)
        loss: Tensor = self.objective(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = float(torch.nn.utils.clip_grad_norm_(self.learned.values(), self.settings.clip))
        value = float(loss.detach())
        if not (isfinite(value) and isfinite(norm)):
            raise ModelError(
                f"the loss of {context.stage} is {value} and its gradient has length {norm} in epoch {at[0] + 1}, "
                f"step {at[1] + 1}",
                "train with a smaller learning_rate",
            )
        self.optimiser.step()
        return value

    def _judge(self, steps: int, measures: dict[str, float]) -> None:
        """Measure, log, remember the best, decide whether to go on, save."""
        context, settings = self.context, self.settings
        measures = {**measures, **self.dev(), **self.objective.held_out()}
        epoch = self.state.epoch
        score = measures.get(settings.stop_on)
        if score is None and settings.patience and epoch == 0:
            context.progress.notice(
                f"{context.stage}: {settings.stop_on} is not measured, so all {settings.epochs} epochs are run and the "
                "last one is kept"
            )
        if score is not None and settings.stop_on.startswith(LOWER_IS_BETTER):
            score = -score
        if not settings.patience or score is None:  # the last epoch is kept
            self.state = replace(self.state, best=score, best_epoch=epoch)
        elif epoch >= context.first_epoch and (self.state.best is None or score > self.state.best):
            self.state = replace(self.state, best=score, best_epoch=epoch)
            self.best = {name: value.detach().clone() for name, value in self.learned.items()}
        is_worn = bool(settings.patience) and epoch - self.state.best_epoch >= settings.patience
        self.state = replace(self.state, is_done=epoch >= settings.epochs or is_worn)
        self.log.add(context.stage, epoch, steps, measures)
        if measures:  # before the first epoch, only what dev measures
            context.progress.notice(_line(context.stage, epoch, measures))
        context.on_epoch(epoch, measures)
        self._save()

    def _save(self) -> None:
        self.saved_at = self.context.clock()
        tensors: dict[str, Tensor] = {f"model.{name}": value for name, value in self.learned.items()}
        tensors |= {f"best.{name}": value for name, value in self.best.items()}
        if not self.state.is_done:
            tensors |= {
                f"adam.{name}.{key}": value
                for name, parameter in self.learned.items()
                for key, value in self.optimiser.state.get(parameter, {}).items()
                if isinstance(value, Tensor)
            }
        replace(self.state, tensors=tensors).save(self.context.checkpoint)

    def _restore(self, checkpoint: Checkpoint) -> None:
        self.state = replace(checkpoint, tensors={})
        self._load(checkpoint.part("model"))
        self.best = {name: value.to(self.context.device) for name, value in checkpoint.part("best").items()}
        moments = checkpoint.part("adam")
        for name, parameter in self.learned.items():
            own = {key.rpartition(".")[2]: value for key, value in moments.items() if key.rpartition(".")[0] == name}
            if own:
                self.optimiser.state[parameter] = {key: value.to(self.context.device) for key, value in own.items()}

    @torch.no_grad()
    def _load(self, values: Mapping[str, Tensor]) -> None:
        shapes, expected = ({name: value.shape for name, value in arrays.items()} for arrays in (values, self.learned))
        if shapes != expected:
            raise damaged(self.context.checkpoint, "its parameters are not those of the network")
        for name, parameter in self.learned.items():
            parameter.copy_(values[name])


def run_stage(
    objective: Trainable, settings: LoopSettings, dev: Callable[[], Mapping[str, float]], context: StageContext
) -> Checkpoint:
    """Train until the epochs are done or the dev measure no longer grows; the objective then holds the best epoch.

    A stage that was stopped goes on from its checkpoint; one that had ended is only loaded.

    Args:
        dev: measures of the network as it is; asked before the first epoch and after each.

    Returns:
        where it ended, without tensors.
    """
    context.folder.mkdir(parents=True, exist_ok=True)
    with torch.random.fork_rng(devices=[context.device] if context.device.type == "cuda" else []):
        run = _StageRun(objective, settings, dev, context)
        run.run()
    return run.state


def _line(stage: str, epoch: int, measures: Mapping[str, float]) -> str:
    return f"{stage}, epoch {epoch}: " + ", ".join(f"{name} {value:.4g}" for name, value in measures.items())
