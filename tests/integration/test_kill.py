"""A killed writer leaves a forum that holds what it acknowledged; a few rounds of the benchmark's fifty."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from benchmarks.kill import AFTER, one_round

from askalike.data import bundled_forum


@pytest.mark.parametrize("seed", range(2))
def test_a_killed_forum_holds_every_acknowledged_write(tmp_path: Path, seed: int) -> None:
    archive = shutil.copy(bundled_forum(), tmp_path / "archive.jsonl")
    one_round(tmp_path / "killed.forum", archive, seed, AFTER[seed % 2], random.Random(seed).uniform(0, 1.0))
