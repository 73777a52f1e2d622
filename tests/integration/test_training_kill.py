"""A training that is killed goes on to the model that it would have made."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.tiny_training import recipe, stage, tiny_data

from askalike.training.loop import read_log
from askalike.training.recipe import LoopSettings

torch = pytest.importorskip("torch", reason="training needs torch, which is not installed")

from askalike.training.encoder import TrainingRun, train_encoder  # noqa: E402

REPOSITORY = Path(__file__).resolve().parents[2]
LOOP = LoopSettings(epochs=3, patience=2, learning_rate=0.02)
RECIPE = recipe(stage("contrastive", LOOP, dropout=0.2), stage("max-margin", LOOP), is_trained=True)

PROGRAM = """
import sys
from pathlib import Path
from tests.integration.test_training_kill import RECIPE
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


def begun(work: Path, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(work), str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def without_seconds(folder: Path) -> list[Any]:
    return [row for row in read_log(folder / "log.csv") if row.measure != "seconds"]


@pytest.mark.slow
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
