"""Training in processes of its own: one that is killed, and two that train together."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.tiny_training import recipe, stage, tiny_data

from askalike.errors import SettingError
from askalike.models.encoders.model import Model
from askalike.training.loop import read_log
from askalike.training.recipe import LoopSettings

torch = pytest.importorskip("torch", reason="training needs torch, which is not installed")

from askalike.training.encoder import TrainingRun, train_encoder  # noqa: E402
from askalike.training.loop import DistributedContext, joined  # noqa: E402

REPOSITORY = Path(__file__).resolve().parents[2]
LOOP = LoopSettings(epochs=3, patience=2, learning_rate=0.02)
RECIPE = recipe(stage("contrastive", LOOP, dropout=0.2), stage("max-margin", LOOP), is_trained=True)

PROGRAM = """
import sys
from pathlib import Path
from tests.integration.test_training_processes import RECIPE
from tests.tiny_training import tiny_data
import torch
from askalike.training.encoder import TrainingRun, train_encoder
from askalike.progress import SilentProgress

class Told(SilentProgress):
    def advance(self, count):
        print("batch", flush=True)

torch.set_num_threads(1)
work, out = map(Path, sys.argv[1:])
train_encoder(RECIPE, tiny_data(), TrainingRun(work, progress=Told(), checkpoint_s=0.0)).save(out)
"""


def begun(work: Path, out: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(work), str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env=os.environ | environment,
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def without_seconds(folder: Path) -> list[Any]:
    return [row for row in read_log(folder / "log.csv") if row.measure != "seconds"]


def test_a_killed_training_goes_on_to_the_same_model(tmp_path: Path) -> None:
    train_encoder(RECIPE, tiny_data(), TrainingRun(tmp_path / "whole")).save(tmp_path / "expected")
    with begun(tmp_path / "work", tmp_path / "none") as process:
        assert process.stdout is not None
        for _ in range(12):  # then it is somewhere in the second epoch of the first stage
            assert process.stdout.readline() == "batch\n"
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "none").exists()
    train_encoder(RECIPE, tiny_data(), TrainingRun(tmp_path / "work")).save(tmp_path / "found")
    assert contents(tmp_path / "found") == contents(tmp_path / "expected")
    assert without_seconds(tmp_path / "work") == without_seconds(tmp_path / "whole")


def test_two_processes_make_one_model_and_the_first_alone_writes(tmp_path: Path) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    together = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    work = tmp_path / "work"
    processes = [begun(work, tmp_path / f"model{rank}", **together, RANK=str(rank)) for rank in range(2)]
    told = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], told
    assert told[1][0] == ""  # the first one alone tells
    assert contents(tmp_path / "model0") == contents(tmp_path / "model1")
    stages = ["1-contrastive", "2-max-margin"]
    assert sorted(file.name for file in work.iterdir()) == sorted(
        ["log.csv", "words.safetensors", *(f"{name}.safetensors" for name in stages)]
    )
    rows = read_log(work / "log.csv")
    assert len({(row.stage, row.epoch, row.measure) for row in rows}) == len(rows)
    # half the batches each: 32 + 16 + 4 views in batches of 6, and 16 pairs in batches of 4
    assert {(row.stage, row.step) for row in rows if row.epoch} == {("1-contrastive", 5), ("2-max-margin", 2)}
    model = Model.load(tmp_path / "model0")
    assert model.encode(tiny_data().questions).any(axis=1).all()
    alone = train_encoder(RECIPE, tiny_data(), TrainingRun(tmp_path / "alone"))
    assert model.parameters()["input"].tolist() != alone.parameters()["input"].tolist()


def test_one_process_is_a_world_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined(torch.device("cpu")) as world:
        assert world == DistributedContext(0, 1)
        assert world.agreed("value") == "value"
        world.wait()
        with world.first_alone():
            module = torch.nn.Linear(1, 1)
        assert world.parallel(module) is module


@pytest.mark.parametrize("environment", [{}, {"RANK": "0"}, {"RANK": "x", "MASTER_ADDR": "a", "MASTER_PORT": "1"}])
def test_processes_that_cannot_find_each_other_are_an_error(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"WORLD_SIZE": "2", **environment}.items():
        monkeypatch.setenv(name, value)
    expected = pytest.raises(SettingError, match=r"WORLD_SIZE is '2', but the processes .* \(start them with torchrun")
    with expected, joined(torch.device("cpu")):
        pass


def test_a_group_that_is_there_already_is_used_and_left(tmp_path: Path) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'meet'}", rank=0, world_size=1)
    try:
        with joined(torch.device("cpu")) as world:
            assert world == DistributedContext(0, 1)
        assert torch.distributed.is_initialized()
    finally:
        torch.distributed.destroy_process_group()
