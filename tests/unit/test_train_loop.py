"""The training loop on an objective that is worked out by hand: steps, rates, stopping, checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tiny_training import tiny_corpus

from askalike.errors import DamagedModelError, ModelError
from askalike.models.encoders.settings import EncoderConfig
from askalike.training.loop import read_log
from askalike.training.recipe import LoopSettings, SgdSettings

torch = pytest.importorskip("torch", reason="training needs torch, which is not installed")

from askalike.models.encoders.networks.encoder import build  # noqa: E402
from askalike.training.loop import (  # noqa: E402
    Checkpoint,
    StageContext,
    run_stage,
)
from askalike.training.objectives import (  # noqa: E402
    Objective,
    TextNetwork,
    in_batches,
)


class Bowl(Objective):
    """(x - target)², a step with each target; the network is only along."""

    def __init__(self, targets: Sequence[float] = (1.0, 3.0), rows: int = 2) -> None:
        super().__init__(TextNetwork(build(EncoderConfig("cnn", 2, 2)), torch.zeros(3, 2)), tiny_corpus())
        for value in self.network.parameters():
            value.requires_grad_(False)
        self.x = torch.nn.Parameter(torch.zeros(1))
        self.targets, self.rows = np.array(targets), rows
        self.noise = False

    def batches(self, epoch: int, seed: int) -> Sequence[Any]:
        return in_batches(np.arange(len(self.targets)), 1)

    def forward(self, batch: Any) -> Any:
        noise = torch.rand(1) if self.noise else 0.0
        return (self.x - float(self.targets[batch[0]]) + noise).square().sum()


class Heard:
    """Keeps what it is told, and stops the training at a step."""

    def __init__(self, stop_at: int = -1) -> None:
        self.notices: list[str] = []
        self.steps = 0
        self._stop_at = stop_at

    def start(self, phase: str, total: int, unit: str) -> None:
        self.steps = 0 if "epoch 1/" in phase else self.steps

    def advance(self, count: int) -> None:
        self.steps += count
        if self.steps == self._stop_at:
            raise KeyboardInterrupt

    def notice(self, text: str) -> None:
        self.notices.append(text)


def place(folder: Path, **chosen: Any) -> StageContext:
    return StageContext(folder, **{"stage": "1-bowl", "identity": "a", **chosen})


def scripted(scores: Sequence[float]) -> Any:
    left = iter(scores)
    return lambda: {"mrr": next(left)}


def test_a_linear_schedule_rises_for_a_twentieth_and_falls_to_zero() -> None:
    settings = LoopSettings(learning_rate=2.0, schedule="linear")
    assert settings.rate(0.0) == pytest.approx(0, abs=1e-6)
    assert settings.rate(0.025) == pytest.approx(1.0)
    assert settings.rate(0.05) == pytest.approx(2.0)
    assert settings.rate(0.525) == pytest.approx(1.0)
    assert settings.rate(0.999) == pytest.approx(0, abs=3e-3)
    assert LoopSettings(learning_rate=2.0).rate(0.7) == 2.0


def test_the_rate_of_each_step_is_that_of_the_share_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[float] = []
    monkeypatch.setattr(LoopSettings, "rate", lambda self, done: steps.append(done) or 0.1)
    run_stage(Bowl(), LoopSettings(epochs=2, patience=0), dict, place(tmp_path))
    assert steps == [0.0, 0.25, 0.5, 0.75]


def test_the_steps_are_those_of_adam(tmp_path: Path) -> None:
    bowl = Bowl()
    ended = run_stage(bowl, LoopSettings(epochs=1, patience=0, learning_rate=0.5), dict, place(tmp_path))
    x, m, v = 0.0, 0.0, 0.0
    for step, target in enumerate((1.0, 3.0), start=1):
        slope = max(-5.0, min(5.0, 2 * (x - target)))  # clipped to length 5
        m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
        x -= 0.5 * (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)) ** 0.5 + 1e-8)
    assert bowl.x.item() == pytest.approx(x, rel=1e-5)
    assert (ended.epoch, ended.is_done, ended.best) == (1, True, None)


def test_the_steps_are_those_of_gradient_descent(tmp_path: Path) -> None:
    bowl = Bowl()
    settings = SgdSettings(epochs=2, patience=0, learning_rate=0.1, momentum=0.5, clip=100)
    run_stage(bowl, settings, dict, place(tmp_path))
    x, m = 0.0, 0.0
    for target in (1.0, 3.0, 1.0, 3.0):
        m = 0.5 * m + 2 * (x - target)
        x -= 0.1 * m
    assert bowl.x.item() == pytest.approx(x, rel=1e-5)


def test_a_lower_held_out_loss_is_better(tmp_path: Path) -> None:
    losses = iter([0.9, 0.4, 0.5])
    settings = SgdSettings(epochs=9, patience=1, stop_on="held-out loss")
    ended = run_stage(Bowl(), settings, lambda: {"held-out loss": next(losses)}, place(tmp_path))
    assert (ended.epoch, ended.best_epoch, ended.best) == (2, 1, -0.4)


def test_the_gradient_is_clipped_before_the_step(tmp_path: Path) -> None:
    slopes = []
    bowl = Bowl((100.0,))
    step = torch.optim.Adam.step
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.Adam, "step", lambda self: (slopes.append(bowl.x.grad.item()), step(self)))
        run_stage(bowl, LoopSettings(epochs=1, patience=0, clip=2.0), dict, place(tmp_path))
    assert slopes == [pytest.approx(-2.0)]


def test_the_log_tells_of_every_epoch(tmp_path: Path) -> None:
    bowl = Bowl()
    ticks: Iterator[float] = iter(range(100))
    run_stage(
        bowl,
        LoopSettings(epochs=2, patience=3, learning_rate=0.5),
        scripted([0.1, 0.3, 0.2]),
        place(tmp_path, clock=lambda: float(next(ticks))),
    )
    rows = read_log(tmp_path / "log.csv")
    assert [(row.epoch, row.step, row.measure) for row in rows] == [
        (0, 0, "mrr"),
        *((epoch, 2, measure) for epoch in (1, 2) for measure in ("loss", "seconds", "mrr")),
    ]
    assert rows[1].value == pytest.approx((1.0 + 2.5**2) / 2, rel=1e-4)
    assert rows[4].value < rows[1].value  # each epoch has a mean of its own


def test_early_stopping_keeps_the_best_epoch(tmp_path: Path) -> None:
    bowl, kept = Bowl(), []
    scores = iter([0.1, 0.4, 0.3, 0.2, 0.9])

    def dev() -> dict[str, float]:
        kept.append(bowl.x.item())
        return {"mrr": next(scores)}

    ended = run_stage(bowl, LoopSettings(epochs=9, patience=2, learning_rate=0.1), dev, place(tmp_path))
    assert (ended.epoch, ended.best_epoch, ended.best) == (3, 1, 0.4)
    assert bowl.x.item() == kept[1] != kept[3]


def test_an_epoch_before_the_first_that_counts_is_not_the_best(tmp_path: Path) -> None:
    bowl, settings = Bowl(), LoopSettings(epochs=3, patience=2)
    ended = run_stage(bowl, settings, scripted([0.9, 0.2, 0.3, 0.1]), place(tmp_path, first_epoch=1))
    assert (ended.epoch, ended.best_epoch, ended.best) == (3, 2, 0.3)


def test_without_patience_the_last_epoch_is_kept(tmp_path: Path) -> None:
    bowl = Bowl()
    ended = run_stage(bowl, LoopSettings(epochs=3, patience=0), scripted([0.9, 0.5, 0.4, 0.1]), place(tmp_path))
    assert (ended.epoch, ended.best_epoch, ended.best) == (3, 3, 0.1)
    assert bowl.x.item() > 0


def test_what_cannot_be_measured_stops_nothing_and_is_said(tmp_path: Path) -> None:
    heard = Heard()
    ended = run_stage(Bowl(), LoopSettings(epochs=3, patience=1), dict, place(tmp_path, progress=heard))
    assert (ended.epoch, ended.best) == (3, None)
    assert [text for text in heard.notices if "mrr is not measured, so all 3 epochs are run" in text]
    assert not [text for text in heard.notices if text.endswith(": ")], "an epoch of which nothing is known is not told"


@pytest.mark.parametrize("target", [float("nan"), float("inf"), 1e30])
def test_a_loss_that_is_no_number_ends_the_training(tmp_path: Path, target: float) -> None:
    with pytest.raises(ModelError, match=r"loss of 1-bowl is (nan|inf) .*epoch 1, step 2 \(train with a smaller"):
        run_stage(Bowl((1.0, target)), LoopSettings(epochs=1, patience=0), dict, place(tmp_path))


def test_the_generators_of_the_caller_are_left_alone(tmp_path: Path) -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    run_stage(Bowl(), LoopSettings(epochs=1, patience=0), dict, place(tmp_path))
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("stop_at", range(1, 7))
@pytest.mark.parametrize(
    "settings",
    [
        LoopSettings(epochs=3, patience=2, learning_rate=0.3, schedule="linear"),
        SgdSettings(epochs=3, patience=2, learning_rate=0.1, momentum=0.7),
        SgdSettings(epochs=3, patience=2, learning_rate=0.1),
    ],
    ids=["Adam", "SGD with momentum", "SGD"],
)
def test_a_training_stopped_at_any_step_goes_on_as_if_it_had_not_been(
    tmp_path: Path, stop_at: int, settings: LoopSettings
) -> None:
    ended = []
    for folder, stops in (("whole", [-1]), ("stopped", [stop_at, -1])):
        for stop in stops:
            bowl = Bowl()
            bowl.noise = True

            def dev(bowl: Bowl = bowl) -> dict[str, float]:
                return {"mrr": -abs(bowl.x.item() - 0.5)}

            at = place(tmp_path / folder, progress=Heard(stop), checkpoint_s=0.0)
            try:
                state = run_stage(bowl, settings, dev, at)
            except KeyboardInterrupt:
                assert stop == stop_at
                continue
            ended.append((bowl.x.item(), state))
    assert ended[0] == ended[1]
    logs = [read_log(tmp_path / folder / "log.csv") for folder in ("whole", "stopped")]
    first, second = ([row for row in log if row.measure != "seconds"] for log in logs)
    assert first == second


@pytest.mark.parametrize("damage", ["short", "empty", "noise", "no state", "a folder", "other parameters"])
def test_a_damaged_checkpoint_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    settings = LoopSettings(epochs=1, patience=0)
    run_stage(Bowl(), settings, dict, place(tmp_path))
    path = tmp_path / "1-bowl.safetensors"
    whole = path.read_bytes()
    contents = {
        "short": whole[:-3],
        "empty": b"",
        "noise": b"x" * 300,
        "no state": whole.replace(b'"state"', b'"stat_"'),
    }
    path.unlink()
    if damage == "a folder":
        path.mkdir()
    elif damage == "other parameters":
        Checkpoint("a", tensors={"model.y": torch.zeros(1)}).save(path)
    else:
        path.write_bytes(contents[damage])
    with pytest.raises(DamagedModelError, match=r"checkpoint .*1-bowl.safetensors cannot be read: .*delete it"):
        run_stage(Bowl(), settings, dict, place(tmp_path))
